"""A small client of docs/protocol.md, for peers that are no browsers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import websockets


class Line:
    """A connection to the exchange: requests with answers, and events."""

    def __init__(self, socket: Any) -> None:
        self.socket, self.waiting, self.events, self.last = socket, {}, asyncio.Queue(), 0

    async def read(self) -> None:
        async for text in self.socket:
            message = json.loads(text)
            if message.get("method") == "event":
                await self.events.put(message["params"])
            elif message.get("id") in self.waiting:
                self.waiting.pop(message["id"]).set_result(message)

    async def ask(self, method: str, **parameters: Any) -> dict:
        self.last += 1
        answer = self.waiting[self.last] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": parameters}))
        message = await asyncio.wait_for(answer, 10)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]


def fetch(url: str, authorization: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        url,
        body and json.dumps(body).encode(),
        {"Authorization": authorization, "Content-Type": "application/json", "User-Agent": "interop/1 linux"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@contextlib.asynccontextmanager
async def signed_in(port: int, user: str) -> AsyncIterator[Line]:
    """A registered device of a user of the demonstration."""
    base = f"http://127.0.0.1:{port}"
    key = base64.b64encode(b"demo:demo").decode()
    token = fetch(
        f"{base}/v1.1/login",
        f"Basic {key}",
        {"type": "Cima", "media_token": f"{user}-demo-token", "access_type": "offline", "scope": "mappings"},
    )["token"]
    place = fetch(f"{base}/v1/connection", f"Bearer {token}")["websocket_url"]
    async with websockets.connect(place) as socket:
        line = Line(socket)
        reading = asyncio.create_task(line.read())
        try:
            device = {"id": f"interop-{user}", "name": "Interop", "capabilities": ["audio"]}
            await line.ask("session.start", token=token, device=device)
            await line.ask("device.register", device=device)
            yield line
        finally:
            reading.cancel()
