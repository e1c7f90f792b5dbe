#!/usr/bin/env python3
"""Measures voice bots in calls, over loopback, with scripted bots.

usage: bots.py HANDSET EAR LOADGEN CONFIGURATION DIRECTORY -- CALLERS…

CONFIGURATION is that of an echoing device, whose behaviour is replaced; CALLERS the command that places calls. Prints a JSON object
for each measurement, with its kind. Both ends of each figure are on this machine's CLOCK_MONOTONIC: the bot is in this process, and
the caller is ear.c, which decodes what arrives without a jitter buffer.
"""

import argparse
import asyncio
import bisect
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys

import botserver
from botserver import now

MS = 1_000_000
#: Seconds of each measurement of CPU time, and calls in it.
COST_SECONDS, COST_CALLS = 10, 10
CLEARS, BURSTS = 40, 30
MARKS = 12
STALL_SECONDS = 60
#: Samples of silence at 48 kHz between the tones of marks.
GAP = 14_400


def say(text):
    print(f"bots: {text}", file=sys.stderr, flush=True)


def percentile(values, percent):
    ordered = sorted(values)
    return round(ordered[max(1, -(-len(ordered) * percent // 100)) - 1], 1) if ordered else None


def spread(values):
    return {"p50_ms": percentile(values, 50), "p95_ms": percentile(values, 95), "max_ms": percentile(values, 100), "count": len(values)}


def pinned(core, command):
    return ["taskset", "-c", str(core), *command] if (os.cpu_count() or 1) > 1 else list(command)


class Device:
    """A fresh `handset run` with a behaviour."""

    def __init__(self, options, behaviour, core=None):
        self.log = options.directory / "bots.log"
        text = re.sub(r"behaviour:\n(  .*\n)+", "behaviour:\n" + behaviour, options.configuration.read_text())
        path = options.directory / "bots.yaml"
        path.write_text(text)
        command = [options.handset, "run", "--config", path, "--log-level", "warning"]
        self.sink = self.log.open("w")
        self.process = subprocess.Popen(command if core is None else pinned(core, command), stdout=self.sink, stderr=self.sink)

    @property
    def pid(self):
        return self.process.pid

    @property
    def rss_kb(self):
        for row in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if row.startswith("VmRSS:"):
                return int(row.split()[1])
        return 0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.sink.close()


class Calls:
    """Calls of `callers`, as lines."""

    def __init__(self, process, lines):
        self.process, self.lines = process, lines

    @classmethod
    async def place(cls, options, count):
        process = await asyncio.create_subprocess_exec(
            *options.callers, "--calls", str(count), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        lines = []
        while (line := (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()) != "go":
            if not line:
                raise RuntimeError("the calls could not be placed")
            lines.append(line)
        return cls(process, lines)

    async def hang_up(self):
        self.process.stdin.close()
        await self.process.wait()


class Ear:
    """What arrives at callers. `heard` has for each call (ns, timestamp, first, last) of each packet."""

    def __init__(self, process):
        self.process, self.heard, self.said = process, {}, []
        self.task = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, options, lines):
        process = await asyncio.create_subprocess_exec(
            options.ear, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 22
        )
        ear = cls(process)
        ear.write(lines)
        return ear

    def write(self, lines):
        self.process.stdin.write("".join(line + "\n" for line in lines).encode())

    async def _read(self):
        async for line in self.process.stdout:
            word, call, at, *rest = line.split()
            if word == b"said":
                self.said.append((int(call), int(at)))
            else:
                self.heard.setdefault(int(call), []).append((int(at), *map(int, rest)))

    async def close(self):
        self.process.stdin.close()
        await self.task
        await self.process.wait()


async def with_call(options, behaviour, body):
    """Runs `body(ear)` in one call."""
    device = Device(options, behaviour)
    try:
        calls = await Calls.place(options, 1)
        ear = await Ear.open(options, calls.lines)
        await body(ear)
        await ear.close()
        await calls.hang_up()
        return ear
    finally:
        device.stop()


def bot_behaviour(server):
    return "  source: bot\n  bot:\n" + server.yaml


async def clear(options):
    """`clear` to the last packet that is not silent, and to silence behind the caller's decoder."""
    say(f"{CLEARS} times clear")
    server = botserver.Server(botserver.Silent())
    await server.start()
    sound, cleared = None, []

    async def body(ear):
        nonlocal sound
        while not server.lines or not server.lines[0].stream:
            await asyncio.sleep(0.01)
        line = server.lines[0]
        sound = line.encode(botserver.tone(4_000, line.rate))
        for _ in range(CLEARS):
            for start in range(0, len(sound), 160):
                line.play(sound[start : start + 160])
            await asyncio.sleep(0.5 + random.random() * 0.1)
            cleared.append(now())
            line.clear()
            await asyncio.sleep(0.3)

    ear = await with_call(options, bot_behaviour(server), body)
    server.stop()
    packets, wire, decoder, failed = ear.heard.get(0, []), [], [], 0
    for at in cleared:
        before = [packet for packet in packets if at - 200 * MS < packet[0] <= at and packet[2] >= 0]
        after = [packet for packet in packets if at < packet[0] <= at + 290 * MS and packet[2] >= 0]
        if len(before) < 5 or (after and after[-1][0] > at + 250 * MS):
            failed += 1
            continue
        last = after[-1] if after else before[-1]
        wire.append(max(0, last[0] - at) / MS)
        decoder.append(max(0, (last[0] - at) / MS + (last[3] + 1) / 48))
    return {"kind": "clear", "wire": spread(wire), "decoder": spread(decoder), "failed": failed}


async def round_trip(options, name, server):
    """A caller's tone to the bot's wire, and back."""
    say(f"{BURSTS} tones by way of {name}")
    if server:
        await server.start()

    async def body(ear):
        await asyncio.sleep(1)
        for _ in range(BURSTS):
            ear.write([f"say 0 {100}"])
            await asyncio.sleep(0.4 + random.random() * 0.1)

    ear = await with_call(options, bot_behaviour(server) if server else "  source: echo\n", body)
    packets = [packet for packet in ear.heard.get(0, []) if packet[2] >= 0]
    arrivals = [packet[0] for packet in packets]
    at_bot = sorted(at for _, at in server.bot.loud) if server else []
    there, back = [], []
    for _, at in ear.said:
        if (index := bisect.bisect_left(arrivals, at)) < len(arrivals) and arrivals[index] < at + 390 * MS:
            # From the packet's end of capture: its samples were spoken before it left. What is heard begins within its frame.
            back.append((arrivals[index] - at) / MS + packets[index][2] / 48)
        if server and (index := bisect.bisect_left(at_bot, at)) < len(at_bot) and at_bot[index] < at + 390 * MS:
            there.append((at_bot[index] - at) / MS)
    if server:
        server.stop()
    return {"kind": "round trip", "by": name, "said": len(ear.said), "to_bot": spread(there), "back": spread(back)}


async def cost(options, name, server):
    """CPU time of calls that carry speech, and memory."""
    say(f"CPU time of {COST_CALLS} calls by way of {name}")
    if server:
        await server.start()
    device = Device(options, bot_behaviour(server) if server else "  source: echo\n", core=0)
    try:
        calls = await Calls.place(options, COST_CALLS)
        load = await asyncio.create_subprocess_exec(
            *pinned(1, [options.loadgen, "--measure", str(device.pid), "--seconds", str(COST_SECONDS), "--warm-up", "2"]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        answer, _ = await load.communicate(("\n".join([*calls.lines, "go"]) + "\n").encode())
        await calls.hang_up()
    finally:
        device.stop()
        if server:
            server.stop()
    return {"kind": "cost", "by": name, **json.loads(answer)}


class Marker(botserver.Silent):
    """Sends bursts of tone, each with a mark after it, all at once, and records when the marks come back, and after how much sound."""

    def __init__(self):
        self.came, self.heard = {}, {}

    def hear(self, line, sound):
        self.heard[line.number] = self.heard.get(line.number, 0) + len(sound)

    def begin(self, line):
        pass

    def speak(self, line, sounds):
        silence = line.encode([0] * (GAP * line.rate // 48_000))
        for number, sound in enumerate(sounds):
            line.play(sound)
            line.set_mark(str(number))
            line.play(silence)

    def mark(self, line, name):
        self.came.setdefault(line.number, []).append((int(name), now(), self.heard.get(line.number, 0)))


def hurry():
    """Gives this process real-time priority, so that its own delay is not measured. Needs permission."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        if (os.cpu_count() or 1) > 1:
            # The other core is the device's.
            os.sched_setaffinity(0, {1})
        return True
    except PermissionError:
        return False


def rest():
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.sched_setaffinity(0, range(os.cpu_count() or 1))


async def marks(options):
    """Marks of many calls on one core: each must be reported with the frame of its last sample.

    When a report arrives says how late it is. Behind how much of the caller's sound it comes says with which frame it was made: sound
    and marks of a connection keep their order, so this does not depend on who runs when on this side.
    """
    say(f"{MARKS} marks in each of {options.mark_calls} calls on one core")
    bot = Marker()
    server = botserver.Server(bot)
    await server.start()
    device = Device(options, bot_behaviour(server), core=0)
    try:
        first = await Calls.place(options, options.mark_calls // 4)
        await asyncio.sleep(2)
        few_kb = device.rss_kb
        more = await Calls.place(options, options.mark_calls - options.mark_calls // 4)
        ear = await Ear.open(options, first.lines + more.lines)
        await asyncio.sleep(2)
        # Lengths that end anywhere in a frame.
        sounds = [server.lines[0].encode(botserver.tone(200 + (number * 37) % 100, 8_000)) for number in range(MARKS)]
        for line in server.lines:
            bot.speak(line, sounds)
            await asyncio.sleep(0.01)
        is_prompt = hurry()
        await asyncio.sleep(MARKS * 0.55 + 3)
        many_kb = device.rss_kb
        await ear.close()
        await first.hang_up()
        await more.hang_up()
    finally:
        rest()
        device.stop()
        server.stop()
    exact, within, missing, differences, frames_late = 0, 0, 0, [], []
    for call in range(options.mark_calls):
        ends = tone_ends(ear.heard.get(call, []), [6 * len(sound) for sound in sounds])
        came = bot.came.get(call, [])
        in_order = [name for name, *_ in came] == list(range(MARKS))
        if not in_order or len(ends) != MARKS:
            missing += MARKS
            continue
        places = mark_frames([6 * len(sound) for sound in sounds])
        # Frames of the caller's sound so far, less those of the bot's: their difference is that of the first mark that is not late.
        behind = [heard // 160 - place for (_, _, heard), place in zip(came, places)]
        frames_late += [number - min(behind) for number in behind]
        for (_, at, _), end in zip(came, ends):
            difference = (at - end) / MS
            differences.append(abs(difference))
            exact += abs(difference) < 10
            within += abs(difference) < 20
    return {
        "kind": "marks",
        "calls": options.mark_calls,
        "marks": options.mark_calls * MARKS,
        "exact": exact,
        "within_a_frame": within,
        "missing": missing,
        "from_packet": spread(differences),
        "prompt": is_prompt,
        "with_its_frame": frames_late.count(0),
        "frames_late": spread(frames_late),
        "memory": {
            "calls": [options.mark_calls // 4, options.mark_calls],
            "rss_kb": [few_kb, many_kb],
            "per_call_kb": round((many_kb - few_kb) / (options.mark_calls - options.mark_calls // 4), 1),
        },
    }


def mark_frames(lengths):
    """The frames with the last sample of each tone, from the first tone's first frame."""
    frames, place = [], 0
    for length in lengths:
        frames.append((place + length - 1) // 960)
        place += length + GAP
    return frames


async def program_marks(options):
    """Marks of programs (`source: exec`), whose events name the sample: exact if it is the one behind which the mark was set."""
    say(f"{MARKS} marks in each of {options.mark_calls} calls of programs on one core")
    folder = options.directory / "marks"
    folder.mkdir(exist_ok=True)
    program = pathlib.Path(__file__).parent / "markprogram.py"
    command = f'[python3, {program}, {folder}, "{MARKS}"]'
    device = Device(options, f"  source: exec\n  command: {command}\n", core=0)
    try:
        calls = await Calls.place(options, options.mark_calls)
        ear = await Ear.open(options, calls.lines)
        await asyncio.sleep(MARKS * 0.9 + 8)
        await ear.close()
        await calls.hang_up()
    finally:
        device.stop()
    came = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    exact = sum(mark["played"] == mark["written"] for call in came for mark in call)
    in_order = sum([mark["mark"] for mark in call] == list(range(MARKS)) for call in came)
    return {
        "kind": "program marks",
        "calls": options.mark_calls,
        "marks": options.mark_calls * MARKS,
        "exact": exact,
        "calls_in_order": in_order,
    }


def tone_starts(packets):
    """The packets with which tones begin, as indices."""
    starts, quiet = [], 100
    for index, (_, _, first, _) in enumerate(packets):
        if first >= 0 and quiet >= 5:
            starts.append(index)
        quiet = 0 if first >= 0 else quiet + 1
    return starts


def tone_ends(packets, lengths):
    """When the packets with the last sample of each tone came, whose lengths at 48 kHz are known.

    The first tone begins with a frame's first sample, because nothing was played before it. From there samples are counted, because
    what a codec leaves of a tone's end is not exact.
    """
    starts = tone_starts(packets)
    if not starts:
        return []
    begin, arrivals = packets[starts[0]][1], {timestamp: at for at, timestamp, _, _ in packets}
    ends, place = [], 0
    for length in lengths:
        frame = begin + (place + length - 1) // 960 * 960
        ends.append(arrivals.get(frame & 0xFFFFFFFF, 0))
        place += length + GAP
    return ends if len(starts) == len(lengths) else []


async def stall(options):
    """A bot that reads nothing for a minute beside echoing ones."""
    say(f"a bot that reads nothing for {STALL_SECONDS} s beside four that echo")
    server = botserver.Server(botserver.Cheap(), stalls=True)
    await server.start()
    device = Device(options, bot_behaviour(server))
    try:
        calls = await Calls.place(options, 5)
        ear = await Ear.open(options, calls.lines)
        await asyncio.sleep(3)
        before_kb, most_kb = device.rss_kb, 0
        for _ in range(STALL_SECONDS):
            for call in range(5):
                ear.write([f"say {call} 400"])
            await asyncio.sleep(1)
            most_kb = max(most_kb, device.rss_kb)
        await ear.close()
        await calls.hang_up()
    finally:
        device.stop()
        server.stop()
    rows = []
    for call in range(5):
        arrivals = [packet[0] for packet in ear.heard.get(call, [])]
        gaps = [(after - before) / MS for before, after in zip(arrivals, arrivals[1:])]
        tones = len(tone_starts(ear.heard.get(call, [])))
        rows.append({"packets": len(arrivals), "longest_gap_ms": round(max(gaps, default=0), 1), "tones": tones})
    return {
        "kind": "stall",
        "seconds": STALL_SECONDS,
        "stalled": rows[0],
        "others": rows[1:],
        "rss_kb": [before_kb, most_kb],
        "said_so": "does not read" in device.log.read_text(),
    }


async def main():
    parser = argparse.ArgumentParser()
    for name in ("handset", "ear", "loadgen"):
        parser.add_argument(name)
    for name in ("configuration", "directory"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("callers", nargs="+")
    parser.add_argument("--only", action="append", help="clear, trip, cost, marks or stall")
    parser.add_argument("--mark-calls", type=int, default=40)
    options = parser.parse_args()
    parts = {
        "clear": [lambda: clear(options)],
        "trip": [
            lambda: round_trip(options, "echo", None),
            lambda: round_trip(options, "twilio", botserver.Server(botserver.Echo())),
            lambda: round_trip(options, "audiosocket 48 kHz", botserver.Server(botserver.Echo(), 48_000)),
        ],
        "cost": [
            lambda: cost(options, "echo", None),
            lambda: cost(options, "twilio", botserver.Server(botserver.Cheap())),
            lambda: cost(options, "audiosocket 48 kHz", botserver.Server(botserver.Cheap(), 48_000)),
        ],
        "marks": [lambda: marks(options), lambda: program_marks(options)],
        "stall": [lambda: stall(options)],
    }
    for name, measurements in parts.items():
        for measure in measurements if not options.only or name in options.only else []:
            print(json.dumps(await measure()), flush=True)


asyncio.run(main())
