"""Shared by the checks of SIP: a network, kamailio, baresip, SIPp, an exchange, devices, and what they hear."""

from __future__ import annotations

import array
import contextlib
import json
import math
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tries import LIMIT, TRIES, Witness

FOLDER = pathlib.Path(__file__).resolve().parent / "sip"
PORT, TLS_PORT, WS_PORT, WSS_PORT = 25060, 25061, 25080, 25081
SERVERS = {"udp": PORT, "tcp": PORT, "tls": TLS_PORT, "ws": WS_PORT, "wss": WSS_PORT}
PEER, TRUNK = "10.99.0.1", "10.99.0.2"
# For SIPp's uac.xml with kamailio between: its routes are then kamailio's.
KAMAILIO_ROUTES = (*((f"Record-Route: <sip:[local_ip]:[local_port];lr;n={number}>\n", "") for number in (2, 1)), ("n=2.*", "r2=on.*"))

Check = Callable[[str, pathlib.Path], None]


class Failed(Exception):
    """A check failed."""


def wait(what: str, condition: Callable[[], Any], seconds: float = 10) -> Any:
    """Waits until the condition holds. Returns its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise Failed(f"not within {seconds} s: {what}")


def run(*command: str | pathlib.Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def powers(path: pathlib.Path, *frequencies: float) -> list[float]:
    """The share of a recording's energy at each frequency, over its loud part."""
    with wave.open(str(path)) as file:
        rate, channels = file.getframerate(), file.getnchannels()
        samples = array.array("h", file.readframes(file.getnframes()))[::channels]
    size = rate // 10
    best = [0.0 for _ in frequencies]
    for start in range(0, len(samples) - size, size):
        part = samples[start : start + size]
        energy = sum(value * value for value in part) / size
        if energy < 100**2:
            continue
        for index, frequency in enumerate(frequencies):
            step = 2 * math.pi * frequency / rate
            real = sum(value * math.cos(step * place) for place, value in enumerate(part)) / size
            imaginary = sum(value * math.sin(step * place) for place, value in enumerate(part)) / size
            best[index] = max(best[index], 2 * (real * real + imaginary * imaginary) / energy)
    return best


def expect_sound(path: pathlib.Path, whose: str) -> None:
    """Checks that a recording has speech."""
    loud = powers(path, 1_000)[0] if pathlib.Path(path).exists() else 0
    if loud <= 0:
        raise Failed(f"{whose}: {path} is silent")


def expect_tone(path: pathlib.Path, frequency: float, whose: str) -> None:
    share = powers(path, frequency)[0] if pathlib.Path(path).exists() else 0
    if share < 0.8:
        raise Failed(f"{whose}: of {frequency} Hz there is {share:.2f} in {path}")


def make_tone(path: pathlib.Path, frequency: float, seconds: int = 5, rate: int = 48_000) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(
            array.array("h", (int(8_000 * math.sin(2 * math.pi * frequency * place / rate)) for place in range(seconds * rate))).tobytes()
        )


class Program:
    """A process whose output goes to a file."""

    # All that was started, also what was not ready in time and so has no owner.
    started = []

    def __init__(
        self,
        name: str,
        command: Sequence[str | pathlib.Path],
        folder: pathlib.Path,
        environment: dict[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.name, self.log = name, pathlib.Path(folder) / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=stdin,
                cwd=folder,
                env={**os.environ, **(environment or {})},
            )
        Program.started.append(self)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, pattern: str) -> re.Match[str] | None:
        if self.process.poll() is not None and not re.search(pattern, self.text()):
            raise Failed(f"{self.name} ended with {self.process.returncode}: {self.text()[-1500:]}")
        return re.search(pattern, self.text())

    def stop(self, seconds: float = 10) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


P = TypeVar("P", bound=Program)


@contextlib.contextmanager
def running(program: P) -> Iterator[P]:
    try:
        yield program
    except Exception:
        print(f"--- {program.name}\n{program.text()[-3000:]}", file=sys.stderr)
        raise
    finally:
        program.stop()


