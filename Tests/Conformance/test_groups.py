"""GRP: groups, and invites in them."""

import asyncio
import secrets

from client import refusal, settle
from exchange import invite


async def group_of(owner, *members, **parameters):
    """Creates a group. Returns once all members are notified."""
    group = (await owner.ask("group.create", members=[member.user for member in members], **parameters))["group"]
    for device in owner, *members:
        await device.hear("groupChanged", group=group, change="created")
    return group


async def test_unregistered_devices_hear_changes(exchange):
    """GRP-1: A device that is connected and not registered receives each change of its user's groups"""
    alice, bob = await exchange.party(1, 1)
    await bob.ask("device.unregister")
    group = (await alice.ask("group.create", members=[bob.user]))["group"]
    assert (await bob.hear("groupChanged", group=group))["change"] == "created"
    await alice.ask("group.dismiss", group=group)
    assert (await bob.hear("groupChanged", group=group))["change"] == "dismissed"


async def test_members_hear_each_change(exchange):
    """GRP-1: Create, join, leave, dismiss and list; members receive each change, and others none"""
    alice, alice_too, bob, carol, dave = await exchange.party(2, 1, 1, 1)
    group = f"class-{secrets.token_hex(4)}"
    answer = await alice.ask("group.create", group=group, name="Class 7", members=[f"{bob.user}@test"])
    assert answer == {"group": group}
    made = {"group": group, "change": "created", "user": alice.user, "members": [alice.user, bob.user], "name": "Class 7"}
    for device in alice, alice_too, bob:
        assert await device.hear("groupChanged") == made
    await carol.ask("group.join", group=group)
    for device in alice, alice_too, bob, carol:
        assert await device.hear("groupChanged") == {"group": group, "change": "joined", "user": carol.user}
    assert await bob.ask("group.members", group=group) == {
        "group": group,
        "name": "Class 7",
        "owner": alice.user,
        "members": [alice.user, bob.user, carol.user],
    }
    assert await carol.ask("group.list") == {"groups": [{"group": group, "name": "Class 7", "owner": alice.user}]}
    await carol.ask("group.join", group=group)  # Changes nothing.
    await bob.ask("group.leave", group=group)
    for device in alice, alice_too, bob, carol:
        assert await device.hear("groupChanged") == {"group": group, "change": "left", "user": bob.user}
    await refusal(bob.ask("group.members", group=group), "unknownGroup")
    await refusal(alice.ask("group.leave", group=group), "notAllowed")
    await refusal(carol.ask("group.dismiss", group=group), "notYours")
    await alice.ask("group.dismiss", group=group)
    for device in alice, alice_too, carol:
        assert await device.hear("groupChanged") == {"group": group, "change": "dismissed", "user": alice.user}
    await settle(alice, bob, carol, dave)
    assert dave.events == [] and len(bob.heard("groupChanged")) == 3 and len(carol.heard("groupChanged")) == 3
    for method in "group.join", "group.leave", "group.members", "group.dismiss":
        await refusal(carol.ask(method, group=group), "unknownGroup")
    assert await carol.ask("group.list") == {"groups": []}


async def test_creating_again(exchange):
    """GRP-1: The owner that creates its group again changes nothing; another user is refused because it exists"""
    alice, bob = await exchange.party(1, 1)
    group = await group_of(alice, bob)
    assert await alice.ask("group.create", group=group, name="other", members=[]) == {"group": group}
    assert (await bob.ask("group.members", group=group))["members"] == [alice.user, bob.user]
    await refusal(bob.ask("group.create", group=group), "groupExists")
    first, second = [(await alice.ask("group.create"))["group"] for _ in range(2)]
    assert first != second
    await refusal(alice.ask("group.create", members=["nobody"]), "unknownUser")
    assert await refusal(alice.ask("group.create", group="g" * 257), "invalidParams")
    assert (await refusal(alice.ask("group.create", name="n" * 257), "tooLarge")).limit == 256


