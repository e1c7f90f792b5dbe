"""Two users who only follow docs/protocol.md, and call each other during the attacks."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import random
import time
from typing import TYPE_CHECKING, Any

from attackers import GONE
from client import Lost, basic
from exchange import APP
from raw import blurt, request, status
from seats import Seat, answer

if TYPE_CHECKING:
    from test_model import Model

BOUND = 30  # Seconds that a call may take from invite to hang-up, restarts of the exchange and a busy machine included.
WINDOW = 20  # The exchange's resume window.


class Phone(Seat):
    """A device that logs in, keeps its connection, renews its token, and receives events."""

    def __init__(self, model: Model, user: str, device: str, random: random.Random, source: str) -> None:
        super().__init__(model, ("account", user), device, source)
        self.random, self.user = random, user
        self.stories = collections.OrderedDict()  # The events of each invite, oldest first.
        self.news, self.ready = asyncio.Event(), asyncio.Event()
        self.lost_at: float | None = None
        self.is_renewing, self.logins = False, 0
        self.exchanging = asyncio.Lock()

    def learn(self, event: dict) -> None:
        super().learn(event)
        if event["type"] == "tokenExpiring" and not self.is_renewing:
            self.is_renewing = True
            self.model.keep(self.renew())
        if "invite" in event["data"]:
            self.stories.setdefault(event["data"]["invite"], []).append(event)
            while len(self.stories) > 3000:
                self.stories.popitem(last=False)
        self.news.set()

    # --- Connection ---

    async def post(self, path: str, body: Any, **headers: str | None) -> dict:
        """A REST call, repeated while the exchange is away; its JSON."""
        while True:
            with contextlib.suppress(*GONE):
                raw = request("POST", path, json.dumps(body).encode(), User_Agent="phone/1 python", **headers)
                code, content = status(await blurt(self.model.exchange, self.source, raw, seconds=15))
                if code == 200:
                    self.model.oracle.scan(self, content)  # These have no owner yet.
                    answered = json.loads(content)
                    self.model.oracle.own(self.principal, answered["token"], answered["refresh_token"])
                    return answered
                if 400 <= code < 500 and code != 429:
                    raise AssertionError(f"{self}: {path} was answered with {code}: {content!r}")
            await asyncio.sleep(self.random.uniform(0.1, 0.5))

    async def log_in(self) -> None:
        answered = await self.post(
            "/v1.1/login",
            {"type": "Cima", "media_token": self.model.exchange.media_token(self.user), "access_type": "offline", "scope": "mappings"},
            Authorization=basic(*APP),
        )
        self.logins += 1
        self.token, self.refresh = answered["token"], answered["refresh_token"]

    async def exchange_token(self) -> None:
        """Exchanges the current token for a new one; one exchange at a time."""
        before = self.token
        async with self.exchanging:
            if self.token == before:
                answered = await self.post("/v1.1/token", {"refresh_token": self.refresh})
                self.token, self.refresh = answered["token"], answered["refresh_token"]

    async def renew(self) -> None:
        """Renews this session's token."""
        try:
            await self.exchange_token()
            with contextlib.suppress(*GONE):
                await self.get("session.renew", token=self.token)
        finally:
            self.is_renewing = False

    async def stay(self) -> None:
        """Stays connected while the model runs, as the page's chapter on the connection requires."""
        await self.log_in()
        attempts = 0
        while self.model.is_running:
            try:
                await self.connect()
            except GONE:
                if self.talk is not None and self.talk.line.code not in (None, 1006):
                    attempts += 1
                ceiling = min(30, max(time.monotonic() - (self.lost_at or time.monotonic()), 0.5 * 2**attempts))
                await asyncio.sleep(self.random.uniform(0, ceiling))
                continue
            attempts = 0
            self.ready.set()
            await self.talk.line.ended()
            self.ready.clear()
            self.lost_at = time.monotonic()
            await asyncio.sleep(self.random.uniform(0, 0.5))

    async def connect(self) -> None:
        result = await self.start(self.session)
        if result is None:
            self.model.oracle.fault(f"{self}: session.start was refused: {self.refused}")
            raise Lost("refused")
        if self.lost_at is not None and not result["resumed"] and time.monotonic() - self.lost_at < WINDOW - 3:
            self.model.oracle.fault(f"{self} came back after {time.monotonic() - self.lost_at:.1f} s and was not resumed")
        if not result["resumed"]:
            await self.get("device.register", device=self.model.description(self))

    async def start(self, resume: str | None = None, after: int | None = None, device_name: str | None = None) -> dict | None:
        result = await super().start(resume, after, device_name)
        if result is None and self.refused in ("tokenExpired", "tokenRejected", "tokenRevoked"):
            if self.refused != "tokenExpired":
                self.model.oracle.fault(f"{self}: its token was revoked: {self.refused}")
            await self.exchange_token()
            result = await super().start(resume, after, device_name)
        return result

    # --- Calling ---

    async def insist(self, method: str, *done: str, **params: Any) -> dict:
        """Repeats a request until it is answered; an error named in `done` to a repetition means that the first one worked."""
        repeated = False
        while True:
            await self.ready.wait()
            with contextlib.suppress(*GONE):
                message = await self.get(method, **params)
                if "result" in message:
                    return message["result"]
                name = message["error"]["data"]["name"]
                assert repeated and name in done, f"{self}: {method} was refused with {message['error']}"
                return {}
            repeated = True
            await asyncio.sleep(0.02)

    async def hear(self, invite: str, kind: str, **members: Any) -> dict:
        while True:
            for event in self.stories.get(invite, ()):
                if event["type"] == kind and all(event["data"].get(name) == value for name, value in members.items()):
                    return event["data"]
            self.news.clear()
            await self.news.wait()

    def kinds(self, invite: str) -> list[str]:
        return [
            event["type"] for event in self.stories.get(invite, ()) if event["type"] not in ("callSignal", "streamDropped", "streamResumed")
        ]


