"""The exchange under attack: attackers that try everything, an oracle that knows what each may see, and two honest callers."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import random
import re
import signal
import time
import traceback
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from assault import ATTACKERS, CROWD, FLEETING, HONEST, JOINING, MIB, Assaulted, public_id
from attackers import Guest, User, Visitor
from conformance import waits
from crowd import Crowd
from honest import Pair, Phone
from intruders import Stranger
from joining import Doorstep, Guesser, Owner
from model import Oracle

if TYPE_CHECKING:
    from attackers import Prowler
    from conformance import Stage
    from seats import Seat


class Model:
    """One run: an exchange, all its users, and the oracle."""

    def __init__(self, stage: Stage, name: str, is_private: bool) -> None:
        self.seed = stage.seed
        self.seconds, self.name = stage.model_seconds, name
        self.random = self.generator("model")
        self.exchange = Assaulted(stage.handset, name, is_private)
        self.oracle = Oracle(f"{self.seed}/{name}")
        self.is_running, self.pause = True, 0.2
        self.lines, self.tasks = set(), set()
        self.recent_invites, self.own_groups = collections.deque(maxlen=300), []
        self.push_tokens = {}

    def generator(self, name: str) -> random.Random:
        return random.Random(f"{self.seed}/{self.name}/{name}")

    def keep(self, work: Coroutine) -> asyncio.Task:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.done)
        return task

    def done(self, task: asyncio.Task) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.oracle.fault("".join(traceback.format_exception(task.exception(), limit=-3)))
            self.is_running = False

    # --- Values for attackers ---

    def description(self, seat: Seat) -> dict:
        return {"id": seat.device, "name": "Attacker", "capabilities": ["audio"]}

    def push_token(self, seat: Seat) -> str:
        marker = self.oracle.mark(set(), why=f"a push token of {seat}")
        self.push_tokens[marker.text] = seat
        return marker.text

    def token_of_another(self, seat: Seat) -> str:
        others = [token for principal, token in self.oracle.access_tokens if principal != seat.principal]
        return self.random.choice(others or ["x"])

    def look_at_push(self, body: bytes) -> None:
        """Checks that a push goes to a device of a principal that the invite concerns."""
        body = re.sub(rb'"id":"push-[0-9a-f]{32}",?', b"", body)
        for token in [token for token in self.push_tokens if token.encode() in body]:
            self.oracle.scan(self.push_tokens[token], body.replace(token.encode(), b""))

    # --- Users ---

    def people(self) -> tuple[list[Prowler], list[Phone]]:
        """All attackers, and the honest phones, in the order of their addresses."""
        addresses = (f"127.0.1.{number}" for number in range(1, 250))
        users = [
            User(self, user, f"device-{number}", self.generator(f"{user}/{number}"), next(addresses))
            for user in ATTACKERS
            for number in range(3)
        ]
        users += [User(self, user, "device-0", self.generator(user), next(addresses)) for user in FLEETING]
        others = [
            kind(self, name, self.generator(f"{kind.__name__}/{name}"), next(addresses))
            for kind, name in (
                (Guest, "sam"),
                (Guest, "sammy"),
                (Visitor, "ann"),
                (Visitor, ATTACKERS[0]),
                (Stranger, "stranger-1"),
                (Stranger, "stranger-2"),
            )
        ]
        phones = [
            Phone(self, user, device, self.generator(f"{user}/{device}"), next(addresses))
            for user, device in (("ann", "ann-phone"), ("ben", "ben-phone"), ("ben", "ben-tablet"))
        ]
        return [*users, *others], phones

    async def run(self) -> None:
        self.oracle.users = {name: user for user in ATTACKERS + FLEETING + HONEST + JOINING + CROWD for name in (user, public_id(user))}
        await self.exchange.begin()
        self.exchange.webhook.look = self.look_at_push
        attackers, phones = self.people()
        pair = Pair(self, *phones)
        self.pair = pair
        self.crowd = Crowd(self, [f"127.0.2.{number}" for number in range(1, 250)])
        phones += self.crowd.members
        self.door = Doorstep(self)
        sources = [f"127.0.3.{number}" for number in range(1, 5)]
        guessers = [Guesser(self, f"guesser-{source}", self.generator(source), source, self.door) for source in sources[:2]]
        self.owners = [Owner(self.door, user, sources) for user in JOINING]
        for phone in phones:
            self.keep(phone.stay())
        async with asyncio.timeout(30):
            for phone in phones:
                await phone.ready.wait()
        self.exchange.baseline = self.exchange.memory()
        living: list[Any] = [pair, self.crowd, *self.owners, *attackers, *guessers]
        working = [self.keep(work) for work in (*(one.live() for one in living), self.watch(), self.reap(), self.administer())]
        done, _ = await asyncio.wait(working, timeout=self.seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        self.is_running = False
        self.door.judge_times()
        await asyncio.sleep(1)

    # --- Faults and administration ---

    async def watch(self) -> None:
        """Checks that the process lives, and uses no more memory than its budgets allow."""
        while self.is_running:
            if self.exchange.is_meant_to_run:
                if self.exchange.process.poll() is not None:
                    raise AssertionError(f"the exchange ended by itself with {self.exchange.process.returncode}")
                resident, bound = self.exchange.memory(), self.exchange.bound(len(self.lines) + 20)
                self.exchange.peak = max(self.exchange.peak, resident)
                if resident > bound:
                    raise AssertionError(f"{resident // MIB} MiB are resident, more than {bound // MIB}")
            if len(self.oracle.faults) > 20:
                raise AssertionError("too many faults to continue")
            await asyncio.sleep(0.25)

    async def reap(self) -> None:
        """Kills or terminates it now and then, except in the last third of the run."""
        begun = time.monotonic()
        while True:
            await asyncio.sleep(self.random.uniform(0.1, 0.4) * min(self.seconds, 60))
            if not self.is_running or time.monotonic() - begun > self.seconds * 2 / 3:
                return
            await self.exchange.restart(self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))

    async def administer(self) -> None:
        """Removes, adds and revokes accounts."""
        while self.is_running:
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * min(10, self.seconds / 5))
            user = self.random.choice(FLEETING)
            for seat in self.oracle.seats:
                if seat.principal[1] == user:
                    seat.unsure()
            if self.random.random() < 0.5:
                await self.exchange.administer("revoke", user)
            else:
                written = self.exchange.log.stat().st_size
                await self.exchange.administer("remove", user)
                await self.exchange.has_read_users(len(FLEETING + JOINING) - 1, after=written)
                await self.written()
                self.oracle.removals[user] += 1
                await self.exchange.add(user)

    async def written(self) -> None:
        """Waits until what the exchange did last is on its disk: a kill before that undoes it."""
        while True:
            restarts = self.exchange.restarts
            await asyncio.sleep(1)
            if self.exchange.is_meant_to_run and self.exchange.restarts == restarts:
                return

    # --- Results ---

    async def stop(self) -> None:
        self.is_running = False
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for line in list(self.lines):
            line.drop()

    def report(self) -> str:
        oracle, times = self.oracle, sorted(self.pair.times) or [0]
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(oracle.outcomes.items()))
        return (
            f"{self.name}: seed {self.seed}, {oracle.steps} steps, {oracle.frames} messages, {self.pair.calls} honest "
            f"calls (half within {times[len(times) // 2]:.2f} s, the slowest {times[-1]:.2f} s), "
            f"{self.exchange.restarts} restarts, {self.exchange.peak // MIB} MiB at most from "
            f"{self.exchange.baseline // MIB} MiB\n    {self.crowd.report()}\n    {self.door.report()}\n    {kinds}"
        )

    def verdict(self) -> str:
        """The faults, with the last frames, or an empty text."""
        faults = self.oracle.faults + [f"the log has {line!r}" for line in self.exchange.complaints()[:5]]
        if not faults:
            return ""
        frames = "\n".join(f"  {step} {who} {way} {size} bytes {data!r}" for step, who, way, data, size in self.oracle.recent)
        return (
            f"seed {self.seed}, step {self.oracle.steps}: {len(faults)} faults\n" + "\n".join(faults[:20]) + f"\nthe last frames:\n{frames}"
        )


async def attack(stage: Stage, name: str, is_private: bool) -> None:
    model = Model(stage, name, is_private)
    try:
        try:
            await model.run()
        except Exception as error:
            model.oracle.fault(f"{type(error).__name__}: {error}")
            raise
        finally:
            await model.stop()
            if hasattr(model, "pair"):
                stage.findings.append(model.report())
        await model.exchange.stop()
        model.exchange.check_database()
        model.exchange.check_secrets(model.oracle.tokens)
        model.door.check_log()
    finally:
        verdict = model.verdict()
        with contextlib.suppress(Exception):
            await model.exchange.end()
        assert not verdict, verdict


@waits
async def test_attackers_without_tls(stage: Stage) -> None:
    """CONN-5, INV-2, INV-16, AUTH-12: Attackers with accounts and without see nothing of others, and stop no calls"""
    await attack(stage, "assaulted", False)


@waits
async def test_attackers_with_tls(stage: Stage) -> None:
    """CONN-5, INV-2, INV-16, AUTH-12: The same over TLS"""
    await attack(stage, "assaulted-tls", True)
