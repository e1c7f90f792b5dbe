#!/usr/bin/env python3
"""Calls between browsers and devices: a Chromium with the web phone, `handset run` and `handset call`.

usage: device_test.py HANDSET [--json FILE]

Ends with 0 if every check held. Needs selenium, chromium-driver, pesq, scipy and alsa-utils' voices; scripts/interop
sees to all of them. With --json the figures are kept as one JSON object.
"""

import argparse
import base64
import contextlib
import json
import pathlib
import sys
import tempfile
import time

import numpy
from selenium.common.exceptions import WebDriverException

import speech
from devices import Caller, Device
from phones import Exchange, Failed, Phone, wait

SCRIPT = (pathlib.Path(__file__).parent / "page_side.js").read_text()
CHECKS = []
# What a clean network must leave of speech: 4.0 after one coding.
LEAST = 4.0
# Time for the jitter buffers to settle, before what is heard is compared, in seconds.
SETTLING = 2.0


def check(function):
    """Marks a function as one of the checks; its first docstring line says what holds."""
    CHECKS.append(function)
    return function


class Stage:
    """An exchange, a device that echoes, and Alice's browser, whose microphone hears recorded voices."""

    def __init__(self, handset):
        self.handset = handset
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.original = speech.phrases()
        speech.write(self.path / "microphone.wav", self.original)
        speech.write(self.path / "play.wav", numpy.concatenate(
            [numpy.zeros(int(SETTLING * speech.RATE), numpy.float32), self.original]))
        self.figures = {}
        self.open = contextlib.ExitStack()
        self.exchange = Exchange(handset)
        self.open.callback(self.exchange.stop)
        self.device = self.run()
        self.alice = self.phone("alice")
        version = self.alice.driver.capabilities
        self.figures["chromium"] = version["browserVersion"]

    def run(self, **options):
        device = Device(self.handset, self.exchange, **options)
        self.open.callback(device.stop)
        return device

    def phone(self, name):
        phone = Phone(self.exchange.url, microphone=self.path / "microphone.wav", script=SCRIPT)
        self.open.callback(phone.close)
        phone.sign_in(name)
        return phone

    def caller(self, callee, *options):
        caller = Caller(self.handset, self.exchange, callee, *options)
        self.open.callback(caller.stop)
        return caller

    def close(self):
        self.open.close()
        self.folder.cleanup()


def listen(phone, seconds):
    text = phone.run_async(f"listen({seconds})", seconds + 30)
    return numpy.frombuffer(base64.b64decode(text), "<f4")


def holds(what, figure, least):
    if figure < least:
        raise Failed(f"{what} is {figure:.2f}, and {least} is the least")


def talk(stage, name="echo"):
    """Alice calls a device, and hears something."""
    stage.alice.call(name)
    stage.alice.phase("talking")
    wait("sound comes in", lambda: stage.alice.run("return moments.media"))


def hang_up(phone):
    phone.click("#hang-up")
    phone.run_async("rest()")


def calls_over(device, count):
    """The device's notes on its calls, once there are so many."""
    wait(f"the device has noted {count} calls", lambda: len(device.tells("A call is over")) >= count)
    return [entry.get("metadata", entry) for entry in device.events("A call is over")]


# The checks, in order: before and after each, nobody is in a call.


@check
def echoes(stage):
    """A browser calls the device, and hears its own voice come back well, after two codings."""
    talk(stage)
    time.sleep(SETTLING)
    heard = listen(stage.alice, 11)
    hang_up(stage.alice)
    over = calls_over(stage.device, 1)[-1]
    if over["reason"] != "completed":
        raise Failed(f"the device saw the hang-up as {over}")
    stage.figures["pesq_echo"] = speech.score(stage.original, heard, repeats=True)
    speech.write("/tmp/lab-browsers/echo.wav", heard)


@check
def is_called(stage):
    """The device calls a browser, which answers; either hears the other well."""
    stage.alice.run("window.answers = true")
    record = stage.path / "record.wav"
    caller = stage.caller("alice", "--play", stage.path / "play.wav", "--record", record, "--duration", 14)
    stage.alice.phase("talking")
    heard = listen(stage.alice, 13)
    report = caller.report()
    stage.alice.run("window.answers = false")
    stage.alice.run_async("rest()")
    if (report["outcome"], report["exit"]) != ("completed", 0):
        raise Failed(f"the call was {report}")
    stage.figures["pesq_to_browser"] = speech.score(stage.original, heard)
    told = speech.read(record)
    speech.write("/tmp/lab-browsers/told.wav", told)
    speech.write("/tmp/lab-browsers/heard.wav", heard)
    stage.figures["pesq_to_device"] = speech.score(stage.original, told[int(SETTLING * speech.RATE):], repeats=True)
    print(json.dumps(report))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset", help="the handset command to test")
    parser.add_argument("--json", type=pathlib.Path, help="where to keep the figures")
    parser.add_argument("--only", help="the name of the one check to do")
    options = parser.parse_args()
    stage = Stage(options.handset)
    failures = 0
    try:
        for function in CHECKS:
            if options.only not in (None, function.__name__):
                continue
            start = time.monotonic()
            try:
                function(stage)
                if problems := stage.alice.complaints():
                    raise Failed("the browser complains: " + "; ".join(problems))
            except (Failed, WebDriverException, ValueError) as error:
                failures += 1
                print(f"FAILED {function.__name__}: {function.__doc__}\n       {error}", flush=True)
                with contextlib.suppress(WebDriverException):
                    print(f"       state {stage.alice.text('#state')!r}, console"
                          f" {json.dumps(stage.alice.driver.get_log('browser'))[:1500]}")
                print("       " + "\n       ".join(stage.device.log.read_text().splitlines()[-20:]))
                break  # What follows expects that nobody is in a call.
            print(f"ok     {time.monotonic() - start:5.1f} s  {function.__doc__}", flush=True)
    finally:
        stage.close()
    print(json.dumps(stage.figures, indent=2))
    print(f"{failures} failed" if failures else f"all {len(CHECKS)} hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
