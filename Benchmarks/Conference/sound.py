"""What the members of a meeting say, as Opus packets, and whether it is in what they hear."""

from __future__ import annotations

import array
import ctypes
import ctypes.util
import math
import pathlib
import random
import struct
from collections.abc import Iterator, Sequence

RATE = 48_000
FRAME = 960  # Samples of 20 ms.

#: How members encode, and what mixers are set to. Both mixers use VBR, one channel and VoIP as well.
BITRATE, COMPLEXITY, LOSS_PERCENT = 32_000, 5, 10

#: Pitches of the talkers in Hz, and a harmonic of each that is none of the others'.
PITCHES, HARMONICS = (100, 125, 150), (400, 375, 450)
#: The least loudness of a harmonic that is heard. They are sent with several hundred.
AUDIBLE = 100


class Opus:
    """libopus with the settings above, one channel at 48 kHz."""

    library = ctypes.CDLL(ctypes.util.find_library("opus") or "libopus.so.0")
    library.opus_encoder_create.restype = ctypes.c_void_p
    library.opus_decoder_create.restype = ctypes.c_void_p
    voip = 2048
    #: Requests of `opus_encoder_ctl`: bitrate, complexity, in-band FEC, expected loss.
    settings = ((4002, BITRATE), (4010, COMPLEXITY), (4012, 1), (4014, LOSS_PERCENT))

    def encode(self, samples: Sequence[int]) -> list[bytes]:
        error, packet = ctypes.c_int(), (ctypes.c_ubyte * 1275)()
        encoder = ctypes.c_void_p(self.library.opus_encoder_create(RATE, 1, self.voip, ctypes.byref(error)))
        for request, value in self.settings:
            self.library.opus_encoder_ctl(encoder, request, ctypes.c_int(value))
        packets = []
        for start in range(0, len(samples) - FRAME + 1, FRAME):
            frame = array.array("h", samples[start : start + FRAME]).tobytes()
            length = self.library.opus_encode(encoder, frame, FRAME, packet, len(packet))
            packets.append(bytes(packet[:length]))
        self.library.opus_encoder_destroy(encoder)
        return packets

    def decode(self, packets: Sequence[bytes]) -> array.array[int]:
        error, frame = ctypes.c_int(), (ctypes.c_int16 * FRAME)()
        decoder = ctypes.c_void_p(self.library.opus_decoder_create(RATE, 1, ctypes.byref(error)))
        samples = array.array("h")
        for packet in packets:
            count = self.library.opus_decode(decoder, packet, len(packet), frame, FRAME, 0)
            samples.extend(frame[: max(count, 0)])
        self.library.opus_decoder_destroy(decoder)
        return samples


def voice(pitch: int, seconds: int) -> array.array[int]:
    """A buzz with the harmonics of a voice, in four syllables a second. The loudest are at −14 dBFS."""
    period = RATE // pitch
    weights = [(number, 1 / (1 + ((number * pitch - 500) / 400) ** 2)) for number in range(1, 4_000 // pitch)]
    wave = [sum(weight * math.cos(2 * math.pi * number * place / period) for number, weight in weights) for place in range(period)]
    scale = 6_500 / max(map(abs, wave))
    envelope = [0.55 - 0.45 * math.cos(2 * math.pi * 4 * place / RATE) for place in range(RATE // 4)]
    return array.array("h", (int(scale * envelope[at % len(envelope)] * wave[at % period]) for at in range(RATE * seconds)))


def noise(seconds: int) -> array.array[int]:
    """The background of a member who does not talk: −75 dBFS, which no mixer takes for speech."""
    generator = random.Random(1)
    return array.array("h", (generator.randint(-10, 10) for _ in range(RATE * seconds)))


def write_packets(path: pathlib.Path, packets: Sequence[bytes]) -> None:
    path.write_bytes(b"".join(struct.pack(">H", len(packet)) + packet for packet in packets))


def read_packets(path: pathlib.Path) -> Iterator[bytes]:
    data, at = path.read_bytes(), 0
    while at + 2 <= len(data):
        (length,) = struct.unpack_from(">H", data, at)
        yield data[at + 2 : at + 2 + length]
        at += 2 + length


def loudness(samples: Sequence[int], hertz: int) -> float:
    """The amplitude of one frequency, a whole number of Hz in whole seconds."""
    turn = 2 * math.pi * hertz / RATE
    real = sum(sample * math.cos(turn * at) for at, sample in enumerate(samples))
    imaginary = sum(sample * math.sin(turn * at) for at, sample in enumerate(samples))
    return 2 * math.hypot(real, imaginary) / max(len(samples), 1)


def heard_talkers(path: pathlib.Path) -> list[float]:
    """The loudness of each talker's harmonic in the last second of a recording."""
    samples = Opus().decode(list(read_packets(path))[-100:])[-RATE:]
    return [loudness(samples, harmonic) for harmonic in HARMONICS]
