"""WebSocket frames and HTTP requests as bytes: what a client's library refuses to send."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import secrets
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from client import PATIENCE, Lost

if TYPE_CHECKING:
    from assault import Assaulted

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


async def connect(exchange: Assaulted, source: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A TCP or TLS connection from one of this machine's addresses: a reader and a writer."""
    tls: dict[str, Any] = {"ssl": exchange.tls, "server_hostname": "localhost"} if exchange.tls else {}
    try:
        return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", exchange.port, local_addr=(source, 0), **tls), PATIENCE)
    except (TimeoutError, OSError) as error:
        raise Lost(f"no connection: {error}") from error


def frame(opcode: int, payload: bytes, fin: bool = True, reserved: int = 0, masked: bool = True, claimed: int | None = None) -> bytes:
    """One frame (RFC 6455 §5.2); `claimed` is the length in its head."""
    size = len(payload) if claimed is None else claimed
    mark = 0x80 if masked else 0
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    if size < 126:
        head += bytes([mark | size])
    elif size < 1 << 16:
        head += bytes([mark | 126]) + struct.pack(">H", size)
    else:
        head += bytes([mark | 127]) + struct.pack(">Q", size)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    keys = (mask * (len(payload) // 4 + 1))[: len(payload)]
    mixed = int.from_bytes(payload, "big") ^ int.from_bytes(keys, "big")
    return head + mask + mixed.to_bytes(len(payload), "big")


class Line:
    """One WebSocket. Each received text goes to `hear` as bytes, in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Callable[[bytes], None]) -> None:
        self.reader, self.writer, self.hear = reader, writer, hear
        self.code: int | None = None  # The exchange's close code; 1006 without a close frame.
        self.answers_pings = True
        self.reading = asyncio.create_task(self._read())

    @classmethod
    async def open(
        cls, exchange: Assaulted, source: str, hear: Callable[[bytes], None], path: str = "/v1/rtc", host: str = "localhost"
    ) -> Self:
        reader, writer = await connect(exchange, source)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        try:
            writer.write(
                (
                    f"GET {path} HTTP/1.1\r\nHost: {host}:{exchange.port}\r\nUpgrade: websocket\r\n"
                    f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
                ).encode()
            )
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            writer.transport.abort()
            raise Lost(f"no answer to the handshake: {error}") from error
        if b" 101 " not in head.split(b"\r\n")[0]:
            writer.transport.abort()
            raise Lost(f"refused: {head[:200]!r}")
        return cls(reader, writer, hear)

    @property
    def is_open(self) -> bool:
        return not self.reading.done()

    async def _read(self) -> None:
        try:
            while True:
                first, second = await self.reader.readexactly(2)
                size = second & 0x7F
                if size == 126:
                    (size,) = struct.unpack(">H", await self.reader.readexactly(2))
                elif size == 127:
                    (size,) = struct.unpack(">Q", await self.reader.readexactly(8))
                payload = await self.reader.readexactly(size)
                if not self._take(first, second, payload):
                    return
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.code = self.code or 1006
            self.writer.transport.abort()

    def _take(self, first: int, second: int, payload: bytes) -> bool:
        """Handles one frame. Returns whether more may follow."""
        opcode = first & 0x0F
        assert first & 0xF0 == 0x80 and second < 0x80, f"in pieces, masked, or with reserved bits: {first:x} {second:x}"
        if opcode == TEXT:
            self.hear(payload)
        elif opcode == PING:
            if self.answers_pings:
                self.writer.write(frame(PONG, payload))
        elif opcode == CLOSE:
            self.code = struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005
            self.writer.write(frame(CLOSE, payload[:2]))
            return False
        else:
            assert opcode == PONG, f"a frame with opcode {opcode}"
        return True

    async def put(self, data: bytes) -> None:
        """Sends bytes as they are."""
        if not self.is_open:
            raise Lost(f"closed with {self.code}")
        try:
            self.writer.write(data)
            await asyncio.wait_for(self.writer.drain(), PATIENCE)
        except (TimeoutError, OSError) as error:
            self.drop()
            raise Lost(str(error)) from error

    async def send(self, payload: bytes, opcode: int = TEXT, **options: Any) -> None:
        await self.put(frame(opcode, payload, **options))

    def drop(self) -> None:
        """Cuts the connection, without a close frame."""
        self.writer.transport.abort()
        self.reading.cancel()

    async def ended(self) -> None:
        """Returns once nothing more will come."""
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([self.reading])


async def blurt(exchange: Assaulted, source: str, data: bytes, seconds: float = 3.0, hold: float = 0.0) -> bytes:
    """Sends bytes to the exchange's port, and returns what it answers until it closes, or within `seconds`.

    The second half is sent after `hold` seconds.
    """
    reader, writer = await connect(exchange, source)
    heard = bytearray()

    async def listen() -> None:
        while piece := await reader.read(65536):
            heard.extend(piece)

    listening = asyncio.create_task(listen())
    try:
        middle = len(data) // 2 if hold else len(data)
        writer.write(data[:middle])
        if hold:
            await asyncio.sleep(hold)
            writer.write(data[middle:])
        await asyncio.wait([listening], timeout=seconds)
    finally:
        writer.transport.abort()
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await listening
    return bytes(heard)


def request(method: str, path: str, body: bytes = b"", **headers: str | None) -> bytes:
    """An HTTP request as bytes, on a connection that closes after it."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items() if value is not None
    }
    return "\r\n".join(lines + [f"{name}: {value}" for name, value in headers.items()]).encode() + b"\r\n\r\n" + body


def status(answer: bytes) -> tuple[int, bytes]:
    """The status and the body of an HTTP answer; 0 if there was none."""
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        return 0, b""
    if b"transfer-encoding: chunked" in head.lower():
        whole, rest = b"", body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            count = int(size or b"0", 16)
            whole, rest = whole + rest[:count], rest[count + 2 :]
            if not count:
                break
        body = whole
    return int(words[1]), body
