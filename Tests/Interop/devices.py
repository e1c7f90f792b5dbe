"""Handset's own side of a call: `handset run` and `handset call` as processes, and the kernel's figures of them."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import tempfile
from typing import TYPE_CHECKING

from phones import Failed, wait

if TYPE_CHECKING:
    from phones import Exchange


class Device:
    """`handset run`, logged in to an exchange as one of the demonstration's users."""

    def __init__(
        self,
        handset: str,
        exchange: Exchange,
        user: str = "echo",
        behaviour: str = "source: echo",
        answer: str = "mode: auto",
        media: str = "",
    ) -> None:
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        (folder / "token").write_text(f"{user}-demo-token")
        (folder / "device.yaml").write_text(
            f"account: {{ media_token_file: token }}\n"
            f"device: {{ name: Interop }}\n"
            f"answer: {{ {answer} }}\n"
            f"behaviour: {{ {behaviour} }}\n"
            f"media: {{ address: 127.0.0.1{media and ', ' + media} }}\n"
        )
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    handset,
                    "run",
                    "--config",
                    str(folder / "device.yaml"),
                    "--server",
                    f"http://127.0.0.1:{exchange.port}",
                    "--log-format",
                    "json",
                    "--log-level",
                    "debug",
                ],
                stderr=log,
                env=os.environ | {"HANDSET_DUMPABLE": "1"},
            )  # So that its descriptors can be counted.
        wait("the device is ready", lambda: self.tells("Ready"), 20)

    def events(self, message: str) -> list[dict]:
        """The log's entries with this message, oldest first."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("message") == message]

    def tells(self, message: str) -> list[dict]:
        if self.process.poll() is not None:
            raise Failed("the device ended: " + self.log.read_text()[-2000:])
        return self.events(message)

    def usage(self) -> dict[str, int]:
        """Resident kB, open descriptors and threads, as the kernel counts them."""
        folder = pathlib.Path(f"/proc/{self.process.pid}")
        status = (folder / "status").read_text()
        resident, threads = (int(re.search(rf"{name}:\s+(\d+)", status).group(1)) for name in ("VmRSS", "Threads"))
        return {"resident_kb": resident, "descriptors": len(list((folder / "fd").iterdir())), "threads": threads}

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)
        self.folder.cleanup()


class Caller:
    """`handset call`, as the demonstration's user "caller"."""

    def __init__(self, handset: str, exchange: Exchange, callee: str, *options: str) -> None:
        self.process = subprocess.Popen(
            [handset, "call", callee, "--server", f"http://127.0.0.1:{exchange.port}", "--json", *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def report(self, seconds: float = 60) -> dict:
        """The call's report, once it has ended; its exit code is under `exit`."""
        try:
            output, complaints = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            self.stop()
            raise Failed(f"handset call has not ended within {seconds} s") from error
        if not output.strip():
            raise Failed(f"handset call has nothing to report: {complaints}")
        return json.loads(output) | {"exit": self.process.returncode}

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
