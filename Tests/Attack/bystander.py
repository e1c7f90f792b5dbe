"""A telephone that calls the device again and again, speaks, and checks what comes back. Strangers must not disturb its calls."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

from wire import MAGIC, SUITE, Address, Description, Keys, Message, Socket, Tone, offer, packet, request

if TYPE_CHECKING:
    from model import Model

PATIENCE = 8.0  # Seconds for an answer: a datagram that was lost is repeated after 0.5, 1, 2 and 4 s.
SPEAKING = 3.0  # Seconds of a call whose sound is judged.
SETTLING = 1.0  # Seconds in which the jitter buffer and the source of media settle.
LEAST_SOUND = 0.8  # The share of packets that must come back with the caller's own tone.
SLACK = (1 - LEAST_SOUND) * SPEAKING  # Seconds of sound that may be missing.


class Path:
    """The path between a bystander and the device, which changes nothing. faults.py has others."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def out(self, call: Call, data: bytes, target: Address, is_media: bool) -> None:
        (call.media if is_media else call.signaling).send(data, target)

    def into(self, call: Call, data: bytes, source: Address, is_media: bool) -> None:
        (call.take_media if is_media else call.take)(data, source)

    def answered(self, data: bytes) -> bytes:
        """What control over HTTP answers a stranger."""
        return data


