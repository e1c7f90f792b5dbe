"""AUTH-4 and AUTH-5: tokens that end, are refreshed, and are signed by applications."""

import secrets
import time

from client import Device, refusal, remember, settle, signed
from exchange import API, OTHER_API, call, invite


async def refresh(exchange, token):
    answer = await exchange.post("/v1.1/token", {"refresh_token": token})
    remember(answer["token"], answer["refresh_token"])
    return answer


async def test_refresh(exchange):
    """AUTH-4: A refresh token gives new tokens, once more if the answer was lost, and sessions and calls continue"""
    alice, bob = await exchange.party(1, 1)
    number = await call(alice, bob)
    first = await refresh(exchange, alice.refresh_token)
    assert first["id"] == alice.user and first["token"] != alice.token
    assert first["refresh_token"] != alice.refresh_token
    second = await refresh(exchange, alice.refresh_token)  # The first answer was lost.
    await exchange.rest("GET", "/v1/connection", Authorization=f"Bearer {alice.token}")
    assert 0 < (await alice.ask("session.renew", token=second["token"]))["expires_in"] <= 3600
    await alice.ask("call.signal", invite=number, type="still here")
    await bob.hear("callSignal")
    await alice.lose()
    alice.token = second["token"]
    assert (await alice.resume()).answer["resumed"]
    for wrong in "nonsense", alice.token:
        await refusal(exchange.post("/v1.1/token", {"refresh_token": wrong}), "tokenRejected")
    await refusal(exchange.rest("GET", "/v1/connection", Authorization=f"Bearer {second['refresh_token']}"), "tokenRejected")


async def test_stolen_refresh_token(exchange):
    """AUTH-4: A refresh token that is used again after many exchanges ends its login, with its sessions"""
    (alice,) = await exchange.party(1)
    stolen = token = alice.refresh_token
    for _ in range(12):
        token = (await refresh(exchange, token))["refresh_token"]
    await refusal(exchange.post("/v1.1/token", {"refresh_token": stolen}), "tokenRevoked")
    assert await alice.line.closing() == 4001
    await refusal(exchange.post("/v1.1/token", {"refresh_token": token}), "tokenRevoked")


async def test_many_logins(exchange):
    """AUTH-9: However often its user logs in, a connected device keeps its login, and no session outlives its own"""
    (alice,) = await exchange.party(1)
    for _ in range(70):
        await exchange.login(alice.user)
    await alice.ask("ping")
    answer = await refresh(exchange, alice.refresh_token)
    await alice.ask("session.renew", token=answer["token"])
    await exchange.post("/v1.1/logout", Authorization=f"Bearer {answer['token']}")
    assert await alice.line.closing() == 4001


async def test_other_spellings(exchange):
    """AUTH-9: A signed token that was logged out is invalid in any other spelling, and so is another with its jti"""
    (user,) = exchange.people(1)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for claims in {}, {"jti": None}:
        token = signed(*API, user, **claims)
        device = await Device(exchange, user, token).start()
        await exchange.post("/v1.1/logout", Authorization=f"Bearer {token}")
        assert await device.line.closing() == 4001
        await refusal(Device(exchange, user, token).start(), "tokenRevoked")
        parts = token.split(".")
        for index, part in enumerate(parts):
            spare = {2: 16, 3: 4}.get(len(part) % 4, 1)
            value = alphabet.index(part[-1])
            others = [part + "=", part + "==", part.replace("-", "+").replace("_", "/")]
            others += [part[:-1] + alphabet[value + step] for step in range(1, spare)]
            for other in set(others) - {part}:
                spelling = ".".join(parts[:index] + [other] + parts[index + 1 :])
                await refusal(exchange.rest("GET", "/v1/connection", Authorization=f"Bearer {spelling}"), "tokenRejected")
    first, second = (signed(*API, user, seconds=seconds, jti="one-name") for seconds in (600, 900))
    await exchange.post("/v1.1/logout", Authorization=f"Bearer {first}")
    await refusal(Device(exchange, user, second).start(), "tokenRevoked")
    await Device(exchange, user, signed(*API, user, jti="another")).start()
    (other,) = exchange.people(1)
    await Device(exchange, other, signed(*API, other, jti="taken")).start()
    await refusal(Device(exchange, user, signed(*API, user, jti="taken")).start(), "tokenRejected")


