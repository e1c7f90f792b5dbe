"""INV: invites, from sending to their end."""

import asyncio
import json
import time

from client import PATIENCE, refusal, settle
from conformance import waits
from exchange import call, invite


async def test_invite_reaches_every_device(exchange):
    """INV-2, DEV-3: Each registered device of each invitee receives the invite, with all its members"""
    alice, bob, bob_too, carol = await exchange.party(1, 2, 1)
    data = {"offer": {"sdp": "v=0\r\n", "type": "offer"}, "note": "čau 👋 \u0000\u2028", "n": [1, -2.5, True, None, {}]}
    answer = await alice.ask(
        "invite.send", to=[f"{bob.user}@test", carol.user], data=data, ttl=20, payload={"apns": {"alert": "A"}}, idempotency_key="key"
    )
    assert answer["invitees"] == [bob.user, carol.user], answer
    for device in bob, bob_too, carol:
        told = await device.hear("inviteReceived")
        assert 15 < told.pop("ttl_remaining") <= 20
        assert told == {
            "invite": answer["invite"],
            "inviter": alice.user,
            "invitees": [bob.user, carol.user],
            "data": data,
            "payload": {"apns": {"alert": "A"}},
        }, told
    await settle(alice)
    assert alice.events == [], "the inviter receives nothing of its own invite"


async def test_the_most_that_is_accepted_is_heard(exchange):
    """INV-2: The most data that an invite may carry reaches each device, though it is longer on its way out"""
    alice, bob = await exchange.party(1, 1)
    texts = [
        ('"' + "x" * 61438 + '"', True),
        ('"' + "x" * 61439 + '"', False),
        ('"' + "\\u0001" * 10239 + '"', True),
        ('"' + "\\u0001" * 10240 + '"', False),
        ("[" + ",".join(["1e18"] * 3071) + "]", True),
        ("[" + ",".join(["1e18"] * 3072) + "]", False),
        ("[" + ",".join(["1e18"] * 13000) + "]", False),
        ("[" * 60 + '"' + "x" * 61318 + '"' + "]" * 60, True),
        ("[" * 62 + "]" * 62, True),
    ]
    for number, (text, fits) in enumerate(texts, 1000):
        parameters = f'"to":"{bob.user}","ttl":0,"idempotency_key":"{number}","data":{text}'
        asking = asyncio.ensure_future(alice.line.answer_to(number))
        await asyncio.sleep(0)
        await alice.line.raw(f'{{"jsonrpc":"2.0","id":{number},"method":"invite.send","params":{{{parameters}}}}}')
        answer = await asking
        assert ("result" in answer) == fits, f"{text[:40]}: {answer}"
        if not fits:
            assert answer["error"]["data"]["name"] == "tooLarge", answer
            continue
        told = await bob.hear("inviteReceived", invite=answer["result"]["invite"])
        assert told["data"] == json.loads(text, parse_float=lambda number: int(float(number)))
        await bob.ask("invite.reject", invite=told["invite"], data=told["data"])
        assert (await alice.hear("inviteRejected"))["data"] == told["data"]
    await settle(alice, bob)


async def test_same_key_same_invite(exchange):
    """INV-1: A retry with the same idempotency key gives the same invite, and rings once"""
    alice, bob, mallory = await exchange.party(1, 1, 1)
    first, second = await asyncio.gather(*(invite(alice, bob, idempotency_key="once") for _ in range(2)))
    assert first == second
    assert await invite(mallory, bob, idempotency_key="once") != first, "keys are each user's own"
    await settle(bob)
    assert len(bob.heard("inviteReceived", invite=first)) == 1
    await alice.ask("invite.cancel", invite=first)
    assert await invite(alice, bob, idempotency_key="once") == first, "five minutes more"
    assert bob.kinds(invite=first) == ["inviteReceived", "inviteCancelled"]


