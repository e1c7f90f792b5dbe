#!/usr/bin/env python3
"""Rates speech over lossy paths with PESQ.

usage: lossy.py FOLDER

FOLDER has said.wav and the recordings that `HANDSET_LOSSY_SPEECH=FOLDER swift test --filter LossySpeechRecording` made from it.
Each recording is cut into blocks of 8 s, each block is aligned with said.wav, and rated by wideband PESQ
(needs numpy, scipy, pesq). Prints a table: the mean of all blocks except the first, and the first block by itself.
"""

import collections
import pathlib
import sys
import wave

import numpy
from pesq import pesq
from scipy.signal import correlate, resample_poly

RATE, BLOCK = 48_000, 8


def samples(path):
    with wave.open(str(path)) as file:
        return numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(float)


def block_score(said, heard, start):
    """PESQ of 8 s from `start` on, with the recording up to a second later than said.wav."""
    reference = said[start : start + BLOCK * RATE]
    window = heard[start : start + (BLOCK + 1) * RATE]
    if len(reference) < BLOCK * RATE or len(window) < len(reference):
        return None
    lag = int(numpy.argmax(correlate(window, reference, mode="valid", method="fft")))
    low = [resample_poly(part, 1, 3) for part in (reference, window[lag : lag + len(reference)])]
    return pesq(16_000, low[0], low[1], "wb")


def main():
    folder = pathlib.Path(sys.argv[1])
    said = samples(folder / "said.wav")
    first, rest = collections.defaultdict(list), collections.defaultdict(list)
    for path in sorted(folder.glob("*-*-*.wav")):
        kind, loss, _ = path.stem.rsplit("-", 2)
        heard = samples(path)
        scores = [block_score(said, heard, start) for start in range(0, len(said), BLOCK * RATE)]
        first[kind, loss] += [score for score in scores[:1] if score]
        rest[kind, loss] += [score for score in scores[1:] if score]
    print(f"{'kind':10} {'loss':10} {'PESQ':>6} {'least':>6} {'first 8 s':>10}")
    for kind, loss in sorted(rest):
        print(f"{kind:10} {loss:10} {numpy.mean(rest[kind, loss]):6.2f} {min(rest[kind, loss]):6.2f} {numpy.mean(first[kind, loss]):10.2f}")


main()
