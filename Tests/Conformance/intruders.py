"""Attackers who cannot log in, and send hostile bytes."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from typing import TYPE_CHECKING

from attackers import ROOMS, Prowler
from client import basic
from exchange import APP
from forms import METHODS, bad_name, frames, odd_value
from raw import Line, blurt, connect, request

if TYPE_CHECKING:
    from model import Party, Principal
    from test_model import Model


class Stranger(Prowler):
    """An attacker without an account or the application's key."""

    def __init__(self, model: Model, name: str, random: random.Random, source: str) -> None:
        super().__init__(model, name, random, source)
        self.principal: Principal = ("stranger", name)
        self.party: Party = (self.principal, None)
        self.deeds = {self.guess: 4, self.odd_request: 6, self.half_request: 2, self.odd_socket: 5, self.no_bytes: 1}

    async def arrive(self) -> None:
        pass

    def __str__(self) -> str:
        return self.name

    async def guess(self) -> None:
        body = self.random.choice(
            [
                {"type": "Cima", "media_token": "media-token-of-nobody"},
                {"type": "Password", "user_id": "ann", "password": "x" * 99},
                {"type": "AccessToken", "user_id": "ann\0", "access_token": "\u202e"},
                {"refresh_token": "r" * 256},
                [],
                17,
                {"user_id": bad_name(self.random, "ann")},
                {"user_id": "ann"},
                odd_value(self.random),
            ]
        )
        path = self.random.choice(["/v1.1/login", "/v1.1/login/anonymous", "/v1.1/token", "/v1.1/logout"])
        secret = self.random.choice([basic(*APP), basic("x", "y"), "Basic ====", "Bearer " + "x" * 43, None])
        _, content = await self.http("POST", path, body, Authorization=secret)
        if b'"refresh_token"' in content:
            self.model.oracle.fault(f"{self.name} logged in: {content[:300]!r}")

    async def odd_request(self) -> None:
        token = self.random.choice(["x", "\u00ff", "x" * 9000, ""])
        raw = self.random.choice(
            [
                lambda: request(
                    "GET",
                    self.random.choice(
                        [
                            "/",
                            "/v1/rtc",
                            "/v1/connection",
                            "/v1/allidentities",
                            "/v1/web-config",
                            "/whip/ann",
                            "/../../etc/passwd",
                            "/%00",
                            "/" + "a" * 20000,
                        ]
                    ),
                    Authorization=f"Bearer {token}",
                ),
                lambda: request("POST", "/v1.1/login", b"{" * 8000, Authorization=basic(*APP)),
                lambda: request("POST", "/v1.1/login", b"x" * 9000, Content_Length=str(self.random.choice([-1, 1 << 40, 9000]))),
                lambda: request(self.random.choice(["DELETE", "PATCH", "OPTIONS", "TRACE", "\0", "GET" * 99]), "/whip/session/x"),
                lambda: request("GET", "/v1/connection", Host="evil.example"),
                lambda: request("POST", "/v1.1/login", b"5\r\nhello\r\nzz\r\n", Transfer_Encoding="chunked", Content_Length=None),
                lambda: self.random.randbytes(self.random.randrange(1, 20000)),
                lambda: b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 3000 + b"\r\n",
                lambda: request(
                    "GET", "/v1/rtc", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Version="13", Sec_WebSocket_Key="short"
                ),
            ]
        )()
        self.model.oracle.steps += 1
        self.model.oracle.note(self.name, ">", raw)
        self.model.oracle.scan(self, await blurt(self.model.exchange, self.source, raw, seconds=2), over_http=True)

    async def half_request(self) -> None:
        raw = request("POST", "/v1.1/login", json.dumps({"type": "Cima"}).encode(), Authorization=basic(*APP))
        self.model.oracle.steps += 1
        await blurt(
            self.model.exchange, self.source, raw[: self.random.randrange(1, len(raw))], seconds=2, hold=self.random.choice([0.0, 0.5])
        )

    async def odd_socket(self) -> None:
        """A WebSocket without a session: frames that are bad, big, or in pieces."""
        line = await Line.open(self.model.exchange, self.source, lambda data: self.model.oracle.scan(self, data))
        try:
            for _ in range(self.random.randrange(1, 8)):
                marker = self.model.oracle.mark({self.principal}, why=f"a frame of {self.name}")
                method = self.random.choice(METHODS)
                start = {
                    "jsonrpc": "2.0",
                    "id": "raw",
                    "method": method,
                    "params": {
                        "token": self.random.choice(["x", "x" * 24600, base64.b64encode(self.random.randbytes(32)).decode()]),
                        "device": {"id": "ann-phone", "name": "N", "capabilities": []},
                        "invite": self.random.choice(list(self.model.recent_invites) or ["i"]),
                        "room": ROOMS[0],
                        "data": marker.text,
                    },
                }
                data, _ = frames(self.random, marker.text)
                self.model.oracle.steps += 1
                await (line.put(data) if self.random.random() < 0.6 else line.send(json.dumps(start).encode()))
                await asyncio.sleep(self.random.choice([0, 0, 0.05]))
        finally:
            line.drop()

    async def no_bytes(self) -> None:
        """Connections over which nothing comes, or half a handshake."""
        writers = []
        for _ in range(self.random.randrange(1, 12)):
            _, writer = await connect(self.model.exchange, self.source)
            writer.write(b"GET /v1/rtc HTTP/1.1\r\nHost: localhost\r\n"[: self.random.randrange(40)])
            writers.append(writer)
        await asyncio.sleep(self.random.uniform(0, 2))
        for writer in writers:
            writer.transport.abort()
        self.model.oracle.steps += 1