async def test_key_holds_while_connections_break(exchange):
    """INV-1, CONN-6: A send whose answer was lost is sent again on the next connection, and is one invite"""
    alice, bob = await exchange.party(1, 1)
    alice.begin("invite.send", to=bob.user, ttl=30, data={}, idempotency_key="lost").add_done_callback(lambda sent: sent.exception())
    await bob.hear("inviteReceived")
    await alice.lose()
    await alice.resume()
    number = await invite(alice, bob, idempotency_key="lost", data={})
    await settle(bob)
    assert [told["invite"] for told in bob.heard("inviteReceived")] == [number]


async def test_online_only(exchange):
    """INV-1: With onlineOnly an invite fails at once unless each user has a registered device"""
    alice, bob = await exchange.party(1, 1)
    (carol,) = exchange.people(1)
    await refusal(invite(alice, carol, online_only=True), "noDeviceOnline")
    await refusal(invite(alice, bob.user, carol, online_only=True), "noDeviceOnline")
    await invite(alice, bob, online_only=True)
    await settle(bob)
    assert len(bob.heard("inviteReceived")) == 1, "a refused invite reaches no device"


async def test_bad_invites_are_refused(exchange):
    """INV-1: An invite's parameters have limits, and what is beyond them is refused by name"""
    alice, bob = await exchange.party(1, 1)
    for ttl in (-1, 86_401, 1e300, "30", None, True):
        await refusal(invite(alice, bob, ttl=ttl), "invalidParams")
    for to in ([], 5, None, [1], {"user": bob.user}):
        await refusal(alice.ask("invite.send", to=to, ttl=1, idempotency_key="k"), "invalidParams")
    await refusal(invite(alice, "nobody"), "unknownUser")
    await refusal(invite(alice, bob.user, "nobody"), "unknownUser")
    refused = await refusal(invite(alice, *[bob.user] * 33), "tooLarge")
    assert refused.limit == 32, refused.limit
    await refusal(invite(alice, bob, idempotency_key="k" * 257), "invalidParams")
    await settle(bob)
    assert bob.events == []


async def test_every_answer_is_told(exchange):
    """INV-3: The inviter receives each answer with its data, and the end once all have answered"""
    alice, bob, carol, dave = await exchange.party(1, 1, 1, 1)
    number = await invite(alice, bob, carol, dave, ttl=0.5)
    await bob.ask("invite.accept", invite=number, data={"answer": "yes"})
    await carol.ask("invite.reject", invite=number, data={"reason": "declined", "text": "später"})
    await alice.hear("inviteEnded", invite=number)
    assert alice.kinds() == ["inviteAccepted", "inviteRejected", "inviteTimedOut", "inviteEnded"]
    assert alice.heard("inviteAccepted") == [{"invite": number, "invitee": bob.user, "device": bob.id, "data": {"answer": "yes"}}]
    assert alice.heard("inviteRejected") == [
        {"invite": number, "invitee": carol.user, "device": carol.id, "data": {"reason": "declined", "text": "später"}}
    ]
    assert alice.heard("inviteTimedOut") == [{"invite": number, "invitees": [dave.user]}]
    await settle(bob, carol, dave)
    assert (bob.kinds(), carol.kinds()) == (["inviteReceived"],) * 2, "the device that answered receives no more"
    assert dave.kinds() == ["inviteReceived", "inviteTimedOut"]


async def test_other_devices_stop_ringing(exchange):
    """INV-4, INV-17: The invitee's other devices are notified which one handled the invite; the one that did does not"""
    alice, bob, bob_too, bob_three = await exchange.party(1, 3)
    for method, action in (("invite.accept", "accepted"), ("invite.reject", "rejected")):
        number = await invite(alice, bob)
        await bob.ask(method, invite=number)
        await settle(bob, bob_too, bob_three)
        for other in bob_too, bob_three:
            assert other.kinds(invite=number) == ["inviteReceived", "inviteHandled"]
            assert other.heard("inviteHandled", invite=number) == [{"invite": number, "device": bob.id, "action": action}]
            await refusal(other.ask("invite.accept", invite=number), "alreadyHandled")
            await refusal(other.ask("invite.reject", invite=number), "alreadyHandled")
        assert bob.kinds(invite=number) == ["inviteReceived"]


