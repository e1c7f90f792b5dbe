"""A minimal device on a WebSocket, for measurements: docs/protocol.md over RFC 6455."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from collections.abc import Callable


class Device:
    def __init__(self, port: int, user: str, sign: Callable[[str], str]) -> None:
        self.user, self.buffer, self.number = user, bytearray(), 0
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /v1/rtc HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self.buffer:
            chunk = self.socket.recv(4_096)
            if not chunk:
                raise ConnectionError(f"the exchange closed: {bytes(self.buffer)!r}")
            self.buffer += chunk
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        if b" 101 " not in head.splitlines()[0] + b" ":
            raise ConnectionError(head.decode(errors="replace"))
        self.buffer = bytearray(rest)
        self.description = {"id": f"device-of-{user}", "name": user, "capabilities": []}
        self.call("session.start", {"token": sign(user), "device": self.description})

    @staticmethod
    def frame(payload: bytes, opcode: int = 1) -> bytes:
        """A frame with a masking key of zeros, so that masking changes nothing."""
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 65_536:
            head = struct.pack("!BBH", 0x80 | opcode, 0xFE, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0xFF, size)
        return head + bytes(4) + payload

    def write(self, frame: bytes) -> None:
        """Sends small messages, which the kernel takes whole."""
        blocking = self.socket.getblocking()
        self.socket.setblocking(True)
        self.socket.sendall(frame)
        self.socket.setblocking(blocking)

    def ask(self, method: str, params: dict, number: int | None = None) -> int:
        self.number += 1
        number = self.number if number is None else number
        self.write(self.frame(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()))
        return number

    def pong(self) -> None:
        self.write(self.frame(b"", 10))

    def receive(self) -> list[dict]:
        """The received messages; answers pings."""
        chunk = self.socket.recv(1 << 18)
        if not chunk:
            raise ConnectionError(f"the exchange closed the connection of {self.user}")
        self.buffer += chunk
        messages = []
        while len(self.buffer) >= 2:
            size, start = self.buffer[1] & 0x7F, 2
            if size == 126:
                start = 4
                size = struct.unpack_from("!H", self.buffer, 2)[0] if len(self.buffer) >= 4 else 1 << 62
            elif size == 127:
                start = 10
                size = struct.unpack_from("!Q", self.buffer, 2)[0] if len(self.buffer) >= 10 else 1 << 62
            if len(self.buffer) < start + size:
                break
            opcode, payload = self.buffer[0] & 0x0F, bytes(self.buffer[start : start + size])
            del self.buffer[: start + size]
            if opcode == 9:
                self.write(self.frame(payload, 10))
            elif opcode == 8:
                raise ConnectionError(f"the exchange closed the connection of {self.user}: {payload[2:].decode()}")
            elif opcode == 1:
                messages.append(json.loads(payload))
        return messages

    def call(self, method: str, params: dict) -> dict:
        """Sends a request, and waits for the answer."""
        number = self.ask(method, params)
        while True:
            for message in self.receive():
                if message.get("id") == number and "method" not in message:
                    if "error" in message:
                        raise RuntimeError(f"{method} of {self.user}: {message['error']}")
                    return message["result"]

    def register(self) -> None:
        self.call("device.register", {"device": self.description})

    def drop(self) -> None:
        """Closes the connection without ending the session."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
