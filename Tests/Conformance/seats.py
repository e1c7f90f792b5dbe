"""One device of the attackers' model: its connections, its requests, and their effects on the oracle."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Self

from client import PATIENCE, Lost
from model import NOT_DONE_YET, Circle, Invite
from raw import Line

if TYPE_CHECKING:
    from model import Marker, Oracle, Party, Principal
    from test_model import Model


class Ask:
    """One request and its outcome."""

    def __init__(self, seat: Seat, method: str, params: dict, marker: Marker | None, start_after: int | None = None) -> None:
        self.seat, self.method, self.params, self.marker = seat, method, params, marker
        self.sent, self.epoch, self.start_after = time.monotonic(), seat.epoch, start_after
        self.recipients: list[tuple[Seat, object, str]] = []
        self.entering: set[Principal] = set()  # The members that a new group gets.
        self.invite: Invite | None = None
        self.circle: Circle | None = None
        self.expected = list(seat.expected) if method == "ping" else []
        self.before = seat.model.oracle.newest[seat.principal]
        self.outcome: str | None = None
        self.answer: asyncio.Future[dict | None] = asyncio.get_running_loop().create_future()

    def text(self, name: str) -> str | None:
        """A parameter, if it is a text."""
        value = self.params.get(name)
        return value if isinstance(value, str) else None


class Talk:
    """The requests and events of one connection."""

    def __init__(self, seat: Seat) -> None:
        self.seat, self.waiting, self.count = seat, {}, 0
        self.floor: int | None = None  # The number of the last event, once there is a session.
        self.line: Line | None = None

    @classmethod
    async def open(cls, seat: Seat) -> Self:
        talk = cls(seat)
        talk.line = await Line.open(seat.model.exchange, seat.source, talk.take)
        talk.line.reading.add_done_callback(talk.ended)
        seat.model.lines.add(talk.line)
        return talk

    def take(self, data: bytes) -> None:
        oracle = self.seat.model.oracle
        message = oracle.read(self.seat, data)
        if message is None:
            return
        if "method" in message:
            if self.floor is None:
                oracle.fault(f"{self.seat} got an event before its session: {data[:300]!r}")
            self.floor = oracle.hear(self.seat, message["params"], data, self.floor or 0)
            self.seat.last = max(self.seat.last, self.floor)
            self.seat.learn(message["params"])
        elif (ask := self.waiting.pop(message["id"], None)) is not None:
            finish(self, ask, message)
        elif message["id"] is not None and not str(message["id"]).startswith("raw"):
            oracle.fault(f"{self.seat} got an answer without a request, or a second one: {data[:300]!r}")
        oracle.scan(self.seat, data)

    def ended(self, reading: asyncio.Task) -> None:
        self.seat.model.lines.discard(self.line)
        if not reading.cancelled() and reading.exception() is not None:
            self.seat.model.oracle.fault(f"{self.seat}: {reading.exception()!r}")
        for ask in list(self.waiting.values()):
            finish(self, ask, None)
        self.waiting.clear()

    async def put(self, method: str, params: dict, marker: Marker | None = None, start_after: int | None = None, **options: Any) -> Ask:
        """Sends a request."""
        self.count += 1
        number = self.count if self.count % 3 else f"n-{self.count}"
        ask = Ask(self.seat, method, params, marker, start_after)
        text = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, ensure_ascii=self.count % 2 == 0).encode(
            errors="surrogatepass"
        )
        self.seat.model.oracle.note(str(self.seat), ">", text)
        self.waiting[number] = ask
        begin(ask)
        if not self.line.is_open:  # Its end has been handled.
            self.waiting.pop(number, None)
            finish(self, ask, None)
            raise Lost("closed")
        await self.line.send(text, **options)
        return ask


class Seat:
    """A device: a session, over as many connections as it takes."""

    def __init__(self, model: Model, principal: Principal, device: str, source: str) -> None:
        self.model, self.principal, self.device, self.source = model, principal, device, source
        self.talk: Talk | None = None
        self.session: str | None = None
        self.connection: str | None = None
        self.last, self.epoch = 0, 0
        self.rooms: dict[str, object] = {}  # The rooms that it is in for certain.
        self.registered: object | None = None
        self.left: dict[str | None, float] = {}  # What it asked to leave, and when; None is its registration.
        self.shown = {}  # The markers of its connection data, by rooms.
        self.expected, self.heard, self.invites = {}, {}, []
        self.token: str | None = None
        self.refresh: str | None = None
        self.refused: str | None = None
        model.oracle.seats.add(self)

    def __str__(self) -> str:
        return f"{'/'.join(self.principal)}/{self.device}"

    @property
    def party(self) -> Party:
        return self.principal, self.device

    @property
    def is_connected(self) -> bool:
        return self.talk is not None and self.talk.line.is_open and self.talk.floor is not None

    def unsure(self) -> None:
        """Its session may end: nothing is expected of it any more."""
        self.epoch += 1
        self.rooms, self.registered, self.expected = {}, None, {}

    def learn(self, event: dict) -> None:
        invite = event["data"].get("invite")
        if invite is not None and invite not in self.invites:
            self.invites = self.invites[-30:] + [invite]

    async def ask(self, method: str, why: str = "", **params: Any) -> Ask:
        """Sends a request; parameters that are functions are given the request's marker."""
        if self.talk is None:
            raise Lost("not connected")
        audience, circle = may_see(self, method, params)
        marker = self.model.oracle.mark(audience, circle, why=f"{self}'s {method} {why}")
        params = {name: value(marker.text) if callable(value) else value for name, value in params.items()}
        return await self.talk.put(method, params, marker)

    async def get(self, method: str, **params: Any) -> dict:
        """Sends a request and waits for its answer, which may be an error; raises Lost."""
        ask = await self.ask(method, **params)
        return await answer(ask)

    async def start(self, resume: str | None = None, after: int | None = None, device_name: str | None = None) -> dict | None:
        """A new connection with a session, which may be an earlier one; whether it is."""
        talk = await Talk.open(self)
        marker = self.model.oracle.mark({self.principal}, why=f"{self}'s own name")
        params: dict[str, Any] = {
            "token": self.token,
            "device": {"id": self.device, "name": f"Attacker {marker.text}", "capabilities": ["audio"]},
        }
        if resume is not None:
            params["resume"] = {"session": resume, "after": self.last if after is None else after}
        else:
            self.unsure()
        if after is not None:
            self.expected.clear()
        before, self.talk = self.talk, talk
        message = await answer(await talk.put("session.start", params, marker, params.get("resume", {}).get("after")))
        self.refused = message["error"]["data"]["name"] if "error" in message else None
        if before is not None and before.line.is_open and self.model.random.random() < 0.5:
            before.line.drop()
        return message.get("result")


