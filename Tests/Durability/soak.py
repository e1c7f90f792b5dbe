"""Runs calls that come and go for a long time, and reports the growth of each process per call.

    soak.py HANDSET [--seconds S] [--calls N] [--sample-seconds S] [--at-a-time N] [--limit BYTES] [--folder PATH]
            [--samples FILE] [--keep]

Four processes of the command take part: an exchange with its database on disk, a device that answers with an echo, and two
devices that call it, one with SDES keys and one with ICE and DTLS. N calls are placed over S seconds, evenly, with media both
ways for one to four seconds; one in four is a WebRTC call, and the callee hangs up one in ten. Every minute new calls wait
until none is left, and each process is measured at rest: memory, descriptors, threads, and the bytes of its files.

Growth per call is the median of the last quarter of the samples less the median of the first quarter, over the calls between
them. Samples before call 500 are the warm-up and count for neither: by then every path has run, and pools have their size.

Fails if a call fails, if a process ends, if anything grows by more than the limit (1000 bytes a call), or if the median of
descriptors is higher in the last quarter, or that of threads by more than one for each core. With fewer than 1000 calls after the
warm-up or fewer than eight samples growth is reported, and not judged. Prints one JSON object. Uses nothing but Python.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, TextIO

WARM_UP_CALLS = 500
FEWEST_CALLS = 1000
FEWEST_SAMPLES = 8
SETUP_LIMIT = 20.0  # Seconds until media flows, on a busy machine.
END_LIMIT = 20.0  # Seconds until a call that was hung up has ended.

#: The figures of each process.
BYTES = ("rss", "pss", "anonymous", "files")
COUNTS = ("descriptors", "threads")
#: By how much the medians of counts may differ. Idle threads of Swift's pool, one for each core, end and begin again.
ALLOWED = {"descriptors": 0, "threads": os.cpu_count() or 1}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def private(path: str, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def folder_bytes(folder: str) -> int:
    """What a folder's files take up on disk, in bytes."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


def rollup(pid: int) -> dict[str, float]:
    """Memory of a process in bytes: resident, proportional, and its own."""
    found: dict[str, float] = {}
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            word = line.split()
            if word[0] in ("Rss:", "Pss:", "Anonymous:"):
                found[word[0][:-1].lower()] = int(word[1]) * 1024
    return found


class Process:
    """One process under test, with a folder of its own for its files."""

    def __init__(self, name: str, handset: str, command: str, configuration: str, folder: str) -> None:
        self.name, self.folder = name, os.path.join(folder, name)
        self.socket = os.path.join(self.folder, "control.sock")
        os.makedirs(os.path.join(self.folder, "state"), mode=0o700)
        path = os.path.join(self.folder, name + ".yaml")
        private(path, configuration.replace("STATE", os.path.join(self.folder, "state")).replace("SOCKET", self.socket))
        self.log = open(os.path.join(self.folder, "log"), "wb")
        environment = os.environ | {"HANDSET_DUMPABLE": "1"}  # So that its memory and descriptors can be counted.
        self.process = subprocess.Popen(
            [handset, command, "--config", path], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment
        )

    def measure(self) -> dict[str, float]:
        pid = self.process.pid
        found = rollup(pid)
        found["files"] = folder_bytes(os.path.join(self.folder, "state"))
        found["descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
        found["threads"] = len(os.listdir(f"/proc/{pid}/task"))
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        found["cpu_s"] = round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 1)
        return found

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        self.log.close()
        return status


class Line:
    """A connection to a device's control socket: requests with answers, and events for the caller that waits for them."""

    def __init__(self, hear: Callable[[dict], None]) -> None:
        self.hear, self.answers, self.number = hear, {}, 0

    async def open(self, path: str) -> Any:
        for _ in range(300):
            try:
                self.reader, self.writer = await asyncio.open_unix_connection(path)
                break
            except OSError:
                await asyncio.sleep(0.1)
        else:
            raise SystemExit(f"no device listens at {path}")
        self.task = asyncio.create_task(self.listen())
        return (await self.ask("watch", levels=False))["status"]

    async def listen(self) -> None:
        while line := await self.reader.readline():
            said = json.loads(line)
            if "event" in said:
                self.hear(said)
            elif (waiting := self.answers.pop(said.get("id"), None)) and not waiting.done():
                waiting.set_result(said)
        for waiting in self.answers.values():
            waiting.cancel()

    async def ask(self, request: str, **members: Any) -> dict:
        self.number += 1
        waiting = self.answers[self.number] = asyncio.get_running_loop().create_future()
        self.writer.write(json.dumps({"id": self.number, "request": request, **members}).encode() + b"\n")
        await self.writer.drain()
        return await asyncio.wait_for(waiting, SETUP_LIMIT)


