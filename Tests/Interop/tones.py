"""Telephone keys in sound: two tones for each (ITU-T Q.23)."""

from __future__ import annotations

import numpy
from speech import RATE

LOW, HIGH = (697, 770, 852, 941), (1209, 1336, 1477, 1633)
KEYS = ("123A", "456B", "789C", "*0#D")
# 20 ms, which contain 14 periods of the lowest tone.
FRAME = 960


def key(samples: numpy.ndarray) -> str | None:
    """The key whose two tones make up a frame's sound, or None."""
    energy = float(numpy.mean(samples**2))
    if energy < 1e-5:  # −50 dBov
        return None
    times = numpy.arange(len(samples)) / RATE
    # The energy at each of the tones: a sine that fills the frame has all of its energy there.
    powers = [2 * abs(numpy.mean(samples * numpy.exp(-2j * numpy.pi * tone * times))) ** 2 for tone in LOW + HIGH]
    row, column = int(numpy.argmax(powers[:4])), int(numpy.argmax(powers[4:]))
    low, high = powers[row], powers[4 + column]
    is_pure = low + high > 0.8 * energy and min(low, high) > 0.1 * energy
    return KEYS[row][column] if is_pure else None


def keys(samples: numpy.ndarray) -> str:
    """The keys that are heard, in order; one that continues counts once. Between two there is a pause."""
    found, last = "", None
    for start in range(0, len(samples) - FRAME + 1, FRAME):
        now = key(samples[start : start + FRAME])
        # A frame at a key's edge contains a part of it: two in a row make a key.
        following = key(samples[start + FRAME : start + 2 * FRAME]) if start + 2 * FRAME <= len(samples) else None
        if now and now != last and following == now:
            found += now
            last = now
        elif not now and not following:
            last = None
    return found
