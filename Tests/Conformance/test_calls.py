"""CALL: from accept to hang-up, on the wire."""

import asyncio

from client import refusal, settle
from exchange import call, invite

REASONS = (
    "completed",
    "declined",
    "busy",
    "noAnswer",
    "cancelled",
    "acceptedElsewhere",
    "declinedElsewhere",
    "dialFailed",
    "acceptFailed",
    "connectionLost",
    "disconnected",
    "internalError",
)


async def test_offer_answer_candidates(exchange):
    """CALL-1: Offer, answer and candidates pass unchanged; the inviter's candidates reach each device that rings, after the
    invite
    """
    alice, bob, bob_too = await exchange.party(1, 2)
    offer = {"offer": {"type": "offer", "sdp": "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\n" + "a=x\r\n" * 3000}}
    number = await invite(alice, bob, data=offer)
    candidates = [{"candidate": f"candidate:{n} 1 UDP 1 192.0.2.1 {n} typ host", "sdpMid": "0", "sdpMLineIndex": 0} for n in range(20)]
    for candidate in candidates:
        alice.begin("call.signal", invite=number, type="candidate", data=candidate)
    await settle(alice, bob, bob_too)
    for device in bob, bob_too:
        assert device.kinds() == ["inviteReceived"] + ["callSignal"] * 20
        assert device.heard("inviteReceived")[0]["data"] == offer
        assert device.heard("callSignal") == [
            {"invite": number, "type": "candidate", "data": candidate, "from": alice.user} for candidate in candidates
        ]
    await bob_too.ask("call.signal", invite=number, type="ringing", data=None)
    await alice.hear("callSignal", type="ringing")
    await bob.ask("invite.accept", invite=number, data={"answer": {"type": "answer", "sdp": "v=0\r\n"}})
    await bob.ask("call.signal", invite=number, type="candidate", data=candidates[0])
    await alice.ask("call.signal", invite=number, type="candidate", data=candidates[1])
    await settle(alice, bob, bob_too)
    assert alice.kinds()[-3:] == ["inviteAccepted", "inviteEnded", "callSignal"]
    assert alice.heard("inviteAccepted")[0]["data"] == {"answer": {"type": "answer", "sdp": "v=0\r\n"}}
    assert len(bob.heard("callSignal")) == 21
    assert bob_too.kinds() == ["inviteReceived"] + ["callSignal"] * 20 + ["inviteHandled"]


async def test_signals_have_bounds(exchange):
    """SIG-1, CALL-1: A signal's type has 128 bytes and its data 8 KiB, and a larger one is refused with the limit"""
    alice, bob = await exchange.party(1, 1)
    number = await call(alice, bob)
    await alice.ask("room.join", room="bounds")
    for method, place in (("call.signal", {"invite": number}), ("room.signal", {"room": "bounds"})):
        await alice.ask(method, **place, type="t" * 128, data="d" * 8190)
        assert (await refusal(alice.ask(method, **place, type="ü" * 65, data=1), "tooLarge")).limit == 128
        assert (await refusal(alice.ask(method, **place, type="t", data="d" * 8191), "tooLarge")).limit == 8192
        assert (await refusal(alice.ask(method, **place, type="t", data=["ü" * 4095]), "tooLarge")).limit == 8192
    await settle(alice, bob)
    assert len(bob.heard("callSignal")) == len(alice.heard("roomSignal")) == 1
    assert bob.heard("callSignal")[0]["type"] == "t" * 128 and bob.heard("callSignal")[0]["data"] == "d" * 8190