class Pair:
    """Ann calls Ben, who has two devices, over and over."""

    def __init__(self, model: Model, ann: Phone, ben: Phone, ben_too: Phone) -> None:
        self.model, self.ann, self.ben, self.ben_too = model, ann, ben, ben_too
        self.times, self.calls, self.doing = [], 0, "beginning"

    async def live(self) -> None:
        while self.model.is_running:
            begun = time.monotonic()
            try:
                async with asyncio.timeout(BOUND):
                    await self.call()
            except TimeoutError:
                self.model.oracle.fault(f"the honest pair was delayed by more than {BOUND} s while {self.doing}")
            except AssertionError as error:
                self.model.oracle.fault(f"the honest pair, {self.doing}: {error}")
            self.times.append(time.monotonic() - begun)
            self.calls += 1
            await asyncio.sleep(0.2)

    async def call(self) -> None:
        ann, ben, too = self.ann, self.ben, self.ben_too
        self.doing = "inviting"
        invite = (
            await ann.insist(
                "invite.send",
                to="ben",
                ttl=60,
                idempotency_key=f"{ann.random.getrandbits(60)}",
                data=lambda marker: {"offer": marker},
                timeout_payload="missed",
            )
        )["invite"]
        self.doing = f"ringing for {invite}"
        for phone in ben, too:
            assert (await phone.hear(invite, "inviteReceived"))["inviter"] == "ann"
        if ann.random.random() < 0.25:
            self.doing = f"cancelling {invite}"
            await ann.insist("invite.cancel", "inviteEnded", invite=invite)
            for phone in ben, too:
                await phone.hear(invite, "inviteMissed")
            await self.told(invite, ["inviteEnded"], *[["inviteReceived", "inviteCancelled", "inviteMissed"]] * 2)
            return
        self.doing = f"accepting {invite}"
        await ben.insist("invite.accept", invite=invite, data=lambda marker: {"answer": marker})
        await ann.hear(invite, "inviteAccepted", device=ben.device)
        await too.hear(invite, "inviteHandled", device=ben.device)
        self.doing = f"signaling in {invite}"
        for sender, receiver in (ann, ben), (ben, ann):
            await self.signal(invite, sender, receiver)
        self.doing = f"hanging up {invite}"
        await ann.insist("call.end", "unknownCall", invite=invite, reason="completed", duration_ms=7)
        await ben.hear(invite, "callEnded", duration_ms=7)
        await self.told(invite, ["inviteAccepted", "inviteEnded"], ["inviteReceived", "callEnded"], ["inviteReceived", "inviteHandled"])

    async def signal(self, invite: str, sender: Phone, receiver: Phone) -> None:
        """Three candidates, each of which arrives once and in order if it was confirmed."""
        confirmed = []
        for number in range(3):
            await sender.ready.wait()
            with contextlib.suppress(*GONE):
                message = await answer(await sender.ask("call.signal", invite=invite, type="candidate", data=number))
                assert "result" in message, f"a signal was refused: {message}"
                confirmed.append(number)
        for number in confirmed:
            await receiver.hear(invite, "callSignal", data=number)
        heard = [event["data"]["data"] for event in receiver.stories[invite] if event["type"] == "callSignal"]
        assert heard == sorted(set(heard)) and set(confirmed) <= set(heard), f"of {confirmed} came {heard}"

    async def told(self, invite: str, *expected: list[str]) -> None:
        """Checks that each received exactly these events."""
        for phone, kinds in zip((self.ann, self.ben, self.ben_too), expected):
            await phone.insist("ping")
            for kind in kinds:
                await phone.hear(invite, kind)
            # An accept may be followed by the end of a call before the inviter's own end of the invite, never otherwise.
            assert phone.kinds(invite) == kinds, f"{phone} received {phone.kinds(invite)} and not {kinds}"
