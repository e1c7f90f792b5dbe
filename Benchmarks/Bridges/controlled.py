"""An exchange, and devices that are controlled and whose programs listen: shared by measurements of what joins calls."""

from __future__ import annotations

import json
import math
import pathlib
import socket
import struct
import subprocess
import sys
import time
import wave
from typing import Any

#: Hears its call, and sends clicks at times that it notes, or a tone.
PROGRAM = r"""
import math, os, select, struct, sys, time

name, kind = sys.argv[1], sys.argv[2]
frame = 320
tone = b"".join(struct.pack("<h", int(8000 * math.sin(math.pi * n / 16))) for n in range(frame))
silence = bytes(2 * frame)
log = open(name + ".log", "a", buffering=1)
heard, loud, next_frame, count, parts = b"", False, time.monotonic(), 0, 0
os.set_blocking(0, False)
while True:
    if select.select([0], [], [], max(0, next_frame - time.monotonic()))[0]:
        data = os.read(0, 65536)
        if not data:
            break
        now, heard = time.monotonic(), heard + data
        while len(heard) >= 160:
            part, heard = heard[:160], heard[160:]
            is_loud = max(abs(sample) for sample in struct.unpack("<80h", part)) > 1500
            parts += 1
            if is_loud and not loud:
                log.write(f"heard {now}\nloud {parts}\n")
            if loud and not is_loud:
                log.write(f"quiet {parts}\n")
            loud = is_loud
    if time.monotonic() >= next_frame:
        clicks = kind == "clicks" and count % 25 == 0
        if clicks:
            log.write(f"sent {time.monotonic()}\n")
        os.write(1, tone if clicks or kind == "tone" else silence)
        next_frame, count = next_frame + 0.02, count + 1
"""


def cpu_seconds(process: int) -> float:
    # clock_getcpuclockid(3): the clock of another process, in nanoseconds.
    return time.clock_gettime((~process << 3) | 2)


class Site:
    """An exchange, and devices that are controlled."""

    def __init__(self, handset: str, folder: pathlib.Path) -> None:
        self.handset, self.folder = handset, folder
        self.processes: list[subprocess.Popen[bytes]] = []
        (folder / "program.py").write_text(PROGRAM)
        self.start("serve")
        time.sleep(2)

    def start(self, *words: str, core: int | None = None) -> subprocess.Popen[bytes]:
        pinned = [] if core is None else ["taskset", "-c", str(core)]
        command = [*pinned, self.handset, *words]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def device(self, user: str, behaviour: str, more: str = "", core: int | None = None) -> subprocess.Popen[bytes]:
        """Starts a device, on one core or any. `more` are further lines of its configuration."""
        token = self.folder / f"{user}.token"
        token.write_text(f"{user}-demo-token\n")
        token.chmod(0o600)
        (self.folder / f"{user}.yaml").write_text(
            f'account: {{ server: "http://127.0.0.1:8555", media_token_file: {user}.token }}\n'
            f"behaviour: {behaviour}\nanswer: {{ max_calls: 1000 }}\ncontrol: {{ socket: {user}.sock }}\n{more}"
        )
        return self.start("run", "--config", f"{user}.yaml", core=core)

    def program(self, user: str, kind: str) -> subprocess.Popen[bytes]:
        command = f"[{sys.executable}, {self.folder}/program.py, {self.folder}/{user}, {kind}]"
        return self.device(user, f"{{ source: exec, command: {command} }}")

    def ask(self, user: str, **request: object) -> dict[str, object]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.folder / f"{user}.sock"))
            connection.sendall((json.dumps(request) + "\n").encode())
            answer: dict[str, object] = json.loads(connection.makefile().readline())
        if not answer["ok"]:
            sys.exit(f"{request}: {answer}")
        return answer

    def status(self, user: str) -> dict[str, Any]:
        status = self.ask(user, request="status")["status"]
        assert isinstance(status, dict)
        return status

    def talking(self, user: str) -> list[int]:
        """The calls that are established, of the newest 64."""
        return [call["call"] for call in self.status(user).get("calls", []) if call["state"] == "talking"]

    def await_calls(self, user: str, count: int) -> list[int]:
        for _ in range(200):
            if len(self.talking(user)) == count:
                return self.talking(user)
            time.sleep(0.05)
        sys.exit(f"{user} has {len(self.talking(user))} calls and not {count}")

    def times(self, user: str, what: str) -> list[float]:
        lines = (self.folder / f"{user}.log").read_text().splitlines()
        return [float(line.split()[1]) for line in lines if line.startswith(what)]

    def forget(self, *users: str) -> None:
        for user in users:
            (self.folder / f"{user}.log").write_text("")

    def hang_up(self, user: str) -> None:
        # A joined call ends with the other.
        while calls := self.talking(user):
            self.ask(user, request="hangup", call=calls[0])
            time.sleep(0.3)
        time.sleep(0.3)

    def end(self, *processes: subprocess.Popen[bytes]) -> None:
        for process in processes or tuple(reversed(self.processes)):
            if process.poll() is None:
                process.terminate()
                process.wait()


def one_way(site: Site, sender: str, receiver: str, seconds: float = 8) -> list[float]:
    """Milliseconds from each click of a program until a program at the other end of its call reads it."""
    site.forget(sender, receiver)
    time.sleep(seconds)
    sent, heard = site.times(sender, "sent"), site.times(receiver, "heard")
    delays = []
    for begin, end in zip(sent, sent[1:]):
        arrived = [moment for moment in heard if begin < moment < end]
        delays += [(moment - begin) * 1000 for moment in arrived[:1]]
    return delays


def write_tone(path: pathlib.Path, seconds: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 48000, 0, "NONE", ""))
        second = [int(4000 * math.sin(2 * math.pi * 500 * index / 48000)) for index in range(48000)]
        for _ in range(seconds):
            file.writeframes(struct.pack("<48000h", *second))
