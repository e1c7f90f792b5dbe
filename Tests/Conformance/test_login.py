"""AUTH: logging in by REST, and what works before and after."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from client import Device, Lost, basic, refusal, rest, settle
from exchange import ACCESS_TOKEN, API, APP, PASSWORD, call, digest, invite, media_token

if TYPE_CHECKING:
    from exchange import Exchange

# Every method of the page but ping, with valid parameters.
METHODS: dict[str, dict | None] = {
    "session.end": {},
    "session.renew": {"token": "t"},
    "device.register": None,
    "device.unregister": {},
    "invite.send": {"to": "user-0", "ttl": 1, "data": {}, "idempotency_key": "k"},
    "invite.accept": {"invite": "i"},
    "invite.reject": {"invite": "i"},
    "invite.cancel": {"invite": "i"},
    "invite.modify": {"invite": "i", "data": 1},
    "invite.list": {},
    "call.signal": {"invite": "i", "type": "t", "data": 1},
    "call.end": {"invite": "i", "reason": "completed", "duration_ms": 1},
    "room.join": {"room": "r"},
    "room.leave": {"room": "r"},
    "room.signal": {"room": "r", "type": "t"},
    "group.create": {},
    "group.join": {"group": "g"},
    "group.leave": {"group": "g"},
    "group.dismiss": {"group": "g"},
    "group.members": {"group": "g"},
    "group.list": {},
    "presence.subscribe": {},
    "presence.unsubscribe": {},
}
# A login that fails, whether there is such a user or not.
REFUSALS = "wrongPassword", "wrongAccessToken"


def parameters(method: str, device: Device) -> dict:
    return {"device": device.description} if METHODS[method] is None else METHODS[method]


async def test_media_token_login(exchange: Exchange) -> None:
    """AUTH-1: A media token logs in, and each failure has its status, its code and its Trace-Id"""
    (user,) = exchange.people(1)
    body = {"type": "Cima", "media_token": media_token(user), "access_type": "offline", "scope": "mappings"}
    answer, _ = await exchange.rest("POST", "/v1.1/login", body | {"unknown": [1]}, Authorization=basic(*APP))
    assert answer["id"] == answer["routing_id"] == answer["user_data"]["cust_guid"] == user, answer
    assert float(answer["expires_in"]) == 3600 and answer["idmapping_count"] == 1
    assert isinstance(answer["token"], str) and isinstance(answer["refresh_token"], str)
    failures = [
        ("wrongMediaToken", 401, body | {"media_token": "none"}, {"Authorization": basic(*APP)}),
        ("unknownAppKey", 401, body, {"Authorization": basic(APP[0], "wrong")}),
        ("unknownAppKey", 401, body, {"Authorization": basic("nobody", APP[1])}),
        ("unknownAppKey", 401, body, {}),
        ("badRequest", 400, b"no json", {"Authorization": basic(*APP)}),
        ("badRequest", 400, body | {"type": "Nonsense"}, {"Authorization": basic(*APP)}),
        ("tooLarge", 413, b"x" * 65_537, {"Authorization": basic(*APP)}),
    ]
    for code, status, wrong, headers in failures:
        refused = await refusal(exchange.rest("POST", "/v1.1/login", wrong, **headers), code)
        assert refused.status == status and refused.headers["Trace-Id"] in refused.message, refused
    refused = await refusal(exchange.rest("GET", "/v1.1/login"), "methodNotAllowed")
    assert refused.status == 405 and refused.headers["Allow"] == "POST"
    assert (await refusal(exchange.rest("GET", "/nowhere"), "notFound")).status == 404


async def test_hashes(exchange: Exchange) -> None:
    """AUTH-1: A hash of a token is what the command prints"""
    printed = subprocess.run([exchange.handset, "user", "hash-token"], input=APP[1], capture_output=True, text=True)
    assert printed.stdout.strip() == digest(APP[1]), printed


async def test_password_login(exchange: Exchange) -> None:
    """AUTH-1: A password logs in under the user's id or a public id; a wrong password and an unknown user get the same answer"""
    body = {"type": "Password", "password": PASSWORD, "access_type": "offline", "scope": "mappings"}
    for name in "pat", "pat@test", "+15550123":
        assert (await exchange.login("pat", **body, user_id=name))["id"] == "pat"
    wrong = [
        await refusal(exchange.login("pat", **body | {"user_id": name, "password": password}), "wrongPassword")
        for name, password in (("pat", "wrong"), ("ada", PASSWORD), ("nobody", PASSWORD))
    ]
    assert len({refused.message.split("(")[0] for refused in wrong}) == 1


