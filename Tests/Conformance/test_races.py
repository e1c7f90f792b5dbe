"""Races: two devices decide at the same moment. There is one outcome, all agree on it, and there are never two calls.

Each round is a new invite; its timing is random, around the moment at which both win equally often. Many rounds run at
once, each on a lane of its own: one device of the inviter, two of the invitee.
"""

import asyncio
import collections
import random

from client import Refused, settle
from exchange import invite

LANES = 40


class Pace:
    """The delay of one racer, which all rounds of a race adapt so that both win equally often."""

    def __init__(self):
        self.lead = 0.0  # Seconds for the first racer; the second waits if it is negative.

    def steer(self, first_won, step):
        self.lead += step if first_won else -step


class Lane:
    """Three devices that race repeatedly."""

    def __init__(self, pace, inviter, first, second):
        self.pace, self.inviter, self.first, self.second = pace, inviter, first, second
        self.everyone = inviter, first, second

    async def race(self, one, other, spread=0.002):
        """Starts two requests at nearly the same moment; returns each one's answer, or the name of its refusal."""
        pause = self.pace.lead + random.uniform(-spread, spread)

        async def after(seconds, request):
            if seconds > 0:
                await asyncio.sleep(seconds)
            try:
                await request()
                return "ok"
            except Refused as refused:
                return refused.name

        racers = [after(pause, one), after(-pause, other)]
        if random.random() < 0.5:
            racers.reverse()
            return tuple(reversed(await asyncio.gather(*racers)))
        return tuple(await asyncio.gather(*racers))

    async def stands(self, number, winner):
        """Checks that the invite has become one call, with this device only; then hangs up, once."""
        loser = self.second if winner is self.first else self.first
        await self.inviter.hear("inviteAccepted", invite=number)
        await self.inviter.hear("inviteEnded", invite=number)
        await loser.hear("inviteHandled", invite=number, action="accepted", device=winner.id)
        await self.inviter.ask("call.signal", invite=number, type="hello", data=number)
        await winner.ask("call.signal", invite=number, type="hello", data=number)
        assert await outcome(loser.ask("call.signal", invite=number, type="hello", data=0)) == "notYours"
        assert await outcome(loser.ask("invite.accept", invite=number)) == "alreadyHandled"
        assert await outcome(winner.ask("invite.accept", invite=number)) == "ok", "an accept may be repeated"
        hang_up = {"invite": number, "reason": "completed", "duration_ms": 1}
        assert await outcome(loser.ask("call.end", **hang_up)) == "notYours"
        sides = [self.inviter, winner]
        random.shuffle(sides)
        await sides[0].ask("call.end", **hang_up)
        await sides[1].hear("callEnded", invite=number, reason="completed")
        assert await outcome(sides[1].ask("call.end", **hang_up)) == "unknownCall"
        await settle(*self.everyone)
        told = {device: collections.Counter(device.kinds(invite=number)) for device in self.everyone}
        assert told[self.inviter] == collections.Counter(
            ["inviteAccepted", "inviteEnded", "callSignal"] + ["callEnded"] * (sides[1] is self.inviter)
        ), told
        assert told[winner] == collections.Counter(["inviteReceived", "callSignal"] + ["callEnded"] * (sides[1] is winner)), told
        assert told[loser] == collections.Counter(["inviteReceived", "inviteHandled"]), told

    async def none(self, number, how, late):
        """Checks that no device has taken the invite, and that all received the same events, once."""
        await settle(*self.everyone)
        for device in self.first, self.second:
            await device.hear(how, invite=number)
            await device.hear("inviteMissed", invite=number, payload={"missed": number[:6]})
            assert await outcome(device.ask("invite.accept", invite=number)) == late
            assert await outcome(device.ask("call.signal", invite=number, type="hello", data=0)) == "unknownCall"
        assert await outcome(self.inviter.ask("call.signal", invite=number, type="hello", data=0)) == "unknownCall"
        assert await outcome(self.inviter.ask("invite.cancel", invite=number)) == "inviteEnded"
        await self.inviter.hear("inviteEnded", invite=number)
        await settle(*self.everyone)
        for device in self.first, self.second:
            assert device.kinds(invite=number) == ["inviteReceived", how, "inviteMissed"], device.kinds(invite=number)
        assert self.inviter.kinds(invite=number) == ["inviteTimedOut"] * (how == "inviteTimedOut") + ["inviteEnded"], self.inviter.kinds(
            invite=number
        )

    def forget(self):
        for device in self.everyone:
            device.events.clear()


async def outcome(request):
    try:
        await request
        return "ok"
    except Refused as refused:
        return refused.name


async def run_race(stage, exchange, title, play):
    """Plays the rounds and notes how they ended; if there are many, each outcome must occur."""
    left, ends, pace = stage.rounds, collections.Counter(), Pace()

    async def drive():
        nonlocal left
        lane = Lane(pace, *await exchange.party(1, 2))
        while left > 0:
            left -= 1
            ends[await play(lane)] += 1
            lane.forget()
        for device in lane.everyone:
            await device.leave()

    async with asyncio.TaskGroup() as lanes:
        for _ in range(min(LANES, stage.rounds)):
            lanes.create_task(drive())
    assert sum(ends.values()) == stage.rounds
    stage.findings.append(
        f"{title}: {stage.rounds} rounds, "
        + ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
        + "; one outcome each, all agree"
    )
    assert len(ends) > 1 or stage.rounds < 100, f"it was no race: {ends}"