async def test_groups_have_bounds(exchange):
    """GRP-1: A group has 200 members, a user owns 64"""
    (alice,) = await exchange.party(1)
    others = [f"user-{number}" for number in range(600, 801)]
    assert (await refusal(alice.ask("group.create", members=others[:200]), "tooLarge")).limit == 200
    group = (await alice.ask("group.create", members=others[:199]))["group"]
    assert len((await alice.ask("group.members", group=group))["members"]) == 200
    (bob,) = await exchange.party(1)
    await refusal(bob.ask("group.join", group=group), "tooManyRequests")
    for _ in range(63):
        await alice.ask("group.create")
    await refusal(alice.ask("group.create"), "tooManyRequests")
    assert len((await alice.ask("group.list"))["groups"]) == 64


async def test_invite_in_group(exchange):
    """GRP-2: Every member receives the invite and each answer, and `invitees` has who is asked"""
    alice, alice_too, bob, carol, dave = await exchange.party(2, 1, 1, 1)
    group = await group_of(alice, bob, carol, dave)
    number = await invite(alice, bob, carol, group=group, ttl=1.5, data={"topic": 1})
    members = [alice_too, bob, carol, dave]
    for device in members:
        told = await device.hear("inviteReceived")
        assert told["group"] == group and told["invitees"] == [bob.user, carol.user] and told["inviter"] == alice.user
    await alice.ask("invite.modify", invite=number, data={"topic": 2})
    for device in members:
        assert await device.hear("inviteModified") == {"invite": number, "data": {"topic": 2}}
    await bob.ask("invite.accept", invite=number, data=1)
    for device in alice, alice_too, carol, dave:
        assert await device.hear("inviteAccepted") == {"invite": number, "invitee": bob.user, "device": bob.id, "data": 1}
    await refusal(dave.ask("invite.accept", invite=number), "notYours")
    for device in alice, *members:
        if device is not bob:
            assert await device.hear("inviteTimedOut") == {"invite": number, "invitees": [carol.user]}
    await alice.hear("inviteEnded", invite=number)
    second = await invite(alice, dave, group=group)
    await dave.ask("invite.reject", invite=second, data={"reason": "busy"})
    for device in alice, alice_too, bob, carol:
        assert (await device.hear("inviteRejected", invite=second))["data"] == {"reason": "busy"}
    third = await invite(alice, bob, carol, group=group)
    await alice.ask("invite.cancel", invite=third, data="enough")
    for device in members:
        assert await device.hear("inviteCancelled", invite=third) == {"invite": third, "data": "enough"}


async def test_only_members_invite_and_are_invited(exchange):
    """GRP-2: Only members send and receive an invite in a group"""
    alice, bob, mallory = await exchange.party(1, 1, 1)
    group = await group_of(alice, bob)
    await refusal(invite(mallory, bob, group=group), "unknownGroup")
    await refusal(invite(alice, mallory, group=group), "notAllowed")
    await refusal(invite(alice, bob, group="group-none"), "unknownGroup")
    number = await invite(alice, bob, group=group)
    await alice.ask("group.dismiss", group=group)
    await bob.ask("invite.accept", invite=number)
    await alice.hear("inviteAccepted", invite=number)
    await settle(mallory)
    assert mallory.events == []


async def test_hand_raising(exchange):
    """GRP-3: One group invite asks who raises a hand, those who accept are listed, and a second asks one to speak"""
    teacher, *pupils = await exchange.party(1, 1, 1, 1, 1)
    group = await group_of(teacher, *pupils)
    ask = await invite(teacher, *pupils, group=group, ttl=1, data={"ask": "raiseHand"})
    raised = pupils[1:3]
    await asyncio.gather(*(pupil.ask("invite.accept", invite=ask) for pupil in raised), pupils[0].ask("invite.reject", invite=ask))
    await teacher.hear("inviteEnded", invite=ask)
    everyone = [teacher, *pupils]
    await settle(*everyone)
    for device in everyone:
        listed = {told["invitee"] for told in device.heard("inviteAccepted", invite=ask)} | ({device.user} if device in raised else set())
        assert listed == {pupil.user for pupil in raised}, (device.user, listed)
    speak = await invite(teacher, raised[0], group=group, data={"ask": "speak"})
    await raised[0].ask("invite.accept", invite=speak)
    for device in everyone:
        if device is not raised[0]:
            assert (await device.hear("inviteAccepted", invite=speak))["invitee"] == raised[0].user
    await teacher.ask("call.signal", invite=speak, type="floor", data="yours")
    await raised[0].hear("callSignal", invite=speak)