async def test_refusals_take_the_same_time(exchange: Exchange) -> None:
    """AUTH-1: The time of a refused login does not show whether there is such a user, or how the user logs in"""
    (other,) = exchange.people(1)
    users = ["nobody-of-that-name", "pat", "ada", other]
    times: dict[str, list[float]] = {user: [] for user in users}
    kinds: list[tuple[dict, int]] = [
        ({"type": "Password", "password": "a wrong one"}, 8),
        ({"type": "AccessToken", "access_token": "x" * 40}, 60),
    ]
    for body, rounds in kinds:
        for taken in times.values():
            taken.clear()
        for number in range(rounds):  # By turns, so that the machine is as busy for one as for the others.
            for user in users[number % len(users) :] + users[: number % len(users)]:
                begun = time.monotonic()
                await refusal(exchange.post("/v1.1/login", body | {"user_id": user}, Authorization=basic(*APP)), *REFUSALS)
                times[user].append(time.monotonic() - begun)
        # Checking a password takes some 30 ms, and finding out that there is none would take less than one.
        least = {user: min(taken) for user, taken in times.items()}
        assert max(least.values()) < 2 * min(least.values()) + 0.002, f"{body['type']}: {least}"


async def test_access_token_login(exchange: Exchange) -> None:
    """AUTH-4: A long-lived access token logs in its user, and no other"""
    body = {"type": "AccessToken", "access_token": ACCESS_TOKEN, "access_type": "offline", "scope": "mappings"}
    login = await exchange.login("ada", **body, user_id="ada")
    assert (await Device(exchange, "ada", login["token"]).start()).answer["user"] == "ada"
    for wrong in {"user_id": "pat"}, {"user_id": "ada", "access_token": "x"}, {"user_id": "nobody"}:
        await refusal(exchange.login("ada", **{**body, "user_id": "ada"} | wrong), "wrongAccessToken")


async def test_identities(exchange: Exchange) -> None:
    """AUTH-2: A user receives its public ids, and can be called by any of them"""
    pat = await exchange.login("pat", type="Password", user_id="pat", password=PASSWORD, access_type="offline", scope="mappings")
    answer, _ = await exchange.rest("GET", "/v1/allidentities", Authorization=f"Bearer {pat['token']}")
    assert answer == {"public_ids": ["pat@test", "+15550123"], "routing_id": "pat"}, answer
    device = await (await Device(exchange, "pat", pat["token"]).start()).register()
    assert device.answer["public_ids"] == answer["public_ids"]
    (alice,) = await exchange.party(1)
    for name in "pat", *answer["public_ids"]:
        number = await invite(alice, name)
        assert (await device.hear("inviteReceived", invite=number))["invitees"] == ["pat"]
    for wrong in {}, {"Authorization": "Bearer x"}, {"Authorization": basic(*APP)}:
        refused = await refusal(exchange.rest("GET", "/v1/allidentities", **wrong), "tokenRejected")
        assert refused.status == 401


async def test_resources(exchange: Exchange) -> None:
    """CONN-1: A REST call gives what the connection needs, and the connection uses it"""
    (user,) = exchange.people(1)
    device = await exchange.idle(user)
    place, _ = await exchange.rest("GET", "/v1/connection", Authorization=f"Bearer {device.token}")
    assert place == {
        "websocket_url": f"ws://127.0.0.1:{exchange.port}/v1/rtc",
        "ice_servers": [],
        "keepalive_seconds": 25,
        "resume_window_seconds": 60,
    }, place
    await device.start(url=place["websocket_url"])
    assert device.answer["keepalive_seconds"] == 25 and not device.answer["anonymous"]
    assert device.answer["user"] == user and not device.answer["resumed"]
    await refusal(exchange.rest("GET", "/v1/connection"), "tokenRejected")


async def test_guests_join_rooms_and_nothing_else(exchange: Exchange) -> None:
    """AUTH-3: An anonymous device may join a room by name, and nothing else"""
    guest = await exchange.guest("guest-alone")
    assert guest.answer["anonymous"] is True
    for method in METHODS:
        if method.split(".")[0] not in ("room", "session"):
            await refusal(guest.ask(method, **parameters(method, guest)), "notAllowed")
    await guest.ask("room.join", room="guests")
    await guest.ask("room.signal", room="guests", type="hello", data=1)
    await guest.hear("roomSignal")
    await guest.ask("room.leave", room="guests")
    (alice,) = await exchange.party(1)
    await refusal(invite(alice, "guest-alone"), "unknownUser")
    for taken in "pat", "pat@test", alice.user:
        refused = await refusal(exchange.guest(taken), "notAllowed")
        assert refused.status == 403


async def test_guests_may_be_forbidden(strict: Exchange) -> None:
    """AUTH-3: An exchange without guests refuses them by name"""
    assert (await refusal(strict.guest("guest"), "notAllowed")).status == 403


async def test_nothing_before_login(exchange: Exchange) -> None:
    """AUTH-6: Before session.start every method but ping is refused, and has no effect"""
    (user,) = exchange.people(1)
    device = await (await exchange.idle(user)).connect()
    await device.ask("ping")
    for method in METHODS:
        await refusal(device.ask(method, **parameters(method, device)), "notAuthenticated")
    await device.ask("ping")
    await device.line.ask("session.start", token=device.token, device=device.description)
    assert await device.ask("group.list") == {"groups": []}


