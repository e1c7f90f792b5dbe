"""Owners of devices that join by codes, and attackers that guess the codes, replay them, and come at the same time (AUTH-13)."""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import json
import random
import statistics
import time
from typing import TYPE_CHECKING, Any

from assault import JOINING
from attackers import GONE, Prowler
from client import PATIENCE, Lost, basic, remember
from exchange import APP
from forms import bad_name, odd_value
from honest import BOUND
from raw import blurt, connect, request, status
from test_keys import Key

if TYPE_CHECKING:
    from model import Party, Principal
    from test_model import Model

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# What docs/security.md promises of wrong codes: from one address, and from all, in ten minutes.
OF_ADDRESS, OF_ALL, WITHIN = 30, 300, 600
KNOWN_AFTER = 2.0  # Seconds after which the exchange knows a new code.
SLACK = 8.0  # Seconds that this machine may delay that.
MOST_ROUNDS = 24  # Devices of a user until all of its keys are removed: a user has at most 64 keys, and 16 codes that are not used.
REPETITIONS = 12  # Requests with one code; 30 are promised.
ALIKE = 0.001  # Seconds by which an answer to a guess that is nearly right may differ from another, in the median.
# The points whose order is 8 or less, in each way to write them, as base64url of 32 bytes.
SMALL_ORDER = [
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "00" * 31 + "80",
        "01" + "00" * 30 + "80",
        "ec" + "ff" * 30 + "7f",
        "ec" + "ff" * 31,
        "ed" + "ff" * 30 + "7f",
        "ed" + "ff" * 31,
        "ee" + "ff" * 30 + "7f",
        "ee" + "ff" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    )
]


class SmallKey(Key):
    """A key of small order, with a signature that such a key would make valid for any text."""

    def __init__(self, point: bytes) -> None:
        super().__init__()
        self.public = encoded(point)

    def sign(self, *lines: str) -> str:
        return encoded(bytes([1] + [0] * 63))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def kind_of(code: int, content: bytes) -> tuple[int, str]:
    """An answer without what differs each time: its status and its code."""
    try:
        return code, json.loads(content).get("error", {}).get("code", "")
    except ValueError:
        return code, repr(content[:80])


def answered(code: int, content: bytes) -> tuple[int, str]:
    """The kind of an answer; raises Lost for that of an exchange that shuts down, which answers nothing else any more."""
    kind = kind_of(code, content)
    if kind == (503, "unavailable") and b"shutting down" in content:
        raise Lost("it shuts down")
    return kind