async def test_transfer(exchange):
    """CALL-8: An invite replaces a call if its other party asked for that, and names it; no other invite does, and the
    sixth in a row does not
    """
    alice, bob, carol = await exchange.party(1, 1, 1)
    number = await call(alice, bob)
    wanted = {"to": [carol.user], "ttl": 30, "data": {"offer": {}, "transfer": {"invite": number, "by": "x", "count": 9}}}
    await refusal(alice.ask("invite.send", **wanted, idempotency_key="early"), "notYours")
    await refusal(carol.ask("call.signal", invite=number, type="transfer", data={"to": bob.user}), "notYours")
    await refusal(bob.ask("call.signal", invite=number, type="transfer", data={}), "invalidParams")
    await bob.ask("call.signal", invite=number, type="transfer", data={"to": carol.user})
    heard = await alice.hear("callSignal", type="transfer")
    assert heard["from"] == bob.user and heard["data"] == {"to": carol.user}
    await refusal(bob.ask("invite.send", **wanted, idempotency_key="own"), "notYours")
    await alice.ask("invite.send", **wanted, idempotency_key="one")
    received = await carol.hear("inviteReceived")
    assert received["data"]["transfer"] == {"invite": number, "by": bob.user, "count": 1}
    await carol.ask("invite.accept", invite=received["invite"], data={})
    await bob.ask("call.end", invite=number, reason="completed", duration_ms=1)
    asking, target, old = carol, bob, received["invite"]
    for count in range(2, 7):
        await asking.ask("call.signal", invite=old, type="transfer", data={"to": target.user})
        again = {"to": [target.user], "ttl": 30, "data": {"transfer": {"invite": old}}, "idempotency_key": f"n{count}"}
        if count == 6:
            return await refusal(alice.ask("invite.send", **again), "notAllowed")
        made = (await alice.ask("invite.send", **again))["invite"]
        await target.ask("invite.accept", invite=made, data={})
        await asking.ask("call.end", invite=old, reason="completed", duration_ms=1)
        asking, target, old = target, asking, made


async def test_hang_up(exchange):
    """CALL-3, CALL-5: Either side hangs up; the other receives the reason and the duration, once, and the call has ended"""
    alice, bob, bob_too = await exchange.party(1, 2)
    for reason in REASONS:
        number = await call(alice, bob)
        one, other = (alice, bob) if len(reason) % 2 else (bob, alice)
        await one.ask("call.end", invite=number, reason=reason, duration_ms=61_250)
        await settle(one, other, bob_too)
        assert other.heard("callEnded", invite=number) == [{"invite": number, "reason": reason, "duration_ms": 61_250, "from": one.user}]
        assert not one.heard("callEnded", invite=number) and not bob_too.heard("callEnded")
        for device in one, other:
            await refusal(device.ask("call.end", invite=number, reason=reason, duration_ms=1), "unknownCall")
            await refusal(device.ask("call.signal", invite=number, type="x"), "unknownCall")
    number = await call(alice, bob)
    await refusal(alice.ask("call.end", invite=number, reason="bored", duration_ms=1), "invalidParams")
    await refusal(alice.ask("call.end", invite=number, reason="completed", duration_ms=-1), "invalidParams")
    await refusal(alice.ask("call.end", invite=number, reason="completed", duration_ms="1"), "invalidParams")
    await bob.ask("call.signal", invite=number, type="still there")


async def test_renegotiation(exchange):
    """CALL-4: New offers and answers, as an ICE restart needs them, pass in an established call"""
    alice, bob = await exchange.party(1, 1)
    number = await call(alice, bob)
    await alice.ask("call.signal", invite=number, type="offer", data={"type": "offer", "sdp": "v=0\r\n"})
    assert (await bob.hear("callSignal"))["data"] == {"type": "offer", "sdp": "v=0\r\n"}
    await bob.ask("call.signal", invite=number, type="answer", data={"type": "answer", "sdp": "v=0\r\n"})
    assert (await alice.hear("callSignal"))["type"] == "answer"