async def rings(lane, ttl):
    number = await invite(lane.inviter, lane.first.user, ttl=ttl, timeout_payload={"missed": "invite"})
    await lane.first.hear("inviteReceived", invite=number)
    await lane.second.hear("inviteReceived", invite=number)
    return number


async def test_accept_against_cancel(stage, exchange):
    """INV-5, INV-6, INV-10: Accept races cancel, and there is a call or a missed one, for both sides the same"""

    async def play(lane):
        number = await rings(lane, 30)
        accepted, cancelled = await lane.race(
            lambda: lane.first.ask("invite.accept", invite=number, data={"answer": number}),
            lambda: lane.inviter.ask("invite.cancel", invite=number),
        )
        lane.pace.steer(accepted == "ok", 0.0005)
        if accepted == "ok":
            assert cancelled == "inviteEnded", cancelled
            await lane.stands(number, lane.first)
            return "accepted"
        assert (accepted, cancelled) == ("inviteCancelled", "ok"), (accepted, cancelled)
        await lane.none(number, "inviteCancelled", "inviteCancelled")
        return "cancelled"

    await run_race(stage, exchange, "accept against cancel", play)


async def test_accept_against_timeout(stage, exchange):
    """INV-7, INV-10: Accept races the timer, and there is a call or a timeout, for both sides the same"""

    async def play(lane):
        ttl = random.uniform(0.1, 0.2)
        started = asyncio.get_running_loop().time()
        number = await rings(lane, ttl)
        rung = asyncio.get_running_loop().time() - started
        await asyncio.sleep(max(0, ttl - rung + lane.pace.lead + random.uniform(-0.003, 0.003)))
        accepted = await outcome(lane.first.ask("invite.accept", invite=number, data={"answer": number}))
        lane.pace.steer(accepted == "ok", 0.001)
        if accepted == "ok":
            await lane.stands(number, lane.first)
            return "accepted"
        assert accepted == "inviteTimedOut", accepted
        await lane.inviter.hear("inviteTimedOut", invite=number, invitees=[lane.first.user])
        await lane.none(number, "inviteTimedOut", "inviteTimedOut")
        return "timed out"

    await run_race(stage, exchange, "accept against timeout", play)


async def test_two_devices_accept(stage, exchange):
    """INV-5, INV-4: Two devices accept at once, and exactly one wins"""

    async def play(lane):
        number = await rings(lane, 30)
        first, second = await lane.race(
            lambda: lane.first.ask("invite.accept", invite=number, data={"answer": 1}),
            lambda: lane.second.ask("invite.accept", invite=number, data={"answer": 2}),
        )
        lane.pace.steer(first == "ok", 0.0005)
        assert sorted((first, second)) == ["alreadyHandled", "ok"], (first, second)
        winner = lane.first if first == "ok" else lane.second
        (told,) = lane.inviter.heard("inviteAccepted", invite=number) or [await lane.inviter.hear("inviteAccepted", invite=number)]
        assert told["device"] == winner.id and told["data"] == {"answer": 1 if first == "ok" else 2}, told
        for event in lane.inviter.events:
            event["taken"] = False
        await lane.stands(number, winner)
        return "by the first" if first == "ok" else "by the second"

    await run_race(stage, exchange, "accept on two devices", play)


async def test_accept_against_reject(stage, exchange):
    """INV-4, INV-10: One device accepts while the other rejects, and the user has given one answer"""

    async def play(lane):
        number = await rings(lane, 30)
        accepted, rejected = await lane.race(
            lambda: lane.first.ask("invite.accept", invite=number),
            lambda: lane.second.ask("invite.reject", invite=number, data={"reason": "declined"}),
        )
        lane.pace.steer(accepted == "ok", 0.0005)
        assert sorted((accepted, rejected)) == ["alreadyHandled", "ok"], (accepted, rejected)
        if accepted == "ok":
            await lane.stands(number, lane.first)
            return "accepted"
        await lane.first.hear("inviteHandled", invite=number, action="rejected", device=lane.second.id)
        await settle(*lane.everyone)
        assert lane.inviter.kinds(invite=number) == ["inviteRejected", "inviteEnded"]
        assert lane.second.kinds(invite=number) == ["inviteReceived"]
        assert await outcome(lane.inviter.ask("call.signal", invite=number, type="hello", data=0)) == "unknownCall"
        return "rejected"

    await run_race(stage, exchange, "accept against reject", play)


async def test_both_hang_up(stage, exchange):
    """CALL-3, CALL-5: Both sides hang up at once, and the call ends once, for one reason"""

    async def play(lane):
        number = await rings(lane, 30)
        await lane.first.ask("invite.accept", invite=number)
        await lane.inviter.hear("inviteAccepted", invite=number)
        one, other = await lane.race(
            lambda: lane.inviter.ask("call.end", invite=number, reason="completed", duration_ms=1000),
            lambda: lane.first.ask("call.end", invite=number, reason="connectionLost", duration_ms=2000),
        )
        lane.pace.steer(one == "ok", 0.0005)
        assert sorted((one, other)) == ["ok", "unknownCall"], (one, other)
        await settle(*lane.everyone)
        ended = [device.heard("callEnded", invite=number) for device in lane.everyone]
        expected = {"invite": number, "reason": "completed", "duration_ms": 1000, "from": lane.inviter.user}
        if one == "ok":
            assert ended == [[], [expected], []], ended
            return "by the inviter"
        expected |= {"reason": "connectionLost", "duration_ms": 2000, "from": lane.first.user}
        assert ended == [[expected], [], []], ended
        return "by the invitee"

    await run_race(stage, exchange, "both hang up", play)