class Kamailio(Program):
    """A registrar and proxy of the domain sip.test."""

    def __init__(self, folder: pathlib.Path, algorithm: str = "MD5", *options: str) -> None:
        for name in ("kamailio.cfg", "tls.cfg"):
            text = (FOLDER / name).read_text()
            for word, port in (("WSSPORT", WSS_PORT), ("WSPORT", WS_PORT), ("TLSPORT", TLS_PORT), ("PORT", PORT)):
                text = text.replace(word, str(port))
            text = text.replace("ALGORITHM", algorithm).replace("FOLDER", str(folder))
            (folder / name).write_text(text)
        if not (folder / "cert.pem").exists():
            run(
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
                "/CN=sip.test",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout",
                folder / "key.pem",
                "-out",
                folder / "cert.pem",
            )
        (folder / "run").mkdir(exist_ok=True)
        super().__init__(
            "kamailio",
            [
                "kamailio",
                "-DD",
                "-E",
                "-f",
                folder / "kamailio.cfg",
                "-m",
                "64",
                "-M",
                "8",
                "-P",
                folder / "kamailio.pid",
                "-Y",
                folder / "run",
                *options,
            ],
            folder,
        )
        wait("kamailio listens", self.listens)

    def listens(self) -> bool:
        self.says("")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), 1):
            return True
        return False


class Device(Program):
    """`handset run` with a SIP account."""

    def __init__(
        self,
        handset: str,
        folder: pathlib.Path,
        name: str = "device",
        transport: str = "tcp",
        behaviour: str = "source: echo",
        answer: str = "mode: auto",
        media: str = "",
        sip: str = "",
        server: str = f"127.0.0.1:{PORT}",
        account: str = "",
    ) -> None:
        self.folder = folder / f"{name}-files"
        self.folder.mkdir()
        self.configuration = configuration(self.folder, name, transport, behaviour, answer, media, sip, server, account)
        super().__init__(name, [handset, "run", "--config", self.configuration, "--log-format", "json", "--log-level", "debug"], folder)
        wait("the device is ready", lambda: self.says('"message":"Ready"'), 20)

    def count(self, message: str) -> int:
        return self.text().count(f'"message":"{message}"')

    def recording(self) -> pathlib.Path:
        files = recordings(self.folder / "recordings")
        return files[-1] if files else self.folder / "nothing"


def recordings(folder: pathlib.Path) -> list[pathlib.Path]:
    """The recordings of calls that have ended, oldest first. One gets its name a moment after its call's record is written."""
    # While a disk stalls, a recording does not get its name.
    deadline = time.monotonic() + 20
    while list(folder.glob("*.part.wav")) and time.monotonic() < deadline:
        time.sleep(0.02)
    files = [path for path in folder.glob("*.wav") if not path.name.endswith(".part.wav")]
    return sorted(files, key=lambda path: path.stat().st_mtime)


def configuration(
    folder: pathlib.Path,
    name: str,
    transport: str = "tcp",
    behaviour: str = "source: echo",
    answer: str = "mode: auto",
    media: str = "",
    sip: str = "",
    server: str = f"127.0.0.1:{PORT}",
    account: str = "",
) -> pathlib.Path:
    (folder / "password").write_text("secret\n")
    path = folder / "device.yaml"
    place = server and f", server: '{server}'"
    path.write_text(
        f"account:\n  kind: sip\n  password_file: password\n  {account}\n"
        f"  sip: {{ address: 'sip:{name}@sip.test'{place}, transport: {transport}{sip and ', ' + sip} }}\n"
        f"device: {{ call_records: calls.jsonl }}\nanswer: {{ {answer} }}\nbehaviour: {{ {behaviour} }}\n"
        f"media: {{ address: 0.0.0.0{media and ', ' + media} }}\ncontrol: {{ socket: control.sock }}\n"
    )
    return path


class Baresip(Program):
    """baresip as user bob, which answers by itself and plays 440 Hz."""

    # Modules besides those of baresip.config.
    modules: tuple[str, ...] = ()

    def __init__(self, folder: pathlib.Path, protection: str = "srtp-mand") -> None:
        self.folder = folder / "baresip-files"
        self.folder.mkdir(exist_ok=True)
        for file in self.folder.glob("*.wav"):
            file.unlink()
        # The module ausine has only 48 kHz, and the telephone's codecs 8.
        make_tone(self.folder / "tone.wav", 440, 60, 8_000)
        modules = "".join(f"module_app {name}.so\n" for name in self.modules)
        (self.folder / "config").write_text((FOLDER / "baresip.config").read_text().replace("FOLDER", str(self.folder)) + modules)
        media = f";mediaenc={protection}" if protection else ""
        (self.folder / "accounts").write_text(
            f'<sip:bob@sip.test;transport=tcp>;auth_pass=secret;outbound="sip:{PEER}:{PORT};transport=tcp";'
            f"answermode=auto;regint=60;audio_codecs=pcmu,pcma{media}\n"
        )
        super().__init__("baresip", ["baresip", "-f", self.folder, "-v"], folder)
        wait("baresip is registered", lambda: self.says(r"200 OK .*\(.*\) \[\d+ binding|registered successfully"), 20)

    def command(self, text: str, *parameters: str) -> str | None:
        message = json.dumps({"command": text, "params": " ".join(parameters)})
        with socket.create_connection((PEER, 25320), 2) as control:
            control.sendall(f"{len(message)}:{message},".encode())
            control.settimeout(2)
            with contextlib.suppress(OSError):
                return control.recv(65536).decode(errors="replace")

    def heard(self) -> pathlib.Path:
        files = sorted(self.folder.glob("dump-*-dec.wav"), key=lambda path: path.stat().st_mtime)
        return files[-1] if files else self.folder / "nothing"


