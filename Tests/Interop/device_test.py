#!/usr/bin/env python3
"""Calls between devices, which are `handset run` and `handset call`, and others: browsers with the web phone, aiortc.

usage: device_test.py HANDSET [--figures FILE] [--only CHECK …]

Exits with 0 if every check passed. Needs selenium, chromium-driver, pesq, scipy, aiortc, websockets and the voices
of alsa-utils; scripts/interop installs all of them. With --figures the figures are written as one JSON object.
"""

import argparse
import contextlib
import importlib.metadata
import json
import pathlib
import sys
import time

import aiortc_peer
import firefox
import speech
import tones
from phones import Failed, wait
from selenium.common.exceptions import WebDriverException
from stage import (
    LISTENING,
    PLAYING,
    SCRIPT,
    SETTLING,
    Stage,
    both_ways,
    ended,
    flows,
    hang_up,
    judged,
    noted,
    quality,
    quantiles,
    talk,
    time_calls,
)

CHECKS = []
# Calls before the first measurement of what calls leave behind.
WARM_UP = 10


def check(function):
    """Marks a function as one of the checks; its first docstring line is its name."""
    CHECKS.append(function)
    return function


# The checks, in order: before and after each there is no call.


@check
def echoes(stage):
    """A browser calls the device and hears its own voice come back, after two codings."""

    def measure():
        talk(stage)
        time.sleep(SETTLING)
        heard = stage.alice.hear(LISTENING)
        hang_up(stage.alice)
        return speech.score(stage.original, heard, repeats=True)

    before = noted(stage.device)
    judged(stage, "echo", measure, "Chromium → device → Chromium")
    ended(stage.device, before + 1, "completed")


@check
def is_called(stage):
    """The device calls a browser, which answers; each hears the other well."""
    record = stage.path / "record.wav"

    def measure():
        stage.alice.run("window.answers = true")
        caller = stage.caller("alice", "--play", stage.path / "play.wav", "--record", record, "--duration", PLAYING)
        stage.alice.phase("talking")
        heard = stage.alice.hear(SETTLING + LISTENING)
        report = caller.report()
        stage.alice.run("window.answers = false")
        stage.alice.run_async("rest()")
        if (report["outcome"], report["exit"]) != ("completed", 0):
            raise Failed(f"the call was {report}")
        recorded = speech.read(record)[int(SETTLING * speech.RATE) :]
        return both_ways(stage, "Chromium", recorded, heard)

    judged(stage, "one way", measure)


@check
def is_hung_up(stage):
    """When the device hangs up, the browser's call ends; the browser's hang-up ends `handset call`."""
    stage.alice.run("window.answers = true")
    caller = stage.caller("alice", "--duration", 1)
    stage.alice.phase("talking")
    stage.alice.phase("ended")
    stage.alice.says("Call ended")
    stage.alice.rest()
    if caller.report()["outcome"] != "completed":
        raise Failed("the device did not complete its call")
    caller = stage.caller("alice", "--duration", 30)
    stage.alice.phase("talking")
    wait("sound comes in", lambda: stage.alice.run("return moments.media"))
    stage.alice.run("window.answers = false")
    hang_up(stage.alice)
    report = caller.report(5)
    if report["outcome"] != "completed":
        raise Failed(f"the browser's hang-up is {report['outcome']} to the device")


@check
def is_refused(stage):
    """Declined and busy are distinct, both ways, and the device is notified of a cancelled call."""
    with stage.phone("bob") as bob:
        refuse(stage, bob)


def refuse(stage, bob):
    caller = stage.caller("bob")
    bob.phase("ringing")
    bob.click("#decline")
    bob.rest()
    if (report := caller.report(10))["outcome"] != "declined" or report["exit"] != 10:
        raise Failed(f"a declined call is {report}")
    device = stage.run(user="caller", answer="mode: auto, max_calls: 1")
    bob.call("caller")
    bob.phase("talking")
    if (report := stage.caller("bob").report(10))["outcome"] != "busy":
        raise Failed(f"a call to a busy browser is {report}")
    stage.alice.call("caller")
    stage.alice.says("Busy")
    stage.alice.rest()
    hang_up(bob)
    device.stop()
    device = stage.run(user="caller", answer="mode: ring")
    stage.alice.call("caller")
    stage.alice.phase("calling")
    wait("the device rings", lambda: device.tells("A call comes in"))
    hang_up(stage.alice)
    ended(device, 1, "cancelled")
    device.stop()
    device = stage.run(user="caller", answer="mode: reject")
    stage.alice.call("caller")
    stage.alice.says("Declined")
    stage.alice.rest()
    device.stop()