async def answer(ask: Ask) -> dict:
    message = await asyncio.wait_for(asyncio.shield(ask.answer), 4 * PATIENCE)
    if message is None:
        raise Lost(ask.method)
    return message


# --- Who may see a request's marker ---


def may_see(seat: Seat, method: str, params: dict) -> tuple[set[Party | Principal], Circle | None]:
    """The principals and devices that may see the parameters, and the circle that may."""
    oracle = seat.model.oracle
    own: set[Party | Principal] = {seat.principal}
    if seat.principal[0] != "account" and not method.startswith("room."):
        return own, None
    group = params.get("group")
    if method == "invite.send":
        circle = oracle.groups[group] if isinstance(group, str) else None
        return own | people(oracle, params.get("to")), circle  # A user that is no member is refused, and no one is notified.
    if method in ("group.create",):
        return own, oracle.groups[group] if isinstance(group, str) else Circle()
    if method == "room.join":
        return own, oracle.rooms[params["room"]] if isinstance(params.get("room"), str) else None
    if method == "room.signal":
        return own | room_hears(oracle, seat, params), room_of(oracle, seat, params)
    invite = oracle.invites.get(params.get("invite")) if isinstance(params.get("invite"), str) else None
    if invite is None:
        return own, None
    if method in ("invite.cancel", "invite.modify") and seat.principal == invite.inviter[0]:
        return own | invite.invitees, invite.circle
    if method in ("invite.accept", "invite.reject") and seat.principal in invite.invitees:
        return own | {invite.sender}, invite.circle
    if method in ("call.signal", "call.end") and seat.principal in invite.invitees | {invite.inviter[0]}:
        return own | {invite.sender} | invite.invitees, None
    return own, None


