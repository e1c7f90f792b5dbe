"""`handset serve` as a process, with a configuration and accounts made for a test."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import pathlib
import re
import secrets
import signal
import subprocess
import tempfile
import time
from typing import Any, Self

from client import PATIENCE, Device, basic, remember, rest

APP = ("conformance", remember("conformance-application-secret"))
API = ("school", remember("conformance-api-key-secret-of-more-than-32-bytes"))
OTHER_API = ("college", remember("another-api-key-secret-of-more-than-32-bytes"))
PASSWORD = remember("correct horse battery staple")
ACCESS_TOKEN = remember("long-lived-access-token-of-ada")
PEOPLE = 1000


def digest(token: str) -> str:
    """What `handset user hash-token` prints, which the tests check once."""
    return hashlib.sha256(token.encode()).hexdigest()


def media_token(user: str) -> str:
    return remember(f"media-token-of-{user}")


class Exchange:
    """An exchange that runs until it is stopped; a killed one can be started again, at the same port."""

    log_level = "debug"

    def __init__(self, handset: str, name: str, **settings: Any) -> None:
        self.handset, self.name = handset, name
        self.folder = tempfile.TemporaryDirectory(prefix=f"conformance-{name}-")
        self.path = pathlib.Path(self.folder.name)
        self.port, self.log, self.numbers = 0, self.path / "log", itertools.count()
        self.process: subprocess.Popen | None = None
        self.environment: dict[str, str] | None = None
        self.secret_file("school.secret", API[1])
        self.secret_file("college.secret", OTHER_API[1])
        hashed = subprocess.run(
            [handset, "user", "hash-password"], input=PASSWORD, capture_output=True, text=True, check=True
        ).stdout.strip()
        people = [f"user-{number}" for number in range(PEOPLE)]
        # JSON is YAML, too.
        (self.path / "exchange.yaml").write_text(
            json.dumps(
                {
                    "listen": "127.0.0.1:0",
                    "messages_per_second": 100_000,
                    "message_burst": 100_000,
                    "failed_logins_per_address": 10_000,
                    "failed_logins_per_account": 10_000,
                    "apps": [{"key": APP[0], "secret_hash": digest(APP[1])}],
                    "api_keys": [{"key": API[0], "secret_file": "school.secret"}, {"key": OTHER_API[0], "secret_file": "college.secret"}],
                    "users": [
                        {"id": "pat", "public_ids": ["pat@test", "+15550123"], "email": "pat@example.org", "password_hash": hashed},
                        {"id": "ada", "access_token_hashes": [digest(ACCESS_TOKEN)]},
                        *(
                            {"id": user, "public_ids": [f"{user}@test"], "media_token_hashes": [digest(media_token(user))]}
                            for user in people
                        ),
                    ],
                }
                | settings,
                indent=1,
            )
        )

    def secret_file(self, name: str, secret: str) -> None:
        path = self.path / name
        path.write_text(secret)
        path.chmod(0o600)

    # --- The process ---

    async def start(self) -> Self:
        options = ["--listen", f"127.0.0.1:{self.port}"] if self.port else []
        written = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [
                    self.handset,
                    "serve",
                    "--config",
                    str(self.path / "exchange.yaml"),
                    "--log-format",
                    "json",
                    "--log-level",
                    self.log_level,
                    *options,
                ],
                stderr=log,
                stdout=log,
                stdin=subprocess.DEVNULL,
                env=self.environment,
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            for line in self.log.read_bytes()[written:].decode().splitlines():
                if '"Listening"' in line:
                    self.port = int(re.search(r'"url":"[a-z]+://[^"]*:(\d+)', line).group(1))
                    return self
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the exchange did not start: {self.log.read_text()[-3000:]}")
            await asyncio.sleep(0.02)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def kill(self) -> None:
        """kill -9: nothing is completed or flushed."""
        self.process.kill()
        await asyncio.to_thread(self.process.wait)

    async def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self.process.wait, 1)
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                await asyncio.to_thread(self.process.wait)

    # --- Users ---

    def people(self, count: int) -> list[str]:
        """`count` users that no other test uses."""
        users = [f"user-{next(self.numbers)}" for _ in range(count)]
        assert int(users[-1].split("-")[1]) < PEOPLE, "raise PEOPLE"
        return users

    async def rest(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[Any, str]:
        return await rest(self.port, method, path, body, **headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return (await self.rest("POST", path, body, **headers))[0]

    async def login(self, user: str, **members: Any) -> dict:
        """A login by media token, unless `members` is another body."""
        body = {"type": "Cima", "media_token": media_token(user), "access_type": "offline", "scope": "mappings"}
        answer = await self.post("/v1.1/login", members or body, Authorization=basic(*APP))
        remember(answer["token"], answer["refresh_token"])
        return answer

    async def guest(self, name: str, device: str | None = None) -> Device:
        answer = await self.post("/v1.1/login/anonymous", {"user_id": name}, Authorization=basic(*APP))
        remember(answer["token"])
        return await Device(self, name, answer["token"], device).start()

    async def idle(self, user: str, name: str | None = None) -> Device:
        """A device of this user that has logged in, and not connected."""
        login = await self.login(user)
        device = Device(self, user, login["token"], name)
        device.refresh_token = login["refresh_token"]
        return device

    async def device(self, user: str, name: str | None = None, **registration: Any) -> Device:
        """A device of this user that is registered."""
        return await (await (await self.idle(user, name)).start()).register(**registration)

    async def devices(self, *users: str) -> list[Device]:
        """One device for each of these users."""
        return await asyncio.gather(*(self.device(user) for user in users))

    async def party(self, *counts: int) -> list[Device]:
        """Devices of users that no other test uses: for each user as many as its count, in one list, in order."""
        users = self.people(len(counts))
        return await self.devices(*(user for user, count in zip(users, counts) for _ in range(count)))


async def invite(inviter: Device, *to: Device | str, ttl: Any = 30, **parameters: Any) -> str:
    """Sends an invite and returns its id."""
    users = [device.user if isinstance(device, Device) else device for device in to]
    parameters.setdefault("data", {"offer": {"type": "offer", "sdp": "v=0\r\n"}})
    parameters.setdefault("idempotency_key", secrets.token_hex(8))
    answer = await inviter.ask("invite.send", to=users[0] if len(users) == 1 else users, ttl=ttl, **parameters)
    return answer["invite"]


async def call(inviter: Device, invitee: Device) -> str:
    """Establishes a call between two devices. Returns its invite."""
    number = await invite(inviter, invitee)
    await invitee.hear("inviteReceived", invite=number)
    await invitee.ask("invite.accept", invite=number, data={"answer": {"type": "answer", "sdp": "v=0\r\n"}})
    await inviter.hear("inviteAccepted", invite=number)
    return number