async def test_cancel(exchange):
    """INV-6, INV-10: A cancel reaches the pending invitees alone, with the missed call, and any of the inviter's
    devices may
    """
    alice, alice_too, bob, carol = await exchange.party(2, 1, 1)
    number = await invite(alice, bob, carol, timeout_payload={"text": "Alice called"})
    await bob.ask("invite.accept", invite=number)
    await alice_too.ask("invite.cancel", invite=number, data={"reason": "changed my mind"})
    await alice.hear("inviteEnded", invite=number)
    await settle(bob, carol)
    assert carol.kinds() == ["inviteReceived", "inviteCancelled", "inviteMissed"]
    assert carol.heard("inviteCancelled")[0]["data"] == {"reason": "changed my mind"}
    assert carol.heard("inviteMissed")[0]["payload"] == {"text": "Alice called"}
    assert bob.kinds() == ["inviteReceived"]
    for device in alice, alice_too:
        await refusal(device.ask("invite.cancel", invite=number), "inviteEnded")
    await refusal(carol.ask("invite.accept", invite=number), "inviteCancelled")
    await refusal(carol.ask("invite.reject", invite=number), "inviteCancelled")
    await refusal(carol.ask("call.signal", invite=number, type="x"), "unknownCall", "notYours")
    await alice.ask("call.signal", invite=number, type="the other call continues", peer=bob.user)
    await bob.hear("callSignal")


async def test_timeout(exchange):
    """INV-7, INV-10: At the ttl, and not before, both sides receive the timeout, and invitees the missed call"""
    alice, bob, bob_too = await exchange.party(1, 2)
    sent = time.monotonic()
    number = await invite(alice, bob, ttl=0.75, timeout_payload={"text": "missed"})
    for device in alice, bob, bob_too:
        told = await device.hear("inviteTimedOut", invite=number)
        assert told["invitees"] == [bob.user]
        assert 0.7 < device.when("inviteTimedOut") - sent < 0.75 + PATIENCE
    await alice.hear("inviteEnded", invite=number)
    for device in bob, bob_too:
        assert (await device.hear("inviteMissed", invite=number))["payload"] == {"text": "missed"}
        await refusal(device.ask("invite.accept", invite=number), "inviteTimedOut")
        await refusal(device.ask("invite.reject", invite=number), "inviteTimedOut")
        assert device.kinds() == ["inviteReceived", "inviteTimedOut", "inviteMissed"]
    await refusal(alice.ask("invite.cancel", invite=number), "inviteEnded")
    await refusal(alice.ask("call.signal", invite=number, type="x"), "unknownCall")
    assert alice.kinds() == ["inviteTimedOut", "inviteEnded"]


async def test_timer_outlives_the_inviter(exchange):
    """INV-7: The timer fires though the inviter has ended its session"""
    alice, bob = await exchange.party(1, 1)
    number = await invite(alice, bob, ttl=0.6, timeout_payload={"text": "missed"})
    await alice.leave()
    await bob.hear("inviteTimedOut", invite=number)
    await bob.hear("inviteMissed", invite=number)


@waits
async def test_no_ttl_no_timeout(exchange):
    """INV-9: An invite with a ttl of 0 does not end by itself"""
    alice, bob = await exchange.party(1, 1)
    number = await invite(alice, bob, ttl=0)
    assert (await bob.hear("inviteReceived"))["ttl_remaining"] == 0
    await asyncio.sleep(8)
    await settle(alice, bob)
    assert bob.kinds() == ["inviteReceived"] and alice.kinds() == []
    await bob.ask("invite.accept", invite=number)


