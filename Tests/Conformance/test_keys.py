"""AUTH-13: a device joins by a code, and logs in by a key that only it has."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from client import Device, RESTRefused, basic, refusal, remember
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from exchange import APP, Exchange

if TYPE_CHECKING:
    from conformance import Stage


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """A device's key, and the signatures of the page."""

    def __init__(self) -> None:
        self.private = Ed25519PrivateKey.generate()
        self.public = text(self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, *lines: str) -> str:
        return text(self.private.sign("".join(f"{line}\n" for line in lines).encode()))

    def joining(self, code: str) -> dict:
        return {"code": code, "public_key": self.public, "signature": self.sign("handset-enroll-1", code, self.public)}


async def login(
    exchange: Exchange, key: Key, user: str, enrollment: str, challenge: str | None = None
) -> tuple[str, Awaitable[tuple[Any, str]]]:
    """A login by key; the challenge and the answer."""
    if challenge is None:
        body = {"user_id": user, "public_key": key.public}
        challenge = (await exchange.rest("POST", "/v1.1/login/challenge", body))[0]["challenge"]
    signature = key.sign("handset-login-1", user, enrollment, key.public, challenge)
    body = {"type": "Key", "user_id": user, "public_key": key.public, "challenge": challenge, "signature": signature}
    return challenge, exchange.rest("POST", "/v1.1/login", body, Authorization=basic(*APP))


async def test_key_login(stage: Stage) -> None:
    """AUTH-13: A device joins by a code, once, and logs in by its key; replays and other keys are refused"""
    handset = stage.handset
    exchange = await Exchange(handset, "keys", users_file="users.yaml").start()
    try:
        made = subprocess.run(
            [
                handset,
                "user",
                "enroll",
                "kim",
                "--config",
                str(exchange.path / "exchange.yaml"),
                "--server",
                f"http://127.0.0.1:{exchange.port}",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        code = remember(made.removeprefix("HANDSET://").split("/")[1].replace("-", ""))
        key, other = Key(), Key()
        for _ in range(50):
            try:
                joined = (await exchange.rest("POST", "/v1.1/enroll", key.joining(code)))[0]
                break
            except RESTRefused as error:  # The exchange looks at its users every second.
                assert error.code in ("enrollmentUnknown", "tooManyRequests"), error
                await asyncio.sleep(0.1)
        assert joined["user_id"] == "kim", joined
        assert (await exchange.rest("POST", "/v1.1/enroll", key.joining(code)))[0] == joined, "the answer was lost"
        await refusal(exchange.rest("POST", "/v1.1/enroll", other.joining(code)), "enrollmentUsed")
        await refusal(exchange.rest("POST", "/v1.1/enroll", other.joining("0" * 20)), "enrollmentUnknown")
        challenge, answer = await login(exchange, key, "kim", joined["enrollment"])
        answer = (await answer)[0]
        remember(answer["token"], answer["refresh_token"])
        assert (await Device(exchange, "kim", answer["token"]).start()).answer["user"] == "kim"
        await refusal((await login(exchange, key, "kim", joined["enrollment"], challenge))[1], "challengeExpired")
        await refusal((await login(exchange, other, "kim", joined["enrollment"]))[1], "wrongKey")
        await refusal((await login(exchange, key, "kim", "another-exchange"))[1], "wrongKey")
        await refusal((await login(exchange, key, "pat", joined["enrollment"]))[1], "wrongKey")
    finally:
        await exchange.stop()
