"""DEV-4: pushes to a webhook, checked against docs/push.md."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import subprocess
import time
from typing import TYPE_CHECKING, Self

from client import PATIENCE, remember
from exchange import Exchange, invite

if TYPE_CHECKING:
    from conformance import Stage

KEY = remember("push-secret-of-thirty-two-bytes!")


class Webhook:
    """A small HTTP server that answers with `status`, and keeps the requests."""

    def __init__(self) -> None:
        self.status, self.requests, self.news = "200 OK", [], asyncio.Event()

    async def open(self) -> Self:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *fields = head.strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.check(headers, body)
                self.requests.append((line.split()[1], headers, json.loads(body)))
                self.news.set()
                writer.write(f"HTTP/1.1 {self.status}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
        writer.close()

    def check(self, headers: dict[str, str], body: bytes) -> None:
        """Checks the signature against the page."""
        number, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
        assert abs(time.time() - int(timestamp)) < 60
        code = hmac.new(KEY.encode(), f"{number}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(code).decode(), "wrongly signed"

    async def ask(self, count: int) -> list:
        """Waits for `count` requests."""
        async with asyncio.timeout(3 * PATIENCE):
            while len(self.requests) < count:
                self.news.clear()
                await self.news.wait()
        return self.requests


async def test_push(stage: Stage) -> None:
    """DEV-4, INV-16: An invite and its end reach a disconnected device through a webhook that fails, and kill -9"""
    webhook = await Webhook().open()
    exchange = Exchange(
        stage.handset,
        "pushing",
        database="exchange.sqlite",
        database_durability="normal",
        push={
            "webhooks": [
                {"kind": "apns", "url": webhook.url, "apns_topic": "org.example.phone.voip", "secret_file": "push.secret"},
                {"kind": "*", "url": f"{webhook.url}/all", "secret_file": "push.secret"},
            ]
        },
    )
    exchange.secret_file("push.secret", KEY)
    await exchange.start()
    try:
        alice, bob = await exchange.party(1, 1)
        token = remember("push-token-of-bob")
        await bob.register(push=[{"kind": "apns", "token": token}, {"kind": "web", "token": token}])
        await bob.leave()
        webhook.status = "503 Service Unavailable"
        first = await invite(alice, bob, ttl=60, payload={"title": "Alice calls"}, timeout_payload="missed")
        await webhook.ask(2)
        await exchange.kill()
        webhook.status = "200 OK"
        before = {headers["webhook-id"]: (path, body) for path, headers, body in webhook.requests}
        failed = len(webhook.requests)
        await exchange.start()
        after = {headers["webhook-id"]: (path, body) for path, headers, body in (await webhook.ask(failed + 2))[failed:]}
        assert after == before, "the same pushes, with the same ids"
        by_path = dict(after.values())
        apns, web = by_path[f"/3/device/{token}"], by_path["/all"]
        for body in apns, web:
            assert (body["type"], body["invite"], body["inviter"], body["user"]) == ("invite", first, alice.user, bob.user)
            assert body["payload"] == {"title": "Alice calls"} and 0 < body["expires"] - time.time() <= 61
        assert apns["aps"] == {} and "token" not in apns
        assert web["token"] == token and web["kind"] == "web"

        await alice.resume()
        done = len(webhook.requests)
        webhook.status = "410 Gone"
        await alice.ask("invite.cancel", invite=first)
        for _, _, body in (await webhook.ask(done + 2))[done:]:
            assert (body["type"], body["reason"], body["payload"]) == ("ended", "cancelled", "missed")
        deadline = time.monotonic() + PATIENCE
        while True:
            listed = subprocess.run(
                [stage.handset, "push", "dead", "--database", exchange.path / "exchange.sqlite", "--json"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            dead = [json.loads(line) for line in listed.splitlines()]
            if len(dead) == 2 or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.05)
        assert [(push["reason"], push["answer"], push["message"]) for push in dead] == [("gone", "410", "ended")] * 2
        assert token not in listed and token not in exchange.log.read_text()
        await invite(alice, bob)
        await asyncio.sleep(0.2)
        assert len(webhook.requests) == done + 2, "the tokens are gone"
    finally:
        await exchange.stop()
        exchange.folder.cleanup()
        webhook.server.close()
