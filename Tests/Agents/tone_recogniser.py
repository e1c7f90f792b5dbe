#!/usr/bin/env python3
"""A recogniser for tests: reads a WAV on standard input, and writes the frequency and length of its loud part."""

import array
import io
import sys
import wave

LOUD = 1500


def main() -> None:
    with wave.open(io.BytesIO(sys.stdin.buffer.read())) as file:
        rate = file.getframerate()
        samples = array.array("h", file.readframes(file.getnframes()))
    loud = [index for index, sample in enumerate(samples) if abs(sample) > LOUD]
    if not loud:
        return
    part = samples[loud[0] : loud[-1] + 1]
    rises = sum(1 for before, after in zip(part, part[1:]) if before < 0 <= after)
    seconds = len(part) / rate
    print(f"{rises / seconds:.0f} Hz for {seconds:.1f} s")


main()
