"""Faults of the machine: a clock that is set, a slow disk, a disk that turns read-only
(docs/exchange-database.md)."""

import asyncio
import json
import subprocess
import time

from client import Device, refusal, settle, signed
from conformance import waits
from exchange import API, call, invite
from faults import spoilt
from test_restart import come_back

HOUR, DAY = 3600, 86400
# Offsets of the clock, in order: forward, back before the start, and none.
STEPS = HOUR, 0, -HOUR, 0, DAY, 0, -DAY, 0


def signed_at(user, clock):
    """A token that is signed by a clock with this offset."""
    now = int(time.time()) + clock
    return signed(*API, user, iat=now, exp=now + 600)


async def check_tokens(exchange, user, before, clock):
    """Checks every kind of token after the clock was set from the offset `before`."""
    device = await exchange.idle(user)
    device.token = (await exchange.post("/v1.1/token", {"refresh_token": device.refresh_token}))["token"]
    await device.start()
    await device.ask("session.renew", token=device.token)
    late = Device(exchange, user, signed_at(user, before))
    await refusal(late.start(), "tokenExpired" if clock > before else "tokenRejected")
    good = await Device(exchange, user, signed_at(user, clock)).start()
    resources = (await exchange.rest("GET", "/v1/connection", Authorization=f"Bearer {device.token}"))[0]
    expiry = int(resources["ice_servers"][0]["username"].split(":")[0])
    assert abs(expiry - (time.time() + clock + 14400)) < 60, "TURN servers go by the clock, too"
    return good


@waits
async def test_clock_is_set(stage):
    """INV-7, INV-16, AUTH-4, AUTH-5, CALL-7: Setting the clock by an hour or a day, either way, while the exchange
    runs ends and delays nothing, before and after a kill -9; only signed times depend on it
    """
    async with spoilt(stage, ice_servers=[{"urls": ["turn:turn.test"], "secret_file": "school.secret"}]) as exchange:
        alice, bob, carol = await exchange.party(1, 1, 1)
        standing = await call(alice, carol)
        endless = await invite(alice, bob, ttl=0)
        before = 0
        for clock in STEPS:
            ringing = await invite(alice, bob, ttl=300)
            begun = time.monotonic()
            late = await invite(alice, bob, ttl=2, timeout_payload="missed")
            signed_in = await Device(exchange, carol.user, signed_at(carol.user, before)).start()
            exchange.set(clock=clock)
            after = await invite(alice, bob, ttl=300)
            stays = await check_tokens(exchange, carol.user, before, clock)
            for device in alice, bob:
                await device.hear("inviteTimedOut", invite=late)
                assert 1.5 < device.when("inviteTimedOut", invite=late) - begun < 60
            await settle(alice, bob, carol, signed_in, stays)
            await exchange.kill()
            await asyncio.gather(*(device.line.reading for device in (alice, bob, carol)))
            await exchange.start()
            await asyncio.gather(*(come_back(device) for device in (alice, bob, carol)))
            listed = {one["invite"]: one["ttl_remaining"] for one in (await bob.ask("invite.list"))["invites"]}
            assert listed.keys() == {ringing, after, endless} and listed[endless] == 0, listed
            assert 150 < listed[ringing] < 300 and 150 < listed[after] < 300, listed
            await bob.ask("invite.reject", invite=ringing)
            await alice.ask("invite.cancel", invite=after)
            await carol.ask("call.signal", invite=standing, type="still here")
            await alice.hear("callSignal", invite=standing)
            before = clock
        printed = await asyncio.to_thread(
            subprocess.run,
            [exchange.handset, "calls", "--database", str(exchange.path / "exchange.sqlite"), "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(printed.stdout.splitlines()) == 2 + 3 * len(STEPS), "no record was dropped"
        assert sum(json.loads(line)["reason"] == "noAnswer" for line in printed.stdout.splitlines()) == len(STEPS)


@waits
async def test_slow_disk(stage):
    """INV-16, CONN-4: While each commit takes 5 s, all clients are served, only later: requests of many at once are in one
    commit, no connection is dropped, and nothing is sent that is not on disk
    """
    async with spoilt(stage, keepalive_seconds=2) as exchange:
        devices = await exchange.party(*[1] * 40)
        callers, called = devices[:20], devices[20:]
        exchange.set(flush=5)
        begun = time.monotonic()
        first = asyncio.create_task(invite(callers[0], called[0]))
        await asyncio.sleep(1)
        # They wait for the commit that is under way, and are in the next one together.
        rest = [asyncio.create_task(invite(one, other)) for one, other in zip(callers[1:], called[1:])]
        login = asyncio.create_task(exchange.idle(callers[0].user))
        await asyncio.sleep(3)
        assert not first.done() and not called[0].heard("inviteReceived"), "sent before it was on disk"
        numbers = [await first]
        assert time.monotonic() - begun > 4.5
        numbers += await asyncio.gather(*rest)
        await login
        # One by one they would take 100 s.
        assert 9 < time.monotonic() - begun < 30, time.monotonic() - begun
        exchange.set(flush=0)
        await asyncio.gather(*(device.hear("inviteReceived", invite=number) for device, number in zip(called, numbers)))
        await settle(*devices)
        assert all(device.line.reading.done() is False for device in devices), "a connection was dropped"
        begun = time.monotonic()
        await called[0].ask("invite.accept", invite=numbers[0])
        assert time.monotonic() - begun < 5, "it has caught up"


async def test_disk_turns_read_only(stage):
    """INV-16: A disk that turns read-only under the exchange: requests fail with nothing done, all devices come back
    when it can be written, and nothing that was confirmed is lost
    """
    async with spoilt(stage) as exchange:
        alice, bob = await exchange.party(1, 1)
        kept = await invite(alice, bob, ttl=0)
        await bob.hear("inviteReceived", invite=kept)
        exchange.set(read_only=True)
        await refusal(invite(alice, bob, ttl=0), "internalError")
        await asyncio.gather(*(device.line.reading for device in (alice, bob)))
        codes = [device.line.socket.close_code for device in (alice, bob)]
        assert codes == [1013, 1013], codes
        await exchange.logged("Nothing can be stored")
        assert "is not writable" in exchange.log.read_text() and "Mount the disk for writing" in exchange.log.read_text()
        await refusal(exchange.login(alice.user), "unavailable")
        await asyncio.sleep(2.5)
        assert exchange.log.read_text().count("Nothing can be stored") == 1, "the log says it once"
        exchange.set(read_only=False)
        await exchange.logged("can be written again")
        await asyncio.gather(*(come_back(device) for device in (alice, bob)))
        assert [one["invite"] for one in (await bob.ask("invite.list"))["invites"]] == [kept]
        await bob.ask("invite.accept", invite=kept)
        await alice.hear("inviteAccepted", invite=kept)
