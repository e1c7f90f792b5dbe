#!/usr/bin/env python3
"""Fits the two weighted sums of SpeechJudge, and writes Sources/Media/VoiceActivity/SpeechJudge+Weights.swift.

usage: fit.py VOICE FOLDER [MINUTES]

VOICE is the command that this package builds; FOLDER has the recordings (corpus.py). MINUTES (default 24) is the length of each
scene (scenes.py), of the part `train`. Needs numpy, scipy, soundfile.

The network below the sums (SpeechNetwork) is not fitted; weights.py takes it as it is published. A step of 32 ms counts as speech
from the moment a listener hears it, the first 0.4 s three times; steps near inaudible speech do not count. What is no
speech counts three times in coughs, effects, music and echoes, half in the pauses of scenes with speech, and for the second sum six
times as much.
"""

import base64
import pathlib
import struct
import subprocess
import sys

import corpus
import numpy
import scenes
from corpus import RATE

VALUES, STEP = 272, 256
HARD = ("coughs", "clicks and effects", "music")


def values(voice, heard, said):
    """The terms of the sums, for each step."""
    pairs = numpy.stack([heard, said], axis=1).astype("<i2").tobytes()
    out = subprocess.run([voice, "features", str(RATE)], input=pairs, stdout=subprocess.PIPE, check=True).stdout
    return numpy.frombuffer(out, "<f4").reshape(-1, VALUES)


def labels(hops, onsets, count):
    """For each step 1 for speech, 0 for none and −1 for neither, and its weight."""
    hop = STEP * (numpy.arange(count) + 1) // 80 - 1
    speech, weight = numpy.full(count, -1, numpy.int8), numpy.ones(count, numpy.float32)
    past = numpy.convolve(hops, numpy.ones(40))[: len(hops)] > 0
    future = numpy.concatenate([hops[5:], numpy.zeros(5, bool)])
    speech[~(past | future | hops)[hop]] = 0
    for start, end in corpus.runs(hops):
        audible = [onset for onset in onsets if onset is not None and start <= onset < end]
        first = audible[0] if audible else start + 5
        inside = (hop >= first + 2) & (hop < end)
        speech[inside] = 1
        if audible:
            weight[inside & (hop < first + 40)] = 3
    return speech, weight


def examples(voice, data, minutes, random):
    """Values, labels and weights of some steps of all scenes: speech and what is hard more often."""
    found = []
    for name, has_speech, pieces in scenes.all_scenes(data, minutes):
        if name.startswith("cries"):  # These are voices.
            continue
        for heard, said, hops, onsets in pieces:
            rows = values(voice, heard, said)
            speech, weight = labels(hops, onsets, len(rows))
            if has_speech:
                weight = numpy.where(speech == 0, 0.5 * weight, weight)
            elif name in HARD or "echo" in name:
                weight = 3 * weight
            share = numpy.where((speech == 1) | (weight > 1), 0.4, 0.15)
            chosen = (speech >= 0) & (random.random(len(rows)) < share)
            found.append((rows[chosen], speech[chosen].astype(numpy.float32), (weight / share)[chosen].astype(numpy.float32)))
    return [numpy.concatenate(part) for part in zip(*found)]


def fit(rows, speech, weight, severity, steps=160):
    """Logistic regression by Adam. What is no speech counts `severity` times."""
    mean, spread = rows.mean(0), rows.std(0) + 1e-3
    scaled = ((rows - mean) / spread).astype(numpy.float32)
    weight = numpy.where(speech > 0, weight, severity * weight)
    weight = (weight / weight.sum()).astype(numpy.float32)
    sums = numpy.zeros(VALUES + 1, numpy.float32)
    first, second = numpy.zeros(VALUES + 1), numpy.zeros(VALUES + 1)
    for step in range(1, steps + 1):
        slope = (1 / (1 + numpy.exp(-(scaled @ sums[:-1] + sums[-1]))) - speech) * weight
        gradient = numpy.append(scaled.T @ slope + 1e-4 * sums[:-1], slope.sum())
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        rate = 0.05 if step < 110 else 0.01
        change = rate * (first / (1 - 0.9**step)) / (numpy.sqrt(second / (1 - 0.99**step)) + 1e-8)
        sums = (sums - change).astype(numpy.float32)
    weights = sums[:-1] / spread
    return numpy.append(weights, sums[-1] - (mean * weights).sum())


def swift(numbers):
    text = base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
    lines = "\\\n".join("        " + text[at : at + 108] for at in range(0, len(text), 108))
    return f'''\
// Written by Benchmarks/Voice/fit.py.

extension SpeechJudge {{
    /// Of both sums the weights and the bias: little-endian floating point numbers, in base 64.
    static let digits = """
{lines}
        """
}}
'''


def main():
    voice, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    minutes = float(sys.argv[3]) if len(sys.argv) > 3 else 24
    random = numpy.random.default_rng(1)
    rows, speech, weight = examples(voice, corpus.open_corpus(folder, "train"), minutes, random)
    sums = [fit(rows, speech, weight, severity) for severity in (1, 6)]
    target = pathlib.Path(__file__).resolve().parents[2] / "Sources/Media/VoiceActivity/SpeechJudge+Weights.swift"
    target.write_text(swift(numpy.concatenate(sums)))


if __name__ == "__main__":
    main()
