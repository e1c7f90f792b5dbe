"""Shared by the trials with real bots: tones and their lengths in recordings, free ports, and processes that are ready."""

from __future__ import annotations

import asyncio
import math
import os
import pathlib
import socket
import struct
import subprocess
import sys
import textwrap
import wave

RATE = 8_000
AMPLITUDE = 8_000
# Tones in hertz: the bot's first and last, and the caller's.
GREETING, LAST_WORD, VOICE = 700, 1_100, 440


def tone(seconds: float, hertz: float, rate: int = RATE) -> bytes:
    return b"".join(struct.pack("<h", int(AMPLITUDE * math.sin(2 * math.pi * hertz * n / rate))) for n in range(int(seconds * rate)))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


async def logged(path: pathlib.Path, text: str, process: subprocess.Popen) -> str:
    """The first line of a log with a text in it."""
    for _ in range(400):
        for line in path.read_text().splitlines() if path.exists() else []:
            if text in line:
                return line
        if process.poll() is not None:
            break
        await asyncio.sleep(0.05)
    sys.exit(f"{path.read_text()}\nthe process above did not get ready: no {text}")


def heard(path: pathlib.Path, hertz: float) -> float:
    """Seconds of a tone of AMPLITUDE in a recording."""
    with wave.open(str(path)) as recording:
        rate = recording.getframerate()
        samples = struct.unpack(f"<{recording.getnframes()}h", recording.readframes(recording.getnframes()))
    # In blocks of 20 ms, by Goertzel's algorithm; those of at least a quarter of the power count.
    size, count = rate // 50, 0.0
    for start in range(0, len(samples) - size, size):
        coefficient, (before, last) = 2 * math.cos(2 * math.pi * hertz / rate), (0.0, 0.0)
        for sample in samples[start : start + size]:
            before, last = last, sample + coefficient * last - before
        power = (before * before + last * last - coefficient * before * last) / (size * size / 4)
        count += power > AMPLITUDE * AMPLITUDE / 4
    return count * 0.02


async def started_exchange(handset: str, folder: pathlib.Path) -> tuple[subprocess.Popen, str]:
    """An exchange with the built-in users, and its address."""
    log = folder / "exchange.log"
    with open(log, "w") as sink:
        exchange = subprocess.Popen([handset, "serve", "--listen", "127.0.0.1:0", "--log-format", "json"], stderr=sink)
    line = await logged(log, '"Listening"', exchange)
    return exchange, line.split('"url":"')[1].split('"')[0].replace("\\/", "/")


async def started_device(
    handset: str, folder: pathlib.Path, exchange: str, bot: str, name: str = "device"
) -> tuple[subprocess.Popen, pathlib.Path]:
    """A device of an exchange whose calls have a bot, once it can be called, and its log.

    `bot` are the keys of the configuration's `bot`, in lines without indentation.
    """
    (folder / "device.yaml").write_text(f"""
account:
  server: {exchange}
  media_token_file: {os.environ["DEMO_TOKEN"]}
media:
  address: 127.0.0.1
behaviour:
  source: bot
  bot:
{textwrap.indent(textwrap.dedent(bot).strip(), "    ")}
""")
    log = folder / f"{name}.log"
    with open(log, "w") as sink:
        device = subprocess.Popen([handset, "run", "--config", folder / "device.yaml", "--log-format", "json"], stderr=sink)
    try:
        await logged(log, '"Ready"', device)
    except BaseException:
        end(device)
        raise
    return device, log


def end(*processes: subprocess.Popen) -> None:
    """Ends processes, the last one first."""
    for process in reversed(processes):
        process.terminate()
        process.wait()


def write_voice(path: pathlib.Path) -> None:
    """Writes the caller's sound: one tone for 15 s."""
    with wave.open(str(path), "wb") as voice:
        voice.setparams((1, 2, RATE, 0, "NONE", ""))
        voice.writeframes(tone(15, VOICE))