class Linphone(Program):
    """linphonec as user carol, with files for a sound card: it plays 440 Hz, and answers by itself."""

    def __init__(self, folder: pathlib.Path, encryption: str = "srtp") -> None:
        self.folder = folder / "linphone-files"
        (self.folder / ".local/share/linphone").mkdir(parents=True, exist_ok=True)
        self.heard = self.folder / "heard.wav"
        make_tone(self.folder / "tone.wav", 440, 60, 8_000)
        path = self.folder / "linphonerc"
        path.write_text(
            f"[sip]\nsip_port=25130\nsip_tcp_port=-1\nsip_tls_port=-1\ndefault_proxy=0\nmedia_encryption={encryption}\n"
            f"[auth_info_0]\nusername=carol\npasswd=secret\n[proxy_0]\nreg_proxy=<sip:{PEER}:{PORT};transport=udp>\n"
            f"reg_route=<sip:{PEER}:{PORT};transport=udp>\nreg_identity=sip:carol@sip.test\nreg_expires=60\nreg_sendregister=1\n"
        )
        super().__init__("linphonec", ["linphonec", "-a", "-c", path], folder, {"HOME": str(self.folder)}, stdin=subprocess.PIPE)
        for command in ("soundcard use files", f"play {self.folder}/tone.wav", f"record {self.heard}"):
            self.command(command)
        wait("linphonec is registered", self.is_registered, 20)

    def is_registered(self) -> bool:
        self.command("status register")
        time.sleep(0.3)
        return self.says("registered, identity") is not None

    def streams(self) -> int:
        """How often media was established, in calls and after holds."""
        return self.text().count("Media streams established")

    def command(self, text: str) -> None:
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()


class Sipp(Program):
    """SIPp at the trunk's address."""

    def __init__(
        self,
        folder: pathlib.Path,
        scenario: str | pathlib.Path,
        *options: str,
        target: str | None = None,
        replace: Sequence[tuple[str, str]] = (),
        port: int = 5070,
        name: str = "sipp",
    ) -> None:
        if isinstance(scenario, pathlib.Path):
            what = ["-sf", str(scenario)]
        elif scenario.endswith(".xml"):
            text = (FOLDER / scenario).read_text()
            for old, new in replace:
                text = text.replace(old, new)
            path = folder / scenario
            path.write_text(text)
            what = ["-sf", str(path)]
        else:
            what = ["-sn", scenario]
        super().__init__(
            name,
            [
                "sipp",
                *([target] if target else []),
                *what,
                "-i",
                TRUNK,
                "-mi",
                TRUNK,
                "-p",
                str(port),
                "-m",
                "1",
                "-nostdin",
                "-timeout",
                "20s",
                "-timeout_error",
                "-trace_err",
                *options,
            ],
            folder,
        )

    def finish(self, seconds: float = 25) -> None:
        code = self.process.wait(seconds)
        if code != 0:
            errors = "".join(path.read_text(errors="replace")[-1500:] for path in self.log.parent.glob("*_errors.log"))
            raise Failed(f"sipp ended with {code}: {errors or self.text()[-1500:]}")


def records(device: Device) -> str:
    path = device.folder / "calls.jsonl"
    return path.read_text() if path.exists() else ""


