#!/usr/bin/env python3
"""Measures meetings: CPU time of the device beside Janus's audiobridge, with DTLS-SRTP too, and the delay from mouth to ear.

usage: conference.py HANDSET [--members "N N…"] [--seconds S] [--rounds N] [--janus] [--parts "plain dtls delay"]

Three members talk, and the others send quiet noise: Opus, 32 kb/s, 20 ms, without pauses. The mixer is pinned to one core, and its
members to another. Ports are those of the examples: run it in a network namespace (`unshare -n`, with `ip link set lo up`). Prints a line
of JSON for each measurement, with its kind:

- plain: members are one C program that sends and receives plain RTP. Device and Janus alternate, with the same packets and settings.
  `cores` is the CPU time of the mixer's process, `threads` its parts by their names; `delivered` is the share of packets that members
  received, `payload_bytes` the size of their Opus packets, `complexity` that of the encoders, which the device lowers under load,
  `heard` the loudness of each talker in what the first and the last member
  received, `own_cores` the CPU time of the members, and `worst_late_ms` the worst delay of one of their packets. A line counts only
  if 98 to 102 % were delivered, and if two members hear all talkers except themselves, which is decoded
- plain medians: of the rounds that count; `ratio` is the median of the ratios within a round
- dtls: members are processes of `handset call` at an exchange. `callers_cores` is their CPU time together: a core that is full is late,
  and `least_per_second` shows the packets of the member that received fewest
- delay: from a sound at one program until another program reads it, through two calls that are bridged and through a room, in
  alternating rounds

Needs libopus, libsrtp2-dev, python3-cryptography, and with --janus Janus with its audiobridge (apt-get install janus).
"""

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import wave
from typing import Any

from mixers import OPUS, Handset, Janus
from sound import AUDIBLE, COMPLEXITY, PITCHES, RATE, Opus, heard_talkers, noise, voice, write_packets

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Benchmarks" / "Bridges"))
from controlled import Site, cpu_seconds, one_way  # noqa: E402

CORES = sorted(os.sched_getaffinity(0))
MIXER_CORE, MEMBERS_CORE = CORES[0], CORES[-1]
#: Seconds from the last member's joining until the load is steady.
SETTLING = 4
#: The members' ports in the part `plain`.
FIRST_PORT = 26000
#: Seconds of sound, which is repeated.
SOUND_SECONDS = 10
#: Of the packets that members sent. A mixer that was late before sends more, which is no steady state either.
LEAST_DELIVERED, MOST_DELIVERED = 0.98, 1.02


def build() -> pathlib.Path:
    """Builds the members. Returns their program."""
    folder = ROOT / "Benchmarks" / ".build-conference"
    subprocess.run(["make", "--silent", "-C", str(ROOT / "Benchmarks" / "Conference")], check=True, stdout=sys.stderr)
    return folder / "members"


