"""CONN: the connection, its loss and its resumption."""

import asyncio
import json
import random
import signal
import time
from typing import Any

import websockets
from client import PATIENCE, Connection, Device, Lost, refusal, settle
from conformance import waits
from exchange import call, invite


async def test_one_connection_for_a_device(exchange):
    """CONN-1: A device has one connection; a second one of the same device closes the first with 1008"""
    alice, alice_too, bob = await exchange.party(2, 1)
    again = await exchange.device(alice.user, alice.id)
    assert await alice.line.closing() == 1008
    namesake = await exchange.device(bob.user, alice.id)  # Names of devices are each user's own.
    await settle(again, alice_too, bob, namesake)
    await refusal(again.ask("session.start", token=again.token, device=again.description), "notAllowed")


async def test_bad_messages(exchange):
    """CONN-1: What is no request is answered so, and the connection stays open"""
    (user,) = exchange.people(1)
    device = await (await exchange.idle(user)).start()
    line = device.line
    for text, code in (
        ("no json", -32700),
        ("[" * 65 + "]" * 65, -32700),
        ('"text"', -32600),
        ("[]", -32600),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        ('{"id": 7}', -32600),
        ('{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600),
        ('{"jsonrpc": "2.0", "id": 7, "method": 5}', -32600),
    ):
        number = 7 if '"id": 7' in text else None
        waiting = asyncio.ensure_future(line.answer_to(number))
        await asyncio.sleep(0)
        await line.raw(text)
        assert (await waiting)["error"]["code"] == code, text
    await refusal(device.ask("no.such.method"), "unknownMethod")
    await refusal(device.ask("room.join"), "invalidParams")
    await refusal(device.ask("room.join", room=5), "invalidParams")
    await device.ask("room.join", room="r", unknown=[1], data=None)
    assert await line.begin("ping", _id="a string") == {}


async def test_required_members(exchange):
    """CONN-1: Members of parameters that the page calls required are, and all others may be left out"""
    alice, bob = await exchange.party(1, 1)
    number = await call(alice, bob)
    group = (await alice.ask("group.create"))["group"]
    await alice.ask("room.join", room="required")
    calls = {
        "invite.send": {"to": bob.user, "ttl": 1, "idempotency_key": "k"},
        "invite.accept": {"invite": number},
        "invite.reject": {"invite": number},
        "invite.cancel": {"invite": number},
        "invite.modify": {"invite": number},
        "call.signal": {"invite": number, "type": "t"},
        "room.join": {"room": "required"},
        "room.signal": {"room": "required", "type": "t"},
        "room.leave": {"room": "required"},
        "group.join": {"group": group},
        "group.members": {"group": group},
        "call.end": {"invite": number, "reason": "completed", "duration_ms": 0},
        "group.leave": {"group": group},
        "group.dismiss": {"group": group},
    }
    allowed = {
        "invite.accept": "notYours",
        "invite.reject": "notYours",
        "invite.cancel": "inviteEnded",
        "invite.modify": "inviteEnded",
        "group.leave": "notAllowed",
    }
    for method, members in calls.items():
        for name in members:
            refused = await refusal(alice.ask(method, **{one: value for one, value in members.items() if one != name}), "invalidParams")
            assert name in refused.message, refused
        if method in allowed:
            await refusal(alice.ask(method, **members), allowed[method])
        else:
            await alice.ask(method, **members)
    for member in "id", "name", "capabilities":
        device = {name: value for name, value in alice.description.items() if name != member}
        await refusal(alice.ask("device.register", device=device), "invalidParams")


async def test_rule_breakers_are_closed(exchange):
    """CONN-1: Binary messages, messages over 64 KiB and a hundred malformed ones close the connection, each with its
    code
    """
    users = exchange.people(4)
    devices = [await (await exchange.idle(user)).start() for user in users]
    await devices[0].line.raw(b"binary")
    assert await devices[0].line.closing() == 1008
    await devices[1].line.raw("x" * 65_537)
    assert await devices[1].line.closing() == 1009
    whole = asyncio.ensure_future(devices[2].line.answer_to("whole"))
    await asyncio.sleep(0)
    await devices[2].line.raw(json.dumps({"jsonrpc": "2.0", "id": "whole", "method": "ping"}).ljust(65_536))
    assert (await whole)["result"] == {}, "64 KiB are allowed"
    waiting = devices[3].line
    waiting._take = lambda text: None
    try:
        for _ in range(120):
            await waiting.raw("malformed")
    except websockets.ConnectionClosed:
        pass
    assert await waiting.closing() == 1008


async def test_bad_frames(exchange):
    """CONN-1: Frames that are not masked, out of place or of no known kind close the connection with 1002"""
    for frame in b"\x81\x02{}", b"\x80\x80\x00\x00\x00\x00", b"\xc1\x80\x00\x00\x00\x00", b"\x83\x80\x00\x00\x00\x00":
        reader, writer = await asyncio.open_connection("127.0.0.1", exchange.port)
        writer.write(
            b"GET /v1/rtc HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert answer.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer, answer
        writer.write(frame)
        rest = await asyncio.wait_for(reader.read(), PATIENCE)
        assert rest[:1] == b"\x88" and int.from_bytes(rest[2:4], "big") == 1002, (frame, rest)
        writer.close()


@waits
async def test_no_session_in_time(exchange):
    """CONN-1: A connection that starts no session is closed with 1008 after 10 s"""
    line = await Connection.open(f"ws://127.0.0.1:{exchange.port}/v1/rtc")
    started = time.monotonic()
    assert await line.closing() == 1008
    assert time.monotonic() - started > 9


async def test_foreign_pages(exchange):
    """CONN-1: A page of another origin opens no connection"""
    url = f"ws://127.0.0.1:{exchange.port}/v1/rtc"
    try:
        await Connection.open(url, origin="https://elsewhere.example")
        raise AssertionError("it was let in")
    except websockets.InvalidStatus as error:
        assert error.response.status_code == 403
    await (await Connection.open(url, origin=f"http://127.0.0.1:{exchange.port}")).close()


@waits
async def test_silent_client_is_dropped(hasty):
    """CONN-4: A client that answers no ping is dropped within two intervals, one that does is kept, and peers are notified"""
    alice, bob = await hasty.party(1, 1)
    number = await call(alice, bob)
    bob.line.socket.transport.pause_reading()  # Alive, and neither reads nor writes.
    told = await alice.hear("streamDropped")
    assert told["invite"] == number
    await asyncio.sleep(4)
    await alice.ask("ping")  # It only answered pings for longer than that.


async def test_nobody_reads(exchange):
    """CONN-4: A client that does not read is dropped, and no other client waits for it"""
    alice, bob, carol = await exchange.party(1, 1, 1)
    number, other = await call(alice, bob), await call(alice, carol)
    bob.line.socket.transport.pause_reading()
    data = "x" * 8000
    for _ in range(2000):
        await alice.ask("call.signal", invite=number, type="flood", data=data)
        if alice.heard("streamDropped", invite=number):
            break
    await alice.hear("streamDropped", invite=number)
    await alice.ask("call.signal", invite=other, type="quick")
    await carol.hear("callSignal")


async def test_messages_are_limited(strict):
    """AUTH-11, CONN-1: A connection that sends more than it may is refused, with the limit, and closed if it continues"""
    alice, bob = await strict.party(1, 1)
    answers = [alice.begin("ping") for _ in range(400)]
    refused: list[Any] = []
    for answer in answers:
        try:
            await answer
        except Exception as error:
            refused.append(error)
    assert 20 < len(answers) - len(refused) < 120, len(refused)
    assert refused[0].name == "tooManyRequests" and refused[0].limit == 20, refused[0]
    assert isinstance(refused[-1], Lost) and await alice.line.closing() == 1008
    await bob.ask("ping")


async def test_resume(exchange):
    """CONN-5, DEV-1: Within the window a device resumes as it was, and receives what it missed, in order, each once"""
    alice, bob, bob_too = await exchange.party(1, 2)
    number = await call(alice, bob)
    name = bob.connection
    await alice.ask("call.signal", invite=number, type="n", data=0)
    await bob.hear("callSignal")
    await bob.lose()
    for n in range(1, 41):
        await alice.ask("call.signal", invite=number, type="n", data=n)
    missed = await invite(alice, bob)
    await bob.resume()
    assert bob.answer["resumed"] and bob.connection == name
    await bob.hear("inviteReceived", invite=missed)
    await settle(bob, bob_too)
    assert [told["data"] for told in bob.heard("callSignal")] == list(range(41))
    assert bob.kinds(invite=missed) == ["inviteReceived"]
    assert not bob_too.heard("callSignal"), "events for one device are not for the other"
    await bob.ask("invite.accept", invite=missed)  # Registered still.
    first = bob.events[0]["sequence"]
    heard, bob.events = [event["sequence"] for event in bob.events], []
    await bob.lose()
    bob.sequence = 0
    await bob.resume(after=first)
    await settle(bob)
    assert [event["sequence"] for event in bob.events] == heard[1:], "all later events are sent again"


async def test_nothing_lost_over_many_drops(exchange):
    """CONN-5, INV-13: Of a long series of signals each arrives once and in order, however often the connections drop"""
    pairs = [await exchange.party(1, 1) for _ in range(6)]
    total = 150

    async def talk(alice, bob, seed):
        chance = random.Random(seed)
        number = await call(alice, bob)

        async def send():
            for n in range(total):
                await alice.ask("call.signal", invite=number, type="n", data=n)
                await asyncio.sleep(chance.uniform(0, 0.01))

        async def stumble():
            while not sending.done():
                await asyncio.sleep(chance.uniform(0, 0.1))
                await bob.lose()
                await asyncio.sleep(chance.uniform(0, 0.05))
                await bob.resume()
                assert bob.answer["resumed"]

        sending = asyncio.create_task(send())
        await asyncio.gather(sending, stumble())
        await bob.hear("callSignal", data=total - 1)
        assert [told["data"] for told in bob.heard("callSignal")] == list(range(total))

    await asyncio.gather(*(talk(alice, bob, seed) for seed, (alice, bob) in enumerate(pairs)))


async def test_two_connections_resume_at_once(stage, exchange):
    """CONN-1, CONN-5: Two connections resume one session at once; one is left, the other is closed, and no event is
    lost
    """
    alice, bob = await exchange.party(1, 1)
    number = await call(alice, bob)
    for n in range(max(1, stage.rounds // 20)):
        twins = []
        for _ in range(2):
            twin = Device(exchange, bob.user, bob.token, bob.id)
            twin.session, twin.sequence = bob.session, bob.sequence
            twins.append(twin)
        if n % 2:
            await bob.lose()
        await alice.ask("call.signal", invite=number, type="n", data=n)
        await asyncio.gather(*(twin.resume() for twin in twins), return_exceptions=True)
        ends = [asyncio.ensure_future(twin.line.closing()) for twin in twins]
        closed, _ = await asyncio.wait(ends, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        (end,) = closed
        assert end.result() == 1008
        bob = twins[1 - ends.index(end)]
        ends[twins.index(bob)].cancel()
        await alice.ask("call.signal", invite=number, type="after", data=n)
        await bob.hear("callSignal", type="after", data=n)
        await settle(bob)
        assert [told["data"] for told in bob.heard("callSignal")] == [n, n], bob.heard("callSignal")


async def test_resume_after_the_window(hasty):
    """CONN-5, INV-14: After the window a device must start a new session, and receives what is pending when it registers"""
    alice, bob = await hasty.party(1, 1)
    number = await invite(alice, bob)
    await bob.hear("inviteReceived", invite=number)
    old = bob.connection, bob.session
    await bob.lose()
    await asyncio.sleep(1.6)
    await bob.resume()
    assert not bob.answer["resumed"] and bob.connection != old[0] and bob.session != old[1]
    await refusal(bob.ask("invite.accept", invite=number), "notRegistered")
    await bob.register()
    await bob.hear("inviteReceived", invite=number)
    await bob.ask("invite.accept", invite=number)


async def test_moving(restless):
    """CONN-12, CONN-8: Asked to move, an idle device reconnects and one in a call moves its connection, and no device receives a
    drop
    """
    alice, bob, idle = await restless.party(1, 1, 1)
    number = await call(alice, bob)
    await bob.ask("room.join", room="moving")
    await alice.ask("room.join", room="moving")
    restless.signal(signal.SIGUSR1)
    for device in alice, bob, idle:
        assert 0 < (await device.hear("moveRequested"))["within_seconds"] <= 30
    await idle.line.close(1001)
    assert (await idle.resume()).answer["resumed"]
    before, sent = bob.line, 0

    async def talk():
        nonlocal sent
        while bob.line is before or sent < 200:
            await alice.ask("call.signal", invite=number, type="n", data=sent)
            sent += 1

    talking = asyncio.create_task(talk())
    await asyncio.sleep(0.05)
    await bob.resume()  # The new connection first; the old one is still open.
    assert bob.answer["resumed"]
    assert await before.closing() == 1008
    await talking
    await bob.ask("call.signal", invite=number, type="moved")
    await alice.hear("callSignal", type="moved")
    await settle(alice, bob)
    heard = [told["data"] for told in bob.heard("callSignal", type="n")]
    assert heard == list(range(sent)), "nothing is lost on the way"
    assert not alice.heard("streamDropped") and not alice.heard("streamResumed")
    await restless.stop()
    assert await alice.line.closing() == 1001
    await restless.start()


async def test_presence(fleeting, strict):
    """DEV-1: A subscriber is notified when a user can be reached, which is while a device is registered"""
    alice, bob = await fleeting.party(1, 1)
    (carol,) = fleeting.people(1)
    listed = {one["user"]: one for one in (await alice.ask("presence.subscribe"))["users"]}
    assert listed[bob.user] == {"user": bob.user, "public_ids": [f"{bob.user}@test"], "reachable": True}
    assert len(listed) == 200 and alice.user not in listed
    device = await (await fleeting.idle(carol)).start()
    await settle(alice)
    assert not alice.heard("presenceChanged", user=carol), "not before it is registered"
    await device.register()
    assert (await alice.hear("presenceChanged", user=carol))["reachable"] is True
    await device.ask("device.unregister")
    assert (await alice.hear("presenceChanged", user=carol))["reachable"] is False
    await alice.ask("presence.unsubscribe")
    await device.register()
    await settle(alice)
    assert len(alice.heard("presenceChanged", user=carol)) == 2
    (nobody,) = await strict.party(1)
    await refusal(nobody.ask("presence.subscribe"), "notAllowed")


async def test_registration(exchange):
    """DEV-1, DEV-2: Only a registered device receives invites and answers them; an unregistered one receives nothing more"""
    alice, bob = await exchange.party(1, 1)
    new = await (await exchange.idle(bob.user)).start()
    number = await invite(alice, bob)
    await bob.hear("inviteReceived", invite=number)
    await settle(new)
    assert new.events == []
    for method in "invite.accept", "invite.reject":
        await refusal(new.ask(method, invite=number), "notRegistered")
    await refusal(new.ask("device.register", device=new.description | {"id": "another"}), "invalidParams")
    await new.register(push=[{"kind": "apns", "token": "PUSH"}])
    await new.hear("inviteReceived", invite=number)
    await new.ask("device.unregister")
    second = await invite(alice, bob)
    await bob.ask("invite.accept", invite=number)
    await settle(new)
    assert new.kinds() == ["inviteReceived"]
    await refusal(new.ask("invite.accept", invite=second), "notRegistered")
    await new.register()
    await new.hear("inviteReceived", invite=second)
