"""The oracle of the attackers' model: who may see what, and which events each session must have received.

Every payload carries a marker, a word that occurs nowhere else. The oracle knows for each marker who
may see it, and looks for markers, ids and tokens in every byte that a connection receives.
"""

from __future__ import annotations

import collections
import json
import random
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from client import ERRORS, LARGEST

if TYPE_CHECKING:
    from seats import Seat

Principal = tuple[str, ...]  # An account, a guest or a visitor.
Party = tuple[Principal, str | None]  # A principal's device.


class Listener(Protocol):
    """A client whose received bytes the oracle checks."""

    principal: Principal

    @property
    def party(self) -> Party: ...


MARKER = re.compile(rb"qz[a-z]{14}zq")
IDS = re.compile(rb"(invite|session|group|push)-([0-9a-f]{32})")
LONG_WORD = re.compile(rb"[A-Za-z0-9_.-]{40,}")
DEEPEST = 72  # Levels of objects and arrays that a client must take.
NOT_DONE_YET = 10  # Seconds after the loss of its connection for which a request may still be waiting for its turn.

# Events that a session receives once for an invite, and the member that distinguishes those of one type.
ONCE = {
    "inviteAccepted": "invitee",
    "inviteRejected": "invitee",
    "inviteHandled": None,
    "inviteCancelled": None,
    "inviteTimedOut": "invitees",
    "inviteMissed": None,
    "inviteEnded": None,
    "callEnded": "from",
}


class Circle:
    """Who may be in a room or a group, as far as its members' requests and answers show."""

    def __init__(self) -> None:
        self.inside = {}  # For each member the time since when it is inside, or None if that is not known, and the number of open requests.
        self.ever = set()
        self.telling = set()  # Markers that every new member sees.
        self.story = collections.deque(maxlen=40)

    def __contains__(self, listener: Listener) -> bool:
        return listener.party in self.inside or listener.principal in self.inside

    def has_had(self, listener: Listener) -> bool:
        return listener in self or listener.party in self.ever or listener.principal in self.ever

    def entering(self, member: Party | Principal) -> None:
        self.story.append(("entering", member, time.monotonic()))
        self.inside.setdefault(member, [None, 0])[1] += 1

    def entered(self, member: Party | Principal, outcome: str) -> None:
        """The answer to a request to enter: `done`, `refused` or `lost`."""
        self.story.append((outcome, member, time.monotonic()))
        entry = self.inside[member]
        entry[1] -= 1
        if outcome != "refused":
            self.ever.add(member)
            entry[0] = max(entry[0] or 0, time.monotonic() + (NOT_DONE_YET if outcome == "lost" else 0))
        elif entry == [None, 0]:
            del self.inside[member]

    def left(self, member: Party | Principal, asked_at: float) -> None:
        """A request to leave is confirmed, and no request to enter is open or was answered since."""
        self.story.append(("left", member, asked_at))
        since, open_requests = self.inside.get(member, (None, 1))
        if not open_requests and since < asked_at:
            for marker in self.telling:
                marker.audience.add(member)
            del self.inside[member]

    def ended(self, asked_at: float) -> None:
        """The group is dismissed: its events go only to members that have not received them yet."""
        for member in list(self.inside):
            self.left(member, asked_at)
        for marker in [marker for marker in self.telling if marker.sent < asked_at]:
            marker.settle()


class Marker:
    """A word in one request, and who may see it: principals, single devices of them, and who is in a circle."""

    __slots__ = ("audience", "circle", "place", "sent", "text", "why")

    def __init__(self, text: str, audience: Iterable[Party | Principal], circle: Circle | None, why: str) -> None:
        self.text, self.audience, self.circle, self.place, self.why = text, set(audience), circle, circle, why
        self.sent = time.monotonic()
        if circle is not None:
            circle.telling.add(self)

    def may_be_seen(self, listener: Listener) -> bool:
        return listener.principal in self.audience or listener.party in self.audience or self.circle is not None and listener in self.circle

    def settle(self, seen_by_circle: bool = True) -> None:
        """From now on no other listener may see it."""
        if self.circle is not None:
            if seen_by_circle:
                self.audience.update(self.circle.inside)
            self.circle.telling.discard(self)
            self.circle = None


class Invite:
    """Who takes part in an invite: the device that sent it, the users who are asked, and the group."""

    def __init__(self, inviter: Party, invitees: set[Principal], circle: Circle | None) -> None:
        self.inviter, self.invitees, self.circle = inviter, invitees, circle

    @property
    def sender(self) -> Party | Principal:
        """The device that sent it; its user, if the device is not known."""
        return self.inviter if self.inviter[1] else self.inviter[0]

    def concerns(self, listener: Listener) -> bool:
        return (
            listener.principal == self.inviter[0]
            or listener.principal in self.invitees
            or self.circle is not None
            and self.circle.has_had(listener)
        )