class Call:
    """One call, from INVITE to BYE. Strangers know its identifiers and addresses."""

    def __init__(self, bystander: Bystander, random: random.Random) -> None:
        model = bystander.model
        self.bystander, self.model, self.random = bystander, model, random
        self.id, self.tag = f"{random.getrandbits(64):x}@bystander", f"{random.getrandbits(48):x}"
        self.keys = random.randbytes(30) if random.random() < 0.5 else None
        self.ssrc = random.getrandbits(32)
        self.signaling: Socket | None = None
        self.media: Socket | None = None
        self.answer: Message | None = None
        self.theirs: Keys | None = None
        self.peer: Address | None = None
        self.branch, self.sequence, self.waiting = "", 0, {}
        self.is_ended_by_device, self.is_judging = False, False
        self.came, self.good, self.foreign, self.unreadable = 0, 0, 0, 0

    # --- Signaling ---

    @property
    def remote(self) -> str:
        return self.answer["To"]

    @property
    def local(self) -> str:
        return f"<sip:{self.bystander.name}@sip.test>;tag={self.tag}"

    def new_branch(self) -> str:
        return MAGIC + f"{self.random.getrandbits(64):x}"

    def request(self, method: str, branch: str, body: bytes = b"") -> bytes:
        uri = f"sip:echo@{self.model.device.address[0]}"
        to = self.remote if self.answer else "<sip:echo@sip.test>"
        return request(method, uri, self.signaling.address, branch, self.local, to, self.id, self.sequence, body=body).data()

    async def ask(self, method: str, body: bytes = b"") -> Message | None:
        """The final response to a request in the call, which is repeated as in RFC 3261 §17.1; None if there is none."""
        self.sequence += 1
        branch = self.new_branch()
        if method == "INVITE":
            self.branch = branch
        data = self.request(method, branch, body)
        final = self.waiting[branch] = asyncio.get_running_loop().create_future()
        begun, pause = time.monotonic(), 0.5
        while True:
            self.bystander.path.out(self, data, self.model.device.address, False)
            left = begun + PATIENCE - time.monotonic()
            try:
                return await asyncio.wait_for(asyncio.shield(final), min(pause, max(left, 0.01)))
            except TimeoutError:
                if left <= pause:
                    return None
                pause = min(pause * 2, 4)

    def take(self, data: bytes, source: Address) -> None:
        message = Message.parse(data)
        if message is None or message["Call-ID"] != self.id:
            return
        if message.status:
            branch = message["Via"].partition("branch=")[2].partition(";")[0]
            if message.status >= 200 and branch in self.waiting and not self.waiting[branch].done():
                self.waiting[branch].set_result(message)
            return
        self.bystander.path.out(self, message.answer(200).data(), source, False)
        if message.method == "BYE":
            self.is_ended_by_device = True

    # --- Media ---

    def take_media(self, data: bytes, source: Address) -> None:
        if len(data) < 12 or 64 <= data[1] & 0x7F <= 95:  # RTCP.
            return
        payload = data[12:] if self.theirs is None else self.theirs.open(data)
        if payload is None:
            self.unreadable += 1
            return
        if not self.is_judging:
            return
        self.came += 1
        if self.bystander.tone.share(payload) > 0.6:
            self.good += 1
        elif any(tone.share(payload) > 0.3 for tone in self.model.strangers_tones):
            self.foreign += 1

    async def speak(self) -> None:
        """Sends 50 frames a second until it is cancelled: while a peer is silent, others may be heard."""
        mine = Keys(self.keys) if self.keys else None
        first, begun, number = self.random.getrandbits(14), time.monotonic(), 0
        while True:
            plain = packet(first + number, number * 160, self.ssrc, self.bystander.tone.frame, marker=number == 0)
            self.bystander.path.out(self, mine.protect(plain) if mine else plain, self.peer, True)
            number += 1
            await asyncio.sleep(max(0, begun + number * 0.02 - time.monotonic()))

    async def listen(self) -> float:
        """Counts what comes once the media has settled. Returns how many packets there should be."""
        await asyncio.sleep(SETTLING)
        begun, self.is_judging = time.monotonic(), True
        await asyncio.sleep(SPEAKING)
        self.is_judging = False
        return (time.monotonic() - begun) * 50

    # --- The whole call ---

    async def live(self) -> None:
        by = self.bystander
        self.signaling = await Socket.open(by.signaling_host, lambda data, source: by.path.into(self, data, source, False))
        self.media = await Socket.open(by.host, lambda data, source: by.path.into(self, data, source, True))
        try:
            await self._live()
        finally:
            self.model.open_calls.discard(self)
            self.signaling.close()
            self.media.close()

    async def _live(self) -> None:
        by, model = self.bystander, self.model
        begun = time.monotonic()
        final = await self.ask("INVITE", offer(by.host, self.media.address[1], self.keys))
        took = time.monotonic() - begun
        if final is None or not 200 <= final.status < 300:
            if not model.promises_new_calls and (final is None or final.status == 503):
                model.outcomes["a bystander's INVITE lost in a flood"] += 1
                return
            outcome = final.first if final else f"no final response within {PATIENCE:.0f} s"
            model.fault(f"{by.name}: its INVITE failed: {outcome}", begun if final is None else None, PATIENCE)
            return
        by.times.append(took)
        self.answer, described = final, Description(final.body)
        self.peer = described.host, described.port
        if self.keys:
            if described.keys is None:
                model.fault(f"{by.name}: offered {SUITE}, and the answer has no key")
                return
            self.theirs = Keys(described.keys)
        by.path.out(self, self.request("ACK", self.new_branch()), model.device.address, False)
        model.open_calls.add(self)
        speaking = asyncio.create_task(self.speak())
        try:
            await self._talk(begun)
        finally:
            speaking.cancel()

    async def _talk(self, begun: float) -> None:
        by, model, listening = self.bystander, self.model, time.monotonic()
        expected = await self.listen()
        share = self.good / expected
        by.shares.append(share)
        if self.foreign:
            model.fault(f"{by.name}: {self.foreign} packets of {self.came} have a stranger's sound")
        if share < LEAST_SOUND:
            kind = "SDES" if self.keys else "plain"
            model.fault(
                f"{by.name}: {self.good} of {expected:.0f} packets came back with its own sound, {self.came} in all, "
                f"{self.unreadable} with a wrong tag ({kind}, port {self.peer[1]})",
                listening,
                SLACK,
            )
        if self.is_ended_by_device:
            model.fault(f"{by.name}: its call was ended {time.monotonic() - begun:.1f} s after the INVITE, and it had not hung up")
            return
        for method in "OPTIONS", "BYE":
            asked = time.monotonic()
            final = await self.ask(method)
            if self.is_ended_by_device:
                model.fault(f"{by.name}: its call was ended by another before its {method}")
                return
            if final is None or final.status != 200:
                outcome = final.first if final else "no answer"
                model.fault(f"{by.name}: its {method} in the call got {outcome}", None if final else asked, PATIENCE)
        by.calls += 1


class Bystander:
    """Places one call after the other."""

    def __init__(self, model: Model, name: str, host: str, random: random.Random, path: Path, hertz: int) -> None:
        self.model, self.name, self.host, self.random, self.path = model, name, host, random, path
        self.tone = Tone(hertz)
        self.signaling_host = host
        self.times, self.shares, self.calls = [], [], 0

    async def live(self) -> None:
        while self.model.is_running:
            await Call(self, self.random).live()
            await asyncio.sleep(self.random.uniform(0.1, 0.6))
