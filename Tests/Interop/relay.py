"""TURN servers: coturn, as processes on this machine."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence

from phones import Failed, wait

# The secret that the relay shares with an exchange, which makes names and passwords with it.
SECRET = "secret-of-exchange-and-relay"


class Relay:
    """One coturn, which relays from `address`; `prefix` is a command to run it by, such as one that enters a network."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0, prefix: Sequence[str] = ()) -> None:
        if not shutil.which("turnserver"):
            raise Failed("there is no turnserver; it comes with the package coturn")
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        self.log = folder / "log"
        self.address, self.port = address, port or free_port(address)
        settings = folder / "turnserver.conf"
        settings.write_text(
            "\n".join(
                [
                    f"listening-ip={address}",
                    f"relay-ip={address}",
                    f"listening-port={self.port}",
                    "use-auth-secret",
                    f"static-auth-secret={SECRET}",
                    "realm=interop",
                    "no-tls",
                    "no-dtls",
                    "no-cli",
                    "allow-loopback-peers",
                    f"pidfile={folder / 'pid'}",
                    f"userdb={folder / 'users'}",
                    "log-file=stdout",
                    "simple-log",
                    "verbose",
                    "",
                ]
            )
        )
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*prefix, "turnserver", "-c", str(settings)], stdout=log, stderr=log, cwd=folder)
        wait("coturn listens", self._listening, 20)

    def _listening(self) -> bool:
        if self.process.poll() is not None:
            raise Failed("coturn ended: " + self.log.read_text()[-1000:])
        return "UDP listener opened" in self.log.read_text()

    @property
    def url(self) -> str:
        return f"turn:{self.address}:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.kill()
        with contextlib.suppress(OSError):
            self.folder.cleanup()


def free_port(address: str) -> int:
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as one:
        one.bind((address, 0))
        return one.getsockname()[1]