class Doorstep:
    """All codes of the model, who has joined by them, and what guessers may have."""

    def __init__(self, model: Model) -> None:
        self.model, self.random = model, model.generator("doorstep")
        self.oracle, self.exchange = model.oracle, model.exchange
        self.open: dict[str, str] = {}  # For each user the code with which a device may join.
        self.codes: list[str] = []  # All that ever were.
        self.members: dict[str, tuple[str, str]] = {}  # For each key that has joined its user and its enrolment.
        self.unknown: dict[str, list[float]] = collections.defaultdict(list)  # When a guess from an address was compared.
        self.counted_since = 0.0
        self.counts = collections.Counter()
        self.differences: list[float] = []  # Seconds by which guesses that are nearly right take longer than others.
        self.odd = collections.Counter()  # Guesses that were answered differently than the ones before and after.

    async def post(self, source: str, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
        """A request that is answered; raises Lost otherwise."""
        self.oracle.steps += 1
        raw = request("POST", path, json.dumps(body).encode(), User_Agent="door/1 python", **headers)
        code, content = status(await blurt(self.exchange, source, raw, seconds=PATIENCE))
        if not code:
            raise Lost("no answer")
        if code == 500:
            self.oracle.fault(f"{path} was answered with 500: {content[:300]!r}")
        self.oracle.outcomes[f"{path.removeprefix('/v1.1/')} {code} {answered(code, content)[1]}"] += 1
        return code, content

    def compared(self, source: str, sent: float) -> None:
        """A wrong code was compared: checks that this was not too often since the exchange started, which forgets guesses."""
        since = self.exchange.up_since
        if sent < since:
            return
        if since != self.counted_since:
            self.unknown.clear()
            self.counted_since = since
        self.unknown[source].append(sent)
        elapsed, total = time.monotonic() - since, sum(map(len, self.unknown.values()))
        if len(self.unknown[source]) > OF_ADDRESS + elapsed * OF_ADDRESS / WITHIN + 1:
            self.oracle.fault(f"{len(self.unknown[source])} codes of {source} were compared in {elapsed:.0f} s")
        if total > OF_ALL + elapsed * OF_ALL / WITHIN + 1:
            self.oracle.fault(f"{total} wrong codes were compared in {elapsed:.0f} s")

    def check_log(self) -> None:
        """Checks that no code is in the log."""
        log = self.exchange.log.read_bytes()
        shown = [code for code in self.codes if code.encode() in log]
        assert not shown, f"{len(shown)} codes are in the log"

    def report(self) -> str:
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        if not self.differences:
            return f"codes: {kinds}"
        median = statistics.median(self.differences)
        return f"codes: {kinds}; {len(self.differences)} guesses that were nearly right took {median * 1000:+.2f} ms longer than others"

    def judge_times(self) -> None:
        """Checks that an answer's time does not show whether a guess was nearly right."""
        if len(self.differences) >= 200 and abs(statistics.median(self.differences)) > ALIKE:
            self.oracle.fault(f"nearly right guesses take {statistics.median(self.differences) * 1000:+.2f} ms longer")
        if self.odd["near"] > 2 * self.odd["far"] + 5:
            self.oracle.fault(f"nearly right guesses are answered differently: {dict(self.odd)}")


class Guesser(Prowler):
    """An attacker without an account that knows parts of codes, or has found a code that a device used."""

    def __init__(self, model: Model, name: str, random: random.Random, source: str, door: Doorstep) -> None:
        super().__init__(model, name, random, source)
        self.door = door
        self.principal: Principal = ("stranger", name)
        self.party: Party = (self.principal, None)
        self.deeds = {self.compare: 6, self.flood: 1, self.odd_body: 4, self.replay_code: 4, self.small_order: 2, self.log_in_by_key: 4}

    def __str__(self) -> str:
        return self.name

    async def arrive(self) -> None:
        pass

    def code(self, is_near: bool) -> str:
        """A wrong code: any, or one that begins or ends as a right one, or differs in one character."""
        characters = self.random.choices(ALPHABET, k=20)
        if is_near and self.door.open:
            right = self.random.choice(list(self.door.open.values()))
            kept = self.random.choice([3, 4, 5, 12, 19])
            where = self.random.choice([range(kept), range(20 - kept, 20), self.random.sample(range(20), kept)])
            for at in where:
                characters[at] = right[at]
        code = "".join(characters)
        return self.code(is_near) if code in self.door.codes else code

    async def ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, code: str) -> tuple[tuple[int, str], float]:
        """One guess on a connection that stays open: its answer, and the seconds until it came."""
        body = json.dumps(Key().joining(code)).encode()
        asked = f"POST /v1.1/enroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        begun = time.monotonic()
        writer.write(asked.encode() + body)
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            took = time.monotonic() - begun
            size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            content = await asyncio.wait_for(reader.readexactly(size), PATIENCE)
        except (asyncio.IncompleteReadError, StopIteration) as error:
            raise Lost(str(error)) from error
        self.model.oracle.steps += 1
        kind = answered(int(head.split(b" ")[1]), content)
        self.door.counts[f"guess {kind[1]}"] += 1
        if kind == (401, "enrollmentUnknown"):
            self.door.compared(self.source, begun)
        elif kind != (429, "tooManyRequests"):
            self.model.oracle.fault(f"{self} guesses, and the answer is {kind}: {content[:300]!r}")
        elif b"retry-after" not in head.lower():
            self.model.oracle.fault(f"{self} is refused without Retry-After: {head!r}")
        return kind, took

    async def compare(self) -> None:
        """Guesses of both kinds by turns, which must be answered alike."""
        reader, writer = await connect(self.model.exchange, self.source)
        try:
            await self.ask(reader, writer, self.code(False))
            for _ in range(self.random.choice([2, 5])):
                is_near = self.random.random() < 0.5
                first, other = await self.ask(reader, writer, self.code(False))
                middle, took = await self.ask(reader, writer, self.code(is_near))
                last, another = await self.ask(reader, writer, self.code(False))
                if is_near and first == middle == last:
                    self.door.differences.append(took - (other + another) / 2)
                if first == last != middle:  # An attempt can have come back in between.
                    self.door.odd["near" if is_near else "far"] += 1
        finally:
            writer.transport.abort()

    async def flood(self) -> None:
        """Uses up what there is for guessers."""
        reader, writer = await connect(self.model.exchange, self.source)
        try:
            for _ in range(40):
                await self.ask(reader, writer, self.code(self.random.random() < 0.5))
        finally:
            writer.transport.abort()

    async def must_fail(self, path: str, body: Any, *codes: str, **headers: str) -> None:
        code, content = await self.door.post(self.source, path, body, **headers)
        kind = kind_of(code, content)
        if code == 200 or codes and kind[1] not in (*codes, "tooManyRequests"):
            self.model.oracle.fault(f"{self}: {path} with {body} was answered with {code}: {content[:300]!r}")

    async def odd_body(self) -> None:
        good = Key().joining(self.code(True))
        name = self.random.choice([*good, "user_id", "enrollment"])
        value = self.random.choice([odd_value(self.random), bad_name(self.random, str(good.get(name))), good["code"].lower() + "-"])
        body = self.random.choice([good | {name: value}, {key: member for key, member in good.items() if key != name}, [good], None, 17])
        if not isinstance(body, dict) or body.get("code") not in self.door.codes:
            await self.must_fail("/v1.1/enroll", body)

    async def replay_code(self) -> None:
        """A code that was used, or has gone, with a key of one's own."""
        gone = [code for code in self.door.codes if code not in self.door.open.values()]
        if gone:
            await self.must_fail("/v1.1/enroll", Key().joining(self.random.choice(gone[-20:])), "enrollmentUsed", "enrollmentUnknown")

    async def small_order(self) -> None:
        """Keys of small order, with any code: a right one counts as little as a wrong one."""
        code = self.random.choice([*self.door.open.values(), self.code(True)])
        await self.must_fail("/v1.1/enroll", SmallKey(self.random.choice(SMALL_ORDER)).joining(code), "badRequest")

    async def log_in_by_key(self) -> None:
        """A login by a key of one's own, by that of another, or by one of small order."""
        own, members = Key(), list(self.door.members.items())
        public, (user, enrollment) = self.random.choice(members) if members else (own.public, (JOINING[0], "none"))
        point = encoded(self.random.choice(SMALL_ORDER))
        claimed = self.random.choice([own.public, public, point, point[:-1], public + "="])
        _, content = await self.door.post(self.source, "/v1.1/login/challenge", {"user_id": user, "public_key": claimed})
        challenge = json.loads(content).get("challenge", "x")
        signer = SmallKey(SMALL_ORDER[1]) if claimed == point else own
        signature = signer.sign("handset-login-1", user, enrollment, claimed, challenge)
        body = {"type": "Key", "user_id": user, "public_key": claimed, "challenge": challenge, "signature": signature}
        await self.must_fail("/v1.1/login", body, "wrongKey", "badRequest", "challengeExpired", Authorization=basic(*APP))


