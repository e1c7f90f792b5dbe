"""What clients asked for and heard, with times, and whether one exchange that never fails could have answered so.

Each client notes when it asks (`invoke`), and how that ended: `ok` with the answer, `fail` with a refusal, which changed nothing, or
`unknown` if there was no answer. It notes each event as it comes, and what of the exchange it came from. `faults` judges the whole:

- A user's events are a list that only grows: a number has one content for all its devices, each device hears rising numbers, and
  a device that resumes continues where it was.
- An accept is a compare-and-set: of all devices one at most succeeds, the inviter hears of that one alone, and one that is refused has
  been overtaken by another answer, or by the invite's end, before its refusal.
- What was acknowledged is not lost: a key has one invite for ever, and its sender hears how it ended, once.
- Nothing leaves an exchange that has lost its lease, but the one output that it was about to write when it was stopped.
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from typing import Any

#: Events by which an invite ends for its inviter.
ANSWERS = ("inviteAccepted", "inviteRejected", "inviteTimedOut")
#: With which codes an answer is refused because there was another one, or the invite has ended.
ANSWERED = (4090, 4091, 4043)


@dataclasses.dataclass
class Operation:
    """One attempt of a client."""

    client: str
    kind: str  # send, accept, reject, cancel, end
    key: str  # The idempotency key of a send, else the invite.
    began: float
    ended: float = float("inf")
    outcome: str = "unknown"  # ok, fail, unknown
    value: Any = None

    def ok(self, value: Any) -> None:
        self.ended, self.outcome, self.value = time.monotonic(), "ok", value

    def fail(self, code: int) -> None:
        self.ended, self.outcome, self.value = time.monotonic(), "fail", code


@dataclasses.dataclass
class Event:
    client: str
    user: str
    number: int
    kind: str
    invite: str
    device: str
    at: float


class History:
    """Grows while clients work; one thread writes."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.events: list[Event] = []
        self.late: dict[str, list[str]] = defaultdict(list)

    def invoke(self, client: str, kind: str, key: str) -> Operation:
        operation = Operation(client, kind, key, time.monotonic())
        self.operations.append(operation)
        return operation

    def hear(self, client: str, user: str, number: int, kind: str, data: dict[str, Any]) -> None:
        self.events.append(Event(client, user, number, kind, str(data.get("invite", "")), str(data.get("device", "")), time.monotonic()))

    def hear_late(self, exchange: str, text: str) -> None:
        """Something came from an exchange after its lease had ended."""
        self.late[exchange].append(text)

    def late_faults(self) -> list[str]:
        """What came after a lease, where it was more than one output."""
        return [f"after its lease an exchange said: {text}" for texts in self.late.values() if len(texts) > 1 for text in texts]

    def faults(self, is_over: bool = True) -> list[str]:
        """What no exchange may do. Without `is_over`, invites may still be open."""
        found = self.late_faults() + self._logs() + self._accepts() + self._sends(is_over)
        return found

    def _logs(self) -> list[str]:
        found = []
        content: dict[tuple[str, int], tuple[str, str]] = {}
        last: dict[str, int] = defaultdict(int)
        for event in self.events:
            place, what = (event.user, event.number), (event.kind, event.invite)
            if content.setdefault(place, what) != what:
                found.append(f"event {event.number} of {event.user} is {what} for {event.client}, and was {content[place]}")
            if event.number <= last[event.client]:
                found.append(f"{event.client} heard event {event.number} ({event.kind}) after {last[event.client]}")
            last[event.client] = max(last[event.client], event.number)
        return found

    def _accepts(self) -> list[str]:
        found = []
        tries: dict[str, list[Operation]] = defaultdict(list)
        for operation in self.operations:
            if operation.kind in ("accept", "reject"):
                tries[operation.key].append(operation)
        heard: dict[str, list[Event]] = defaultdict(list)
        over: dict[str, float] = {}
        for event in self.events:
            if event.kind in ANSWERS:
                heard[event.invite].append(event)
            if event.kind == "inviteEnded":
                over[event.invite] = min(over.get(event.invite, event.at), event.at)
        cancels = {operation.key: operation.began for operation in self.operations if operation.kind == "cancel"}
        for invite, all_tries in tries.items():
            won = {(one.client, one.kind) for one in all_tries if one.outcome == "ok"}
            if len(won) > 1:
                found.append(f"{invite} was won by {sorted(won)}")
            said = {(event.kind, event.device) for event in heard[invite]}
            if len(said) > 1:
                found.append(f"{invite}: the inviter heard {sorted(said)}")
            for client, kind in won:
                right = "inviteAccepted" if kind == "accept" else "inviteRejected"
                device = client.split("/")[-1]
                if any(event.kind != right or event.device not in ("", device) for event in heard[invite]):
                    found.append(f"{invite}: the {kind} of {client} won by its answer, and the inviter heard {sorted(said)}")
            for one in all_tries:
                others = [other for other in all_tries if other.client != one.client and other.began < one.ended]
                is_cancelled = cancels.get(invite, float("inf")) < one.ended
                if one.outcome == "fail" and one.value in ANSWERED and not (others or is_cancelled or heard[invite] or invite in over):
                    found.append(f"{invite}: the {one.kind} of {one.client} was refused with {one.value}, and nothing had answered it")
        return found

    def _sends(self, is_over: bool) -> list[str]:
        found = []
        invites: dict[str, set[str]] = defaultdict(set)
        senders: dict[str, str] = {}
        for operation in self.operations:
            if operation.kind == "send" and operation.outcome == "ok":
                invites[operation.key].add(operation.value)
                senders[operation.value] = operation.key
        ends: dict[str, set[int]] = defaultdict(set)
        for event in self.events:
            if event.kind == "inviteEnded" and event.user.startswith("caller"):
                ends[event.invite].add(event.number)
        for key, ids in invites.items():
            if len(ids) > 1:
                found.append(f"the key {key} was of {sorted(ids)}")
        for invite, key in senders.items():
            if len(ends[invite]) > 1 or is_over and not ends[invite]:
                found.append(f"{invite} ({key}) was acknowledged, and ended {len(ends[invite])} times")
        return found


