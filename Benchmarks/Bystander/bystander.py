#!/usr/bin/env python3
"""Measures how long other users' invites take while some accounts send room signals as fast as they may.

usage: bystander.py HANDSET [--seconds S] [--rounds R] [--attackers "N N…"] [--participants N] [--rooms N]
                    [--folder PATH]

Starts `handset serve` with a database and its default limits. Pairs of devices that are not in the attacked room send 50
invites per second and answer them. Runs with and without an attack alternate: N accounts each send signals of 8 KB, 500 at
once and then 100 per second, to a room of 62, half of which have lost their connections. With `--rooms` the participants and
the attackers are spread over as many rooms: 200 participants in 20 rooms leave 100 attackers in rooms of ten. Prints a line
of JSON for each number of attackers: percentiles, in milliseconds, of the time from sending an invite to its response and
to inviteReceived, over all rounds with and without the attack, and the median of the rounds' differences of P99.9. Exits
with status 1 if one of these medians is above 50 ms, or if an invite was refused or lost.
"""

import argparse
import heapq
import json
import multiprocessing
import os
import pathlib
import selectors
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Load"))
import load
from socketclient import Device

PAIRS = 8
RATE = 50
#: What the exchange allows one connection.
SIGNALS_PER_SECOND, BURST = 100, 500
SIGNAL_BYTES = 8_190
ALLOWED_MS = 50
#: How long an invite is waited for before it counts as lost.
PATIENCE = 40
LIMITS = "resume_window_seconds: 600\n"


def priority(level):
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(level))
    except OSError:
        print("bystander: SCHED_FIFO is not allowed here; other programs will show in the figures", file=sys.stderr)


# --- The attack -----------------------------------------------------------------------------------------------------


