"""Control over HTTP on TCP: what strangers without its token send there, and a program with it, which must be answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device import Device
    from strangers import Stranger

TOKEN = "a-token-of-the-attackers-model-0123456789"
ANSWER = b"HTTP/1.1 "
# What is no HTTP is answered with 400, and its connection ends 2 s later (docs/limits.md). The rest is for a busy machine.
ENDS_WITHIN = 6.0
OF_REFUSAL = 2.0
PATIENCE = 8.0
RUBBISH = [
    b"rubbish\r\n\r\n",
    b"GET /v1/status\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00" + bytes(200),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\nHost: localhost\n\n",
]


def request(target: str, method: str = "GET", token: str | None = None, fields: Iterable[str] = (), body: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *fields]
    if not any(field.lower().startswith("host:") for field in lines):
        lines.append("Host: localhost")
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Owner:
    """A program with the token, which requests the status each second over a connection of its own."""

    def __init__(self, device: Device) -> None:
        self.device, self.answered = device, time.monotonic()

    async def ask(self) -> None:
        """Asks until it is cancelled."""
        self.answered = time.monotonic()
        while True:
            with contextlib.suppress(OSError, TimeoutError):
                answer = await asyncio.wait_for(self._ask(), PATIENCE)
                if answer.startswith(ANSWER + b"200"):
                    self.answered = time.monotonic()
            await asyncio.sleep(1)

    async def _ask(self) -> bytes:
        reader, writer = await asyncio.open_connection(*self.device.control)
        try:
            writer.write(request("/v1/status", token=TOKEN, fields=["Connection: close"]))
            return await reader.read(-1)
        finally:
            writer.close()

    @property
    def silence(self) -> float:
        """Seconds for which it has had no answer."""
        return time.monotonic() - self.answered


class Intruder:
    """A stranger's connections. No answer to one of them may be that of a program with the token."""

    def __init__(self, stranger: Stranger, random: random.Random) -> None:
        self.stranger, self.model, self.random = stranger, stranger.model, random

    async def intrude(self) -> None:
        deed = self.random.choice([self.rubbish, self.smuggled, self.guesses, self.foreign, self.halves, self.unread])
        self.model.outcomes[f"control: {deed.__name__}"] += 1
        with contextlib.suppress(OSError):
            await deed()

    async def _send(self, data: bytes, wait: float) -> tuple[bytes, bool]:
        """The answers to what is sent, and whether the connection has ended within this time."""
        reader, writer = await asyncio.open_connection(*self.model.device.control)
        came, until = b"", time.monotonic() + wait
        try:
            writer.write(data)
            while (left := until - time.monotonic()) > 0:
                piece = await asyncio.wait_for(reader.read(65_536), left)
                if not piece:
                    return came, True
                came += piece
        except TimeoutError:
            pass
        except OSError:
            return came, True
        finally:
            writer.close()
        return came, False

    def _judge(self, sent: bytes, came: bytes) -> None:
        came = self.model.path.answered(came)
        if ANSWER + b"20" in came:
            self.model.fault(f"control over HTTP answers a stranger's {sent[:200]!r} with {came[:200]!r}")

    async def rubbish(self) -> None:
        sent = self.random.choice(RUBBISH)
        began = time.monotonic()
        came, has_ended = await self._send(sent * self.random.choice([1, 1, 3]), ENDS_WITHIN)
        self._judge(sent, came)
        if came.startswith(ANSWER + b"400") and not has_ended:
            self.model.fault(f"control over HTTP continues after its answer to {sent[:40]!r}", began, ENDS_WITHIN - OF_REFUSAL)
        if came.count(ANSWER) > 1:
            self.model.fault(f"control over HTTP answers {sent[:40]!r} {came.count(ANSWER)} times")

    async def smuggled(self) -> None:
        """A request within the body of another one, whose length is ambiguous."""
        inner = request(self.random.choice(["/v1/status", "/v1/calls", "/v1/events"]), fields=["X: y"])
        chunks = b"0\r\n\r\n"
        length = f"Content-Length: {self.random.choice([0, 5, len(inner), 99_999])}"
        fields = self.random.choice(
            [
                [length, "Transfer-Encoding: chunked"],
                ["Transfer-Encoding: chunked", length],
                [length, "Content-Length: 4"],
                ["Transfer-Encoding: identity, chunked"],
                ["Transfer-Encoding : chunked"],
                ["Content-Length: +5"],
                [length, "Expect: 100-continue"],
            ]
        )
        sent = request("/v1/drain", "POST", fields=fields, body=chunks) + inner
        came, _ = await self._send(sent, 0.5)
        self._judge(sent, came)

    async def guesses(self) -> None:
        for _ in range(self.random.choice([5, 40])):
            token = self.random.choice(["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\0", "a" * 9_000, self.stranger.token()])
            sent = request("/v1/status", token=token)
            came, _ = await self._send(sent, 0.5)
            self._judge(sent, came)

    async def foreign(self) -> None:
        """What a web page, or a browser that was rebound to this address, may send."""
        fields = self.random.choice(
            [
                ["Host: evil.test"],
                ["Host: localhost", "Host: evil.test"],
                ["Origin: null"],
                ["Origin: http://evil.test"],
                ["Host: localhost@x"],
            ]
        )
        target = self.random.choice(
            ["/v1/status", "/v1/../v1/status", "//v1/status", "/v1/calls?token=" + TOKEN, "http://evil.test/v1/status"]
        )
        token = TOKEN if fields[0].startswith("Host: ") and fields[-1] != "Host: localhost" else None
        sent = request(target, self.random.choice(["GET", "HEAD", "OPTIONS", "POST"]), token, fields)
        came, _ = await self._send(sent, 0.5)
        self._judge(sent, came)

    async def halves(self) -> None:
        """Requests that never end, on many connections."""
        half = self.random.choice(
            [
                b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * self.random.choice([0, 9_000, 20_000]),
                request("/v1/calls", "POST", fields=["Content-Length: 8000"], body=b"{" * 4_000),
                request("/v1/calls", "POST", fields=["Transfer-Encoding: chunked"], body=b"1;" + b"x" * 9_000),
                b"",
            ]
        )
        for came, _ in await asyncio.gather(*(self._send(half, 2) for _ in range(20)), return_exceptions=False):
            self._judge(half, came)

    async def unread(self) -> None:
        """Many requests for the page, whose answers are not read."""
        _, writer = await asyncio.open_connection(*self.model.device.control, limit=1)
        writer.write(request("/") * 200)
        await asyncio.sleep(2)
        writer.close()