async def test_repeated_answers(exchange):
    """INV-10, INV-17: An answer repeated by the same device succeeds again and does nothing; another one is refused"""
    alice, bob = await exchange.party(1, 1)
    number = await invite(alice, bob)
    for _ in range(3):
        await bob.ask("invite.accept", invite=number, data={"answer": 1})
    await refusal(bob.ask("invite.reject", invite=number), "alreadyHandled")
    second = await invite(alice, bob)
    for _ in range(3):
        await bob.ask("invite.reject", invite=second)
    await refusal(bob.ask("invite.accept", invite=second), "alreadyHandled")
    await settle(alice)
    assert alice.kinds() == ["inviteAccepted", "inviteEnded", "inviteRejected", "inviteEnded"]
    await refusal(bob.ask("invite.accept", invite="invite-that-never-was"), "unknownInvite")


async def test_busy_is_told_from_declined(exchange):
    """INV-11: The inviter can distinguish busy from declined"""
    alice, bob = await exchange.party(1, 1)
    for reason in ("busy", "declined"):
        await bob.ask("invite.reject", invite=await invite(alice, bob), data={"reason": reason})
        assert (await alice.hear("inviteRejected"))["data"] == {"reason": reason}


async def test_many_invites_at_once(exchange):
    """INV-12: A user sends and receives many invites at once, 256 and no more, each with its own end"""
    alice, late, *peers = await exchange.party(*[1] * 34)
    sent = {peer: await asyncio.gather(*(invite(alice, peer, data={"n": n}, ttl=60) for n in range(8))) for peer in peers}
    assert len({number for numbers in sent.values() for number in numbers}) == 256
    await refusal(invite(alice, late), "tooManyRequests")
    await asyncio.gather(*(invite(peer, alice, ttl=60) for peer in peers for _ in range(8)))
    await refusal(invite(late, alice), "tooManyRequests")
    await settle(alice, *peers)
    assert len(alice.heard("inviteReceived")) == 256
    for peer in peers:
        assert [told["data"]["n"] for told in peer.heard("inviteReceived")] == list(range(8))
        for number in sent[peer][::2]:
            peer.begin("invite.reject", invite=number)
        for number in sent[peer][1::2]:
            alice.begin("invite.cancel", invite=number)
    await settle(alice, *peers)
    await settle(alice, *peers)
    assert len(alice.heard("inviteRejected")) == 128
    assert sum(len(peer.heard("inviteCancelled")) for peer in peers) == 128
    assert len(alice.heard("inviteEnded")) == 256
    await invite(alice, late)


async def test_answer_waits_for_the_inviter(exchange):
    """INV-13: The inviter's connection drops, the invite stays open, and the answer reaches it on resume"""
    alice, bob = await exchange.party(1, 1)
    number = await invite(alice, bob)
    await bob.hear("inviteReceived")
    await alice.lose()
    await bob.ask("invite.accept", invite=number, data={"answer": 1})
    await bob.ask("call.signal", invite=number, type="candidate", data=1)
    assert (await alice.resume()).answer["resumed"]
    await alice.hear("callSignal")
    assert alice.kinds() == ["inviteAccepted", "inviteEnded", "callSignal"]


async def test_late_device_hears_what_is_pending(exchange):
    """INV-14: A device that comes online gets each open invite, oldest first, with the ttl that remains"""
    alice, bob = await exchange.party(1, 1)
    numbers = [await invite(alice, bob, ttl=ttl, data=ttl) for ttl in (20, 0, 40)]
    ended = await invite(alice, bob)
    await alice.ask("invite.cancel", invite=ended)
    answered = await invite(alice, bob)
    await bob.ask("invite.reject", invite=answered)
    await asyncio.sleep(1.2)
    for late in [await exchange.device(bob.user), await exchange.device(bob.user, start="warm")]:
        await settle(late)
        told = late.heard("inviteReceived")
        assert [invite["invite"] for invite in told] == numbers
        first, second, third = (invite["ttl_remaining"] for invite in told)
        assert 20 - PATIENCE < first <= 18.8 and second == 0 and 40 - PATIENCE < third <= 38.8
        assert [invite["data"] for invite in told] == [20, 0, 40]
    await bob.register()
    await settle(bob)
    assert len(bob.heard("inviteReceived", invite=numbers[0])) == 2, "a device that registers again receives it again"