def self_test() -> None:
    """Shows that each kind of fault is found, and that what is right is not."""

    def good() -> History:
        history = History()
        history.invoke("caller0/phone", "send", "k1").ok("i1")
        history.hear("callee0/desk", "callee0", 1, "inviteReceived", {"invite": "i1"})
        history.hear("callee0/mobile", "callee0", 1, "inviteReceived", {"invite": "i1"})
        history.invoke("callee0/desk", "accept", "i1")  # Unknown, and repeated.
        history.invoke("callee0/desk", "accept", "i1").ok({})
        history.invoke("callee0/mobile", "accept", "i1").fail(4090)
        history.hear("caller0/phone", "caller0", 1, "inviteAccepted", {"invite": "i1", "device": "desk"})
        history.hear("caller0/phone", "caller0", 2, "inviteEnded", {"invite": "i1"})
        return history

    def expect(change: Any, words: str) -> None:
        history = good()
        change(history)
        found = history.faults()
        if (not words and found) or (words and not any(words in fault for fault in found)):
            raise SystemExit(f"expected {words!r}, and found {found}")

    expect(lambda history: None, "")
    expect(lambda history: history.invoke("callee0/mobile", "accept", "i1").ok({}), "was won by")
    expect(lambda history: history.hear("caller0/phone", "caller0", 3, "inviteRejected", {"invite": "i1"}), "the inviter heard")
    expect(lambda history: history.hear("callee0/desk", "callee0", 1, "inviteReceived", {"invite": "i1"}), "heard event 1")
    expect(lambda history: history.hear("caller0/tablet", "caller0", 2, "inviteReceived", {"invite": "i9"}), "event 2 of caller0 is")
    expect(lambda history: history.invoke("caller0/phone", "send", "k1").ok("i2"), "the key k1")
    expect(lambda history: history.invoke("caller0/phone", "send", "k2").ok("i3"), "ended 0 times")
    expect(lambda history: history.hear("caller0/phone", "caller0", 4, "inviteEnded", {"invite": "i1"}), "ended 2 times")
    expect(lambda history: history.invoke("callee0/desk", "accept", "i4").fail(4090), "nothing had answered")
    expect(lambda history: history.hear_late("8555", "an answer"), "")
    expect(lambda history: [history.hear_late("8555", text) for text in ("an answer", "an event")], "after its lease")
    print("the checker finds each fault that was put in")


if __name__ == "__main__":
    self_test()