def attack(port, attackers, participants, rooms, ready, go, counts):
    """Fills the rooms, half of each absent, and sends signals to them from a process of its own until it is killed."""
    priority(1)
    members = [Device(port, f"member{number}", load.sign) for number in range(participants)]
    for number, member in enumerate(members):
        member.call("room.join", {"room": f"lobby{number % rooms}"})
    for member in members[participants // 2 :]:
        member.drop()
    members = members[: participants // 2]
    data = "x" * SIGNAL_BYTES
    frames = [
        Device.frame(
            json.dumps(
                {"jsonrpc": "2.0", "id": 0, "method": "room.signal", "params": {"room": f"lobby{number}", "type": "t", "data": data}}
            ).encode()
        )
        for number in range(rooms)
    ]
    selector = selectors.DefaultSelector()
    for member in members:
        member.socket.setblocking(False)
        selector.register(member.socket, selectors.EVENT_READ, member)
    ready.set()
    go.wait()
    senders = [[member, time.monotonic(), 0, bytearray(), frames[number % rooms]] for number, member in enumerate(members[:attackers])]
    heard = time.monotonic()
    while True:
        now = time.monotonic()
        for sender in senders:
            member, began, sent, rest, frame = sender
            # As much as the limit and the exchange allow.
            while not rest and sent < BURST + (now - began) * SIGNALS_PER_SECOND:
                rest += frame
                sent += 1
            sender[2] = sent
            try:
                while rest:
                    del rest[: member.socket.send(rest)]
            except BlockingIOError:
                pass
            except OSError:
                counts[1] += 1
        if now - heard > 10:
            heard = now
            for member in members:
                if not any(sender[0] is member and sender[3] for sender in senders):
                    member.pong()
        counts[0] = sum(sender[2] for sender in senders)
        for key, _ in selector.select(0.002):
            try:
                if not key.data.socket.recv(1 << 20):
                    counts[1] += 1
                    selector.unregister(key.fileobj)
            except BlockingIOError:
                pass
            except OSError:
                counts[1] += 1
                selector.unregister(key.fileobj)


class Attack:
    def __init__(self, port, attackers, participants, rooms):
        ready, go = multiprocessing.Event(), multiprocessing.Event()
        self.counts = multiprocessing.Array("q", 2)
        self.process = multiprocessing.Process(
            target=attack, args=(port, attackers, participants, rooms, ready, go, self.counts), daemon=True
        )
        self.process.start()
        if not ready.wait(60):
            sys.exit("bystander: the room does not fill")
        go.set()

    def end(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        return {"signals": self.counts[0], "lost_connections": self.counts[1]}


# --- The bystanders -------------------------------------------------------------------------------------------------


class Bystanders:
    """Pairs of devices, of which one invites and the other accepts."""

    def __init__(self, port):
        self.callers = [Device(port, f"caller{number}", load.sign) for number in range(PAIRS)]
        self.callees = [Device(port, f"callee{number}", load.sign) for number in range(PAIRS)]
        self.selector = selectors.DefaultSelector()
        for device in self.callers + self.callees:
            device.register()
            device.socket.setblocking(False)
            self.selector.register(device.socket, selectors.EVENT_READ, device)
        self.sent, self.number = {}, 0
        self.responses, self.received, self.refused = [], [], 0

    def handle(self, device, message, now):
        if message.get("method") == "event":
            event, body = message["params"]["type"], message["params"]["data"]
            if event == "inviteReceived":
                invite = body["invite"]
                began = self.sent.get(body["data"]["n"], [None])
                if began[0] is not None and not began[2]:
                    began[2] = True
                    self.received.append(now - began[0])
                device.ask("invite.accept", {"invite": invite, "data": {}})
            elif event == "inviteAccepted":
                device.ask("call.end", {"invite": body["invite"], "reason": "completed", "duration_ms": 0})
        elif (began := self.sent.get(message.get("id"))) is not None and not began[1]:
            began[1] = True
            self.responses.append(now - began[0])
            if "error" in message:
                self.refused += 1
                began[2] = True

    def pump(self, wait):
        for key, _ in self.selector.select(max(0, wait)):
            for message in key.data.receive():
                self.handle(key.data, message, time.monotonic())

    def run(self, seconds):
        """Invites for `seconds`; the latencies in seconds, and how many invites were refused or lost."""
        self.sent, self.responses, self.received, self.refused = {}, [], [], 0
        began, count = time.monotonic(), 0
        while (now := time.monotonic()) < began + seconds:
            if now >= began + count / RATE:
                self.number += 1
                pair, key = count % PAIRS, 1_000_000 + self.number
                # Counted from the scheduled time, so that lateness of this process is included.
                self.sent[key] = [began + count / RATE, False, False]
                self.callers[pair].ask(
                    "invite.send",
                    {"to": [f"callee{pair}"], "ttl": 60, "idempotency_key": f"k{key}", "data": {"n": key, "offer": "v=0\r\n" * 150}},
                    key,
                )
                count += 1
            self.pump(began + count / RATE - time.monotonic())
        until = time.monotonic() + PATIENCE
        while not all(each[1] and each[2] for each in self.sent.values()) and time.monotonic() < until:
            self.pump(0.05)
        lost = sum(not (each[1] and each[2]) for each in self.sent.values())
        return {"responses": self.responses, "received": self.received, "refused": self.refused, "lost": lost}


def settle(bystanders):
    """Waits until the exchange has handled the backlog of an attack."""
    for _ in range(100):
        run = bystanders.run(0.2)
        if not run["lost"] and max(run["responses"] + run["received"]) < 0.05:
            return


def percentiles(values):
    values = heapq.nsmallest(len(values), values)
    pick = lambda share: round(1e3 * values[min(len(values) - 1, int(share * len(values)))], 2)  # noqa: E731
    return {"p50_ms": pick(0.5), "p99_ms": pick(0.99), "p999_ms": pick(0.999), "max_ms": pick(1), "count": len(values)}


def measure(arguments, attackers):
    users = [
        f"{kind}{number}"
        for kind, most in (("member", arguments.participants), ("caller", PAIRS), ("callee", PAIRS))
        for number in range(most)
    ]
    quiet, loud = [], []
    signals = lost_connections = 0
    cpus = []
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="bystander-") as name:
        exchange = load.Exchange(arguments.handset, pathlib.Path(name), users, "full", limits=LIMITS)
        try:
            bystanders = Bystanders(exchange.port)
            bystanders.run(2)
            for number in range(arguments.rounds):
                print(f"bystander: {attackers} attackers, round {number + 1} of {arguments.rounds}", file=sys.stderr)
                quiet.append(bystanders.run(arguments.seconds))
                attack_ = Attack(exchange.port, attackers, arguments.participants, arguments.rooms)
                before, began = exchange.cpu_seconds(), time.monotonic()
                loud.append(bystanders.run(arguments.seconds))
                cpus.append((exchange.cpu_seconds() - before) / (time.monotonic() - began))
                ended = attack_.end()
                signals += ended["signals"]
                lost_connections += ended["lost_connections"]
                settle(bystanders)
            resident = exchange.resident_kb()
        finally:
            exchange.kill()
    result = {
        "attackers": attackers,
        "participants": arguments.participants,
        "rooms": arguments.rooms,
        "signals": signals,
        "lost_connections": lost_connections,
        "cpus": round(sum(cpus) / len(cpus), 2),
        "resident_kb": resident,
    }
    for what in ("responses", "received"):
        pooled = [percentiles([value for run in runs for value in run[what]]) for runs in (quiet, loud)]
        # Each run is compared with the control run before it, since what else the machine does changes meanwhile.
        each = [round(percentiles(after[what])["p999_ms"] - percentiles(before[what])["p999_ms"], 2) for before, after in zip(quiet, loud)]
        result[what] = {
            "control": pooled[0],
            "attack": pooled[1],
            "p999_differences_ms": each,
            "p999_difference_ms": round(statistics.median(each), 2),
        }
    result["refused"] = sum(run["refused"] for run in quiet + loud)
    result["lost"] = sum(run["lost"] for run in quiet + loud)
    result["load_average"] = round(os.getloadavg()[0], 1)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--attackers", default="1 8")
    parser.add_argument("--participants", type=int, default=62)
    parser.add_argument("--rooms", type=int, default=1)
    parser.add_argument("--folder", help="where the database goes; the disk matters")
    arguments = parser.parse_args()
    multiprocessing.set_start_method("fork")
    priority(1)
    failed = False
    for attackers in (int(word) for word in arguments.attackers.split()):
        row = measure(arguments, attackers)
        print(json.dumps(row), flush=True)
        failed |= row["lost"] + row["refused"] > 0
        failed |= any(row[what]["p999_difference_ms"] > ALLOWED_MS for what in ("responses", "received"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