@waits
async def test_cold_start_skips_old_group_invites(exchange):
    """INV-14: Of group invites a cold start gets those of the last 30 s, a warm start all"""
    alice, bob = await exchange.party(1, 1)
    group = (await alice.ask("group.create", members=[bob.user]))["group"]
    old = await invite(alice, bob, group=group, ttl=0)
    plain = await invite(alice, bob, ttl=0)
    await asyncio.sleep(31)
    new = await invite(alice, bob, group=group, ttl=0)
    cold, warm = await exchange.device(bob.user, start="cold"), await exchange.device(bob.user, start="warm")
    await settle(cold, warm)
    assert [told["invite"] for told in cold.heard("inviteReceived")] == [plain, new]
    assert [told["invite"] for told in warm.heard("inviteReceived")] == [old, plain, new]


async def test_list_of_invites(exchange):
    """INV-14: A device can ask for all invites to and from its user, page by page"""
    alice, bob, carol = await exchange.party(1, 1, 1)
    text = "x" * 20_000
    numbers = [await invite(alice, bob, carol, ttl=60, data=text) for _ in range(8)]
    await carol.ask("invite.reject", invite=numbers[3])
    await carol.ask("invite.accept", invite=numbers[4])
    await alice.ask("invite.cancel", invite=numbers[5])
    for device in alice, bob:
        listed, after = [], {}
        while True:
            page = await device.ask("invite.list", **after)
            listed += page["invites"]
            if "next" not in page:
                break
            after = {"after": page["next"]}
        assert after, "8 invites of 20 kB fit into no message of 64 KiB"
        assert [one["invite"] for one in listed] == numbers[:5] + numbers[6:]
        one = listed[3]
        assert 0 < one.pop("ttl_remaining") <= 60
        assert one == {
            "invite": numbers[3],
            "inviter": alice.user,
            "invitees": [bob.user, carol.user],
            "pending": [bob.user],
            "data": text,
        }, one


async def test_modify(exchange):
    """INV-15: The inviter changes a pending invite's data, and the invitees that have not answered are notified"""
    alice, alice_too, bob, carol = await exchange.party(2, 1, 1)
    number = await invite(alice, bob, carol, data={"topic": 1})
    await bob.ask("invite.accept", invite=number)
    await alice_too.ask("invite.modify", invite=number, data={"topic": 2})
    assert (await carol.hear("inviteModified", invite=number))["data"] == {"topic": 2}
    late = await exchange.device(carol.user)
    assert (await late.hear("inviteReceived", invite=number))["data"] == {"topic": 2}
    await settle(bob)
    assert bob.kinds() == ["inviteReceived"]
    await carol.ask("invite.accept", invite=number)
    await refusal(alice.ask("invite.modify", invite=number, data=3), "inviteEnded")


async def test_accept_at_once(exchange):
    """INV-3, CONN-5: Answers come before the events they cause, on every connection"""
    alice, bob = await exchange.party(1, 1)
    sending = alice.begin("invite.send", to=bob.user, ttl=0.001, data={}, idempotency_key="k")
    asked = alice.line.last
    number = (await sending)["invite"]
    await alice.hear("inviteEnded", invite=number)
    assert alice.line.order[-3:] == [asked, "inviteTimedOut", "inviteEnded"], "the result of a send comes first"


async def test_invite_to_oneself(exchange):
    """INV-2: A user may call its own other devices; the one that sends does not ring"""
    alice, alice_too = await exchange.party(2)
    number = await call(alice, alice_too)
    await settle(alice, alice_too)
    assert "inviteReceived" not in alice.kinds(invite=number)
