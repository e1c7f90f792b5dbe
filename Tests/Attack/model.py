"""The device under attack: what strangers do, what must never happen meanwhile, and a report.

A run has episodes, each with a seed of its own, which is made of the run's seed, the mode and the episode's number. So one episode can be
repeated, and a run that was stopped continues with the next.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import pathlib
import random
import time
import traceback
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from bystander import PATIENCE, SPEAKING, Bystander, Path
from control import Owner
from device import MIB, MOST_CALLS, MOST_KEPT, MOST_MEMORY, REGISTERED, SERVER, TRANSACTIONS, Device, Server, Usage, Witness
from strangers import ELSEWHERE, VICTIM, Stranger
from wire import Address, Socket, Tone

if TYPE_CHECKING:
    from bystander import Call

MODES = "anybody", "server"
STRANGERS = 6
PLACES = MOST_CALLS - 4  # Calls of strangers at a time, which leaves some for bystanders.
KEPT = 40  # Seconds that a call may last that neither side ends: 5 of silence, and 32 of a probe.
VICTIMS = 12  # Ports of the third party.
MOST_FAULTS = 12
# Datagrams a second of all strangers together in episodes with even numbers. `calls_from: anybody` reads 1,000 a second from all hosts
# without a call (`DatagramGate.ofStrangers`), and has half of the memory for requests, of which each is kept with 2 kB for 32 s
# (docs/security.md). Beyond that new calls are lost or refused with 503, and only established ones must continue. Episodes with
# odd numbers have no such limit.
PACE = min(1_000, TRANSACTIONS // 2 // 2_048 // 32) * 9 // 10
# A device registers again between 80 and 90 % of what is granted (docs/sip.md). The rest is for repetitions, and for a busy machine.
REGISTERS_AFTER = 0.8 * REGISTERED, 0.9 * REGISTERED + 20
# Seconds of an episode with an even number in which the device's log is not read, as on a disk that stalls.
UNREAD_LOG = 5, 20


class Model:
    """One device in one mode, in many episodes."""

    def __init__(self, handset: str, mode: str, seed: int, path: type[Path] = Path, alone: list[str] | None = None) -> None:
        self.handset, self.mode, self.seed, self.alone = handset, mode, seed, alone
        self.path = path(self)
        self.strangers_tones = [Tone(hertz) for hertz in (900, 1150)]
        self.witness, self.outcomes, self.deeds = Witness(), collections.Counter(), collections.Counter()
        self.faults, self.withheld, self.recent = [], [], collections.deque(maxlen=12)
        self.open_calls, self.tasks, self.places, self.bystanders = set(), set(), [], []
        self.is_running, self.is_paced, self.pause = False, True, 0.08
        self.lately, self.turn = collections.deque(), 0.0
        self.steps, self.datagrams, self.seconds = 0, 0, 0.0
        self.named, self.allowed, self.at_victim = 0, 0, 0  # Descriptions that name a third party, and bytes that it may get and got.
        self.server: Server | None = None
        self.device: Device | None = None
        self.victim: Socket | None = None
        self.victims: list[Socket] = []
        self.usage: Usage | None = None

    # --- What strangers report ---

    def takes_place(self) -> bool:
        """Whether a stranger may place one more call now. It counts for as long as the device may keep it."""
        now = time.monotonic()
        self.places = [until for until in self.places if until > now]
        if len(self.places) >= PLACES:
            return False
        self.places.append(now + KEPT)
        return True

    def names_victim(self, allowed: int = ELSEWHERE) -> None:
        """A description names the third party, which may get these bytes for it."""
        self.named += 1
        self.allowed += allowed

    def step(self, stranger: Stranger, deed: str) -> None:
        self.steps += 1
        self.deeds[deed] += 1
        self.recent.append(f"{time.monotonic() - self.begun:7.2f} s  {stranger} {deed}")

    async def pace(self) -> None:
        """Waits for a stranger's turn to send to the device, in episodes with a limit."""
        if not self.is_paced:
            return
        now = time.monotonic()
        self.turn = max(self.turn, now - 0.2) + 1 / PACE
        if self.turn > now:
            await asyncio.sleep(self.turn - now)

    @property
    def promises_new_calls(self) -> bool:
        return self.is_paced or self.mode == "server"

    def sent(self, count: int, to_device: bool) -> None:
        self.datagrams += count
        if to_device:
            self.lately.append((time.monotonic(), count))
            while self.lately[0][0] < time.monotonic() - 1:
                self.lately.popleft()

    def stray(self, call: Call, socket: Socket) -> None:
        """A stranger sends to the media port of this call."""

    def spoofed(self, call: Call, method: str) -> None:
        """A stranger sends a request with the names of this call."""

    def forged(self) -> None:
        """A stranger sends answers to the device's REGISTER."""

    # --- What must not happen ---

    def fault(self, text: str, since: float | None = None, slack: float = 0) -> None:
        """Records a fault. A timing fault, of more than `slack` seconds, is withheld if the machine was too busy after `since`."""
        excuse = self.witness.excuse(since, slack) if since is not None else None
        if excuse:
            self.withheld.append(f"{text} ({excuse})")
            return
        print(f"FAULT {self.mode}: {text[:800]}", flush=True)
        self.faults.append({"at_seconds": round(time.monotonic() - self.begun, 2), "fault": text, "before": list(self.recent)})

    def hear_as_victim(self, data: bytes, source: Address) -> None:
        if data[:1].isalpha():
            self.fault(f"a third party got SIP from {source}: {data[:200]!r}")
            return
        before = self.at_victim
        self.at_victim += len(data)
        if before <= self.allowed < self.at_victim:
            self.fault(
                f"a third party got {self.at_victim} bytes of media after {self.named} descriptions that name it: {self.allowed} in all"
            )

    async def watch(self) -> None:
        """Checks that the process lives, answers its server, and takes no more memory than its limits allow."""
        while self.is_running:
            if not self.device.is_alive:
                self.fault(f"the device ended by itself with {self.device.process.returncode}: {list(self.device.recent)}")
                return
            memory = self.usage.look() + getattr(self.path, "ballast", 0)
            if memory > self.usage.baseline + MOST_MEMORY:
                self.fault(f"{memory // MIB} MiB of memory, {self.usage.baseline // MIB} at rest; {MOST_MEMORY // MIB} more are allowed")
                return
            if self.server.silence > PATIENCE:
                self.fault(
                    f"no answer to the server for {self.server.silence:.0f} s: {self.device.describe()}", self.server.answered, PATIENCE
                )
                self.server.answered = time.monotonic()
            if self.owner.silence > 2 * PATIENCE:
                self.fault(f"control over HTTP has not answered its owner for {self.owner.silence:.0f} s", self.owner.answered, PATIENCE)
                self.owner.answered = time.monotonic()
            for line in self.device.complaints():
                self.fault(f"the log has {line}")
            await asyncio.sleep(0.25)

    def check_registration(self) -> None:
        """Checks that no forged answer makes the device register too often, or not again."""
        first, last = REGISTERS_AFTER
        now = time.monotonic()
        for earlier, later in itertools.pairwise([*self.server.registered, now]):
            pause = later - earlier
            if pause > last:
                self.fault(f"the device did not register for {pause:.0f} s, though {REGISTERED} s were granted")
            elif pause < first - 1 and later < now:
                self.fault(f"the device registered again after {pause:.1f} s, though {REGISTERED} s were granted")
        self.server.registered = self.server.registered[-1:]

    # --- Running ---

    def keep(self, work: Coroutine) -> asyncio.Task:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.done)
        return task

    def done(self, task: asyncio.Task) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and not isinstance(task.exception(), OSError):
            self.fault("".join(traceback.format_exception(task.exception(), limit=-3)))

    async def begin(self) -> Model:
        self.begun = time.monotonic()
        self.server = await Server().open()
        self.victims = [await Socket.open(VICTIM, self.hear_as_victim) for _ in range(VICTIMS)]
        self.victim = self.victims[0]
        self.device = Device(self.handset, self.server, self.mode)
        self.device.reads_log(True)
        async with asyncio.timeout(30):
            while self.server.contact is None or self.device.control is None:
                if not self.device.is_alive:
                    raise AssertionError(f"the device did not start: {list(self.device.recent)}")
                await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        self.usage, self.witness.device = Usage(self.device), self.device
        self.owner = Owner(self.device)
        self.throughout = [asyncio.create_task(work) for work in (self.witness.watch(), self.server.ping(), self.owner.ask())]
        return self

    def people(self, episode: int) -> tuple[list[Bystander], list[Stranger]]:
        def generator(name: str) -> random.Random:
            return random.Random(f"{self.seed}/{self.mode}/{episode}/{name}")

        bystanders = [
            Bystander(self, f"bystander-{number}", f"127.0.2.{number}", generator(f"bystander-{number}"), self.path, hertz)
            for number, hertz in ((1, 400), (2, 650))
        ]
        if self.mode == "server":
            for one in bystanders:
                one.signaling_host = SERVER
        strangers = [Stranger(self, number, generator(f"stranger-{number}")) for number in range(STRANGERS)]
        if self.alone:
            for stranger in strangers:
                stranger.deeds = {deed: weight for deed, weight in stranger.deeds.items() if deed.__name__ in self.alone}
        return bystanders, strangers

    async def episode(self, number: int, seconds: float) -> dict:
        """One episode, and a record of it."""
        bystanders, strangers = self.people(number)
        self.is_running, self.is_paced = True, number % 2 == 0
        before, datagrams, lost = self.steps, self.datagrams, self.device.lost_datagrams()
        faults, withheld = len(self.faults), len(self.withheld)
        self.usage.load()
        working = [self.keep(one.live()) for people in (bystanders, strangers) for one in people]
        watching = self.keep(self.watch())
        begun = time.monotonic()
        while (at := time.monotonic() - begun) < seconds and not watching.done() and len(self.faults) < MOST_FAULTS:
            self.device.reads_log(not self.is_paced or not UNREAD_LOG[0] <= at < UNREAD_LOG[1])
            await asyncio.sleep(0.2)
        self.is_running = False
        self.device.reads_log(True)
        load = self.usage.load()
        await asyncio.wait([*working, watching], timeout=SPEAKING + 30)
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.bystanders += bystanders
        self.seconds += time.monotonic() - begun
        self.check_registration()
        times = sorted(time for one in bystanders for time in one.times) or [0]
        shares = [share for one in bystanders for share in one.shares] or [0]
        if not any(one.calls for one in bystanders) and len(self.faults) == faults and len(self.withheld) == withheld:
            self.fault("no bystander's call was completed")
        return {
            "mode": self.mode,
            "seed": self.seed,
            "episode": number,
            "seconds": round(seconds),
            "steps": self.steps - before,
            "datagrams": self.datagrams - datagrams,
            "lost_by_kernel": self.device.lost_datagrams() - lost if self.device.is_alive else None,
            "calls": sum(one.calls for one in bystanders),
            "setup_ms_median": round(times[len(times) // 2] * 1000),
            "setup_ms_max": round(times[-1] * 1000),
            "least_sound": round(min(shares), 3),
            "processor": round(load, 2),
            "memory_mib": self.usage.peak // MIB,
            "waiting": round(self.witness.share(begun), 2),
            "worst_stall_ms": round(self.witness.longest(begun) * 1000),
            "withheld": self.withheld[withheld:],
            "faults": self.faults[faults:],
        }

    async def rest(self, seconds: int) -> None:
        """Checks what the device has freed some seconds after the attack."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.device.is_alive:
            await asyncio.sleep(0.5)
        if not self.device.is_alive:
            self.fault("the device ended by itself after the attack")
            return
        self.usage.load()
        await asyncio.sleep(3)
        load, memory, descriptors = self.usage.load(), self.usage.look(), self.device.descriptors()
        print(f"{self.mode}: {seconds} s after the attack {memory / MIB:.1f} MiB, {load:.1%} of a processor, {descriptors} descriptors")
        if load > 0.1:
            self.fault(f"{seconds} s after the attack the device takes {load * 100:.0f} % of a processor")
        if memory > self.usage.baseline + MOST_KEPT:
            self.fault(f"{seconds} s after the attack {memory // MIB} MiB of memory, {self.usage.baseline // MIB} before it")
        if descriptors > self.usage.descriptors + MOST_CALLS:
            self.fault(f"{seconds} s after the attack {descriptors} descriptors are open, {self.usage.descriptors} before it")

    async def end(self) -> None:
        self.is_running = False
        for task in self.throughout:
            task.cancel()
        self.device.stop()
        self.server.socket.close()
        for victim in self.victims:
            victim.close()

    # --- Results ---

    def report(self) -> str:
        times = sorted(time for one in self.bystanders for time in one.times) or [0]
        shares = sorted(share for one in self.bystanders for share in one.shares) or [0]
        lines = [
            f"{self.mode}: seed {self.seed}, {self.seconds:.0f} s, {self.steps} deeds, {self.datagrams} datagrams of strangers, "
            f"{sum(one.calls for one in self.bystanders)} calls of bystanders",
            f"    INVITE to answer: half within {times[len(times) // 2] * 1000:.0f} ms, P99 {times[int(len(times) * 0.99)] * 1000:.0f} ms, "
            f"the slowest {times[-1] * 1000:.0f} ms",
            f"    sound that came back: half {shares[len(shares) // 2] * 100:.0f} %, the least {shares[0] * 100:.0f} %",
            f"    own memory: {self.usage.baseline / MIB:.1f} MiB at rest, {self.usage.peak / MIB:.1f} at most; a third party got "
            f"{self.at_victim} bytes after {self.named} descriptions",
            "    deeds: " + ", ".join(f"{name} {count}" for name, count in sorted(self.deeds.items())),
            "    outcomes: " + ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items())),
        ]
        if self.withheld:
            lines.append(f"    withheld beside a stall of the machine: {len(self.withheld)}, such as {self.withheld[-1][:300]}")
        return "\n".join(lines)


class State:
    """The episodes of a run until now, one line each, so that the run can continue."""

    def __init__(self, path: str | None) -> None:
        self.path = path and pathlib.Path(path)
        self.done = []
        if self.path and self.path.exists():
            self.done = [json.loads(line) for line in self.path.read_text().splitlines() if line.startswith("{")]

    def next(self, mode: str, seed: int) -> int:
        return 1 + max((one["episode"] for one in self.done if (one["mode"], one["seed"]) == (mode, seed)), default=-1)

    def add(self, result: dict) -> None:
        self.done.append(result)
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps(result) + "\n")


async def attack(model: Model, seconds: float, length: float, state: State, only: int | None = None, rest: int = 0) -> Model:
    """Runs episodes of `length` seconds until the time is up or there is a fault."""
    await model.begin()
    try:
        number, ends = state.next(model.mode, model.seed) if only is None else only, time.monotonic() + seconds
        while time.monotonic() < ends and not model.faults:
            result = await model.episode(number, min(length, max(ends - time.monotonic(), 1)))
            state.add(result)
            print(json.dumps({name: value for name, value in result.items() if name != "faults"}), flush=True)
            if only is not None:
                break
            number += 1
        if not model.faults and rest:
            await model.rest(rest)
    finally:
        await model.end()
    return model