@check
def mutes(stage):
    """A muted browser hears the echo go silent, and come back."""
    talk(stage)
    phone = stage.alice
    wait("the echo is heard", phone.hears)
    phone.click("#mute")
    wait("the echo is silent", lambda: (phone.level() or 0) <= -80)
    phone.click("#mute")
    wait("the echo is heard again", phone.hears)
    hang_up(phone)


@check
def holds(stage):
    """The browser holds the call, after which the device sends nothing, and resumes it."""
    talk(stage)
    phone = stage.alice
    for direction, sends in (("sendonly", False), ("sendrecv", True), ("inactive", False), ("sendrecv", True)):
        phone.run("connections.at(-1).getTransceivers()[0].direction = arguments[0]", direction)
        wait(f"{direction} is agreed", lambda: phone.run("return connections.at(-1).getTransceivers()[0].currentDirection") == direction)
        time.sleep(0.3)
        if flows(phone) != sends:
            raise Failed(f"when it is {direction}, sound {'stops' if sends else 'goes on'}")
    wait("the echo is heard again", phone.hears)
    hang_up(phone)


@check
def restarts(stage):
    """The browser restarts ICE, and the sound continues without a gap."""
    talk(stage)
    phone = stage.alice
    fragments = r"""
        const { currentLocalDescription, currentRemoteDescription, signalingState } = connections.at(-1);
        return signalingState !== 'stable' ? null : [currentLocalDescription, currentRemoteDescription].map(
          ({ sdp }) => /a=ice-ufrag:(.*)/.exec(sdp)[1].trim());"""
    time.sleep(SETTLING)

    def measure():
        old = phone.run(fragments)
        phone.run("setTimeout(() => connections.at(-1).restartIce(), 3000)")
        heard = phone.hear(LISTENING)
        new = wait("both sides have new credentials", lambda: phone.run(fragments))
        if any(one in new for one in old):
            raise Failed(f"the credentials {old} have become {new}")
        # The pair in use carries the new user name fragment.
        wait("the new path is used", lambda: new[0] in phone.run_async("pair()"))
        return speech.score(stage.original, heard, repeats=True)

    judged(stage, "echo, ICE restarted", measure, "Chromium → device → Chromium, ICE restarted meanwhile")
    hang_up(phone)


@check
def sends_keys(stage):
    """The browser's keypad reaches the device, each key once and in order."""
    talk(stage)
    phone = stage.alice
    if phone.run("return connections.at(-1).getSenders()[0].dtmf?.canInsertDTMF ?? false"):
        pressed = "12#70*"
        phone.find("#party").send_keys(pressed)
        wait("the keys are shown", lambda: phone.run("return document.getElementById('sent').value") == pressed)

        def heard():
            return "".join(note["metadata"]["digit"] for note in stage.device.events("The peer pressed a key"))

        wait("the device has heard the keys", lambda: len(heard()) >= len(pressed))
        time.sleep(0.5)
        if heard() != pressed:
            raise Failed(f"{pressed} was pressed, and the device has heard {heard()}")
    else:
        print("       skipped: the device takes no telephone keys")
    hang_up(phone)


@check
def is_sent_keys(stage):
    """Keys that the device presses are heard in the browser as their tones, each once and in order."""
    pressed = "12#70*A"
    stage.alice.run("window.answers = true")
    # The first ones may end before the browser listens.
    caller = stage.caller("alice", "--press", "99" + pressed, "--duration", 5)
    stage.alice.phase("talking")
    heard = tones.keys(stage.alice.hear(4))
    report = caller.report()
    stage.alice.run("window.answers = false")
    stage.alice.run_async("rest()")
    if report["outcome"] != "completed":
        raise Failed(f"the call was {report}")
    if not heard.endswith(pressed) or len(heard) > len(pressed) + 2:
        raise Failed(f"99{pressed} was pressed, and the browser has heard {heard}")


@check
def calls_often(stage):
    """Fifty calls, one after the other, leave nothing behind in the device; how long each took to be set up."""
    stage.alice.run_async(f"callTimes('echo', {WARM_UP}, 0.2)", 120)
    before = stage.device.usage()
    time_calls(stage, "Chromium → device", stage.alice, "echo", 50)
    time.sleep(1)
    after = stage.device.usage()
    growth = stage.figures["growth over 50 calls"] = {key: after[key] - before[key] for key in before}
    if growth["descriptors"] > 0 or growth["threads"] > 0:
        raise Failed(f"50 calls leave behind {growth}")
    if growth["resident_kb"] > 2_048:
        raise Failed(f"50 calls take {growth['resident_kb']} kB for ever")


