"""Asterisk in a root of its own as a PBX, and sound whose every 100 ms is distinct."""

from __future__ import annotations

import array
import math
import pathlib
import shutil
import subprocess
import time
import wave
from collections.abc import Mapping

import numpy
from sip_stage import PEER, PORT, TLS_PORT, Failed, Program, run, wait

FOLDER = pathlib.Path(__file__).resolve().parent / "asterisk"
# Each step of the stairs is 100 ms of a frequency of its own, within what a telephone carries.
STEP, STEPS = 0.1, [500 + 70 * step for step in range(30)]


def make_stairs(path: pathlib.Path, rate: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        samples, phase = array.array("h"), 0.0
        for frequency in STEPS:
            for _ in range(round(rate * STEP)):
                phase += 2 * math.pi * frequency / rate
                samples.append(int(9_000 * math.sin(phase)))
        file.writeframes(samples.tobytes())


def steps_heard(path: pathlib.Path) -> list[int]:
    """The numbers of the steps that a recording has, in the order in which they begin. One counts once it lasts for 40 ms."""
    if not pathlib.Path(path).exists():
        return []
    with wave.open(str(path)) as file:
        rate, channels = file.getframerate(), file.getnchannels()
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)[::channels]
    size, hop = rate * 40 // 1000, rate // 100
    window, found = numpy.hanning(size), []
    for start in range(0, len(samples) - size + 1, hop):
        part = samples[start : start + size]
        if numpy.mean(part**2) < 1_000**2:
            continue
        spectrum = numpy.abs(numpy.fft.rfft(part * window, 8 * size)) ** 2
        peak = int(numpy.argmax(spectrum))
        # A tone's energy lies within two bins of its peak, which are 16 here.
        if numpy.sum(spectrum[max(0, peak - 16) : peak + 17]) < 0.7 * numpy.sum(spectrum):
            continue
        frequency = peak * rate / (8 * size)
        step = round((frequency - STEPS[0]) / (STEPS[1] - STEPS[0]))
        if 0 <= step < len(STEPS) and abs(frequency - STEPS[step]) < 20 and (not found or found[-1] != step):
            found.append(step)
    return found


def expect_stairs(path: pathlib.Path, whose: str) -> None:
    """All the steps are there, from the first 100 ms on and in order; at most one may be missing or doubled by an adapting jitter
    buffer."""
    heard = steps_heard(path)
    if heard[:1] != [0]:
        raise Failed(f"{whose}: the first of the 100 ms pieces that are heard is number {heard[:1]} in {path}: {heard}")
    missing = set(range(len(STEPS))) - set(heard)
    if len(missing) > 1 or heard != sorted(heard):
        raise Failed(f"{whose}: pieces {sorted(missing)} are missing in {path}: {heard}")


def expect_no_noise(path: pathlib.Path, whose: str) -> None:
    """Nothing is louder than the stairs in the first half second. A packet of encrypted sound that Asterisk plays as it is, because it
    came before Asterisk's own end of the DTLS handshake, has some 20 such samples."""
    with wave.open(str(path)) as file:
        rate = file.getframerate()
        samples = numpy.frombuffer(file.readframes(rate // 2), "<i2").astype(float)[:: file.getnchannels()]
    loud = numpy.flatnonzero(numpy.abs(samples) > 14_000)
    if len(loud):
        raise Failed(f"{whose}: {len(loud)} samples are louder than the stairs, after {1000 * loud[0] / rate:.0f} ms, in {path}")


def has_head(path: pathlib.Path) -> bool:
    """Whether a recording has its head, which may be written after its sound."""
    if not path.exists() or path.stat().st_size <= 44:
        return False
    with path.open("rb") as file:
        head = file.read(12)
    return head[:4] == b"RIFF" and head[8:] == b"WAVE"


class Asterisk(Program):
    """A registrar and PBX at PEER. `endpoints` are names with a kind of pjsip.conf, codecs, and further lines of configuration."""

    def __init__(self, root: pathlib.Path, folder: pathlib.Path, endpoints: Mapping[str, tuple[str, ...]]) -> None:
        self.root, self.records = root, folder / "records"
        self.records.mkdir(exist_ok=True)
        self.records.chmod(0o777)
        etc = folder / "etc-asterisk"
        shutil.copytree(root / "etc/asterisk", etc)
        for name in ("modules.conf", "extensions.conf"):
            shutil.copy(FOLDER / name, etc)
        text = (FOLDER / "pjsip.conf").read_text()
        for word, value in (("ADDRESS", PEER), ("TLSPORT", TLS_PORT), ("PORT", PORT)):
            text = text.replace(word, str(value))
        for name, (kind, codecs, *more) in endpoints.items():
            text += (
                f"\n[{name}]({kind})\nauth={name}\naors={name}\nallow={codecs}\n"
                + "".join(f"{line}\n" for line in more)
                + f"[{name}]\ntype=auth\nauth_type=userpass\nusername={name}\npassword=secret\n"
                + f"[{name}]\ntype=aor\nmax_contacts=1\nremove_existing=yes\n"
            )
        (etc / "pjsip.conf").write_text(text)
        self.certificate = folder / "asterisk.pem"
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
            f"subjectAltName=DNS:sip.test,IP:{PEER}",
            "-keyout",
            etc / "key.pem",
            "-out",
            self.certificate,
        )
        shutil.copy(self.certificate, etc / "cert.pem")
        sounds = folder / "sounds"
        (sounds / "en").mkdir(parents=True)
        make_stairs(sounds / "en/stairs.wav", 8_000)
        # The mount namespace is this check's own, so that nothing has to be undone.
        for source, place in ((etc, "etc/asterisk"), (self.records, "records"), (sounds, "usr/share/asterisk/sounds")):
            (root / place).mkdir(parents=True, exist_ok=True)
            run("mount", "--bind", source, root / place)
        (root / "etc/resolv.conf").write_text("nameserver 127.0.0.1\n")  # No server answers there, which is known at once.
        super().__init__("asterisk", ["chroot", root, "asterisk", "-f", "-n", "-vvvvv", "-C", "/etc/asterisk/asterisk.conf"], folder)
        wait("Asterisk is up", lambda: self.says("Asterisk Ready"), 30)

    def command(self, text: str) -> str:
        done = subprocess.run(["chroot", self.root, "asterisk", "-rx", text], capture_output=True, text=True, timeout=10, check=False)
        return done.stdout + done.stderr

    def heard(self, name: str) -> pathlib.Path:
        """What came in from an endpoint, as a recording. Asterisk writes its head a moment after the call's end."""
        path = self.records / f"{name}.wav"
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not has_head(path):
            time.sleep(0.02)
        return path if has_head(path) or not path.exists() else self.with_head(path)

    def with_head(self, path: pathlib.Path) -> pathlib.Path:
        """A copy of a recording that Asterisk has given no head: its sound is mono, of 16 bits, at 8 kHz."""
        print(f"asterisk: {path.name} has no head, but {path.stat().st_size} bytes", flush=True)
        copy = path.with_name(f"{path.stem}-with-head.wav")
        with wave.open(str(copy), "wb") as file:
            file.setparams((1, 2, 8_000, 0, "NONE", "not compressed"))
            file.writeframes(path.read_bytes()[44:])
        return copy

    def stop(self, seconds: float = 10) -> None:
        super().stop(seconds)
        for place in ("etc/asterisk", "records", "usr/share/asterisk/sounds"):
            subprocess.run(["umount", self.root / place], check=False)
