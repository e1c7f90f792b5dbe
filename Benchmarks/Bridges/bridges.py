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
import math
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import wave

#: Seconds until all calls are established.
SET_UP = 6

#: Hears its call, and sends clicks at times that it notes, or a tone.
PROGRAM = r"""
import math, os, select, struct, sys, time

name, kind = sys.argv[1], sys.argv[2]
frame = 320
tone = b"".join(struct.pack("<h", int(8000 * math.sin(math.pi * n / 16))) for n in range(frame))
silence = bytes(2 * frame)
log = open(name + ".log", "a", buffering=1)
heard, loud, next_frame, count, parts = b"", False, time.monotonic(), 0, 0
os.set_blocking(0, False)
while True:
    if select.select([0], [], [], max(0, next_frame - time.monotonic()))[0]:
        data = os.read(0, 65536)
        if not data:
            break
        now, heard = time.monotonic(), heard + data
        while len(heard) >= 160:
            part, heard = heard[:160], heard[160:]
            is_loud = max(abs(sample) for sample in struct.unpack("<80h", part)) > 1500
            parts += 1
            if is_loud and not loud:
                log.write(f"heard {now}\nloud {parts}\n")
            if loud and not is_loud:
                log.write(f"quiet {parts}\n")
            loud = is_loud
    if time.monotonic() >= next_frame:
        clicks = kind == "clicks" and count % 25 == 0
        if clicks:
            log.write(f"sent {time.monotonic()}\n")
        os.write(1, tone if clicks or kind == "tone" else silence)
        next_frame, count = next_frame + 0.02, count + 1
"""


def cpu_seconds(process: int) -> float:
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Site:
    """An exchange, and devices that are controlled."""

    def __init__(self, handset: str, folder: pathlib.Path) -> None:
        self.handset, self.folder = handset, folder
        self.processes: list[subprocess.Popen[bytes]] = []
        (folder / "program.py").write_text(PROGRAM)
        self.start("serve")
        time.sleep(2)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [self.handset, *words]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def device(self, user: str, behaviour: str) -> subprocess.Popen[bytes]:
        token = self.folder / f"{user}.token"
        token.write_text(f"{user}-demo-token\n")
        token.chmod(0o600)
        (self.folder / f"{user}.yaml").write_text(
            f'account: {{ server: "http://127.0.0.1:8555", media_token_file: {user}.token }}\n'
            f"behaviour: {behaviour}\nanswer: {{ max_calls: 1000 }}\ncontrol: {{ socket: {user}.sock }}\n"
        )
        return self.start("run", "--config", f"{user}.yaml")

    def program(self, user: str, kind: str) -> subprocess.Popen[bytes]:
        command = f"[{sys.executable}, {self.folder}/program.py, {self.folder}/{user}, {kind}]"
        return self.device(user, f"{{ source: exec, command: {command} }}")

    def ask(self, user: str, **request: object) -> dict[str, object]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.folder / f"{user}.sock"))
            connection.sendall((json.dumps(request) + "\n").encode())
            answer: dict[str, object] = json.loads(connection.makefile().readline())
        if not answer["ok"]:
            sys.exit(f"{request}: {answer}")
        return answer

    def talking(self, user: str) -> list[int]:
        status = self.ask(user, request="status")["status"]
        assert isinstance(status, dict)
        return [call["call"] for call in status.get("calls", []) if call["state"] == "talking"]

    def await_calls(self, user: str, count: int) -> list[int]:
        for _ in range(200):
            if len(self.talking(user)) == count:
                return self.talking(user)
            time.sleep(0.05)
        sys.exit(f"{user} has {len(self.talking(user))} calls and not {count}")

    def times(self, user: str, what: str) -> list[float]:
        lines = (self.folder / f"{user}.log").read_text().splitlines()
        return [float(line.split()[1]) for line in lines if line.startswith(what)]

    def forget(self, *users: str) -> None:
        for user in users:
            (self.folder / f"{user}.log").write_text("")

    def hang_up(self, user: str) -> None:
        # A joined call ends with the other.
        while calls := self.talking(user):
            self.ask(user, request="hangup", call=calls[0])
            time.sleep(0.3)
        time.sleep(0.3)

    def end(self, *processes: subprocess.Popen[bytes]) -> None:
        for process in processes or tuple(reversed(self.processes)):
            if process.poll() is None:
                process.terminate()
                process.wait()


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


def one_way(site: Site, sender: str, receiver: str) -> list[float]:
    site.forget(sender, receiver)
    time.sleep(8)
    sent = site.times(sender, "sent")
    received = [heard for heard in site.times(receiver, "heard") if heard > sent[0]]
    return [(heard - max(time for time in sent if time < heard)) * 1000 for heard in received]


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


def write_tone(path: pathlib.Path, seconds: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 48000, 0, "NONE", ""))
        second = [int(4000 * math.sin(2 * math.pi * 500 * index / 48000)) for index in range(48000)]
        for _ in range(seconds):
            file.writeframes(struct.pack("<48000h", *second))


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