def people(oracle: Oracle, names: Any) -> set[Principal]:
    names = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    return {oracle.account(oracle.users[name]) for name in names if isinstance(name, str) and name in oracle.users}


def room_of(oracle: Oracle, seat: Seat, params: dict) -> Circle | None:
    """The room whose participants all hear a signal."""
    room = params.get("room")
    if isinstance(room, str) and params.get("to") is None and seat in oracle.rooms[room]:
        return oracle.rooms[room]
    return None


def room_hears(oracle: Oracle, seat: Seat, params: dict) -> set[Party | Principal]:
    """The one connection that a signal is sent to."""
    room, to = params.get("room"), params.get("to")
    other = oracle.connections.get(to) if isinstance(to, str) else None
    if other is not None and isinstance(room, str) and seat in oracle.rooms[room]:
        return {other.party}
    return set()


# --- Effects of a request and of its answer ---


def begin(ask: Ask) -> None:
    seat, oracle, method = ask.seat, ask.seat.model.oracle, ask.method
    oracle.steps += 1
    if method == "room.join" and (room := ask.text("room")) is not None:
        ask.circle = oracle.rooms[room]
        ask.circle.entering(seat.party)
    elif method == "group.join" and (group := ask.text("group")) is not None:
        ask.circle = oracle.groups[group]
        ask.circle.entering(seat.principal)
    elif method == "group.create" and ask.marker.circle is not None:
        ask.circle = ask.marker.circle
        ask.entering = people(oracle, ask.params.get("members")) | {seat.principal}
        for member in ask.entering:
            ask.circle.entering(member)
    elif method == "room.leave":
        seat.rooms.pop(ask.text("room"), None)
        seat.left[ask.text("room")] = ask.sent
    elif method == "device.unregister":
        seat.registered, seat.left[None] = None, ask.sent
    elif method == "session.end":
        seat.unsure()
    elif method == "invite.send":
        invitees = people(oracle, ask.params.get("to"))
        ask.invite = Invite(seat.party, invitees, ask.marker.circle)
        oracle.asked[ask.marker.text.encode()] = ask.invite
        # With a key that its user has used before it may be an earlier invite, with other invitees and perhaps ended (INV-1).
        key = seat.principal, json.dumps(ask.params.get("idempotency_key"))
        ask.recipients = [
            (other, other.registered, "inviteReceived")
            for other in oracle.seats
            if other.principal in invitees and other.registered and other is not seat and key not in oracle.used_keys
        ]
        oracle.used_keys.add(key)
    elif method == "room.signal" and ask.marker.text in json.dumps(ask.params.get("data")):
        to, room = ask.params.get("to"), ask.text("room")
        ask.recipients = [
            (other, other.rooms[room], "roomSignal")
            for other in oracle.seats
            if room in other.rooms and (to is None or other.connection == to)
        ]


def finish(talk: Talk, ask: Ask, message: dict | None) -> None:
    """Handles the answer, or, with None, the loss of the connection."""
    seat, oracle = ask.seat, ask.seat.model.oracle
    ask.outcome = "lost" if message is None else "refused" if "error" in message else "done"
    oracle.outcomes[f"{ask.method} {ask.outcome}"] += 1
    if ask.circle is not None:
        for member in ask.entering or [seat.party if ask.method == "room.join" else seat.principal]:
            ask.circle.entered(member, ask.outcome)
    if ask.outcome == "done":
        done(talk, ask, message["result"])
    for other, certainty, kind in ask.recipients if ask.outcome == "done" else ():
        if ask.method == "invite.send":
            key, still = (kind, message["result"]["invite"]), other.registered
        else:
            key, still = (kind, ask.marker.text), other.rooms.get(ask.params["room"])
        if still is certainty and key not in other.heard:
            other.expected[key] = oracle.steps
    if ask.marker is not None:
        stop_telling(ask)
    if not ask.answer.done():
        ask.answer.set_result(message)


