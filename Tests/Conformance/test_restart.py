"""INV-16: an exchange with a database, killed with kill -9 and restarted."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import random
import secrets
import subprocess
import time
from typing import TYPE_CHECKING, Any

import websockets
from client import PATIENCE, Device, Lost, Refused, refusal, remember, settle, signed
from conformance import waits
from exchange import API, call, invite

if TYPE_CHECKING:
    from conformance import Stage
    from exchange import Exchange

KILLS = 10
GONE = Lost, OSError, websockets.WebSocketException, asyncio.TimeoutError


async def come_back(device: Device) -> None:
    """Resumes its session, as soon as the exchange is there."""
    deadline = time.monotonic() + 2 * PATIENCE
    while True:
        try:
            await device.resume()
        except GONE:
            assert time.monotonic() < deadline, "the exchange does not come back"
            await asyncio.sleep(random.uniform(0.02, 0.1))
            continue
        assert device.answer["resumed"], f"{device.user} was not resumed"
        return


async def insist(device: Device, method: str, *done: str, **parameters: Any) -> dict:
    """Repeats a request until it is answered, over as many connections as it takes, by the page's rule for repetitions.

    An error named in `done` to a repetition means that the first one worked.
    """
    repeated = False
    while True:
        try:
            return await device.ask(method, **parameters)
        except Refused as refused:
            if repeated and refused.name in done:
                return {}
            raise
        except GONE:
            repeated = True
            await come_back(device)


class Pair:
    """An inviter and two devices of an invitee, which continue while the exchange is killed and started."""

    def __init__(self, inviter: Device, first: Device, second: Device) -> None:
        self.inviter, self.first, self.second = self.everyone = inviter, first, second

    async def hear(self, device: Device, kind: str, /, **members: Any) -> dict:
        """Waits for an event, coming back as often as the connection is lost meanwhile."""
        while True:
            waiting = asyncio.ensure_future(device.hear(kind, 2 * PATIENCE, **members))
            done, _ = await asyncio.wait([waiting, device.line.reading], return_when=asyncio.FIRST_COMPLETED)
            if waiting in done:
                return await waiting
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            await come_back(device)

    async def round(self) -> tuple[str, str]:
        """One invite, to its end; its number and outcome. Each event must come once, and agree with the outcome."""
        key, end = secrets.token_hex(8), random.choice(["accepted", "accepted", "rejected", "cancelled", "timed out"])
        ttl = random.uniform(0.05, 0.5) if end == "timed out" else 120
        number = (
            await insist(self.inviter, "invite.send", to=self.first.user, ttl=ttl, data=key, idempotency_key=key, timeout_payload=key)
        )["invite"]
        for device in self.first, self.second:
            assert (await self.hear(device, "inviteReceived", invite=number))["data"] == key
        if end == "accepted":
            await insist(self.first, "invite.accept", invite=number, data=key)
            await self.hear(self.inviter, "inviteAccepted", invite=number, device=self.first.id, data=key)
            await self.hear(self.second, "inviteHandled", invite=number, device=self.first.id)
            await insist(self.inviter, "call.end", "unknownCall", invite=number, reason="completed", duration_ms=7)
            await self.hear(self.first, "callEnded", invite=number, duration_ms=7)
            await self.told(number, ["inviteAccepted", "inviteEnded"], ["callEnded"], ["inviteHandled"])
            late = "alreadyHandled"
        elif end == "rejected":
            await insist(self.first, "invite.reject", invite=number, data=key)
            await self.hear(self.inviter, "inviteRejected", invite=number, data=key)
            await self.told(number, ["inviteRejected", "inviteEnded"], [], ["inviteHandled"])
            late = "alreadyHandled"
        elif end == "cancelled":
            await insist(self.inviter, "invite.cancel", "inviteEnded", invite=number)
            await self.told(number, ["inviteEnded"], *[["inviteCancelled", "inviteMissed"]] * 2)
            late = "inviteCancelled"
        else:
            await self.hear(self.inviter, "inviteTimedOut", invite=number)
            await self.told(number, ["inviteTimedOut", "inviteEnded"], *[["inviteTimedOut", "inviteMissed"]] * 2)
            late = "inviteTimedOut"
        try:
            await insist(self.second, "invite.accept", invite=number)
            raise AssertionError("an ended invite was accepted")
        except Refused as refused:
            assert refused.name == late, (refused, late)
        return number, end

    async def told(self, number: str, *expected: list[str]) -> None:
        """Checks that each device received exactly these events, beside the invite."""
        for device in self.everyone:
            await insist(device, "ping")
        for device, kinds in zip(self.everyone, expected):
            kinds = ["inviteReceived"] * (device is not self.inviter) + kinds
            for kind in set(kinds) - set(device.kinds(invite=number)):
                await self.hear(device, kind, invite=number)
            assert device.kinds(invite=number) == kinds, (device.user, device.kinds(invite=number), kinds)


@waits
async def test_killed_under_load(stage: Stage, durable: Exchange) -> None:
    """INV-16, CONN-5, CALL-7: Killed again and again under load, the exchange loses no invite and answers none twice"""
    ends, lanes, stop = collections.Counter(), [Pair(*await durable.party(1, 2)) for _ in range(8)], False
    numbers = {}

    async def drive(pair: Pair) -> None:
        while not stop:
            number, end = await pair.round()
            ends[end] += 1
            numbers[number] = end

    async def kill() -> None:
        nonlocal stop
        for _ in range(KILLS):
            await asyncio.sleep(random.uniform(0.2, 1.0))
            await durable.kill()
            await durable.start()
        await asyncio.sleep(0.5)
        stop = True

    async with asyncio.TaskGroup() as tasks:
        for pair in lanes:
            tasks.create_task(drive(pair))
        tasks.create_task(kill())
    records = collections.Counter()
    printed = await asyncio.to_thread(
        subprocess.run,
        [durable.handset, "calls", "--database", str(durable.path / "exchange.sqlite"), "--json"],
        capture_output=True,
        text=True,
    )
    assert printed.returncode == 0, printed.stderr
    for line in printed.stdout.splitlines():
        records[json.loads(line)["invite"]] += 1
    assert {number: records[number] for number in numbers} == dict.fromkeys(numbers, 1), "one record for each call"
    stage.findings.append(
        f"kill -9 under load: {KILLS} times, {sum(ends.values())} invites meanwhile ("
        + ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
        + "); none lost, none answered twice"
    )


async def durable_of_its_own(stage: Stage) -> Exchange:
    """An exchange with a database that one test may kill."""
    from conformance import CONFIGURATIONS
    from exchange import Exchange

    return await Exchange(stage.handset, "killed", **CONFIGURATIONS["durable"]).start()


@waits
async def test_what_survives(stage: Stage) -> None:
    """INV-16, INV-7, GRP-1, CONN-8: After kill -9 pending invites continue to ring, late timers fire at once, and calls, groups
    and rooms still exist
    """
    exchange = await durable_of_its_own(stage)
    try:
        alice, bob, bob_too, carol = devices = await exchange.party(1, 2, 1)
        late = await invite(alice, bob, ttl=0.8, timeout_payload="missed", data="late")
        ringing = await invite(alice, bob, ttl=60, data="ringing", idempotency_key="ringing")
        endless = await invite(alice, bob, ttl=0, data="endless")
        standing = await call(alice, carol)
        group = (await alice.ask("group.create", members=[bob.user]))["group"]
        await alice.ask("room.join", room="survivors", data="d")
        await carol.ask("room.join", room="survivors")
        await settle(*devices)
        await exchange.kill()
        await asyncio.gather(*(device.line.reading for device in devices))
        await asyncio.sleep(1.2)
        await exchange.start()
        started = time.monotonic()
        await asyncio.gather(*(come_back(device) for device in devices))
        for device in alice, bob, bob_too:
            await device.hear("inviteTimedOut", invite=late)
            assert device.when("inviteTimedOut", invite=late) - started < PATIENCE
        await bob.hear("inviteMissed", invite=late, payload="missed")
        await refusal(bob.ask("invite.accept", invite=late), "inviteTimedOut")
        listed = {one["invite"]: one for one in (await bob.ask("invite.list"))["invites"]}
        assert listed.keys() == {ringing, endless} and listed[endless]["ttl_remaining"] == 0
        assert 60 - 3 * PATIENCE < listed[ringing]["ttl_remaining"] < 59
        assert await invite(alice, bob, ttl=60, data="ringing", idempotency_key="ringing") == ringing
        await bob.ask("invite.accept", invite=ringing)
        await alice.hear("inviteAccepted", invite=ringing)
        await refusal(bob_too.ask("invite.accept", invite=ringing), "alreadyHandled")
        await carol.ask("call.signal", invite=standing, type="still here")
        await alice.hear("callSignal", invite=standing)
        await alice.ask("call.end", invite=standing, reason="completed", duration_ms=5)
        await carol.hear("callEnded", invite=standing)
        assert (await bob.ask("group.members", group=group))["members"] == [alice.user, bob.user]
        await carol.ask("room.signal", room="survivors", type="hello")
        assert (await alice.hear("roomSignal"))["from"] == carol.connection
        await exchange.rest("GET", "/v1/connection", Authorization=f"Bearer {alice.token}")
        login = await exchange.post("/v1.1/token", {"refresh_token": alice.refresh_token})
        assert login["id"] == alice.user
        for device in devices:
            for number in late, ringing, endless, standing:
                told = device.kinds(invite=number)
                assert len(told) == len(set(told)), (device.user, told)
    finally:
        await exchange.stop()
        exchange.folder.cleanup()


@waits
async def test_logout_survives(stage: Stage) -> None:
    """AUTH-9, INV-16: What was logged out before kill -9 stays so after it, signed tokens by their jti, and a refresh
    token that was copied before it is recognised after it
    """
    exchange = await durable_of_its_own(stage)
    try:
        alice, bob, carol = await exchange.party(1, 1, 1)
        await exchange.post("/v1.1/logout", Authorization=f"Bearer {alice.token}")
        shown, kept, another = (signed(*API, bob.user, jti=name) for name in ("gone", "gone", "another"))
        await exchange.post("/v1.1/logout", Authorization=f"Bearer {shown}")
        token = carol.refresh_token
        for _ in range(12):
            answer = await exchange.post("/v1.1/token", {"refresh_token": token})
            remember(answer["token"], answer["refresh_token"])
            token = answer["refresh_token"]
        await exchange.kill()
        await exchange.start()
        await refusal(Device(exchange, alice.user, alice.token).start(), "tokenRevoked", "tokenRejected")
        await refusal(exchange.post("/v1.1/token", {"refresh_token": alice.refresh_token}), "tokenRevoked", "tokenRejected")
        await come_back(bob)
        for gone in shown, kept:
            await refusal(Device(exchange, bob.user, gone).start(), "tokenRevoked")
        await Device(exchange, bob.user, another).start()
        await come_back(carol)
        await refusal(exchange.post("/v1.1/token", {"refresh_token": carol.refresh_token}), "tokenRevoked")
        assert await carol.line.closing() == 4001
        await refusal(exchange.post("/v1.1/token", {"refresh_token": token}), "tokenRevoked")
    finally:
        await exchange.stop()
        exchange.folder.cleanup()