class Caller:
    """A device that places calls, one after another or several at a time."""

    def __init__(self, soak: Soak, process: Process) -> None:
        self.soak, self.process, self.calls = soak, process, {}
        self.line = Line(self.hear)

    def hear(self, said: dict) -> None:
        if said["event"] == "connection" and said["state"] != "connected":
            self.soak.fault(f"{self.process.name} is {said['state']}")
        if said["event"] in ("media", "ended"):
            # It may come before the answer to the request that placed the call is read.
            future = self.futures(said["call"])[said["event"]]
            if not future.done():
                future.set_result(said)

    def futures(self, number: int) -> dict[str, asyncio.Future]:
        loop = asyncio.get_running_loop()
        return self.calls.setdefault(number, {"media": loop.create_future(), "ended": loop.create_future()})

    async def call(self) -> str | None:
        answer = await self.line.ask("call", to="echo@localhost")
        if not answer["ok"]:
            return f"was refused: {answer['error']}"
        number = answer["call"]
        call = self.futures(number)
        try:
            done, _ = await asyncio.wait(call.values(), timeout=SETUP_LIMIT, return_when=asyncio.FIRST_COMPLETED)
            if not call["media"].done():
                return f"was not established: {call['ended'].result() if done else 'there was no event of it'}"
            self.soak.setup_ms.append(call["media"].result()["setup_ms"])
            await asyncio.wait([call["ended"]], timeout=random.uniform(1, 4))
            if not call["ended"].done():
                await self.line.ask("hangup", call=number)
            ended = await asyncio.wait_for(call["ended"], END_LIMIT)
            if ended["reason"] != "completed":
                return f"ended with {ended['reason']}"
        finally:
            del self.calls[number]
        return None