async def test_token_ends(fleeting):
    """AUTH-4: A session is notified before its token ends, continues with a new one, and is closed without; the call continues"""
    # One after the other, so that Alice's token ends before Bob's.
    alice, bob = [await fleeting.device(user) for user in fleeting.people(2)]
    number = await call(alice, bob)
    assert 0 < (await alice.hear("tokenExpiring"))["expires_in"] <= 2
    await bob.hear("tokenExpiring")
    answer = await refresh(fleeting, alice.refresh_token)
    await alice.ask("session.renew", token=answer["token"])
    assert await bob.line.closing() == 4001  # It was not renewed.
    await alice.hear("streamDropped", invite=number)
    old, alice.token = alice.token, answer["token"]
    await refusal(fleeting.rest("GET", "/v1/connection", Authorization=f"Bearer {old}"), "tokenExpired")
    stale = Device(fleeting, alice.user, old)
    await refusal(stale.start(), "tokenExpired")
    assert await stale.line.closing() == 4001
    bob.token = (await refresh(fleeting, bob.refresh_token))["token"]
    await bob.resume()
    assert bob.answer["resumed"], "within the window a session is resumed with a new token"
    await bob.ask("call.signal", invite=number, type="on we go")
    await alice.hear("callSignal")
    assert not alice.heard("callEnded")


async def test_renewal_is_checked(exchange):
    """AUTH-4: A session is renewed with a good token of the same user alone, and otherwise stays as before"""
    alice, bob = await exchange.party(1, 1)
    for wrong in bob.token, "nonsense", bob.refresh_token:
        await refusal(alice.ask("session.renew", token=wrong), "tokenRejected")
    await refusal(alice.ask("session.renew", token=signed(API[0], "wrong-secret", alice.user)), "tokenWrongSignature")
    await refusal(
        alice.ask("session.renew", token=signed(*API, alice.user, session="r", role="publisher")), "tokenForAnotherSession", "tokenRejected"
    )
    await alice.ask("session.renew", token=signed(*API, alice.user))
    await alice.ask("ping")


async def test_signed_login(exchange):
    """AUTH-5: A signed token is a full login of its user, who must have an account"""
    alice, bob = await exchange.party(1, 1)
    token = signed(*API, alice.user)
    device = await (await Device(exchange, alice.user, token).start(application=API[0], user=alice.user)).register()
    await call(bob, device)
    assert (await exchange.rest("GET", "/v1/allidentities", Authorization=f"Bearer {token}"))[0]["routing_id"] == alice.user
    await refusal(Device(exchange, "nobody", signed(*API, "nobody")).start(), "tokenRejected")


async def test_bad_signed_tokens(exchange):
    """AUTH-5: A signed token past its end, with a wrong signature or for another session is refused with an error of
    its own
    """
    (user,) = exchange.people(1)
    good = signed(*API, user)
    head, claims, signature = good.split(".")
    other = signed(*API, "pat").split(".")[1]
    cases = [
        ("tokenExpired", 4002, signed(*API, user, seconds=-120, iat=int(time.time()) - 240)),
        ("tokenWrongSignature", 4004, signed(API[0], OTHER_API[1], user)),
        ("tokenWrongSignature", 4004, f"{head}.{claims}.{signature[:-4]}AAAA"),
        ("tokenWrongSignature", 4004, f"{head}.{other}.{signature}"),
        ("tokenWrongSignature", 4004, f"{head}.{claims}."),
        ("tokenWrongSignature", 4004, signed(*API, user, algorithm="none")),
        ("tokenRejected", 4003, signed("nobody", API[1], user)),
        ("tokenRejected", 4003, signed(*API, user, exp=None)),
        ("tokenRejected", 4003, signed(*API, user, seconds=10**9)),
        ("tokenRejected", 4003, signed(*API, user, sub=None)),
    ]
    for name, code, token in cases:
        device = Device(exchange, user, token)
        refused = await refusal(device.start(), name)
        assert refused.code == code, refused
        assert await device.line.closing() == 4001
        refused = await refusal(exchange.rest("GET", "/v1/connection", Authorization=f"Bearer {token}"), name)
        assert refused.status == 401
    token = signed(*API, user)
    await exchange.post("/v1.1/logout", Authorization=f"Bearer {token}")
    await refusal(Device(exchange, user, token).start(), "tokenRevoked")
    await Device(exchange, user, good).start()  # Another token, which was not revoked.