class Owner:
    """One who gets a code from the exchange's administrator for a new device again and again, and joins among guessers."""

    def __init__(self, door: Doorstep, user: str, sources: list[str]) -> None:
        self.door, self.user, self.sources = door, user, sources
        self.model, self.random = door.model, door.model.generator(f"owner/{user}")
        self.devices: list[tuple[Key, str]] = []  # Those that have joined, and the name of their enrolment.
        self.times: list[float] = []
        self.doing, self.rounds = "beginning", 0

    async def live(self) -> None:
        while self.model.is_running:
            try:
                async with asyncio.timeout(2 * BOUND):
                    await self.round()
            except TimeoutError:
                self.model.oracle.fault(f"{self.user}'s device was delayed by more than {2 * BOUND} s while {self.doing}")
            except AssertionError as error:
                self.model.oracle.fault(f"{self.user}'s device, {self.doing}: {error}")
            await asyncio.sleep(self.random.expovariate(0.2 / self.model.pause))

    def source(self) -> str:
        """An address, which may be a guesser's."""
        return self.random.choice(self.sources)

    async def round(self) -> None:
        self.rounds += 1
        if self.rounds % MOST_ROUNDS == 0:
            await self.revoke()
        self.doing = "getting a code"
        code = await self.make()
        made = time.monotonic()
        self.door.open[self.user] = code
        key = Key()
        await self.random.choice([self.alone, self.alone, self.twice, self.after_bad_keys, self.in_race])(code, key, made)
        self.door.open.pop(self.user, None)
        if self.devices:
            await self.log_in(*self.random.choice(self.devices[-5:]))

    async def make(self) -> str:
        scheme = "https" if self.model.exchange.tls else "http"
        printed = await self.model.exchange.administer("enroll", self.user, "--server", f"{scheme}://localhost:{self.model.exchange.port}")
        code = remember(printed.strip().removeprefix("HANDSET://").split("/")[1].replace("-", ""))
        self.door.codes.append(code)
        return code

    # --- Joining ---

    async def join(self, code: str, key: Key, made: float, *others: str) -> dict | str:
        """Joins, as the page says: repeats the request until the code is known. The answer, or which of `others` was the error."""
        for _ in range(200):
            sent, up_since = time.monotonic(), self.model.exchange.up_since
            try:
                status_code, content = await self.door.post(self.source(), "/v1.1/enroll", key.joining(code))
            except GONE:
                await asyncio.sleep(0.1)
                continue
            kind = kind_of(status_code, content)[1]
            if status_code == 200:
                joined = json.loads(content)
                assert joined["user_id"] == self.user, f"its code is {joined['user_id']}'s"
                return joined
            if kind in others:
                return kind
            if status_code == 503:  # Another process changes the users file.
                self.door.counts["joining: the users file is being changed"] += 1
                await asyncio.sleep(0.5)
                continue
            assert kind in ("enrollmentUnknown", "tooManyRequests"), f"a right code was answered with {kind}"
            waited = sent - max(made, up_since)
            assert waited < KNOWN_AFTER + SLACK, f"a right code was answered with {kind} {waited:.1f} s after it was made"
            await asyncio.sleep(0.2)
        raise AssertionError("a right code was not accepted")

    def joined(self, key: Key, answer: dict | str, made: float) -> None:
        assert isinstance(answer, dict)
        self.times.append(time.monotonic() - made)
        self.door.counts["joined"] += 1
        self.devices.append((key, answer["enrollment"]))
        self.door.members[key.public] = self.user, answer["enrollment"]

    async def alone(self, code: str, key: Key, made: float) -> None:
        """Joins, and repeats that as if the answers were lost. A thief that comes later is refused."""
        self.doing = "joining"
        answer = await self.join(code, key, made)
        self.joined(key, answer, made)
        for _ in range(self.random.choice([0, 1, REPETITIONS])):
            assert await self.join(code, key, made) == answer, "the same again is another enrolment"
        assert await self.join(code, Key(), made, "enrollmentUsed") == "enrollmentUsed", "two devices have joined by one code"

    async def twice(self, code: str, key: Key, made: float) -> None:
        """Its request comes twice at once, from two addresses."""
        self.doing = "joining twice at once"
        first, second = await asyncio.gather(self.join(code, key, made), self.join(code, key, made))
        assert first == second, f"one device has two enrolments: {first}, {second}"
        self.joined(key, first, made)

    async def after_bad_keys(self, code: str, key: Key, made: float) -> None:
        """One who has seen the code sends keys of small order, and signatures of another key; neither uses the code."""
        self.doing = "joining after bad keys"
        for _ in range(self.random.choice([1, 6])):
            small = SmallKey(self.random.choice(SMALL_ORDER)).joining(code)
            for body in small, key.joining(code) | {"signature": Key().joining(code)["signature"]}:
                with contextlib.suppress(*GONE):
                    status_code, content = await self.door.post(self.source(), "/v1.1/enroll", body)
                    assert status_code in (400, 401, 429, 503), f"a bad key was answered with {content[:300]!r}"
                    assert body is not small or status_code == 400, f"a key of small order was answered with {content[:300]!r}"
        self.joined(key, await self.join(code, key, made), made)

    async def in_race(self, code: str, key: Key, made: float) -> None:
        """A thief who has the code comes at the same time. One of them joins, and the other one's device says so."""
        self.doing = "joining beside a thief"
        thief = Key()
        answers = await asyncio.gather(*(self.join(code, one, made, "enrollmentUsed") for one in (key, thief)))
        won = [one for one, answer in zip((key, thief), answers) if answer != "enrollmentUsed"]
        assert len(won) == 1, f"{len(won)} devices have joined by one code"
        self.door.counts["a thief was first" if won == [thief] else "a thief was second"] += 1
        answer = next(answer for answer in answers if isinstance(answer, dict))
        self.joined(won[0], answer, made)
        if won == [thief]:
            await self.revoke()

    # --- Logging in ---

    async def log_in(self, key: Key, enrollment: str, is_known: bool = True) -> str:
        """A login by key, repeated until it is answered; the error's code, or an empty text."""
        self.doing = "logging in by its key"
        while True:
            await asyncio.sleep(0.05)
            with contextlib.suppress(*GONE):
                source = self.source()
                asked = {"user_id": self.user, "public_key": key.public}
                _, content = await self.door.post(source, "/v1.1/login/challenge", asked)
                challenge = json.loads(content)["challenge"]
                signature = key.sign("handset-login-1", self.user, enrollment, key.public, challenge)
                body = asked | {"type": "Key", "challenge": challenge, "signature": signature}
                code, content = await self.door.post(source, "/v1.1/login", body, Authorization=basic(*APP))
                kind = kind_of(code, content)[1]
                if kind in ("challengeExpired", "tooManyRequests") or code == 503:  # It was started again, or has too much to do.
                    continue
                if code == 200:
                    self.door.counts["login by key"] += 1
                    answer = json.loads(content)
                    remember(answer["token"])
                    self.model.oracle.own(("account", self.user), answer["token"])
                    assert answer["id"] == self.user, f"it is {answer['id']}"
                    again, content = await self.door.post(source, "/v1.1/login", body, Authorization=basic(*APP))
                    assert again != 200, f"a login was replayed: {content[:300]!r}"
                elif is_known:
                    raise AssertionError(f"its key is refused: {content[:300]!r}")
                return kind

    async def revoke(self) -> None:
        """The administrator removes all keys of the user."""
        self.doing = "removing its keys"
        gone, self.devices = self.devices, []
        for key, _ in gone:
            self.door.members.pop(key.public, None)
        await self.model.exchange.administer("revoke", self.user, "--keys")
        revoked = time.monotonic()
        self.door.counts["removed all keys"] += 1
        for key, enrollment in gone[-3:]:
            while not await self.log_in(key, enrollment, is_known=False):
                self.doing = "removing its keys"
                waited = time.monotonic() - max(revoked, self.model.exchange.up_since)
                assert waited < KNOWN_AFTER + SLACK, f"a key logs in {waited:.1f} s after it was removed"
                await asyncio.sleep(0.2)