class Soak:
    def __init__(self, arguments: argparse.Namespace, folder: str) -> None:
        self.arguments, self.folder = arguments, folder
        self.faults, self.samples, self.setup_ms = [], [], []
        self.placed = self.completed = self.standing = self.callee_ended = 0
        self.rest = asyncio.Event()
        self.log_file: TextIO | None = None
        self.processes: list[Process] = []

    def fault(self, text: str) -> None:
        self.faults.append(text)
        self.say("FAULT: " + text)

    def say(self, text: str) -> None:
        line = time.strftime("%H:%M:%S ", time.gmtime()) + text
        for file in (sys.stderr, self.log_file):
            print(line, file=file, flush=True)

    def start(self) -> None:
        port = free_port()
        secret = os.path.join(self.folder, "app.secret")
        private(secret, "soak")
        tokens, users = {}, []
        for name in ("echo", "sdes", "webrtc"):
            tokens[name] = base64.urlsafe_b64encode(os.urandom(24)).decode()
            private(os.path.join(self.folder, name + ".token"), tokens[name])
            users.append(
                f"  - id: {name}\n    public_ids: [{name}@localhost]\n"
                f"    media_token_hashes: [{hashlib.sha256(tokens[name].encode()).hexdigest()}]\n"
            )
        exchange = (
            f"listen: 127.0.0.1:{port}\ndatabase: STATE/exchange.db\n"
            f"apps:\n  - key: soak\n    secret_file: {secret}\nusers:\n{''.join(users)}"
        )

        def device(name: str, rest: str) -> str:
            return (
                f"account:\n  server: http://127.0.0.1:{port}\n  app_key: soak\n  app_secret_file: {secret}\n"
                f"  media_token_file: {os.path.join(self.folder, name + '.token')}\n  session_file: STATE/session\n"
                f"device:\n  call_records: STATE/calls.jsonl\ncontrol:\n  socket: SOCKET\n{rest}"
            )

        answering = "answer:\n  mode: auto\n  max_calls: 1000\nbehaviour:\n  source: echo\nmedia:\n  workers: 2\n"
        calling = "answer:\n  mode: reject\n  max_calls: 1000\nbehaviour:\n  source: tone\nmedia:\n  offers: {}\n"
        handset = self.arguments.handset
        self.exchange = Process("exchange", handset, "serve", exchange, self.folder)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit(f"the exchange does not listen; see {self.exchange.log.name}")
        self.device = Process("echo", handset, "run", device("echo", answering), self.folder)
        self.sdes = Process("sdes", handset, "run", device("sdes", calling.format("sdes")), self.folder)
        self.webrtc = Process("webrtc", handset, "run", device("webrtc", calling.format("webrtc")), self.folder)
        self.processes = [self.exchange, self.device, self.sdes, self.webrtc]

    def measure(self) -> None:
        sample: dict[str, Any] = {"at_s": round(time.monotonic() - self.began, 1), "calls": self.completed}
        for process in self.processes:
            sample[process.name] = process.measure()
        sample["database"] = sum(
            os.stat(os.path.join(self.exchange.folder, "state", name)).st_size
            for name in os.listdir(os.path.join(self.exchange.folder, "state"))
        )
        self.samples.append(sample)
        self.say(
            f"{self.completed} calls; "
            + "; ".join(
                "{}: {} KiB resident, {} KiB proportional, {} KiB its own, {} descriptors, {} threads, {} KiB on disk".format(
                    name,
                    *(sample[name][key] // 1024 for key in ("rss", "pss", "anonymous")),
                    sample[name]["descriptors"],
                    sample[name]["threads"],
                    sample[name]["files"] // 1024,
                )
                for name in (process.name for process in self.processes)
            )
        )

    async def one(self, caller: Caller) -> None:
        self.standing += 1
        try:
            why = await caller.call()
        except (TimeoutError, asyncio.CancelledError, OSError) as error:
            why = f"was lost: {error!r}"
        if why:
            self.fault(f"a call of {caller.process.name} {why}")
        else:
            self.completed += 1
        self.standing -= 1
        if self.standing == 0:
            self.rest.set()

    async def come_to_rest(self) -> None:
        while self.standing > 0:
            self.rest.clear()
            await self.rest.wait()
        # The remote parties receive the end, and records go to disk.
        await asyncio.sleep(1)

    def callee_hears(self, said: dict) -> None:
        if said["event"] == "established" and random.random() < 0.1:
            asyncio.get_running_loop().call_later(0.5, self.end_by_callee, said["call"])

    def end_by_callee(self, number: int) -> None:
        async def end() -> None:
            if (await self.callee.ask("hangup", call=number))["ok"]:
                self.callee_ended += 1

        self.tasks.add(task := asyncio.ensure_future(end()))
        task.add_done_callback(self.tasks.discard)

    async def run(self) -> None:
        arguments = self.arguments
        self.tasks = set()
        self.callee = Line(self.callee_hears)
        callers = [Caller(self, self.sdes), Caller(self, self.webrtc)]
        for line, process in ((self.callee, self.device), *((caller.line, caller.process) for caller in callers)):
            status = await line.open(process.socket)
            for _ in range(300):
                if status["connection"] == "connected":
                    break
                await asyncio.sleep(0.1)
                status = (await line.ask("status"))["status"]
            else:
                raise SystemExit(f"{process.name} does not connect; see {process.log.name}")
        self.began = time.monotonic()
        self.measure()
        end, next_sample = self.began + arguments.seconds, self.began + arguments.sample_seconds
        while self.placed < arguments.calls:
            now = time.monotonic()
            if dead := [process.name for process in self.processes if process.process.poll() is not None]:
                self.fault(f"ended by itself: {', '.join(dead)}")
                return
            if len(self.faults) > 100:
                self.say("too many faults")
                return
            if now >= next_sample:
                await self.come_to_rest()
                self.measure()
                next_sample = time.monotonic() + arguments.sample_seconds
                continue
            # The time of a rest is made up for: calls are spread evenly over what is left.
            self.placed += 1
            caller = callers[1 if self.placed % 4 == 0 else 0]
            while self.standing >= arguments.at_a_time:
                self.rest.clear()
                await asyncio.sleep(0.05)
            self.tasks.add(task := asyncio.ensure_future(self.one(caller)))
            task.add_done_callback(self.tasks.discard)
            # Of each minute about five seconds are rest.
            left = max(0.0, (end - time.monotonic()) * (1 - 5 / max(5, arguments.sample_seconds)))
            await asyncio.sleep(left / max(1, arguments.calls - self.placed + 1))
        await self.come_to_rest()
        self.measure()

    def judge(self) -> tuple[dict, bool]:
        """Growth of everything per call; adds to the faults what is too much."""
        warm = [sample for sample in self.samples if sample["calls"] >= WARM_UP_CALLS]
        quarter = len(warm) // 4
        is_judged = len(warm) >= FEWEST_SAMPLES and warm[-1]["calls"] - warm[0]["calls"] >= FEWEST_CALLS
        if not is_judged:
            self.say("too few calls or samples after the warm-up to judge growth")
            warm, quarter = self.samples, max(1, len(self.samples) // 4)
        first, last = warm[:quarter], warm[-quarter:]
        calls = (statistics.median(s["calls"] for s in last) - statistics.median(s["calls"] for s in first)) or 1

        def change(read: Callable[[dict], float]) -> float:
            return statistics.median(map(read, last)) - statistics.median(map(read, first))

        growth = {"database": {"bytes_per_call": round(change(lambda s: s["database"]) / calls, 1)}}
        for process in self.processes:
            one = growth[process.name] = {}
            for key in BYTES:
                one[f"{key}_bytes_per_call"] = round(change(lambda s: s[process.name][key]) / calls, 1)
            for key in COUNTS:
                one[key] = change(lambda s: s[process.name][key])
        if is_judged:
            for name, one in growth.items():
                for key, value in one.items():
                    if value > ALLOWED.get(key, self.arguments.limit):
                        self.fault(f"{name} grows: {key} {value}")
        return growth, is_judged

    def report(self) -> dict:
        growth, is_judged = self.judge()
        delays = sorted(self.setup_ms)
        return {
            "calls": self.placed,
            "completed": self.completed,
            "ended_by_callee": self.callee_ended,
            "seconds": round(time.monotonic() - self.began, 1),
            "setup_ms": {"median": statistics.median(delays), "p99": delays[int(len(delays) * 0.99)]} if delays else None,
            "growth_is_judged": is_judged,
            "growth": growth,
            "faults": self.faults,
            "first": self.samples[0],
            "last": self.samples[-1],
        }


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("handset")
    parser.add_argument("--seconds", type=float, default=7200)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--sample-seconds", type=float, default=60)
    parser.add_argument("--at-a-time", type=int, default=12, help="the most calls at a time")
    parser.add_argument("--limit", type=float, default=1000, help="bytes per call that anything may grow by")
    parser.add_argument("--folder", help="where the processes' files go; a temporary folder otherwise")
    parser.add_argument("--samples", help="file for all samples, one JSON object per line")
    parser.add_argument("--keep", action="store_true", help="do not remove the folder")
    arguments = parser.parse_args()
    folder = arguments.folder or tempfile.mkdtemp(prefix="handset-soak-")
    os.makedirs(folder, exist_ok=True)
    soak = Soak(arguments, folder)
    soak.log_file = open(os.path.join(folder, "soak.log"), "w")
    try:
        soak.start()
        asyncio.run(soak.run())
    finally:
        for process in reversed(soak.processes):
            status = process.end()
            if status != 0:
                soak.fault(f"{process.name} ended with {status}")
    result = soak.report()
    if arguments.samples:
        with open(arguments.samples, "w") as file:
            file.writelines(json.dumps(sample) + "\n" for sample in soak.samples)
    print(json.dumps(result, indent=2))
    if not arguments.folder and not arguments.keep and not result["faults"]:
        shutil.rmtree(folder)
    elif result["faults"]:
        soak.say(f"the processes' logs and files are in {folder}")
    sys.exit(1 if result["faults"] else 0)


if __name__ == "__main__":
    main()