async def test_session_tokens(exchange):
    """AUTH-5: A token for one session allows its bearer to join that room, to signal in it, and nothing else"""
    alice, bob = await exchange.party(1, 1)
    place = f"room-{secrets.token_hex(4)}"
    await alice.ask("room.join", room=place)
    token = signed(*API, "visitor", session=place, role="moderator", data="name=Visitor")
    visitor = await Device(exchange, "visitor", token).start()
    joined = await visitor.ask("room.join", room=place, data="my own words")
    assert [one["user"] for one in joined["participants"]] == [alice.user]
    told = await alice.hear("connectionCreated")
    assert told == {"room": place, "connection": visitor.connection, "user": "visitor", "role": "moderator", "data": "name=Visitor"}, told
    await visitor.ask("room.signal", room=place, type="hello", data=1)
    assert (await alice.hear("roomSignal"))["user"] == "visitor"
    await refusal(visitor.ask("room.join", room="another"), "tokenForAnotherSession")
    for method, parameters in {
        "device.register": {"device": visitor.description},
        "invite.list": {},
        "group.list": {},
        "group.create": {},
        "invite.send": {"to": bob.user, "ttl": 1, "idempotency_key": "k"},
        "presence.subscribe": {},
    }.items():
        await refusal(visitor.ask(method, **parameters), "notAllowed")
    await refusal(Device(exchange, "v", signed(*API, "v", session=place, role="king")).start(), "tokenRejected")
    await refusal(
        Device(exchange, "v", signed(*API, "v", session=place, role="publisher", data="d" * 1001)).start(), "tokenRejected", "tooLarge"
    )
    # The token of a session gives nothing of the user that it names.
    number = await invite(bob, alice)
    own = await Device(exchange, alice.user, signed(*API, alice.user, session=place, role="publisher")).start()
    await refusal(own.ask("invite.accept", invite=number), "notAllowed")
    await settle(own)
    assert own.events == []


async def test_joining_with_a_token(exchange):
    """AUTH-5: A logged-in user joins with a session token of the same user; another's, or for another room, is refused"""
    alice, bob = await exchange.party(1, 1)
    place = f"room-{secrets.token_hex(4)}"
    await alice.ask(
        "room.join", room=place, token=signed(*API, alice.user, session=place, role="publisher", data="signed"), data="unsigned"
    )
    assert (await bob.ask("room.join", room=place))["participants"] == [
        {"connection": alice.connection, "user": alice.user, "role": "publisher", "data": "signed"}
    ]
    other = "room-of-another-token"
    await refusal(bob.ask("room.join", room=other, token=signed(*API, bob.user, session=place, role="publisher")), "tokenForAnotherSession")
    await refusal(bob.ask("room.join", room=other, token=signed(*API, alice.user, session=other, role="publisher")), "tokenRejected")
    await refusal(
        bob.ask("room.join", room=other, token=signed(API[0], OTHER_API[1], bob.user, session=other, role="publisher")),
        "tokenWrongSignature",
    )
    assert (await alice.ask("room.join", room=other))["participants"] == []