async def test_several_accept(exchange):
    """INV-3, CALL-3: Each invitee that accepts is in a call of its own, which the inviter names by its peer"""
    alice, bob, carol = await exchange.party(1, 1, 1)
    number = await invite(alice, bob, carol)
    await bob.ask("invite.accept", invite=number)
    await alice.ask("call.signal", invite=number, type="to the one who has accepted")
    await carol.ask("invite.accept", invite=number)
    await refusal(alice.ask("call.signal", invite=number, type="who is it?"), "invalidParams")
    await refusal(alice.ask("call.signal", invite=number, type="to alice?", peer=alice.user), "unknownCall")
    await refusal(alice.ask("call.end", invite=number, reason="completed", duration_ms=1), "invalidParams")
    await alice.ask("call.signal", invite=number, type="to carol", peer=carol.user)
    await bob.ask("call.end", invite=number, reason="completed", duration_ms=5)
    assert (await alice.hear("callEnded"))["from"] == bob.user
    await carol.ask("call.signal", invite=number, type="still here")
    assert (await alice.hear("callSignal"))["from"] == carol.user
    await alice.ask("call.end", invite=number, reason="completed", duration_ms=6, peer=carol.user)
    await settle(bob, carol)
    assert [told["type"] for told in bob.heard("callSignal")] == ["to the one who has accepted"]
    assert [told["type"] for told in carol.heard("callSignal")] == ["to carol"]
    assert not bob.heard("callEnded") and carol.heard("callEnded")[0]["duration_ms"] == 6


async def test_goodbye_ends_calls(exchange):
    """CONN-9, CALL-5: A clean goodbye ends the calls with the reason disconnected, and the session cannot be resumed"""
    alice, bob, carol = await exchange.party(1, 1, 1)
    first, second = await call(alice, bob), await call(carol, alice)
    await alice.ask("session.end")
    await alice.line.close()
    assert alice.line.socket.close_code == 1000
    for device, number in (bob, first), (carol, second):
        assert (await device.hear("callEnded", invite=number))["reason"] == "disconnected"
        await refusal(device.ask("call.signal", invite=number, type="x"), "unknownCall")
    assert not (await alice.resume()).answer["resumed"]


async def test_call_outlives_connections(exchange):
    """CALL-6, CONN-8: Both connections of a call drop and come back, and the call continues; each receives events of the other's"""
    alice, bob = await exchange.party(1, 1)
    number = await call(alice, bob)
    await alice.lose()
    told = await bob.hear("streamDropped")
    assert told == {"invite": number, "connection": alice.connection, "user": alice.user}, told
    await bob.ask("call.signal", invite=number, type="wait")
    await alice.resume()
    await alice.hear("callSignal", type="wait")
    told = await bob.hear("streamResumed")
    assert told == {"invite": number, "connection": alice.connection, "user": alice.user}, told
    await bob.lose()
    await alice.hear("streamDropped", invite=number)
    await (await bob.start()).register()  # A new session, as a program that restarts has.
    assert not bob.answer["resumed"]
    await alice.hear("streamResumed", invite=number)
    await bob.ask("call.signal", invite=number, type="here again")
    await alice.hear("callSignal", type="here again")
    await bob.ask("call.end", invite=number, reason="completed", duration_ms=1)
    await alice.hear("callEnded", invite=number)


async def test_probe(hasty):
    """CALL-4: A probe shows whether the peer's device is connected, or can still resume; only the two of the call may send it"""
    alice, bob, carol = await hasty.party(1, 1, 1)
    number = await call(alice, bob)
    await refusal(carol.ask("call.probe", invite=number), "notYours")
    for device in alice, bob:
        assert await device.ask("call.probe", invite=number) == {"present": True}
    await bob.lose()
    assert await alice.ask("call.probe", invite=number) == {"present": True}
    await asyncio.sleep(1.6)
    assert await alice.ask("call.probe", invite=number) == {"present": False}
    await alice.ask("call.end", invite=number, reason="connectionLost", duration_ms=1)
    await refusal(alice.ask("call.probe", invite=number), "unknownCall")


async def test_call_outlives_the_window(hasty):
    """CALL-6, CONN-5: A call survives the absence of a side for longer than a session can be resumed"""
    alice, bob = await hasty.party(1, 1)
    number = await call(alice, bob)
    await alice.lose()
    await asyncio.sleep(1.6)
    assert not bob.heard("callEnded")
    alice.token = (await hasty.login(alice.user))["token"]
    await alice.resume()
    assert not alice.answer["resumed"]
    await alice.register()
    await alice.ask("call.signal", invite=number, type="still?")
    await bob.hear("callSignal", type="still?")