def call(
    handset: str,
    folder: pathlib.Path,
    callee: str,
    *options: str,
    media: str = "",
    transport: str = "tcp",
    seconds: float = 40,
    server: str = f"127.0.0.1:{PORT}",
    sip: str = "",
    account: str = "",
) -> tuple[int, dict, str]:
    """`handset call` as user alice; returns its exit code and report."""
    files = folder / "alice-files"
    files.mkdir(exist_ok=True)
    path = configuration(files, "alice", transport=transport, media=media, server=server, sip=sip, account=account)
    result = subprocess.run(
        [handset, "call", callee, "--config", str(path), "--json", *map(str, options)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    report = json.loads(result.stdout) if result.stdout.strip().startswith("{") else {}
    return result.returncode, report, result.stderr


EXCHANGE = 28555


class Exchange(Program):
    """`handset serve` with these users."""

    def __init__(self, handset: str, folder: pathlib.Path, users: Sequence[str], more: str = "") -> None:
        accounts = []
        for name in users:
            (folder / f"{name}.token").write_text(f"{name}-token-of-a-test\n")
            accounts.append(f"  - {{ id: {name}, media_token_file: {name}.token }}\n")
        (folder / "app.secret").write_text("secret-of-a-test\n")
        path = folder / "exchange.yaml"
        path.write_text(
            f"listen: 127.0.0.1:{EXCHANGE}\napps: [{{ key: demo, secret_file: app.secret }}]\nusers:\n{''.join(accounts)}{more}"
        )
        super().__init__("exchange", [handset, "serve", "--config", path, "--log-format", "json"], folder)
        wait("the exchange listens", lambda: self.says('"message":"Listening"'), 20)


def member_account(name: str) -> str:
    """The account of a user of the exchange, as one line of a configuration."""
    return (
        f"account: {{ server: 'http://127.0.0.1:{EXCHANGE}', kind: media_token, media_token_file: {name}.token, "
        "app_secret_file: app.secret }"
    )


def member(folder: pathlib.Path, name: str, more: str = "") -> pathlib.Path:
    """The configuration of a device at the exchange."""
    path = folder / f"{name}-device.yaml"
    path.write_text(f"{member_account(name)}\nmedia: {{ address: 127.0.0.1 }}\n{more}")
    return path


def finished(process: subprocess.Popen, seconds: float = 60) -> tuple[int, dict, str]:
    """The exit code, report and words of a `handset call`."""
    output, words = process.communicate(timeout=seconds)
    report = json.loads(output) if output.strip().startswith("{") else {}
    return process.returncode, report, words


def begin_call(handset: str, folder: pathlib.Path, name: str, callee: str, *options: str) -> subprocess.Popen:
    """Starts `handset call` as a user of the exchange, for `finished`."""
    return subprocess.Popen(
        [handset, "call", callee, "--config", str(member(folder, name)), "--json", *map(str, options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def make_network() -> None:
    """The interface d0 with the addresses of peers and trunk."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1")
    for address in (PEER, TRUNK):
        run("ip", "address", "add", f"{address}/24", "dev", "d0")
    for end in ("d0", "d1"):
        run("ip", "link", "set", end, "up")


def perform(checks: Sequence[Check], only: list[str]) -> None:
    """Performs checks one after the other, each in a folder of its own: all, or those that are named.

    One that fails beside a stall of the machine is repeated, three times in all; one that fails without a stall has failed.
    """
    for check in checks:
        if only and check.__name__ not in only:
            continue
        begun = time.monotonic()
        for tries_left in reversed(range(TRIES)):
            try:
                with tempfile.TemporaryDirectory() as folder, Witness() as seen:
                    check(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder))
                break
            except Failed as failure:
                end_all()  # What was not ready in time has no owner.
                if seen.worst <= LIMIT:
                    raise
                stall = f"beside a stall of {seen.worst * 1000:.0f} ms"
                if tries_left == 0:
                    raise Failed(f"{failure} ({stall}, the third in a row: the machine is too busy)") from failure
                print(f"{check.__name__}: again, because it failed {stall}: {failure}", file=sys.stderr, flush=True)
        print(f"{check.__name__}: {' '.join(check.__doc__.split())} {time.monotonic() - begun:.0f} s", flush=True)


def main(checks: Sequence[Check], prepare: Callable[[], None] = make_network) -> None:
    """Runs a file of checks: its arguments are the program and the names of checks."""
    try:
        prepare()
        perform(checks, sys.argv[2:])
    except Failed as failure:
        sys.exit(f"failed: {failure}")
    finally:
        end_all()


def end_all() -> None:
    """Kills every program that still runs."""
    for program in Program.started:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()
