"""Scripted voice bots, with the standard library only: Twilio's Media Streams over WebSocket, and AudioSocket over TCP.

A bot is a class with `begin(line)`, `hear(line, samples)` and `mark(line, name)`; each connection has a Line. Times are nanoseconds
of CLOCK_MONOTONIC, as ear.c has them.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import struct
import time
from typing import TypeVar

AMPLITUDE = 8_000


def now() -> int:
    return time.monotonic_ns()


def mulaw_byte(sample: int) -> int:
    sign, magnitude = (0x80, -sample) if sample < 0 else (0, sample)
    magnitude = min(magnitude, 32_635) + 132
    exponent = max(0, magnitude.bit_length() - 8)
    return ~(sign | exponent << 4 | magnitude >> exponent + 3 & 0x0F) & 0xFF


def mulaw_magnitude(byte: int) -> int:
    byte = ~byte & 0xFF
    return (((byte & 0x0F) << 3) + 132 << (byte >> 4 & 7)) - 132


#: −50 dBFS and more, as in ear.c.
LOUD_MULAW = bytes(1 if mulaw_magnitude(byte) >= 104 else 0 for byte in range(256))


def tone(milliseconds: int, rate: int, hertz: int = 1_000) -> list[int]:
    return [int(AMPLITUDE * math.sin(2 * math.pi * hertz * n / rate)) for n in range(milliseconds * rate // 1_000)]


class Line:
    """A connection of a device. `encoded` sound is what its wire carries."""

    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number, self.writer, self.data = number, writer, {}

    def is_loud(self, sound: bytes) -> bool:
        raise NotImplementedError

    def play(self, sound: bytes) -> None:
        raise NotImplementedError


L = TypeVar("L", bound=Line)


class TwilioLine(Line):
    rate = 8_000
    stream = ""

    def encode(self, samples: list[int]) -> bytes:
        return bytes(mulaw_byte(sample) for sample in samples)

    def is_loud(self, sound: bytes) -> bool:
        return any(sound.translate(LOUD_MULAW))

    def _send(self, message: dict) -> None:
        text = json.dumps({**message, "streamSid": self.stream}).encode()
        length = len(text)
        head = (
            bytes([0x81, length])
            if length < 126
            else struct.pack(">BBH", 0x81, 126, length)
            if length < 65_536
            else struct.pack(">BBQ", 0x81, 127, length)
        )
        self.writer.write(head + text)

    def play(self, sound: bytes) -> None:
        self._send({"event": "media", "media": {"payload": base64.b64encode(sound).decode()}})

    def set_mark(self, name: str) -> None:
        self._send({"event": "mark", "mark": {"name": name}})

    def clear(self) -> None:
        self._send({"event": "clear"})


class AudioSocketLine(Line):
    def __init__(self, number: int, writer: asyncio.StreamWriter, rate: int) -> None:
        super().__init__(number, writer)
        self.rate, self.kind = rate, {8_000: 0x10, 16_000: 0x12, 24_000: 0x13, 48_000: 0x16}[rate]

    def encode(self, samples: list[int]) -> bytes:
        return struct.pack(f"<{len(samples)}h", *samples)

    def is_loud(self, sound: bytes) -> bool:
        return any(abs(sample) >= 104 for sample in memoryview(sound).cast("h"))

    def play(self, sound: bytes) -> None:
        for start in range(0, len(sound), 32_000):
            piece = sound[start : start + 32_000]
            self.writer.write(struct.pack(">BH", self.kind, len(piece)) + piece)


class Silent:
    """Reads, and sends nothing."""

    def begin(self, line: Line) -> None:
        pass

    def hear(self, line: Line, sound: bytes) -> None:
        pass

    def mark(self, line: Line, name: str) -> None:
        pass


class Echo(Silent):
    """Echoes at once, and records when loud sound came."""

    def __init__(self) -> None:
        self.loud = []

    def hear(self, line: Line, sound: bytes) -> None:
        at = now()
        line.play(sound)
        if self.watches(line) and line.is_loud(sound):
            self.loud.append((line.number, at))

    watches = staticmethod(lambda line: True)


class Cheap(Echo):
    """The same without records, for many calls."""

    watches = staticmethod(lambda line: False)


class Server:
    """Accepts the connections of a device. With `stalls`, the first of them is not read."""

    def __init__(self, bot: Silent, audiosocket_rate: int | None = None, stalls: bool = False) -> None:
        self.bot, self.rate, self.stalls, self.lines = bot, audiosocket_rate, stalls, []

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._take, "127.0.0.1", 0, limit=1 << 22)
        self.port = self.server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        self.server.close()
        for line in self.lines:
            line.writer.close()

    @property
    def yaml(self) -> str:
        if self.rate:
            return f"    url: tcp://127.0.0.1:{self.port}\n    wire: audiosocket\n    rate_hz: {self.rate}\n"
        return f"    url: ws://127.0.0.1:{self.port}/ws\n    wire: twilio\n"

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await (self._audiosocket if self.rate else self._websocket)(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    def _add(self, line: L) -> L:
        self.lines.append(line)
        return line

    async def _audiosocket(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = self._add(AudioSocketLine(len(self.lines), writer, self.rate))
        while True:
            kind, length = struct.unpack(">BH", await reader.readexactly(3))
            payload = await reader.readexactly(length)
            if kind == 0:
                return
            if kind == 1:
                self.bot.begin(line)
            elif kind >= 0x10:
                self.bot.hear(line, payload)

    async def _websocket(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(row.split(":", 1)[1].strip() for row in head.split("\r\n") if row.lower().startswith("sec-websocket-key:"))
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        writer.write(
            (
                f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            ).encode()
        )
        line = self._add(TwilioLine(len(self.lines), writer))
        stalled = self.stalls and line.number == 0
        while True:
            first, length = await reader.readexactly(2)
            length &= 0x7F
            if length >= 126:
                length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8))
            mask, body = await reader.readexactly(4), await reader.readexactly(length)
            repeated = (mask * (length // 4 + 1))[:length]
            body = (int.from_bytes(body) ^ int.from_bytes(repeated)).to_bytes(length)
            if first & 0x0F == 8:
                return
            if first & 0x0F == 9:
                writer.write(bytes([0x8A, length]) + body)
            if first & 0x0F != 1:
                continue
            message = json.loads(body)
            match message["event"]:
                case "start":
                    line.stream = message["start"]["streamSid"]
                    self.bot.begin(line)
                    if stalled:
                        await asyncio.Event().wait()
                case "media":
                    self.bot.hear(line, base64.b64decode(message["media"]["payload"]))
                case "mark":
                    self.bot.mark(line, message["mark"]["name"])
