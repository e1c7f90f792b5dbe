"""No user sees or answers what is another's: every method, with every id of another user."""

import secrets

from client import Device, refusal, settle, signed
from exchange import API, call, invite
from test_login import METHODS


class Stakes:
    """The invites, call, group and room of Alice and Bob, in which Mallory takes no part."""

    async def set_up(self, exchange):
        self.alice, self.bob, self.bob_too, self.mallory = await exchange.party(1, 2, 1)
        self.ringing = await invite(self.alice, self.bob, ttl=60, data="secret offer")
        self.call = await call(self.alice, self.bob)
        self.group = (await self.alice.ask("group.create", members=[self.bob.user]))["group"]
        self.asked = await invite(self.alice, self.bob, group=self.group, ttl=60)
        self.room = f"room-{secrets.token_hex(4)}"
        await self.alice.ask("room.join", room=self.room)
        for device in self.alice, self.bob, self.bob_too:
            await device.hear("groupChanged")
        await settle(self.alice, self.bob, self.bob_too)
        for device in self.alice, self.bob, self.bob_too:
            device.events.clear()
        return self

    def table(self):
        """Method, parameters with others' ids, and how it must be refused."""
        everywhere = self.ringing, self.call, self.asked
        rows: list[tuple[str, dict, set[str]]] = []
        for number in everywhere:
            rows += [(method, {"invite": number}, {"notYours"}) for method in ("invite.accept", "invite.reject", "invite.cancel")]
            rows += [("invite.modify", {"invite": number, "data": "changed"}, {"notYours"})]
            rows += [
                (
                    method,
                    {"invite": number, "type": "t", "reason": "completed", "duration_ms": 1} | peer,
                    {"notYours"} if number == self.call else {"notYours", "unknownCall"},
                )
                for method in ("call.signal", "call.end")
                for peer in ({}, {"peer": self.alice.user}, {"peer": self.bob.user})
            ]
        rows += [(method, {"group": self.group}, {"unknownGroup"}) for method in ("group.leave", "group.members", "group.dismiss")]
        rows += [
            ("group.create", {"group": self.group}, {"groupExists"}),
            ("invite.send", {"to": self.bob.user, "group": self.group, "ttl": 9, "idempotency_key": "m"}, {"unknownGroup"}),
            ("room.leave", {"room": self.room}, {"unknownRoom"}),
            ("room.signal", {"room": self.room, "type": "t"}, {"unknownRoom"}),
            ("room.signal", {"room": self.room, "to": self.alice.connection, "type": "t"}, {"unknownRoom"}),
            (
                "room.join",
                {"room": self.room, "token": signed(*API, self.alice.user, session=self.room, role="publisher")},
                {"tokenRejected"},
            ),
            ("device.register", {"device": self.alice.description}, {"invalidParams"}),
            ("session.renew", {"token": self.alice.token}, {"tokenRejected"}),
            ("session.renew", {"token": self.alice.refresh_token}, {"tokenRejected"}),
            ("session.start", {"token": self.alice.token, "device": self.alice.description}, {"notAllowed"}),
        ]
        return rows

    async def intact(self):
        """Checks that nothing has changed: the invites ring, the call continues, the group and the room are theirs."""
        await settle(self.alice, self.bob, self.bob_too, self.mallory)
        for device in self.alice, self.bob, self.bob_too:
            assert device.events == [], (device.user, device.events)
        listed = (await self.bob.ask("invite.list"))["invites"]
        assert [(one["invite"], one["data"]) for one in listed][0] == (self.ringing, "secret offer")
        assert [one["invite"] for one in listed] == [self.ringing, self.asked]
        members = await self.bob.ask("group.members", group=self.group)
        assert members["members"] == [self.alice.user, self.bob.user]
        await self.alice.ask("call.signal", invite=self.call, type="intact", data=1)
        await self.bob.hear("callSignal", type="intact")
        await self.bob.ask("invite.accept", invite=self.ringing)
        await self.alice.hear("inviteAccepted", invite=self.ringing)
        await self.bob.ask("invite.accept", invite=self.asked)
        await self.alice.hear("inviteAccepted", invite=self.asked)
        await self.alice.ask("room.signal", room=self.room, type="intact")
        await self.alice.hear("roomSignal", type="intact")


async def test_every_method_with_anothers_ids(exchange):
    """INV-6, INV-10, GRP-1, SIG-1, CALL-3: Every method with every id of another user is refused, and changes nothing"""
    stakes = await Stakes().set_up(exchange)
    rows = stakes.table()
    assert {row[0] for row in rows} | {
        "session.end",
        "device.unregister",
        "invite.list",
        "group.join",
        "group.list",
        "presence.subscribe",
        "presence.unsubscribe",
    } == set(METHODS) | {"session.start"}, "a method is missing from the table"
    for method, parameters, names in rows:
        await refusal(stakes.mallory.ask(method, **parameters), *names)
    # Requests that name no user show nothing of others.
    assert await stakes.mallory.ask("invite.list") == {"invites": []}
    assert await stakes.mallory.ask("group.list") == {"groups": []}
    await settle(stakes.mallory)
    assert stakes.mallory.events == []
    await stakes.intact()


async def test_bearers_of_a_session_token_are_strangers(exchange):
    """AUTH-5: A session token in a user's name gives access to nothing of that user, with any method and any id"""
    stakes = await Stakes().set_up(exchange)
    token = signed(*API, stakes.bob.user, session="elsewhere", role="moderator")
    bearer = await Device(exchange, stakes.bob.user, token, stakes.bob.id).start()
    for method, parameters, _ in stakes.table():
        if method not in ("session.start", "session.renew"):
            await refusal(bearer.ask(method, **parameters), "notAllowed", "unknownRoom", "tokenForAnotherSession", "tokenRejected")
    await settle(bearer)
    assert bearer.events == []
    await stakes.intact()