def write_sounds(folder: pathlib.Path) -> None:
    """Writes the sound of each talker, and of the others, as packets and as a file to play."""
    sounds = {f"talker{number}": voice(pitch, SOUND_SECONDS) for number, pitch in enumerate(PITCHES)} | {"noise": noise(SOUND_SECONDS)}
    for name, samples in sounds.items():
        write_packets(folder / f"{name}.packets", Opus().encode(samples))
        with wave.open(str(folder / f"{name}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            for _ in range(12):
                file.writeframes(samples.tobytes())


def sound_of(member: int) -> str:
    return f"talker{member}" if member < len(PITCHES) else "noise"


def thread_seconds(process: int) -> dict[str, float]:
    """CPU time of a process's threads, by their names without numbers."""
    found: dict[str, float] = collections.defaultdict(float)
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        try:
            name, nanoseconds = (task / "comm").read_text(), (task / "schedstat").read_text().split()[0]
        except OSError:
            continue  # The thread has ended.
        found[re.sub(r"[-\d\s].*", "", name, flags=re.DOTALL)] += int(nanoseconds) / 1e9
    return found


def thread_cores(before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
    """The threads that used a thousandth of a core or more."""
    used = {name: round((after[name] - before.get(name, 0)) / seconds, 3) for name in after}
    return {name: cores for name, cores in sorted(used.items(), key=lambda item: -item[1]) if cores > 0}


def mixer_named(name: str, handset: str, folder: pathlib.Path) -> Handset | Janus:
    return Handset(handset, folder, MIXER_CORE) if name == "handset" else Janus(folder, MIXER_CORE)


def measure_plain(mixer: Handset | Janus, program: pathlib.Path, sounds: pathlib.Path, members: int, seconds: int) -> dict[str, Any]:
    """One line's figures of a mixer that has no members yet."""
    recorded = {0: mixer.log.parent / "first.packets", members - 1: mixer.log.parent / "last.packets"}
    lines = []
    for member in range(members):
        local = FIRST_PORT + 2 * member
        remote = mixer.join(member, local)
        path = recorded.get(member, "-")
        lines.append(f"{local} {remote} {mixer.PAYLOAD_TYPE} {7 * member} {sounds}/{sound_of(member)}.packets {path}\n")
    command = [str(program), str(mixer.pid), str(SETTLING), str(seconds)]
    sending = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert sending.stdin and sending.stdout
    sending.stdin.write("".join(lines))
    sending.stdin.close()
    sending.stdout.readline()
    threads, began = thread_seconds(mixer.pid), time.monotonic()
    line = sending.stdout.readline()
    threads_after, took = thread_seconds(mixer.pid), time.monotonic() - began
    if sending.wait() != 0 or not line:
        sys.exit("the members failed")
    counts, notes = json.loads(line), mixer.notes()
    heard = {member: heard_talkers(file) for member, file in recorded.items()}
    heard_right = all(
        (loudness > AUDIBLE) == (talker != member) for member, found in heard.items() for talker, loudness in enumerate(found)
    )
    delivered = counts["received"] / counts["sent"]
    sizes = {name: counts[name] for name in ("payload_bytes", "own_cores", "worst_late_ms")}
    return {
        "cores": counts["cores"],
        "delivered": round(delivered, 4),
        "heard": [[round(loudness) for loudness in found] for found in heard.values()],
        **sizes,
        **notes,
        "threads": thread_cores(threads, threads_after, took),
        "counts": heard_right and LEAST_DELIVERED <= delivered <= MOST_DELIVERED,
    }


def plain(handset: str, folder: pathlib.Path, members: list[int], seconds: int, rounds: int, names: list[str]) -> None:
    program = build()
    for number in members:
        found: dict[str, list[float]] = {name: [] for name in names}
        ratios = []
        for turn in range(rounds):
            cores = {}
            for name in names:
                mixer = mixer_named(name, handset, folder / f"{name}-{number}-{turn}")
                try:
                    row = measure_plain(mixer, program, folder, number, seconds)
                finally:
                    mixer.stop()
                report("plain", by=name, members=number, **row)
                if row["counts"]:
                    cores[name] = row["cores"]
            for name, used in cores.items():
                found[name].append(used)
            if len(cores) == 2:
                ratios.append(cores["handset"] / cores["janus"])
        medians = {name: round(statistics.median(used), 3) if used else None for name, used in found.items()}
        report("plain medians", members=number, ratio=round(statistics.median(ratios), 2) if ratios else None, rounds=rounds, **medians)


def measure_dtls(site: Site, members: int, seconds: int) -> dict[str, object]:
    """Figures of a device whose members are processes that encrypt by DTLS-SRTP."""
    room = "{ source: conference, conference: { room: team, tones: false, most_members: 250 } }"
    device = site.device("bob", room, f"media: {{ opus: {OPUS} }}\n", MIXER_CORE)
    time.sleep(2)
    length = str(seconds + SETTLING + members // 4 + 4)
    callers = []
    for member in range(members):
        words = ["bob@localhost", "--config", "caller.yaml", "--json", "--duration", length, "--play", f"{sound_of(member)}.wav"]
        command = [site.handset, "call", *words]
        callers.append(subprocess.Popen(command, cwd=site.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        time.sleep(0.1)
    for _ in range(100):
        if site.status("bob")["call_count"] == members:
            break
        time.sleep(0.1)
    time.sleep(SETTLING)
    status = site.status("bob")
    before, threads, began = cpu_seconds(device.pid), thread_seconds(device.pid), time.monotonic()
    callers_before = sum(cpu_seconds(caller.pid) for caller in callers)
    time.sleep(seconds)
    took = time.monotonic() - began
    used, used_by_callers = cpu_seconds(device.pid) - before, sum(cpu_seconds(caller.pid) for caller in callers) - callers_before
    spent = thread_cores(threads, thread_seconds(device.pid), took)
    limit = site.status("bob")["load"]["complexity_limit"]
    rates = []
    for caller in callers:
        output = caller.communicate()[0]
        if caller.returncode == 0:
            call = json.loads(output)
            rates.append(call["packets_received"] / call["duration_ms"] * 1000)
    site.end(device)
    return {
        "members": members,
        "established": status["call_count"],
        "cores": round(used / took, 3),
        "callers_cores": round(used_by_callers / took, 3),
        "least_per_second": round(min(rates, default=0), 1),
        "complexity": min(limit, COMPLEXITY),
        "threads": spent,
    }


def dtls(handset: str, folder: pathlib.Path, members: list[int], seconds: int, rounds: int) -> None:
    (folder / "caller.token").write_text("caller-demo-token\n")
    (folder / "caller.token").chmod(0o600)
    # With little effort, so that one core has room for more of them.
    (folder / "caller.yaml").write_text(
        'account: { server: "http://127.0.0.1:8555", media_token_file: caller.token }\n'
        f"media: {{ opus: {OPUS.replace(f'complexity: {COMPLEXITY}', 'complexity: 0')} }}\n"
    )
    site = Site(handset, folder)
    try:
        for number in members:
            for _ in range(rounds):
                report("dtls", **measure_dtls(site, number, seconds))
    finally:
        site.end()


def delays_of(site: Site, behaviour: str, seconds: int, joins: bool) -> list[float]:
    """Delays between two programs that call a device."""
    device = site.device("bob", behaviour)
    time.sleep(2)
    for user in ("alice", "caller"):
        site.ask(user, request="call", to="bob")
    calls = site.await_calls("bob", 2)
    if joins:
        site.ask("bob", request="bridge", call=calls[0], to_call=calls[1])
    time.sleep(3)
    found = one_way(site, "alice", "caller", seconds)
    site.hang_up("bob")
    site.end(device)
    return found


def delay(handset: str, folder: pathlib.Path, seconds: int, rounds: int) -> None:
    site = Site(handset, folder)
    room = "{ source: conference, conference: { room: team, tones: false } }"
    bridged: list[float] = []
    met: list[float] = []
    try:
        site.program("alice", "clicks")
        site.program("caller", "silence")
        time.sleep(2)
        for _ in range(rounds):
            bridged += delays_of(site, "{ source: silence }", seconds, True)
            met += delays_of(site, room, seconds, False)
    finally:
        site.end()
    if not bridged or not met:
        sys.exit("no click has arrived")
    of_bridge, of_room = spread(bridged), spread(met)
    more = {name: round(of_room[name] - of_bridge[name], 1) for name in ("p50", "p95")}
    report("delay", bridged_ms=of_bridge, room_ms=of_room, more_ms=more, clicks=[len(bridged), len(met)], rounds=rounds)


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50": round(statistics.median(ordered), 1), "p95": round(ordered[len(ordered) * 95 // 100], 1), "most": round(ordered[-1], 1)}


def report(kind: str, **figures: object) -> None:
    print(json.dumps({"kind": kind, "load": round(os.getloadavg()[0], 1), **figures}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("handset")
    parser.add_argument("--members", default="3 10 50")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--janus", action="store_true")
    parser.add_argument("--parts", default="plain dtls delay")
    arguments = parser.parse_args()
    members = [int(number) for number in arguments.members.split()]
    if min(members) < len(PITCHES) or arguments.seconds < 2 or arguments.rounds < 1:
        parser.error("at least three members, two seconds and one round")
    handset, seconds, rounds = str(pathlib.Path(arguments.handset).resolve()), arguments.seconds, arguments.rounds
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if "delay" in arguments.parts:
            delay(handset, folder, seconds, rounds)
        # What starts from here on runs on the members' core, unless it is pinned to the other one.
        os.sched_setaffinity(0, {MEMBERS_CORE})
        write_sounds(folder)
        if "plain" in arguments.parts:
            plain(handset, folder, members, seconds, rounds, ["handset", "janus"] if arguments.janus else ["handset"])
        if "dtls" in arguments.parts:
            dtls(handset, folder, members, seconds, rounds)


main()
