"""CONN-7, CONN-8, SIG: rooms, who is in them, and signals there."""

import secrets

from client import refusal, settle


def room():
    return f"room-{secrets.token_hex(4)}"


async def test_connections_come_and_go(exchange):
    """CONN-7: Participants are notified of all others, earlier ones included, and of the reason when one leaves"""
    alice, alice_too, bob, carol = await exchange.party(2, 1, 1)
    place = room()
    assert (await alice.ask("room.join", room=place, data="name=Alice"))["participants"] == []
    guest = await exchange.guest(f"guest-{secrets.token_hex(3)}")
    await guest.ask("room.join", room=place)
    assert await alice.hear("connectionCreated") == {"room": place, "connection": guest.connection, "user": guest.user}
    joined = (await bob.ask("room.join", room=place, data="name=Bob"))["participants"]
    assert joined == [
        {"connection": alice.connection, "user": alice.user, "data": "name=Alice"},
        {"connection": guest.connection, "user": guest.user},
    ], joined
    for device in alice, guest:
        assert await device.hear("connectionCreated", user=bob.user) == {
            "room": place,
            "connection": bob.connection,
            "user": bob.user,
            "data": "name=Bob",
        }
    assert len((await bob.ask("room.join", room=place))["participants"]) == 2, "joining twice changes nothing"
    await alice_too.ask("room.join", room=place)  # Another device of the same user is another participant.
    await bob.hear("connectionCreated", connection=alice_too.connection)
    await bob.ask("room.leave", room=place)
    await guest.ask("session.end")
    for device, gone, reason in ((alice, bob, "left"), (alice_too, guest, "disconnected")):
        assert await device.hear("connectionDestroyed", connection=gone.connection) == {
            "room": place,
            "connection": gone.connection,
            "reason": reason,
        }
    await settle(alice, bob, carol)
    assert len(alice.heard("connectionCreated")) == 3 and not bob.heard("connectionDestroyed")
    assert carol.events == [], "a device outside of the room receives nothing"


async def test_dropped_participant(exchange):
    """CONN-8: Peers are notified that a participant's connection dropped and resumed; its place, name and signals are kept"""
    alice, bob = await exchange.party(1, 1)
    place = room()
    await alice.ask("room.join", room=place)
    await bob.ask("room.join", room=place)
    name = bob.connection
    await bob.lose()
    assert await alice.hear("streamDropped") == {"room": place, "connection": name, "user": bob.user}
    await alice.ask("room.signal", room=place, type="missed", data=1)
    await bob.resume()
    assert bob.answer["resumed"] and bob.connection == name
    assert await alice.hear("streamResumed") == {"room": place, "connection": name, "user": bob.user}
    assert (await bob.hear("roomSignal"))["type"] == "missed"
    await bob.ask("room.signal", room=place, type="there", data=None)
    await alice.hear("roomSignal", type="there")
    await settle(alice)
    assert not alice.heard("connectionDestroyed") and len(alice.heard("connectionCreated")) == 1
    await bob.lose()
    await alice.hear("streamDropped")
    await bob.start()  # A new session.
    assert await alice.hear("connectionDestroyed") == {"room": place, "connection": name, "reason": "connectionLost"}
    assert bob.connection != name
    await refusal(bob.ask("room.signal", room=place, type="x"), "unknownRoom")


async def test_lost_participant(hasty):
    """CONN-7, CONN-8: A participant that does not come back within the window has left, with the reason connectionLost"""
    alice, bob = await hasty.party(1, 1)
    place = room()
    await alice.ask("room.join", room=place)
    await bob.ask("room.join", room=place)
    await bob.lose()
    await alice.hear("streamDropped", room=place)
    assert (await alice.hear("connectionDestroyed", connection=bob.connection))["reason"] == "connectionLost"
    assert 0.9 < alice.when("connectionDestroyed") - alice.when("streamDropped") < 5
    assert not alice.heard("streamResumed")


async def test_room_signals(exchange):
    """SIG-1: A signal goes to one connection or to the whole room, the sender included, in one order for all"""
    alice, bob, carol = await exchange.party(1, 1, 1)
    place, other = room(), room()
    for device in alice, bob, carol:
        await device.ask("room.join", room=place)
    await carol.ask("room.join", room=other)
    await alice.ask("room.signal", room=place, to=bob.connection, type="chat", data={"text": "psst 🤫"})
    assert await bob.hear("roomSignal") == {
        "room": place,
        "type": "chat",
        "data": {"text": "psst 🤫"},
        "from": alice.connection,
        "user": alice.user,
    }
    for n in range(50):
        for device in alice, bob, carol:
            device.begin("room.signal", room=place, type="n", data=n)
    await settle(alice, bob, carol)
    await settle(alice, bob, carol)
    orders = [[(told["user"], told["data"]) for told in device.heard("roomSignal", type="n")] for device in (alice, bob, carol)]
    assert len(orders[0]) == 150 and orders[0] == orders[1] == orders[2]
    for device in alice, bob, carol:
        assert [n for user, n in orders[0] if user == device.user] == list(range(50))
    assert len(carol.heard("roomSignal", type="chat")) == len(alice.heard("roomSignal", type="chat")) == 0
    await refusal(alice.ask("room.signal", room=other, type="x"), "unknownRoom")
    await refusal(alice.ask("room.signal", room=place, to="connection-none", type="x"), "unknownRoom")
    await refusal(carol.ask("room.signal", room=other, to=bob.connection, type="x"), "unknownRoom")


async def test_rooms_have_bounds(exchange):
    """CONN-7: A connection is in 32 rooms, a name has 256 bytes, connection data 1000"""
    (alice,) = await exchange.party(1)
    for _ in range(32):
        await alice.ask("room.join", room=room())
    await refusal(alice.ask("room.join", room=room()), "tooManyRequests")
    (bob,) = await exchange.party(1)
    assert await refusal(bob.ask("room.join", room="r" * 257), "invalidParams")
    assert (await refusal(bob.ask("room.join", room=room(), data="d" * 1001), "tooLarge")).limit == 1000
    await bob.ask("room.join", room="r" * 256, data="d" * 1000)