@check
def sets_up(stage):
    """How long calls between other pairs take to be set up, beside those."""
    with stage.phone("bob") as bob:
        bob.run("window.answers = window.rests = true")
        time_calls(stage, "Chromium → Chromium", stage.alice, "bob", 20)
    stage.alice.run("window.answers = window.rests = true")
    for callee, name in (("alice", "device → Chromium"), ("echo", "device → device")):
        times = [stage.caller(callee, "--duration", 0.2).report(20)["setup_ms"] for _ in range(20)]
        stage.figures["set-up"][name] = {"sound": quantiles(times)}
    stage.alice.run("window.answers = window.rests = false")
    stage.alice.run_async("rest()")


@check
def meets_firefox(stage):
    """Firefox calls the device, and is called by it."""
    if not firefox.is_installed():
        print("       skipped: there is no firefox-esr")
        return
    fox = firefox.Firefox(stage.exchange.url, stage.path / "microphone.wav", SCRIPT)
    try:
        stage.figures["versions"]["Firefox"] = fox.version
        fox.sign_in("bob")
        time_calls(stage, "Firefox → device", fox, "echo", 20)
        fox.run("window.answers = true")
        record = stage.path / "record.wav"

        def measure():
            caller = stage.caller("bob", "--play", stage.path / "play.wav", "--record", record, "--duration", PLAYING)
            fox.phase("talking")
            heard = fox.hear(SETTLING + LISTENING)
            if (report := caller.report())["outcome"] != "completed":
                raise Failed(f"the call was {report}")
            fox.run_async("rest()")
            return both_ways(stage, "Firefox", speech.read(record)[int(SETTLING * speech.RATE) :], heard)

        judged(stage, "one way", measure)
    finally:
        fox.close()


@check
def meets_aiortc(stage):
    """aiortc, which is no browser, calls the device and hears its own voice come back."""

    def measure():
        set_up, heard = aiortc_peer.call(stage.exchange.port, "bob", "echo", stage.original, SETTLING + LISTENING)
        stage.figures["set-up"]["aiortc → device"] = {"sound": quantiles([1000 * set_up])}
        return speech.score(stage.original, heard[int(SETTLING * speech.RATE) :], repeats=True)

    stage.figures["versions"]["aiortc"] = importlib.metadata.version("aiortc")
    judged(stage, "echo", measure, "aiortc → device → aiortc")


@check
def calls_aiortc(stage):
    """The device calls aiortc, which answers; each hears the other well, and it hangs up."""
    record = stage.path / "record.wav"

    def measure():
        with aiortc_peer.answering(stage.exchange.port, "bob", stage.original) as bob:
            caller = stage.caller("bob", "--play", stage.path / "play.wav", "--record", record, "--duration", PLAYING)
            report = caller.report()
        if (report["outcome"], report["exit"]) != ("completed", 0):
            raise Failed(f"the call was {report}")
        if bob.end != "completed":
            raise Failed(f"aiortc saw the end as {bob.end}")
        recorded = speech.read(record)[int(SETTLING * speech.RATE) :]
        return both_ways(stage, "aiortc", recorded, bob.heard())

    judged(stage, "one way", measure)


def report(figures):
    """Prints the figures as text."""
    for kind, peers in figures["set-up"].items():
        for what, times in peers.items():
            print(
                f"set-up {kind + ',':24}{what + ':':15}p50 {times['p50_ms']:6.1f} ms, p90 {times['p90_ms']:6.1f} ms,"
                f" max {times['max_ms']:6.1f} ms, {times['count']} calls"
            )
    quality(figures)
    print(json.dumps(figures, ensure_ascii=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset", help="the handset command to test")
    parser.add_argument("--figures", type=pathlib.Path, help="where to keep the figures")
    parser.add_argument("--only", nargs="*", default=[], help="the names of the checks to do")
    options = parser.parse_args()
    stage = Stage(options.handset)
    failures = 0
    try:
        for function in CHECKS:
            if options.only and function.__name__ not in options.only:
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
                    print(
                        f"       state {stage.alice.text('#state')!r}, console {json.dumps(stage.alice.driver.get_log('browser'))[:1500]}"
                    )
                print("       " + "\n       ".join(stage.device.log.read_text().splitlines()[-20:]))
                break  # What follows expects that there is no call.
            print(f"ok     {time.monotonic() - start:5.1f} s  {function.__doc__}", flush=True)
    finally:
        stage.close()
    report(stage.figures)
    if options.figures:
        options.figures.write_text(json.dumps(stage.figures, indent=2, ensure_ascii=False) + "\n")
    print(f"{failures} failed" if failures else f"all {len(options.only) or len(CHECKS)} hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
