"""Strangers that fill a user's slots with invites that never end, and newcomers whose calls must come through all the same (INV-12)."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import random
import time
from typing import TYPE_CHECKING, Any

from assault import CROWD, HANDS, NEWCOMERS, PASSERS_BY, VICTIM, WATCHERS
from attackers import GONE
from client import basic
from exchange import APP
from honest import BOUND, Phone
from raw import blurt, request, status
from seats import Seat

if TYPE_CHECKING:
    from test_model import Model

OF_PAIR, OF_STRANGERS = 8, 64  # Slots with one user: of one inviter, and of all inviters that the user is not acquainted with.


class Member(Phone):
    """A device that stays connected, and keeps which invites lost their slots."""

    def __init__(self, model: Model, user: str, random: random.Random, source: str) -> None:
        super().__init__(model, user, f"{user}-phone", random, source)
        self.timed_out: dict[str, list[str]] = {}  # For each invite the invitees that it timed out for.
        self.lost_sessions = 0  # What was sent meanwhile is lost with a session.

    def learn(self, event: dict) -> None:
        if event["type"] == "inviteTimedOut":
            self.timed_out.setdefault(event["data"]["invite"], []).extend(event["data"]["invitees"])
        super().learn(event)

    async def connect(self) -> None:
        before = self.session
        await super().connect()
        self.lost_sessions += before not in (None, self.session)

    async def outcome(self, method: str, **params: Any) -> tuple[dict, bool]:
        """The answer to a request that is repeated until there is one, and whether it was repeated."""
        repeated = False
        while True:
            await self.ready.wait()
            with contextlib.suppress(*GONE):
                return await self.get(method, **params), repeated
            repeated = True
            await asyncio.sleep(0.02)


class PasserBy(Seat):
    """An attacker that logs in, sends invites, and logs out again. Its invites stay."""

    def __init__(self, model: Model, user: str, random: random.Random, source: str) -> None:
        super().__init__(model, ("account", user), f"{user}-phone", source)
        self.user, self.random = user, random

    async def post(self, path: str, body: Any, secret: str) -> tuple[int, bytes]:
        raw = request("POST", path, json.dumps(body).encode(), User_Agent="passer-by/1 python", Authorization=secret)
        return status(await blurt(self.model.exchange, self.source, raw, seconds=10))

    async def arrive(self) -> None:
        if self.token is None:
            body = {"type": "Cima", "media_token": self.model.exchange.media_token(self.user)}
            code, content = await self.post("/v1.1/login", body, basic(*APP))
            if code != 200:
                raise OSError(f"the login was answered with {code}")
            self.token = json.loads(content)["token"]
            self.model.oracle.own(self.principal, self.token)
        if not self.is_connected:
            await self.start()
            if not self.is_connected:
                self.token = None
                raise OSError("refused")

    async def leave(self) -> None:
        token, self.token = self.token, None
        self.unsure()
        if token is not None:
            await self.post("/v1.1/logout", {}, f"Bearer {token}")
        if self.talk is not None:
            self.talk.line.drop()

    async def outcome(self, method: str, **params: Any) -> tuple[dict, bool]:
        repeated = False
        while True:
            with contextlib.suppress(*GONE):
                await self.arrive()
                message = await self.get(method, **params)
                if self.random.random() < 0.3:
                    with contextlib.suppress(*GONE):
                        await self.leave()
                return message, repeated
            repeated = True
            await asyncio.sleep(self.random.uniform(0.05, 0.2))


class Crowd:
    """All who call one user, one request after the other, so that it is known which invites are open, and in which order."""

    def __init__(self, model: Model, addresses: list[str]) -> None:
        self.model, self.random = model, model.generator("crowd")
        sources = iter(addresses)

        def member(user: str) -> Member:
            return Member(model, user, model.generator(f"crowd/{user}"), next(sources))

        self.victim = member(VICTIM)
        self.watchers, self.hands, self.newcomers = ([member(user) for user in users] for users in (WATCHERS, HANDS, NEWCOMERS))
        self.passers_by = [PasserBy(model, user, model.generator(f"crowd/{user}"), next(sources)) for user in PASSERS_BY]
        self.fillers: list[Member | PasserBy] = [*self.watchers, *self.passers_by]
        self.slots: list[tuple[Member | PasserBy, str]] = []  # Who has sent each open invite, the oldest first.
        self.known: set[Member | PasserBy] = set()  # The users that the victim is acquainted with.
        self.given: set[str] = set()  # Invites that lost their slot.
        self.doing, self.counts = "beginning", collections.Counter()
        self.slowest = 0.0
        assert len({VICTIM, *WATCHERS, *HANDS, *NEWCOMERS, *PASSERS_BY}) == len(CROWD), "CROWD has all of them, once each"

    @property
    def members(self) -> list[Member]:
        return [self.victim, *self.watchers, *self.hands, *self.newcomers]

    async def live(self) -> None:
        deeds = {self.fill: 30, self.fill_up: 2, self.call: 6, self.raise_hand: 4, self.cancel: 2, self.reject: 2, self.compare: 1}
        deed = self.fill_up
        while self.model.is_running:
            lost = self.lost_sessions
            try:
                async with asyncio.timeout(None if deed == self.fill_up else BOUND):
                    await deed()
                self.check()
            except (TimeoutError, AssertionError) as error:
                if self.lost_sessions == lost:
                    self.model.oracle.fault(f"the crowd, {self.doing}: {str(error) or f'delayed by more than {BOUND} s'}")
                await self.begin_again()
            deed = self.random.choices(list(deeds), list(deeds.values()))[0]
            await asyncio.sleep(self.random.expovariate(1 / self.model.pause))

    @property
    def lost_sessions(self) -> int:
        return sum(member.lost_sessions for member in self.members)

    async def begin_again(self) -> None:
        """Learns from the exchange which invites are open, as a device does that has lost its session."""
        self.counts["began again"] += 1
        people: dict[str, Member | PasserBy] = {one.user: one for one in (*self.fillers, *self.hands, *self.newcomers)}
        for entry in await self.listed():
            if entry["ttl_remaining"]:  # A call whose deed was given up.
                await self.victim.insist("invite.reject", "alreadyHandled", "inviteEnded", "inviteTimedOut", invite=entry["invite"])
        self.slots = [(people[entry["inviter"]], entry["invite"]) for entry in await self.listed()]
        for member in self.members:
            self.given |= member.timed_out.keys()

    async def listed(self) -> list[dict]:
        """The victim's invites, as the exchange lists them."""
        entries, after = [], {}
        while after is not None:
            page = await self.victim.insist("invite.list", **after)
            entries += page["invites"]
            after = {"after": page["next"]} if "next" in page else None
        return entries

    # --- What the page says ---

    def taken(self, who: Member | PasserBy) -> int:
        return sum(other is who for other, _ in self.slots)

    def strangers(self) -> collections.Counter[Member | PasserBy]:
        return collections.Counter(who for who, _ in self.slots if who not in self.known)

    def candidates(self, who: Member | PasserBy) -> list[tuple[Member | PasserBy, str]] | None:
        """What of a new invite may come: nothing gives way to it, one of these does, or, with None, it is refused."""
        own, strangers = self.taken(who), self.strangers()
        if own >= OF_PAIR:
            return None
        if who in self.known or strangers.total() < OF_STRANGERS:
            return []
        most = max(strangers.values())
        if most <= own + 1:
            return None
        richest = [other for other, count in strangers.items() if count == most]
        return [next(slot for slot in self.slots if slot[0] is other) for other in richest]

    async def send(self, who: Member | PasserBy, **params: Any) -> str | None:
        """Sends an invite, and checks what becomes of it and of those that are open."""
        async with asyncio.timeout(BOUND):
            return await self._send(who, **params)

    async def _send(self, who: Member | PasserBy, **params: Any) -> str | None:
        expected = self.candidates(who)
        self.doing = f"{who} invites beside {sorted(self.strangers().values())}, and {expected} may give way"
        message, _ = await who.outcome(
            "invite.send", **({"to": VICTIM, "ttl": 0, "idempotency_key": f"{self.random.getrandbits(60)}"} | params)
        )
        if "error" in message:
            assert expected is None and message["error"]["data"]["name"] == "tooManyRequests", f"it is refused: {message}"
            self.counts["refused"] += 1
            return None
        invite = message["result"]["invite"]
        assert expected is not None, f"it is {invite}, and should be refused"
        self.doing += f"; it is {invite}"
        await self.victim.hear(invite, "inviteReceived")
        if expected:
            await self.give_way(expected)
        self.slots.append((who, invite))
        self.counts["accepted"] += 1
        return invite

    async def give_way(self, expected: list[tuple[Member | PasserBy, str]]) -> None:
        """One of these invites times out, for the victim and for the device that sent it."""
        await self.victim.insist("ping")  # Its answer comes after the events of what was decided before.
        lost = [slot for slot in expected if slot[1] in self.victim.timed_out]
        assert len(lost) == 1, f"{lost} lost their slots to one invite"
        who, invite = lost[0]
        self.doing += f"; {invite} of {who} gives way"
        if isinstance(who, Member):
            await who.hear(invite, "inviteTimedOut", invitees=[VICTIM])
            self.counts["gave way, and its sender was notified"] += 1
        else:
            self.counts["gave way"] += 1
        self.given.add(invite)
        self.slots.remove(lost[0])

    def check(self) -> None:
        """Checks that no other invite has lost its slot."""
        for member in self.members:
            lost = member.timed_out.keys() - self.given
            assert not lost, f"{member} received that {lost} timed out"
            doubled = [invite for invite, invitees in member.timed_out.items() if invitees != [VICTIM]]
            assert not doubled, f"{member} received of {doubled} more than once, or of others, that it timed out"

    # --- Deeds ---

    def data(self) -> dict:
        return self.random.choice([{}, {"data": lambda marker: {"topic": marker}}, {"data": lambda marker: marker}, {"data": {}}])

    async def fill(self) -> None:
        await self.send(self.random.choice(self.fillers), **self.data())

    async def fill_up(self) -> None:
        """All strangers send until they are refused."""
        for who in self.random.sample(self.fillers, len(self.fillers)):
            while self.model.is_running and await self.send(who, **self.data()) is not None:
                pass

    async def raise_hand(self) -> None:
        """Users of one application have one invite each, which they keep."""
        who = self.random.choice(self.hands)
        if not self.taken(who):
            assert await self.send(who, data={"hand": True}) is not None, "a hand is not raised"

    async def call(self) -> None:
        """A user who has called the victim seldom or never calls it, and now and then is accepted."""
        caller, begun = self.random.choice(self.newcomers), time.monotonic()
        self.counts["calls of strangers" if caller not in self.known else "calls of acquaintances"] += 1
        if caller not in self.known and self.strangers().total() >= OF_STRANGERS:
            self.counts["of these beside full slots"] += 1
        invite = await self.send(caller, ttl=60, data=lambda marker: {"offer": marker})
        assert invite is not None, "a newcomer's call is refused"
        self.slowest = max(self.slowest, time.monotonic() - begun)
        if self.random.random() < 0.97:
            await self.victim.insist("invite.reject", "alreadyHandled", "inviteEnded", invite=invite)
            await caller.hear(invite, "inviteRejected")
        else:
            await self.victim.insist(
                "invite.accept", "alreadyHandled", "inviteEnded", invite=invite, data=lambda marker: {"answer": marker}
            )
            await caller.hear(invite, "inviteAccepted")
            self.known.add(caller)
            await caller.insist("call.end", "unknownCall", invite=invite, reason="completed", duration_ms=1)
        await caller.hear(invite, "inviteEnded")
        self.slots.remove((caller, invite))

    async def cancel(self) -> None:
        """A stranger withdraws one of its invites."""
        own = [slot for slot in self.slots if slot[0] not in self.hands]
        if own:
            who, invite = self.random.choice(own)
            self.doing = f"{who} cancels {invite}"
            message, repeated = await who.outcome("invite.cancel", invite=invite)
            assert "result" in message or repeated and message["error"]["data"]["name"] in ("inviteCancelled", "inviteEnded"), message
            await self.victim.hear(invite, "inviteCancelled")
            self.slots.remove((who, invite))

    async def reject(self) -> None:
        if self.slots:
            who, invite = self.random.choice(self.slots)
            self.doing = f"the victim rejects {invite} of {who}"
            await self.victim.insist("invite.reject", "alreadyHandled", "inviteEnded", invite=invite)
            self.slots.remove((who, invite))

    async def compare(self) -> None:
        """The exchange's list is ours."""
        self.doing = "the victim lists its invites"
        listed = [entry["invite"] for entry in await self.listed()]
        assert listed == [invite for _, invite in self.slots], f"listed are {listed}, and open {self.slots}"

    def report(self) -> str:
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        return f"crowd: {kinds}; the slowest call rang after {self.slowest:.2f} s"