async def test_other_devices_of_the_user_are_no_party(exchange):
    """CALL-3, INV-5: In a call only its two devices may act, not others of the same users"""
    stakes = await Stakes().set_up(exchange)
    alice_too = await exchange.device(stakes.alice.user)
    await settle(alice_too)
    for device in stakes.bob_too, alice_too:
        await refusal(device.ask("call.signal", invite=stakes.call, type="t"), "notYours")
        await refusal(device.ask("call.end", invite=stakes.call, reason="completed", duration_ms=1), "notYours")
    await refusal(stakes.bob.ask("invite.cancel", invite=stakes.ringing), "notYours")
    await refusal(stakes.bob.ask("invite.modify", invite=stakes.ringing), "notYours")
    await refusal(stakes.alice.ask("invite.accept", invite=stakes.ringing), "notYours")
    await refusal(stakes.alice.ask("invite.reject", invite=stakes.ringing), "notYours")
    await refusal(stakes.bob.ask("group.dismiss", group=stakes.group), "notYours")
    await stakes.intact()


async def test_sessions_of_others_are_not_resumed(exchange):
    """CONN-5: Another user's session, or another device's, is not resumed, and its events are not sent"""
    alice, alice_too, mallory = await exchange.party(2, 1)
    number = await call(mallory, alice)
    await alice.lose()
    await mallory.ask("call.signal", invite=number, type="for alice alone")
    for token, name in (mallory.token, mallory.id), (mallory.token, alice.id), (alice_too.token, alice_too.id):
        thief = Device(exchange, "thief", token, name)
        thief.session = alice.session
        await thief.start(resume=True, after=0)
        assert not thief.answer["resumed"] and thief.connection != alice.connection
        await settle(thief)
        assert thief.events == []
    await alice.resume()
    assert alice.answer["resumed"]
    await alice.hear("callSignal", type="for alice alone")


async def test_guests_of_one_name_are_several(exchange):
    """AUTH-3, CONN-5: Guests of one name with devices of one id are two, and neither has the other's session"""
    first, second = await exchange.guest("sam", "phone"), await exchange.guest("sam", "phone")
    assert first.session != second.session
    for guest in first, second:
        await guest.ask("room.join", room="twins")
    await settle(first, second)
    await first.lose()
    await second.ask("room.signal", room="twins", type="t", data="for all")
    thief = Device(exchange, "sam", second.token, "phone")
    thief.session = first.session
    await thief.start(resume=True, after=0)
    assert not thief.answer["resumed"]
    await settle(thief)
    assert thief.events == []
    await first.resume()
    assert first.answer["resumed"]
    await first.hear("roomSignal", data="for all")


# Not allowed in names: invisible characters, changes of direction, and other spellings.
UNSEEN = [
    "\0",
    "\n",
    "\x1b",
    "\x7f",
    "\x85",
    "\xad",
    "\u034f",
    "\u061c",
    "\u115f",
    "\u180e",
    "\u200b",
    "\u200d",
    "\u2028",
    "\u202e",
    "\u2066",
    "\u00a0",
    "\u2007",
    "\u2800",
    "\u3000",
    "\ue000",
    "\u3164",
    "\ufe0f",
    "\ufeff",
    "\ufff9",
    "\ufffe",
    "\U000e0041",
    "\U0010ffff",
]


async def test_names_that_hide_something(exchange):
    """GRP-1, INV-1, CONN-7: A name with invisible characters is refused wherever it occurs, and imitates no other"""
    alice, mallory = await exchange.party(1, 1)
    group = f"group-{secrets.token_hex(4)}"
    await alice.ask("group.create", group=group)
    for character in UNSEEN:
        mallory = await exchange.device(mallory.user)  # Many of these on one connection close it.
        for name in f"{group}{character}", f"{group}{character}x", f"{character}{group}", character:
            for method in "group.create", "group.join", "group.leave", "group.dismiss", "group.members":
                refused = await refusal(mallory.ask(method, group=name), "invalidParams")
                assert "params.group" in refused.message and group not in refused.message, refused.message
        await refusal(mallory.ask("room.join", room=f"room{character}"), "invalidParams")
        await refusal(invite(mallory, f"{alice.user}{character}"), "invalidParams")
        await refusal(invite(mallory, alice.user, idempotency_key=f"key{character}"), "invalidParams")
        refused = await refusal(exchange.guest(f"{alice.user}{character}"), "badRequest")
        assert refused.status == 400
    for spelling in "e\u0301", "\u212b", "\u1112\u1161\u11ab":
        await refusal(mallory.ask("group.create", group=spelling), "invalidParams")
    assert (await alice.ask("group.members", group=group))["owner"] == alice.user
    assert await mallory.ask("group.list") == {"groups": []}


async def test_ids_are_not_foreseen(exchange):
    """INV-1, CONN-5: Of the ids that the exchange gives no two have more in common than their kind"""
    alice, bob = await exchange.party(1, 1)
    given = [alice.session, bob.session, alice.connection, bob.connection]
    given += [await invite(alice, bob) for _ in range(4)]
    given += [(await alice.ask("group.create"))["group"] for _ in range(4)]
    bits = [int(name.split("-")[1], 16) for name in given]
    assert all(len(name.split("-")[1]) == 32 for name in given), given
    assert min((one ^ two).bit_count() for one in bits for two in bits if one is not two) > 25
