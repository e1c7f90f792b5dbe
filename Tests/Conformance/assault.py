"""The exchange that the attackers' model runs against: killed and started again, looked at, and administered."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import re
import shutil
import signal
import sqlite3
import ssl
import subprocess
import tempfile
import time
from typing import Any, Self

from exchange import Exchange, digest, media_token
from test_push import KEY, Webhook

MIB = 1 << 20
KEPT, LOGIN, TURNS = 16, 4, 8  # MiB: `kept_memory_mib`, `login_memory_mib`, and the memory of requests that wait.
ATTACKERS = [f"attacker-{number}" for number in range(4)]
HONEST = ["ann", "ben"]
FLEETING = ["here-today", "gone-tomorrow"]  # Removed and added again, revoked, over and over.
JOINING = ["kim", "lee"]  # Their devices join by codes.
# Who fill the slots of one user (crowd.py).
VICTIM, WATCHERS, PASSERS_BY = "vic", [f"watcher-{number}" for number in range(2)], [f"passer-by-{number}" for number in range(7)]
HANDS, NEWCOMERS = [f"hand-{number}" for number in range(2)], [f"newcomer-{number}" for number in range(2)]
CROWD = [VICTIM, *WATCHERS, *PASSERS_BY, *HANDS, *NEWCOMERS]


def public_id(user: str) -> str:
    return f"{user}@model"


class Assaulted(Exchange):
    """An exchange with little memory, short tokens and a database, over plain text or TLS."""

    log_level = "info"

    def __init__(self, handset: str, name: str, is_private: bool) -> None:
        settings = {}
        if is_private:
            settings["certificate"] = {"chain_file": "certificate.pem", "key_file": "key.pem"}
        users = [
            {"id": user, "public_ids": [public_id(user)], "media_token_hashes": [digest(media_token(user))]}
            for user in ATTACKERS + HONEST + CROWD
        ]
        super().__init__(
            handset,
            name,
            database="exchange.sqlite",
            database_durability="normal",
            users=users,
            users_file="users.yaml",
            kept_memory_mib=KEPT,
            login_memory_mib=LOGIN,
            resume_window_seconds=20,
            keepalive_seconds=5,
            token_lifetime_seconds=25,
            token_notice_seconds=10,
            stream_ringing_seconds=3,
            messages_per_second=100,
            message_burst=500,
            push={},
            **settings,
        )
        self.tls: ssl.SSLContext | None = None
        self.bodies, self.baseline, self.peak = [], 0, 0
        self.is_meant_to_run, self.restarts, self.checked = False, 0, 0
        self.up_since = 0.0  # When it was ready.
        self.webhook: Pushes | None = None
        if is_private:
            self._certify()

    def _certify(self) -> None:
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-out",
                self.path / "certificate.pem",
                "-keyout",
                self.path / "key.pem",
            ],
            check=True,
            capture_output=True,
        )
        (self.path / "key.pem").chmod(0o600)
        self.tls = ssl.create_default_context(cafile=str(self.path / "certificate.pem"))

    async def begin(self) -> Self:
        """Writes what the configuration still lacks, and starts it."""
        self.webhook = await Pushes().open()
        self.secret_file("push.secret", KEY)
        path = self.path / "exchange.yaml"
        settings = json.loads(path.read_text()) | {
            "push": {"webhooks": [{"kind": "*", "url": self.webhook.url, "secret_file": "push.secret"}]}
        }
        path.write_text(json.dumps(settings))
        for user in FLEETING + JOINING:
            await self.add(user)
        await self.start()
        self.is_meant_to_run, self.up_since = True, time.monotonic()
        return self

    # --- Accounts ---

    async def administer(self, *arguments: str) -> str:
        """`handset user ...` on this exchange's users; what it prints."""
        process = await asyncio.create_subprocess_exec(
            self.handset,
            "user",
            arguments[0],
            "--config",
            str(self.path / "exchange.yaml"),
            *arguments[1:],
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, complaint = await process.communicate()
        assert process.returncode == 0, f"handset user {arguments}: {complaint.decode()}"
        return printed.decode()

    async def add(self, user: str) -> None:
        printed = await self.administer("add", "--media-token", "--public-id", public_id(user), user)
        self.media_tokens = getattr(self, "media_tokens", {}) | {user: printed.split(": ")[1].strip()}

    async def has_read_users(self, count: int, after: int) -> None:
        """Waits until the log says after its first `after` bytes, over any number of restarts, that the users file was read and has
        this many users. An earlier version of the file may be read as late as that, and has another number.
        """
        async with asyncio.timeout(60):
            while True:
                with open(self.log, "rb") as log:
                    log.seek(after)
                    lines = log.read().splitlines()
                if any(b'"The users file was read"' in line and b'"users":"%d"' % count in line for line in lines):
                    return
                await asyncio.sleep(0.1)

    def media_token(self, user: str) -> str:
        return self.media_tokens.get(user, media_token(user))

    # --- The process ---

    async def restart(self, how: signal.Signals) -> None:
        """Ends it with SIGKILL or SIGTERM, checks its database with SQLite's own check, and starts it again."""
        self.is_meant_to_run = False
        self.process.send_signal(how)
        if how == signal.SIGTERM:
            await asyncio.sleep(0.3)
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(how)  # At once: the first asks devices to move, and waits for calls.
        await asyncio.to_thread(self.process.wait)
        ended = self.process.returncode
        assert ended in ((-how,) if how == signal.SIGKILL else (0, 130)), f"it ended with {ended} after {how.name}"
        self.check_database()
        await self.start()
        self.is_meant_to_run, self.restarts, self.up_since = True, self.restarts + 1, time.monotonic()

    def check_database(self) -> None:
        """Checks with SQLite that a copy of the file and its log is sound."""
        with tempfile.TemporaryDirectory(dir=self.path) as folder:
            for path in self.path.glob("exchange.sqlite*"):
                shutil.copy(path, folder)
            with contextlib.closing(sqlite3.connect(pathlib.Path(folder) / "exchange.sqlite")) as database:
                found = database.execute("PRAGMA integrity_check").fetchall()
                assert found == [("ok",)], f"the database is damaged: {found[:5]}"
                assert not database.execute("PRAGMA foreign_key_check").fetchall()
        self.checked += 1

    def memory(self) -> int:
        """Resident bytes of the process."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) * 1024

    def bound(self, connections: int) -> int:
        """Bytes that it may use: what it needs at rest, what its budgets allow (docs/protocol.md#limits: twice what is
        kept, four times what waits for its turn), what waits for clients that read slowly, and two passwords' hashing.
        """
        return self.baseline + (2 * KEPT + LOGIN + 4 * TURNS + connections + 64) * MIB

    def complaints(self) -> list[bytes]:
        """Lines of the log that an exchange without faults does not write: what is no record, and records of errors."""
        found = []
        for line in self.log.read_bytes().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                found.append(line[:500])
                continue
            if record.get("level") in ("error", "critical"):
                found.append(line[:500])
        return found

    def check_secrets(self, tokens: dict[bytes, Any]) -> None:
        """Checks that the log has none of these."""
        words = set(re.findall(rb"[A-Za-z0-9_.-]{40,}", self.log.read_bytes()))
        assert not words & tokens.keys(), f"a token is in the log: {sorted(words & tokens.keys())[:3]}"

    async def end(self) -> None:
        self.is_meant_to_run = False
        await self.stop()
        if self.webhook is not None:
            self.webhook.server.close()
        self.folder.cleanup()


class Pushes(Webhook):
    """A webhook that forgets each request once `look` has seen it."""

    def __init__(self) -> None:
        super().__init__()
        self.look = lambda body: None

    def check(self, headers: dict[str, str], body: bytes) -> None:
        super().check(headers, body)
        self.look(body)
        del self.requests[:]