def stop_telling(ask: Ask) -> None:
    """From now on, or after a while, new members of a circle do not see the request's marker."""
    later: float = NOT_DONE_YET
    if ask.outcome == "refused":
        ask.marker.settle(seen_by_circle=False)
        return
    if ask.method in ("room.join", "group.create"):  # Their data is visible as long as they last.
        if ask.outcome == "lost" and ask.method == "room.join":
            ask.seat.shown.setdefault(ask.text("room"), []).append(ask.marker)
        return
    if ask.method in ("invite.send", "invite.modify"):  # A new member of a group receives its open invites.
        ttl = ask.params.get("ttl", 86400)
        if not isinstance(ttl, (int, float)) or ttl <= 0 or ttl > 60:
            return
        later += ttl + 15
    elif ask.outcome == "done":
        ask.marker.settle()
        return
    asyncio.get_running_loop().call_later(later, ask.marker.settle)


def done(talk: Talk, ask: Ask, result: dict) -> None:
    seat, oracle, method = ask.seat, ask.seat.model.oracle, ask.method
    certain = ask.epoch == seat.epoch
    if method == "session.start":
        started(talk, ask, result)
    elif method == "room.join":
        seat.shown.setdefault(ask.text("room"), []).append(ask.marker)
        if certain and seat.left.get(ask.text("room"), 0) < ask.sent:
            seat.rooms.setdefault(ask.text("room"), object())
    elif method == "room.leave":
        leave(seat, ask.text("room"), ask.sent)
    elif method == "device.register" and certain and seat.left.get(None, 0) < ask.sent:
        seat.registered = seat.registered or object()
    elif method == "session.end":
        talk.floor = None
        for room in list(seat.shown):
            leave(seat, room, ask.sent)
    elif method == "group.create":
        if result["group"] not in oracle.groups:
            oracle.groups[result["group"]] = ask.circle
    elif method == "group.leave":
        oracle.groups[ask.text("group")].left(seat.principal, ask.sent)
    elif method == "group.dismiss":
        circle = oracle.groups[ask.text("group")]
        circle.ended(ask.sent)
    elif method == "invite.send":
        oracle.bind(result["invite"], ask.invite)
        seat.invites = seat.invites[-30:] + [result["invite"]]
        seat.model.recent_invites.append(result["invite"])
    elif method == "ping":
        for key in ask.expected:
            if key in seat.expected and certain:
                oracle.fault(f"{seat} did not receive {key}, which was decided at step {seat.expected.pop(key)}")


def leave(seat: Seat, room: str, asked_at: float) -> None:
    for marker in seat.shown.pop(room, ()):
        marker.settle()
    seat.model.oracle.rooms[room].left(seat.party, asked_at)


def started(talk: Talk, ask: Ask, result: dict) -> None:
    seat, oracle = ask.seat, ask.seat.model.oracle
    wanted = ask.params.get("resume", {}).get("session")
    if result["resumed"]:
        talk.floor = ask.start_after
        if wanted != result["session"] or oracle.sessions.get(wanted) != seat.party:
            oracle.fault(f"{seat} was given the session {wanted} of {oracle.sessions.get(wanted)}")
    else:
        talk.floor = result["sequence"]
        seat.unsure()
        for room in list(seat.shown):
            leave(seat, room, ask.sent)
        if seat.principal[0] == "account" and result["sequence"] < ask.before:
            oracle.fault(f"{seat} starts at {result['sequence']}, and {ask.before} was sent before")
        if seat.principal[0] != "account":  # A principal without an account is forgotten with its last session, and begins again.
            oracle.numbers.pop(seat.principal, None)
        seat.last = max(seat.last if seat.principal[0] == "account" else 0, result["sequence"])
    if result["user"] != seat.principal[1]:
        oracle.fault(f"{seat} was taken for {result['user']}")
    oracle.sessions[result["session"]] = seat.party
    oracle.connections[result["connection"]] = seat
    seat.session, seat.connection = result["session"], result["connection"]
