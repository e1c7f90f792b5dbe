#!/usr/bin/env python3
"""A voice for tests: reads a text with a number on standard input, and writes a WAV with 1.5 s of a tone of that frequency."""

import array
import math
import re
import sys
import wave

RATE = 16_000
SECONDS = 1.5


def main() -> None:
    found = re.search(r"\d+", sys.stdin.read())
    frequency = int(found.group()) if found else 440
    turn = 2 * math.pi * frequency / RATE
    samples = array.array("h", (int(9000 * math.sin(turn * index)) for index in range(int(RATE * SECONDS))))
    with wave.open(sys.stdout.buffer, "wb") as file:
        file.setparams((1, 2, RATE, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())


main()