class Oracle:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(f"{seed}/markers")
        self.faults, self.steps, self.heard_bytes, self.frames = [], 0, 0, 0
        self.recent = collections.deque(maxlen=60)
        self.markers, self.invites, self.sessions, self.tokens = {}, {}, {}, {}
        self.access_tokens = collections.deque(maxlen=300)  # Principal and token.
        self.asked = {}  # Invites by the markers of the requests that sent them.
        self.used_keys = set()  # Each user with an idempotency key that it has used.
        self.groups, self.rooms = collections.defaultdict(Circle), collections.defaultdict(Circle)
        self.users = {}  # Each id by which a user can be called, and the user.
        self.removals = collections.Counter()  # A user that gets a removed user's name is another principal.
        self.numbers = collections.defaultdict(dict)  # For each principal the events by their numbers.
        self.newest = collections.Counter()
        self.seats, self.connections, self.keys = set(), {}, {}
        self.unbound = collections.defaultdict(list)  # Listeners that received the ids of invites whose inviter is not known yet.
        self.outcomes = collections.Counter()

    def fault(self, text: str) -> None:
        print(f"FAULT at step {self.steps}: {text[:600]}", flush=True)
        self.faults.append(f"step {self.steps}: {text}")

    def note(self, who: str, way: str, data: bytes) -> None:
        self.recent.append((self.steps, who, way, bytes(data[:240]), len(data)))

    def account(self, user: str) -> Principal:
        """The principal that has this user's id now."""
        count = self.removals[user]
        return ("account", user, str(count)) if count else ("account", user)

    # --- What may be seen ---

    def mark(self, audience: Iterable[Party | Principal], circle: Circle | None = None, why: str = "") -> Marker:
        text = "qz" + "".join(self.random.choices("abcdefghijklmnopqrstuvwxy", k=14)) + "zq"
        marker = self.markers[text.encode()] = Marker(text, audience, circle, why)
        return marker

    def own(self, principal: Principal, token: str, *others: str) -> None:
        """Records the owner of an access token, and of what came with it."""
        self.access_tokens.append((principal, token))
        for one in token, *others:
            self.tokens[one.encode()] = principal

    def scan(self, listener: Listener, data: bytes, over_http: bool = False) -> None:
        """Looks for another's data in received bytes."""
        for word in MARKER.findall(data):
            marker = self.markers.get(word)
            if marker is None or not marker.may_be_seen(listener):
                self.fault(
                    f"{listener} sees {word.decode()} of {marker and marker.why}, which is for "
                    f"{marker and sorted(map(str, marker.audience))}: {data[:800]!r}"
                    f" {marker and marker.place and list(marker.place.story)}"
                )
        for word in LONG_WORD.findall(data):
            owner = self.tokens.get(word)
            if owner is not None and not (over_http and owner == listener.principal):
                self.fault(f"{listener} sees a token of {owner}: {data[:800]!r}")
        for kind, number in IDS.findall(data):
            self._check_id(listener, kind.decode(), f"{kind.decode()}-{number.decode()}", data)

    def _check_id(self, listener: Listener, kind: str, name: str, data: bytes) -> None:
        if kind == "session":
            fits = self.sessions.get(name) == listener.party
        elif kind == "group":
            fits = name in self.groups and self.groups[name].has_had(listener)
        elif kind == "invite":
            if name not in self.invites:
                self.unbound[name].append(listener)
                return
            fits = self.invites[name].concerns(listener)
        else:
            fits = False
        if not fits:
            self.fault(f"{listener} sees {name}, which is not for it: {data[:800]!r}")

    def bind(self, number: str, invite: Invite) -> None:
        """An invite has its id; checks the listeners that received the id before."""
        known = self.invites.get(number)
        # Learned from an event alone, after its inviter was removed and added again: the inviter's answer shows which it was.
        if known is not None and known.inviter[1] is None and known.inviter[0][:2] == invite.inviter[0][:2]:
            self.invites[number] = invite
        elif self.invites.setdefault(number, invite) is invite:
            for listener in self.unbound.pop(number, ()):
                if not invite.concerns(listener):
                    self.fault(f"{listener} received {number}, which is not for it")

    # --- What is received ---

    def read(self, listener: Seat, data: bytes) -> dict | None:
        """Checks a text that a connection receives. Returns its JSON, or None."""
        self.frames += 1
        self.heard_bytes += len(data)
        self.note(str(listener), "<", data)
        if len(data) > LARGEST:
            self.fault(f"{listener} got {len(data)} bytes, more than a client must take: {data[:300]!r}")
        if data.count(b"{") + data.count(b"[") > DEEPEST and (levels := depth(data)) > DEEPEST:
            self.fault(f"{listener} got {levels} levels: {data[:300]!r}")
        try:
            message = json.loads(data)
            if message["jsonrpc"] != "2.0" or message.get("method", "event") != "event":
                raise ValueError("neither an event nor an answer")
        except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
            self.fault(f"{listener} got what is no message ({error}): {data[:300]!r}")
            return None
        if "error" in message:
            failure = message["error"]
            self.outcomes[failure["data"]["name"]] += 1
            if ERRORS.get(failure["code"]) != failure["data"]["name"]:
                self.fault(f"{listener} got an error that the page does not list: {data[:300]!r}")
            if failure["data"]["name"] == "internalError":
                self.fault(f"{listener}: the exchange failed: {data[:300]!r}")
        return message

    def hear(self, listener: Seat, event: dict, data: bytes, floor: int) -> int:
        """Checks an event on a connection whose last one had the number `floor`. Returns its number."""
        number, kind, body = event["sequence"], event["type"], event["data"]
        self.outcomes[kind] += 1
        if number <= floor:
            self.fault(f"{listener} got event {number} after {floor}: {data[:400]!r}")
        known = self.numbers[listener.principal]
        if known.setdefault(number, hash(data)) != hash(data):
            self.fault(f"{listener} got another event with the number {number}: {data[:400]!r}")
        if len(known) > 6000:
            for old in sorted(known)[:3000]:
                del known[old]
        self.newest[listener.principal] = max(self.newest[listener.principal], number)
        if kind == "inviteReceived":
            self._learn(listener, body)
        elif kind == "groupChanged" and body["group"] not in self.groups and body.get("name"):
            self._name_group(body)
        self._check_place(listener, kind, body, data)
        key = told_once(kind, body, data)
        if key is not None and listener.heard.setdefault(key, number) != number:
            self.fault(f"{listener} received {key} with {listener.heard[key]} and with {number}: {data[:400]!r}")
        while len(listener.heard) > 8000:
            del listener.heard[next(iter(listener.heard))]
        if key is None and kind == "inviteReceived":
            key = (kind, body["invite"])
            listener.heard[key] = number
        listener.expected.pop(key, None)
        return number

    def _learn(self, listener: Listener, body: dict) -> None:
        """Binds an invite whose id no answer has given: its inviter's answer may be lost."""
        if body["invite"] in self.invites:
            return
        words = MARKER.findall(json.dumps(body["data"]).encode()) if "data" in body else []
        invite = next((self.asked[word] for word in words if word in self.asked), None)
        if invite is None:
            circle = self.groups[body["group"]] if "group" in body else None
            invitees = {self.account(user) for user in body["invitees"]}
            invite = Invite((self.account(body["inviter"]), None), invitees, circle)
        self.bind(body["invite"], invite)
        if not self.invites[body["invite"]].concerns(listener):
            self.fault(f"{listener} received an invite that is not for it: {body}")

    def _name_group(self, body: dict) -> None:
        for word in MARKER.findall(body["name"].encode()):
            if word in self.markers and self.markers[word].circle is not None:
                self.groups[body["group"]] = self.markers[word].circle

    def _check_place(self, listener: Listener, kind: str, body: dict, data: bytes) -> None:
        if "room" in body and not self.rooms[body["room"]].has_had(listener):
            self.fault(f"{listener} received an event of a room that it is not in: {data[:400]!r}")
        if kind == "groupChanged" and not self.groups[body["group"]].has_had(listener):
            self.fault(f"{listener} received an event of a group that it is not in: {data[:400]!r}")


def told_once(kind: str, body: dict, data: bytes) -> tuple | None:
    """A key that no other event of the session has; None for an event that may come again."""
    if kind in ONCE:
        return kind, body["invite"], str(body.get(ONCE[kind]))
    if kind in ("roomSignal", "callSignal") and (words := MARKER.findall(data)):
        return kind, words[0].decode()
    return None


def depth(data: bytes) -> int:
    """How many levels of objects and arrays a JSON text has."""
    deepest = level = 0
    for piece in re.findall(rb'"(?:[^"\\]|\\.)*"|[][{}]', data):
        if piece in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif piece in b"]}":
            level -= 1
    return deepest