async def test_answers_wait_for_the_login(exchange: Exchange) -> None:
    """AUTH-7: An accept sent right after the login is carried out once; if the login fails, it fails at once"""
    alice, bob = await exchange.party(1, 1)
    number, other = await invite(alice, bob), await invite(alice, bob)
    late = await (await exchange.idle(bob.user)).connect()
    order = [
        late.begin("session.start", token=late.token, device=late.description),
        late.begin("device.register", device=late.description),
        late.begin("invite.accept", invite=number, data={"answer": 1}),
        late.begin("invite.reject", invite=other),
    ]
    await asyncio.gather(*order)
    assert (await alice.hear("inviteAccepted", invite=number))["device"] == late.id
    await settle(alice)
    assert len(alice.heard("inviteAccepted")) == len(alice.heard("inviteRejected")) == 1

    number = await invite(alice, bob)
    stranger = await Device(exchange, bob.user, "no-token").connect()
    login = stranger.begin("session.start", token="no-token", device=stranger.description)
    accept = stranger.begin("invite.accept", invite=number)
    await refusal(login, "tokenRejected")
    with contextlib.suppress(Lost):  # Closed before it was read, which also shows it.
        await refusal(accept, "notAuthenticated")
    assert await stranger.line.closing() == 4001
    await settle(alice)
    assert not alice.heard("inviteAccepted", invite=number)


async def test_another_application(exchange: Exchange) -> None:
    """AUTH-8, AUTH-4: A session that is started for another user or application than the token's is refused"""
    (user,) = exchange.people(1)
    for name, value in ("user", "pat"), ("application", "another"), ("application", API[0]):
        device = await exchange.idle(user)
        parameters: dict[str, Any] = {name: value}
        await refusal(device.start(**parameters), "tokenRejected")
        assert await device.line.closing() == 4001
    device = await exchange.idle(user)
    await device.start(user=user, application=APP[0])


async def test_logout(exchange: Exchange) -> None:
    """AUTH-9: Logout ends the calls, the sessions and the tokens; the old ones are refused afterwards"""
    alice, alice_too, bob = await exchange.party(2, 1)
    number = await call(alice, bob)
    assert await exchange.post("/v1.1/logout", Authorization=f"Bearer {alice.token}") == {}
    assert (await bob.hear("callEnded", invite=number))["reason"] == "disconnected"
    assert await alice.line.closing() == 4001
    await refusal(alice.start(), "tokenRevoked")
    assert await alice.line.closing() == 4001
    await refusal(alice.start(resume=True), "tokenRevoked")
    for path in "/v1/allidentities", "/v1/connection":
        assert (await refusal(exchange.rest("GET", path, Authorization=f"Bearer {alice.token}"), "tokenRevoked")).status == 401
    await refusal(exchange.post("/v1.1/token", {"refresh_token": alice.refresh_token}), "tokenRevoked")
    await refusal(exchange.post("/v1.1/logout"), "tokenRejected")
    await alice_too.ask("ping")  # Logged in by itself.
    alice.token = (await exchange.login(alice.user))["token"]
    assert not (await alice.resume()).answer["resumed"], "what was logged out is not resumed by the next login"


async def test_guessing_is_slowed_down(strict: Exchange) -> None:
    """AUTH-11: Failed logins are limited by address and by account, with 429 and Retry-After, and owners still get in"""
    (user,) = strict.people(1)
    body = {"type": "Password", "user_id": "pat", "password": "wrong", "access_type": "offline", "scope": "mappings"}

    def guess(address: str, **members: Any) -> Awaitable:
        return rest(strict.port, "POST", "/v1.1/login", body | members, Authorization=basic(*APP), X_Forwarded_For=address)

    await guess("198.51.100.1", password=PASSWORD)  # The owner, from its usual address.
    for _ in range(5):
        await refusal(guess("203.0.113.1"), "wrongPassword")
    refused = await refusal(guess("203.0.113.1"), "tooManyRequests")
    assert refused.status == 429 and 0 < int(refused.headers["Retry-After"]) <= 600
    await refusal(guess("203.0.113.1", password=PASSWORD), "tooManyRequests")
    for _ in range(5):
        await refusal(guess("203.0.113.2"), "wrongPassword")
    refused = await refusal(guess("203.0.113.3"), "tooManyRequests")  # Ten guesses at one account.
    assert int(refused.headers["Retry-After"]) > 0
    await guess("198.51.100.1", password=PASSWORD)
    await rest(
        strict.port,
        "POST",
        "/v1.1/login",
        {"type": "Cima", "media_token": media_token(user), "access_type": "offline", "scope": "mappings"},
        Authorization=basic(*APP),
        X_Forwarded_For="203.0.113.4",
    )
