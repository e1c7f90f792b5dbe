#!/usr/bin/env python3
"""Measures calls that a device has joined: the time to the first sound, the delay that is added, and CPU time.

usage: bridges.py HANDSET [--rounds N] [--pairs N] [--seconds S] [--handovers N]

Everything runs on this machine, and ports are those of the examples: run it in a network namespace (`unshare -n`, with `ip link set
lo up`).
Prints a line of JSON for each measurement:

- first_sound_ms: from the request to join two calls until each has received the first sound of the other, as programs at both ends see it
- one_way_ms: from a sound at one end until it arrives at the other, through the joined calls and in a direct call
- handover_gap_ms: silence that the caller hears between its bot and the person, in N hand-overs that the person accepts with a key, in
  steps of 5 ms. With N no other measurement is made
- cores: that the device used for calls in pairs, joined, and for as many calls that it echoes
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

from controlled import Site, cpu_seconds, one_way, write_tone

#: Seconds until all calls are established.
SET_UP = 6


def first_sound(site: Site, rounds: int) -> list[float]:
    """Milliseconds from each request to the first sound, at both ends."""
    found: list[float] = []
    for _ in range(rounds):
        for user in ["alice", "caller"]:
            site.ask(user, request="call", to="bob")
        calls = site.await_calls("bob", 2)
        time.sleep(1)
        site.forget("alice", "caller")
        asked = time.monotonic()
        site.ask("bob", request="bridge", call=calls[0], to_call=calls[1])
        time.sleep(1)
        for user in ["alice", "caller"]:
            times = site.times(user, "heard")
            if not times:
                sys.exit(f"{user} has heard nothing")
            found.append((times[0] - asked) * 1000)
        site.hang_up("bob")
    return found


def handover_gaps(site: Site, rounds: int) -> list[float]:
    """Milliseconds of silence that the caller hears when a person accepts, from its bot's tone to the person's."""
    found: list[float] = []
    for _ in range(rounds):
        site.ask("caller", request="call", to="bob")
        call = site.await_calls("bob", 1)[0]
        time.sleep(0.5)
        site.ask("bob", request="handover", call=call, to="alice", accept="1")
        person = site.await_calls("alice", 1)[0]
        site.await_calls("bob", 2)
        time.sleep(0.7)
        site.forget("caller")
        site.ask("alice", request="dtmf", keys="1", call=person)
        time.sleep(0.7)
        quiet, loud = site.times("caller", "quiet"), site.times("caller", "loud")
        if len(quiet) > len(loud):
            sys.exit("the caller hears nothing of the person")
        found.append(5 * sum(end - begin for begin, end in zip(quiet, loud)))
        site.hang_up("bob")
    return found


def delays(site: Site) -> dict[str, float]:
    site.ask("alice", request="call", to="caller")
    site.await_calls("caller", 1)
    time.sleep(3)
    direct = statistics.median(one_way(site, "alice", "caller"))
    site.hang_up("alice")
    for user in ["alice", "caller"]:
        site.ask(user, request="call", to="bob")
    calls = site.await_calls("bob", 2)
    site.ask("bob", request="bridge", call=calls[0], to_call=calls[1])
    time.sleep(3)
    joined = statistics.median(one_way(site, "alice", "caller"))
    site.hang_up("bob")
    return {"direct": round(direct, 1), "joined": round(joined, 1), "added": round(joined - direct, 1)}


def cores(site: Site, joins: bool, pairs: int, seconds: int) -> float:
    device = site.device("bob", "{ source: echo }")
    time.sleep(2)
    duration = str(SET_UP + seconds + 4)
    callers = [site.start("call", "bob@localhost", "--duration", duration, "--play", "tone.wav") for _ in range(2 * pairs)]
    time.sleep(SET_UP)
    calls = site.await_calls("bob", 2 * pairs)
    if joins:
        for one, other in zip(calls[::2], calls[1::2]):
            site.ask("bob", request="bridge", call=one, to_call=other)
    before, began = cpu_seconds(device.pid), time.monotonic()
    time.sleep(seconds)
    used = (cpu_seconds(device.pid) - before) / (time.monotonic() - began)
    for caller in callers:
        caller.wait()
    site.end(device)
    return used


def report(name: str, **figures: float) -> None:
    print(json.dumps({name: figures}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("handset")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--handovers", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        site = Site(arguments.handset, pathlib.Path(name))
        try:
            if arguments.handovers:
                site.device("bob", "{ source: tone }")
                site.program("alice", "tone")
                site.program("caller", "tone")
                time.sleep(3)
                gaps = sorted(handover_gaps(site, arguments.handovers))
                middle, high = round(statistics.median(gaps), 1), round(gaps[len(gaps) * 95 // 100], 1)
                report("handover_gap_ms", median=middle, p95=high, highest=round(gaps[-1], 1), handovers=len(gaps))
                return
            write_tone(site.folder / "tone.wav", SET_UP + arguments.seconds + 10)
            bob = site.device("bob", "{ source: silence }")
            ends = [site.program("alice", "tone"), site.program("caller", "tone")]
            time.sleep(2)
            times = first_sound(site, arguments.rounds)
            report("first_sound_ms", median=round(statistics.median(times), 1), highest=round(max(times), 1), joins=arguments.rounds)
            site.end(*ends)
            ends = [site.program("alice", "clicks"), site.program("caller", "silence")]
            time.sleep(2)
            report("one_way_ms", **delays(site))
            site.end(bob, *ends)
            time.sleep(1)
            echo = cores(site, False, arguments.pairs, arguments.seconds)
            joined = cores(site, True, arguments.pairs, arguments.seconds)
            report("cores", calls=2 * arguments.pairs, echo=round(echo, 3), joined=round(joined, 3), ratio=round(joined / echo, 2))
        finally:
            site.end()


main()
