#!/usr/bin/env python3
"""Drives the web phone in a real Firefox, with a Chromium at the other end.

usage: firefox_test.py HANDSET

Exits with 0 if every check passed, or if there is no Firefox. Needs selenium, chromium-driver, websocket-client, av and
firefox-esr; scripts/interop installs all of them.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import tempfile
import time

import firefox
import speech
from phones import Exchange, Failed, Phone, wait
from selenium.common.exceptions import WebDriverException
from stage import SCRIPT

CHECKS = []


def check(function):
    """Marks a function as one of the checks; its first docstring line is its name."""
    CHECKS.append(function)
    return function


class Scene:
    """An exchange, Alice's Chromium and Bob's Firefox."""

    def __init__(self, handset):
        with contextlib.ExitStack() as opened:
            self.folder = pathlib.Path(opened.enter_context(tempfile.TemporaryDirectory()))
            speech.write(self.folder / "microphone.wav", speech.phrases())
            self.exchange = Exchange(handset)
            opened.callback(self.exchange.stop)
            self.alice = Phone(self.exchange.url, script=SCRIPT)
            opened.callback(self.alice.close)
            self.bob = firefox.Firefox(self.exchange.url, self.folder / "microphone.wav", SCRIPT)
            opened.callback(self.bob.close)
            self.close = opened.pop_all().close


# The checks, in order: each begins with both phones at rest, except the first and those that say so.


@check
def signs_in(scene):
    """A user of the demonstration signs in with one click in Firefox, and others see it."""
    scene.alice.sign_in("alice")
    scene.bob.sign_in("bob")
    wait("bob is online", lambda: scene.alice.sees('li[data-user="bob"][data-there="true"]'))
    wait("alice is online", lambda: scene.bob.sees('li[data-user="alice"][data-there="true"]'))


@check
def answers(scene):
    """Firefox rings, answers, and each side hears the other and sees how well."""
    scene.alice.call("bob")
    scene.bob.phase("ringing")
    wait("bob sees who calls", lambda: scene.bob.text("#incoming-name") == "alice")
    scene.bob.click("#answer")
    for phone in (scene.alice, scene.bob):
        phone.phase("talking")
        wait("sound comes in", phone.hears, 30)
        wait("the media path is shown", lambda: "opus" in phone.text("#path"))


@check
def mutes(scene):
    """In that call either side mutes, by button, and the other hears nothing until it is unmuted."""
    for by, other in ((scene.bob, scene.alice), (scene.alice, scene.bob)):
        by.click("#mute")
        wait("the other side hears nothing", lambda: (other.level() or 0) <= -80)
        by.click("#mute")
        wait("it is heard again", other.hears, 30)


@check
def holds(scene):
    """In that call either side holds by a new offer, after which no sound flows, and resumes."""
    for by, other in ((scene.bob, scene.alice), (scene.alice, scene.bob)):
        for direction, flows in (("inactive", False), ("sendrecv", True)):
            by.run(f"return void (connections.at(-1).getTransceivers()[0].direction = '{direction}')")
            for phone in (by, other):
                wait(
                    f"{direction} is agreed",
                    lambda: phone.run("return connections.at(-1).getTransceivers()[0].currentDirection") == direction,
                )
            time.sleep(0.3)
            before = other.run_async("soundPackets()")
            time.sleep(1)
            count = other.run_async("soundPackets()") - before
            if (count > 10) != flows:
                raise Failed(f"when it is {direction}, {count} packets of sound come within a second")
        for phone in (by, other):
            wait("sound comes in", phone.hears, 30)


@check
def is_hung_up(scene):
    """That call is ended by Chromium, and Firefox shows that."""
    scene.alice.click("#hang-up")
    scene.bob.phase("ended")
    wait("bob sees it", lambda: "Call ended" in scene.bob.text("#state"))
    scene.alice.run_async("rest()")
    scene.bob.run_async("rest()")


@check
def calls(scene):
    """Firefox calls, is heard, and hangs up; the other side sees what is declined or cancelled."""
    scene.bob.run("return void document.querySelector('li[data-user=\"alice\"] button').click()")
    scene.alice.phase("ringing")
    scene.alice.click("#answer")
    for phone in (scene.alice, scene.bob):
        phone.phase("talking")
        wait("sound comes in", phone.hears, 30)
    scene.bob.click("#hang-up")
    scene.alice.phase("ended")
    scene.alice.says("Call ended")
    for phone in (scene.alice, scene.bob):
        phone.run_async("rest()")
    scene.bob.run("return void document.querySelector('li[data-user=\"alice\"] button').click()")
    scene.alice.phase("ringing")
    scene.alice.click("#decline")
    wait("bob sees it", lambda: "Declined" in scene.bob.text("#state"))
    for phone in (scene.alice, scene.bob):
        phone.run_async("rest()")
    scene.alice.call("bob")
    scene.bob.phase("ringing")
    scene.alice.click("#hang-up")
    wait("bob sees it", lambda: "Missed call" in scene.bob.text("#state"))
    for phone in (scene.alice, scene.bob):
        phone.run_async("rest()")


@check
def sends_keys(scene):
    """The keypad in Firefox sends telephone events, and shows what was pressed."""
    scene.bob.run("return void document.querySelector('li[data-user=\"alice\"] button').click()")
    scene.alice.phase("ringing")
    scene.alice.click("#answer")
    scene.bob.phase("talking")
    scene.bob.click("#keys")
    for label in ("1", "2", "Hash"):
        scene.bob.click(f'#pad [aria-label="{label}"]')
    wait("the keys are shown", lambda: scene.bob.run("return document.getElementById('sent').value") == "12#")
    wait("the keys are sent", lambda: scene.bob.run("return connections.at(-1).getSenders()[0].dtmf.toneBuffer") == "")
    scene.bob.click("#hang-up")
    scene.alice.phase("ended")


@check
def reloads(scene):
    """Firefox is reloaded in a call, which ends for the other side within 5 s; the page that comes back is signed in and calls again."""
    for phone in (scene.alice, scene.bob):
        phone.run_async("rest()")
    scene.bob.run("return void document.querySelector('li[data-user=\"alice\"] button').click()")
    scene.alice.phase("ringing")
    scene.alice.click("#answer")
    for phone in (scene.alice, scene.bob):
        phone.phase("talking")
    scene.bob.reload()
    scene.alice.phase("ended", seconds=5)
    scene.alice.run_async("rest()")
    wait("bob is signed in again", lambda: scene.bob.run("return document.getElementById('link')?.dataset.state") == "ready")
    scene.alice.call("bob")
    scene.bob.phase("ringing")
    scene.bob.click("#answer")
    scene.alice.phase("talking")
    scene.alice.click("#hang-up")
    scene.bob.phase("ended")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset", help="the handset command to test")
    options = parser.parse_args()
    if not firefox.is_installed():
        print("skipped: there is no firefox-esr")
        return 0
    scene = Scene(options.handset)
    failures = 0
    try:
        for function in CHECKS:
            start = time.monotonic()
            try:
                function(scene)
                if problems := scene.alice.complaints():
                    raise Failed("the browser complains: " + "; ".join(problems))
            except (Failed, WebDriverException) as error:
                failures += 1
                print(f"FAILED {function.__name__}: {function.__doc__}\n       {error}", flush=True)
                with contextlib.suppress(Failed, WebDriverException):
                    states = [phone.run("return document.body.dataset.call") for phone in (scene.alice, scene.bob)]
                    print(f"       Alice and Bob are {json.dumps(states)}, Bob's page says {scene.bob.text('#state')!r}")
                break  # What follows builds on it.
            print(f"ok     {time.monotonic() - start:5.1f} s  {function.__doc__}", flush=True)
    finally:
        scene.close()
    print(f"{failures} failed" if failures else f"all {len(CHECKS)} hold in Firefox {scene.bob.version}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
