"""Recorded voices to send through calls, and their quality at the other end."""

from __future__ import annotations

import base64
import pathlib
import wave
from collections.abc import Callable
from typing import Any

import numpy
from pesq import pesq
from scipy.signal import correlate, resample_poly

VOICES = pathlib.Path("/usr/share/sounds/alsa")
RATE = 48_000


def read(path: pathlib.Path) -> numpy.ndarray:
    """A mono WAV file's samples, from -1 to 1."""
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise ValueError(f"{path} is not 16-bit mono at {RATE} Hz")
        return numpy.frombuffer(file.readframes(file.getnframes()), "<i2").astype(numpy.float32) / 32_768


def write(path: pathlib.Path, samples: numpy.ndarray) -> None:
    with wave.open(str(path), "wb") as file:
        file.setframerate(RATE)
        file.setnchannels(1)
        file.setsampwidth(2)
        file.writeframes((numpy.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes())


def phrases() -> numpy.ndarray:
    """Six phrases of a human voice, with pauses between them: 10 s, which repeat without a click.

    With half of them the first seconds of a call, in which both sides' jitter buffers learn, count for twice as much: an echo
    that has 4.1 over 10 s has 3.5 to 3.8 over 5 s.
    """
    pause = numpy.zeros(RATE // 5, numpy.float32)
    names = ("Front_Center", "Front_Left", "Front_Right", "Rear_Center", "Rear_Left", "Side_Right")
    return numpy.concatenate([part for name in names for part in (read(VOICES / f"{name}.wav"), pause)])


def find(needle: numpy.ndarray, hay: numpy.ndarray) -> int:
    """The offset in `hay` at which all of `needle` is most alike, in samples."""
    if len(hay) < len(needle):
        raise ValueError(f"there are {len(hay) / RATE:.1f} s, and {len(needle) / RATE:.1f} s are needed")
    return int(numpy.argmax(correlate(hay, needle, "valid", "fft")))


def score(original: numpy.ndarray, heard: numpy.ndarray, repeats: bool = False) -> float:
    """Wideband PESQ (ITU-T P.862.2: 1 to 4.64) of what was heard of `original`, which may have been sent over and over;
    then what is heard may begin anywhere in it."""
    if repeats:
        heard = heard[: len(original)]
        start = find(heard, numpy.concatenate([original, original]))
        original = numpy.roll(original, -start)[: len(heard)]
    else:
        start = find(original, heard)
        heard = heard[start : start + len(original)]
    return pesq(16_000, *(resample_poly(samples, 1, 3) for samples in (original, heard)), "wb")


class Ears:
    """Requests to a browser with page_side.js in its page."""

    run_async: Callable[..., Any]

    def hear(self, seconds: float) -> numpy.ndarray:
        """The samples that come in during `seconds`."""
        return numpy.frombuffer(base64.b64decode(self.run_async(f"listen({seconds})", seconds + 30)), "<f4")
