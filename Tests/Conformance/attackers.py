"""Attackers who may log in: users, guests, and visitors of a room. Each does one deed after another, in an order set by its seed."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from assault import ATTACKERS, FLEETING, HONEST, public_id
from client import Lost, basic, signed
from exchange import API, APP
from forms import METHODS, REASONS, bad_name, frames, odd_name, odd_value, payload
from raw import blurt, request, status
from seats import Seat, answer

if TYPE_CHECKING:
    from seats import Ask
    from test_model import Model

ROOMS = ["lobby", "cellar", "attic", "ro\u00f6m"]
GROUPS = ["choir", "crew", "class", "gr\u00fcppe"]
GONE = (Lost, OSError, asyncio.TimeoutError, asyncio.IncompleteReadError)


class Prowler:
    """One device that may log in, and does random deeds."""

    def __init__(self, model: Model, name: str, random: random.Random, source: str) -> None:
        self.model, self.name, self.random, self.source = model, name, random, source
        self.old_refresh, self.lasting = [], []
        self.seat: Seat | None = None
        self.deeds = {
            self.proper: 50,
            self.with_bad_names: 12,
            self.with_odd_values: 10,
            self.with_others_ids: 12,
            self.frame: 10,
            self.settle: 12,
            self.come_and_go: 4,
            self.resume_oddly: 2,
            self.move: 1,
            self.log_in_again: 1,
            self.refresh: 2,
            self.replay: 0.3,
            self.log_out: 0.3,
            self.flood: 0.3,
            self.stall: 0.3,
            self.goodbye: 1,
        }

    async def live(self) -> None:
        deeds, weights = list(self.deeds), list(self.deeds.values())
        while self.model.is_running:
            try:
                if self.seat is None or not self.seat.is_connected:
                    await self.arrive()
                await self.random.choices(deeds, weights)[0]()
            except GONE:
                await asyncio.sleep(self.random.uniform(0.05, 0.4))
            await asyncio.sleep(self.random.expovariate(1 / self.model.pause))

    # --- Coming and going ---

    async def arrive(self) -> None:
        """Connects: with its earlier session, with a new one, or as another principal."""
        if self.seat is None or self.seat.token is None:
            await self.log_in()
        seat = self.seat
        resume = seat.session if seat.session and self.random.random() < 0.8 else None
        try:
            resumed = await seat.start(resume)
        except GONE:
            if seat.talk is not None and seat.talk.line.code == 4001:
                seat.token = None
            raise
        if seat.talk.floor is None:
            seat.token = None  # Refused, so the next try logs in again.
            raise Lost("refused")
        if not resumed or not resumed["resumed"]:
            await self.register()

    async def register(self) -> None:
        params: dict[str, Any] = {"device": self.model.description(self.seat)}
        if self.random.random() < 0.3:
            token = self.model.push_token(self.seat)
            params["push"] = [{"kind": self.random.choice(["web", "apns", "fcm"]), "token": token}]
        if self.random.random() < 0.5:
            params["start"] = self.random.choice(["warm", "cold"])
        await self.seat.get("device.register", **params)

    async def log_in(self) -> None:
        raise NotImplementedError

    async def settle(self) -> None:
        await self.seat.get("ping")

    async def come_and_go(self) -> None:
        self.seat.talk.line.drop()
        await self.seat.talk.line.ended()
        await asyncio.sleep(self.random.choice([0, 0.01, 0.3, 2]))
        await self.arrive()

    async def resume_oddly(self) -> None:
        """Resumes from another number than the last, or another user's session."""
        seat, others = self.seat, list(self.model.oracle.sessions)
        session = seat.session if self.random.random() < 0.5 else self.random.choice(others)
        after = self.random.choice([0, 1, max(0, seat.last - 5), seat.last, seat.last + 1, 2**53, 2**63 - 1])
        if self.random.random() < 0.5:
            seat.talk.line.drop()
        await seat.start(session, after)
        if seat.talk.floor is not None:
            await self.register()

    async def move(self) -> None:
        """A second connection takes over while the first is there."""
        await self.seat.start(self.seat.session)

    async def log_in_again(self) -> None:
        self.seat.token = None
        self.seat.talk.line.drop()
        await self.arrive()

    async def goodbye(self) -> None:
        await self.seat.get("session.end")
        self.seat.session = None
        if self.random.random() < 0.5:
            self.seat.talk.line.drop()

    # --- Requests ---

    def room(self) -> str:
        known = list(self.seat.shown)
        return self.random.choice(known if known and self.random.random() < 0.8 else ROOMS)

    def group(self) -> str:
        known = [name for name in GROUPS + self.model.own_groups[-20:] if self.seat in self.model.oracle.groups[name]]
        return self.random.choice(known if known and self.random.random() < 0.7 else GROUPS + self.model.own_groups[-20:])

    def invite(self) -> str:
        return self.random.choice(self.seat.invites[-12:] or ["invite-" + "0" * 32])

    def callee(self) -> str:
        name = self.random.choice(ATTACKERS + ATTACKERS + HONEST + FLEETING)
        return public_id(name) if self.random.random() < 0.2 else name

    def params(self, method: str) -> dict:
        """Good parameters for a method."""
        random = self.random
        data = payload(random, 61000 if method.startswith("invite.") else 8192)
        made: dict[str, Callable[[], dict]] = {
            "session.renew": lambda: {"token": self.seat.token},
            "device.register": lambda: {"device": self.model.description(self.seat)},
            "invite.send": lambda: (
                {
                    "to": self.callee() if random.random() < 0.7 else [self.callee() for _ in range(random.randrange(1, 5))],
                    "data": data,
                    "ttl": random.choice([0, 0.3, 1, 5, 30, 86400]),
                    "idempotency_key": f"{random.randrange(1 << 60)}",
                }
                | random.choice(
                    [
                        {},
                        {},
                        {"group": self.group(), "ttl": random.choice([0, 3, 30])},
                        {"payload": data},
                        {"timeout_payload": payload(random, 2000)},
                    ]
                )
            ),
            "invite.list": lambda: random.choice([{}, {"after": random.randrange(1 << 30)}]),
            "call.signal": lambda: {"invite": self.invite(), "type": "t", "data": data},
            "call.probe": lambda: {"invite": self.invite()},
            "call.end": lambda: {
                "invite": self.invite(),
                "reason": random.choice(REASONS),
                "duration_ms": random.randrange(1 << 40),
                "cause": lambda marker: marker,
            },
            "room.join": lambda: {"room": self.room(), "data": lambda marker: "x" * random.choice([0, 900]) + marker},
            "room.leave": lambda: {"room": self.room()},
            "room.signal": lambda: (
                {"room": self.room(), "type": "t", "data": data}
                | random.choice([{}, {}, {"to": random.choice(list(self.model.oracle.connections))}])
            ),
            "group.create": lambda: (
                random.choice([{"group": random.choice(GROUPS)}, {}])
                | {"name": lambda marker: f"Group {marker}", "members": [self.callee() for _ in range(random.randrange(4))]}
            ),
            "group.list": lambda: {},
        }
        if method in made:
            return made[method]()
        if method.startswith("group."):
            return {"group": self.group()}
        return {"invite": self.invite(), "data": data} if method.startswith("invite.") else {}

    def method(self) -> str:
        wanted = METHODS + ["invite.send", "invite.accept", "room.signal", "room.signal", "room.join", "call.signal"] * 2
        rare = {"session.renew", "session.end", "device.unregister", "presence.subscribe"}
        method = self.random.choice(wanted)
        return self.random.choice(wanted) if method in rare else method

    async def send(self, method: str, params: dict, why: str = "") -> Ask | None:
        if method == "session.end":
            await self.goodbye()
            return None
        ask = await self.seat.ask(method, why, **params)
        if self.random.random() < 0.4:
            await answer(ask)
        return ask

    async def proper(self) -> None:
        method = self.method()
        ask = await self.send(method, self.params(method))
        if method == "group.create" and ask.outcome == "done":
            self.model.own_groups.append(json.loads(json.dumps(ask.answer.result()["result"]["group"])))

    async def with_bad_names(self) -> None:
        method = self.method()
        params = self.params(method)
        names = [name for name in ("invite", "group", "room", "to", "idempotency_key", "peer") if name in params]
        if names:
            name = self.random.choice(names)
            base = params[name] if isinstance(params[name], str) else "base"
            params[name] = bad_name(self.random, base) if self.random.random() < 0.8 else odd_name(self.random)
        await self.send(method, params, "with a bad name")

    async def with_odd_values(self) -> None:
        method = self.method()
        params = self.params(method)
        name = self.random.choice(list(params) + ["resume", "extra", "data", "peer", "ttl", "online_only"])
        if method not in ("group.create",) or name not in ("name", "members"):
            params[name] = odd_value(self.random)
        await self.send(method, params, "with an odd value")

    async def with_others_ids(self) -> None:
        """A request with ids that the model knows and an attacker would not."""
        method = self.random.choice(METHODS)
        params = self.params(method)
        if "invite" in params and self.model.recent_invites:
            params["invite"] = self.random.choice(list(self.model.recent_invites))
        if method == "session.renew":
            params["token"] = self.model.token_of_another(self.seat)
        if method == "device.register":
            params["device"] = params["device"] | {"id": "ann-phone"}
        if method.startswith("call."):
            params["peer"] = self.callee()
        await self.send(method, params, "with another's id")

    async def frame(self) -> None:
        marker = self.model.oracle.mark({self.seat.principal}, why=f"a frame of {self.seat}")
        data, _ = frames(self.random, marker.text)
        self.model.oracle.steps += 1
        self.model.oracle.note(str(self.seat), "=", data)
        pieces = self.random.choice([1, 1, 1, 3])
        for at in range(pieces):
            await self.seat.talk.line.put(data[len(data) * at // pieces : len(data) * (at + 1) // pieces])
            await asyncio.sleep(0)

    async def flood(self) -> None:
        """More than any connection may send, without waiting for an answer."""
        method, count = self.random.choice([("ping", 800), ("group.list", 300), ("session.start", 150), ("invite.list", 60)])
        text = json.dumps({"jsonrpc": "2.0", "id": "raw-flood", "method": method}).encode()
        for _ in range(count):
            await self.seat.talk.line.send(text)
        self.model.oracle.steps += 1

    async def stall(self) -> None:
        """Stops reading for a while; what is sent meanwhile waits, or the exchange drops the connection."""
        talk = self.seat.talk
        transport: Any = talk.line.writer.transport
        transport.pause_reading()
        for _ in range(self.random.choice([5, 40])):
            await self.seat.ask("room.signal", room=self.room(), type="t", data=payload(self.random, 8000))
        await asyncio.sleep(self.random.uniform(0, 3))
        if talk.line.is_open and not transport.is_closing():
            transport.resume_reading()

    # --- Tokens ---

    async def http(self, method: str, path: str, body: Any = b"", **headers: str | None) -> tuple[int, bytes]:
        """A request over HTTP, whose answer the oracle checks."""
        body = json.dumps(body).encode() if not isinstance(body, bytes) else body
        self.model.oracle.steps += 1
        raw = request(method, path, body, User_Agent="attacker/1 python", **headers)
        self.model.oracle.note(self.name, ">", raw)
        code, content = status(await blurt(self.model.exchange, self.source, raw, seconds=10))
        self.model.oracle.note(self.name, "<", content)
        self.model.oracle.outcomes[f"{method} {path.split('/')[1]} {code}"] += 1
        if code == 500:
            self.model.oracle.fault(f"{self.name}: {method} {path} was answered with {code}: {content[:300]!r}")
        return code, content

    async def refresh(self) -> None:
        pass

    async def replay(self) -> None:
        pass

    async def log_out(self) -> None:
        pass


class User(Prowler):
    """A device of an account."""

    def __init__(self, model: Model, user: str, device: str, random: random.Random, source: str) -> None:
        super().__init__(model, f"{user}/{device}", random, source)
        self.user = user
        self.device = device
        self.seat = Seat(model, ("account", user), device, source)
        self.deeds[self.stream] = 1.5

    async def arrive(self) -> None:
        """The account may be another one, if it was removed and added again."""
        if self.seat.principal != self.model.oracle.account(self.user):
            self.seat.unsure()
            self.model.oracle.seats.discard(self.seat)
            self.seat = Seat(self.model, self.model.oracle.account(self.user), self.device, self.source)
            self.old_refresh = []
        await super().arrive()

    async def log_in(self) -> None:
        body = {"type": "Cima", "media_token": self.model.exchange.media_token(self.user), "access_type": "offline", "scope": "mappings"}
        code, content = await self.http("POST", "/v1.1/login", body, Authorization=basic(*APP))
        if code != 200:
            await asyncio.sleep(1)
            raise Lost(f"login refused with {code}")
        self.take(content)

    def take(self, content: bytes) -> None:
        answer = json.loads(content)
        seat = self.seat
        self.model.oracle.own(seat.principal, answer["token"], answer["refresh_token"])
        self.model.oracle.scan(seat, content, over_http=True)
        if seat.refresh:
            self.old_refresh = self.old_refresh[-5:] + [seat.refresh]
        seat.token, seat.refresh = answer["token"], answer["refresh_token"]
        if answer["id"] != self.user:
            self.model.oracle.fault(f"{seat} logged in and is {answer['id']}")

    async def refresh(self) -> None:
        code, content = await self.http("POST", "/v1.1/token", {"refresh_token": self.seat.refresh})
        if code == 200:
            self.take(content)
            await self.seat.get("session.renew", token=self.seat.token)
        elif code in (401, 403):
            self.seat.token = None

    async def replay(self) -> None:
        """An old refresh token, or none; it may end the login."""
        self.seat.unsure()
        token = self.random.choice(self.old_refresh + ["", "x" * 300, "\0", self.model.token_of_another(self.seat)])
        code, content = await self.http("POST", "/v1.1/token", {"refresh_token": token})
        if code == 200:
            self.take(content)

    async def log_out(self) -> None:
        self.seat.unsure()
        await self.http("POST", "/v1.1/logout", Authorization=f"Bearer {self.seat.token}")
        self.seat.token = None

    async def stream(self) -> None:
        """WHIP and WHEP to another user's devices."""
        callee = self.random.choice(ATTACKERS + HONEST)
        audience = {self.seat.principal, ("account", callee)}
        marker = self.model.oracle.mark(audience, why=f"{self.seat}'s stream")
        lines = [
            "v=0",
            "o=- 1 1 IN IP4 127.0.0.1",
            f"s={marker.text}",
            "t=0 0",
            "a=group:BUNDLE 0",
            "m=audio 9 UDP/TLS/RTP/SAVPF 111",
            "c=IN IP4 0.0.0.0",
            "a=mid:0",
            "a=rtcp-mux",
            "a=sendonly",
            "a=rtpmap:111 opus/48000/2",
            "a=ice-ufrag:abcd",
            "a=ice-pwd:abcdefghijklmnopqrstuvwx",
            "a=setup:actpass",
            "a=fingerprint:sha-256 " + ":".join(["AB"] * 32),
        ]
        if self.random.random() < 0.3:
            lines[self.random.randrange(len(lines))] = self.random.choice(["", "\0", "a=" + "x" * 40000, "m=audio"])
        path = self.random.choice(["whip", "whip", "whep"]) + "/" + callee
        raw = request(
            "POST",
            f"/{path}",
            ("\r\n".join(lines) + "\r\n").encode(),
            Content_Type="application/sdp",
            Authorization=f"Bearer {self.seat.token}",
        )
        self.model.oracle.steps += 1
        heard = await blurt(self.model.exchange, self.source, raw, seconds=self.random.choice([0.2, 4]))
        self.model.oracle.scan(self.seat, heard, over_http=True)
        self.model.oracle.outcomes[f"stream {status(heard)[0]}"] += 1


class Guest(Prowler):
    """A guest, who logs in by a name alone; each login is another guest."""

    logins = 0

    def __init__(self, model: Model, guest: str, random: random.Random, source: str) -> None:
        super().__init__(model, guest, random, source)
        for deed in self.refresh, self.replay, self.log_out:
            del self.deeds[deed]

    async def log_in(self) -> None:
        code, content = await self.http("POST", "/v1.1/login/anonymous", {"user_id": self.name}, Authorization=basic(*APP))
        if code != 200:
            await asyncio.sleep(1)
            raise Lost(f"login refused with {code}")
        Guest.logins += 1
        before, principal = self.seat, ("guest", self.name, str(Guest.logins))
        if before is not None:
            before.unsure()
            self.model.oracle.seats.discard(before)
        self.seat = Seat(self.model, principal, "phone", self.source)
        self.seat.token = json.loads(content)["token"]
        self.model.oracle.own(principal, self.seat.token)

    def method(self) -> str:
        return (
            super().method()
            if self.random.random() < 0.3
            else self.random.choice(["room.join", "room.leave", "room.signal", "room.signal"])
        )

    async def register(self) -> None:
        pass


class Visitor(Guest):
    """A visitor with a signed token for one room, in the name of a user who has an account."""

    async def log_in(self) -> None:
        user, room = self.name, ROOMS[0]
        seat = self.seat
        if seat is None:
            seat = self.seat = Seat(self.model, ("visitor", user, room), "phone", self.source)
        marker = self.model.oracle.mark({seat.principal}, self.model.oracle.rooms[room], f"{seat}'s token")
        seat.token = signed(
            *API,
            user,
            session=room,
            role=self.random.choice(["publisher", "subscriber", "moderator"]),
            seconds=self.random.choice([2, 20, 600]),
            data=marker.text,
        )
        self.model.oracle.own(seat.principal, seat.token)
