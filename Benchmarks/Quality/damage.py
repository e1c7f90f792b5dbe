"""Damages speech for calibrate.py: codecs, loss, noise, gaps, jumps of the delay, clipping, levels, filters.

Speech is an array of floating point numbers at 48 kHz, with the values of 16-bit samples. Each kind of damage takes speech
and a random generator, and returns the damaged speech.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Container

import numpy
from scipy import signal

Damage = Callable[[numpy.ndarray, numpy.random.Generator], numpy.ndarray]
RATE = 48_000
FRAME = 960


class Opus:
    """libopus as in calls: 20 ms, one channel, complexity 5, VoIP."""

    library = ctypes.CDLL(ctypes.util.find_library("opus") or "libopus.so.0")
    library.opus_encoder_create.restype = ctypes.c_void_p
    library.opus_decoder_create.restype = ctypes.c_void_p
    set_bitrate, set_complexity, set_voice = 4002, 4010, 4024

    def __init__(self, bitrate: int) -> None:
        error = ctypes.c_int()
        self.encoder = ctypes.c_void_p(self.library.opus_encoder_create(RATE, 1, 2049, ctypes.byref(error)))
        self.decoder = ctypes.c_void_p(self.library.opus_decoder_create(RATE, 1, ctypes.byref(error)))
        for request, value in ((self.set_bitrate, bitrate), (self.set_complexity, 5), (self.set_voice, 3001)):
            self.library.opus_encoder_ctl(self.encoder, request, ctypes.c_int(value))

    def through(self, speech: numpy.ndarray, lost: Container[int]) -> numpy.ndarray:
        """Through encoder and decoder; frames in `lost` are concealed."""
        pcm = numpy.zeros(-(-len(speech) // FRAME) * FRAME, numpy.int16)
        pcm[: len(speech)] = clip(speech)
        packet, out = (ctypes.c_ubyte * 1275)(), (ctypes.c_int16 * FRAME)()
        heard = numpy.zeros(len(pcm))
        for index in range(len(pcm) // FRAME):
            frame = pcm[index * FRAME : (index + 1) * FRAME].tobytes()
            length = self.library.opus_encode(self.encoder, frame, FRAME, packet, 1275)
            data = None if index in lost else packet
            self.library.opus_decode(self.decoder, data, 0 if index in lost else length, out, FRAME, 0)
            heard[index * FRAME : (index + 1) * FRAME] = out
        self.library.opus_encoder_destroy(self.encoder)
        self.library.opus_decoder_destroy(self.decoder)
        return heard


def clip(speech: numpy.ndarray) -> numpy.ndarray:
    return numpy.clip(numpy.round(speech), -32768, 32767).astype(numpy.int16)


def active(speech: numpy.ndarray) -> float:
    """Root of the mean square where there is speech."""
    blocks = speech[: len(speech) // FRAME * FRAME].reshape(-1, FRAME)
    powers = (blocks**2).mean(axis=1)
    return numpy.sqrt(powers[powers > powers.max() * 1e-3].mean())


def opus(bitrate: int, loss: float = 0.0, burst: int = 1) -> Damage:
    def run(speech: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
        lost, frames = set(), len(speech) // FRAME + 1
        for start in range(0, frames, burst):
            if random.random() < loss:
                lost.update(range(start, start + burst))
        return Opus(bitrate).through(speech, lost)

    return run


def mu_law(loss: float = 0.0) -> Damage:
    def run(speech: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
        low = numpy.clip(signal.resample_poly(speech, 1, 6) / 32768, -1, 1)
        code = numpy.sign(low) * numpy.round(127 * numpy.log1p(255 * abs(low)) / numpy.log(256)) / 127
        back = numpy.sign(code) * (256 ** abs(code) - 1) / 255
        for start in range(0, len(back), 160):
            if random.random() < loss:
                back[start : start + 160] = 0
        return signal.resample_poly(back, 6, 1)[: len(speech)] * 32768

    return run


def noise(snr: float) -> Damage:
    return lambda speech, random: speech + random.normal(size=len(speech)) * active(speech) * 10 ** (-snr / 20)


def modulated(q: float) -> Damage:
    """Noise that follows the level of the speech, Q dB below it (ITU-T P.810)."""
    return lambda speech, random: speech * (1 + random.normal(size=len(speech)) * 10 ** (-q / 20))


def gaps(length_ms: int, every_ms: int) -> Damage:
    def run(speech: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
        heard = speech.copy()
        for start in range(int(random.random() * every_ms * 48), len(speech), every_ms * 48):
            heard[start : start + length_ms * 48] = 0
        return heard

    return run


def jumps(*changes: int) -> Damage:
    """Changes the delay by each number of milliseconds, at evenly spread positions; a longer delay repeats, a shorter one skips."""

    def run(speech: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
        pieces, last = [], 0
        for index, change in enumerate(changes):
            place = int(len(speech) * (index + 0.6 + 0.3 * random.random()) / (len(changes) + 0.5))
            pieces.append(speech[last:place])
            last = place - change * 48
        return numpy.concatenate([*pieces, speech[last:]])

    return run


def overdriven(decibels: float) -> Damage:
    def run(speech: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
        top = abs(speech).max() * 10 ** (-decibels / 20)
        return numpy.clip(speech, -top, top)

    return run


def level(decibels: float) -> Damage:
    return lambda speech, random: speech * 10 ** (decibels / 20)


def low_pass(hertz: float) -> Damage:
    return lambda speech, random: signal.sosfilt(signal.butter(8, hertz, "low", fs=RATE, output="sos"), speech)


def high_pass(hertz: float) -> Damage:
    return lambda speech, random: signal.sosfilt(signal.butter(4, hertz, "high", fs=RATE, output="sos"), speech)


def room(seconds: float, share: float) -> Damage:
    def run(speech: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
        tail = random.normal(size=int(seconds * RATE)) * 10 ** (-3 * numpy.arange(int(seconds * RATE)) / (seconds * RATE))
        return speech + share * signal.fftconvolve(speech, tail / numpy.sqrt((tail**2).sum()))[: len(speech)]

    return run


def drift(millionths: float) -> Damage:
    def run(speech: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
        places = numpy.arange(int(len(speech) / (1 + millionths * 1e-6))) * (1 + millionths * 1e-6)
        return numpy.interp(places, numpy.arange(len(speech)), speech)

    return run


def both(*steps: Damage) -> Damage:
    def run(speech: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
        for step in steps:
            speech = step(speech, random)
        return speech

    return run


CONDITIONS = {
    "same": level(0),
    "level+10": level(10),
    "level-10": level(-10),
    "level-20": level(-20),
    **{f"opus{rate}": opus(rate * 1_000) for rate in (8, 12, 16, 20, 24, 32, 48, 64)},
    **{f"opus24-loss{loss}": opus(24_000, loss / 100) for loss in (1, 2, 3, 5, 8, 10, 15, 20, 30)},
    **{f"opus32-burst{burst}-{loss}": opus(32_000, loss / 100, burst) for burst, loss in ((2, 5), (3, 3), (5, 5))},
    "ulaw": mu_law(),
    "ulaw-loss2": mu_law(0.02),
    "ulaw-loss5": mu_law(0.05),
    "ulaw-loss10": mu_law(0.1),
    **{f"noise{snr}": noise(snr) for snr in (0, 5, 10, 15, 20, 25, 30, 35, 40, 50)},
    **{f"mnru{q}": modulated(q) for q in (5, 10, 15, 20, 25, 30, 35)},
    **{
        f"gap{length}-{every}": gaps(length, every)
        for length, every in ((5, 1000), (10, 500), (20, 2000), (20, 500), (40, 1000), (60, 1000), (200, 3000), (400, 4000))
    },
    "jump+20": jumps(20),
    "jump-20": jumps(-20),
    "jump+40": jumps(40),
    "jump-60": jumps(-60),
    "jump+60": jumps(60),
    "jumps": jumps(20, -40, 60, -20),
    "jumps20": jumps(20, 20, -20, 20, -20, -20),
    **{f"clip{decibels}": overdriven(decibels) for decibels in (6, 12, 18, 24, 30)},
    **{f"low{hertz}": low_pass(hertz) for hertz in (7000, 5000, 3400, 2500, 1500)},
    "high300": high_pass(300),
    "band": both(high_pass(300), low_pass(3400)),
    "room-dry": room(0.2, 0.3),
    "room": room(0.4, 0.6),
    "drift100": drift(100),
    "drift500": drift(500),
    "opus16-noise25": both(noise(25), opus(16_000)),
    "opus12-loss5-10": both(opus(12_000, 0.05), level(-10)),
    "band-noise20": both(noise(20), high_pass(300), low_pass(3400)),
    "opus24-jump": both(opus(24_000), jumps(40)),
    "clip18-opus16": both(overdriven(18), opus(16_000)),
    "opus-twice": both(opus(16_000), opus(24_000)),
}
