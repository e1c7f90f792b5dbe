#!/usr/bin/env python3
"""Fits the detector's network, and writes Sources/Media/VoiceActivity/VoiceModel+Weights.swift.

usage: train.py VOICE FOLDER [MINUTES [--final]]

With --final a fifth more scenes are of the part `tune`: only once the thresholds are chosen.

VOICE is the command that this package builds; FOLDER has the recordings (corpus.py). Needs numpy, scipy, soundfile.
"""
import pathlib
import subprocess
import sys

import numpy

import corpus
from corpus import HOP, RATE, decibels

FEATURES, LAGS, HIDDEN = 35, (0, 2, 4, 7, 11, 16, 22, 30), 48
SECONDS = 30


def scene(data, random):
    """Thirty seconds: what is heard, what we say, and what each hop is (see labels)."""
    length = SECONDS * RATE
    caller, heard, said = numpy.zeros(length), numpy.zeros(length), numpy.zeros(length)
    hops = numpy.zeros(length // HOP, bool)
    loudness = decibels(random.uniform(-38, -12))
    if random.random() < 0.5:
        talker = data.talkers[random.integers(len(data.talkers))]
        speech, hops = corpus.conversation(talker, length, random)
        caller = speech * loudness
    kind = random.random()
    if kind < 0.4:
        heard += corpus.fill(data.noise, length, random) * loudness * decibels(random.uniform(-40, 2))
    elif kind < 0.7:
        start = random.integers(length) if random.random() < 0.5 else 0
        music = corpus.fill(data.music, length, random) * loudness * decibels(random.uniform(-35, 3))
        heard[start:] += music[start:]
    if random.random() < 0.6:
        for _ in range(random.integers(1, 15)):
            which = random.random()
            if which < 0.5:
                sound = data.effects[random.integers(len(data.effects))]
            else:
                sound = corpus.cough(random) if which < 0.85 else corpus.click(random)
            corpus.put(heard, sound / corpus.level(sound) * loudness * decibels(random.uniform(-15, 8)),
                       random.integers(length))
    if random.random() < 0.5:
        talker = data.talkers[random.integers(len(data.talkers))]
        said = corpus.conversation(talker, length, random, pause=(0.2, 2))[0] * decibels(random.uniform(-30, -14))
        if random.random() < 0.8:
            heard += corpus.room(said, random, loudness * decibels(random.uniform(-45, -3)))
    heard += random.standard_normal(length) * decibels(random.uniform(-90, -60))
    return corpus.line(caller + heard, random), corpus.line(said, random), labels(caller, heard, hops)


#: What a hop is: no speech, speech, or neither for sure; and the first 0.25 s that are audible of an utterance.
NONE, SPEECH, UNSURE, ONSET = range(4)


def labels(caller, other, hops):
    audible = corpus.audible(caller, other, hops)
    result = numpy.where(hops, UNSURE, NONE).astype(numpy.uint8)
    for start, end in corpus.runs(hops):
        pairs = numpy.flatnonzero(audible[start : end - 1] & audible[start + 1 : end])
        if not len(pairs):
            continue
        first = start + int(pairs[0])
        # Pauses within an utterance are a part of it as long as they are short.
        near = numpy.convolve(audible[start:end], numpy.ones(13))[6 : 6 + end - start] > 0
        result[start:end] = numpy.where(near & (numpy.arange(start, end) >= first), SPEECH, UNSURE)
        result[first : min(end, first + 25)] = ONSET
    return result


def features(voice, heard, said):
    pairs = numpy.stack([heard, said], axis=1).astype("<i2").tobytes()
    out = subprocess.run([voice, "features", str(RATE)], input=pairs, stdout=subprocess.PIPE, check=True).stdout
    return numpy.frombuffer(out, "<f4").reshape(-1, FEATURES)


def stacked(rows, indices):
    """Each hop's features, and those some hops before. `rows` begins with as many empty rows as the longest lag."""
    return numpy.concatenate([rows[indices - lag] for lag in LAGS], axis=1)


def weights_of(labels):
    """What a hop counts for each output. An onset must be found at once; what is no speech must not be certain."""
    age = numpy.zeros(len(labels), numpy.int16)
    for start, end in corpus.runs(labels == ONSET):
        age[start:end] = numpy.arange(1, end - start + 1)
    possible = numpy.select([labels == NONE, labels == SPEECH, labels == ONSET], [1.0, 0.5, 3.0], 0)
    certain = numpy.select([labels == NONE, labels == SPEECH, age > 6], [14.0, 0.7, 3.0], 0)
    return possible.astype(numpy.float32), certain.astype(numpy.float32)


def fit(rows, labels, random, epochs=5):
    """Adam on cross-entropy of both outputs."""
    width = FEATURES * len(LAGS)
    possible, certain = weights_of(labels)
    speech = ((labels == SPEECH) | (labels == ONSET)).astype(numpy.float32)
    valid = numpy.flatnonzero(possible + certain > 0)
    weights = [(random.standard_normal((width, HIDDEN)) / width**0.5).astype(numpy.float32), numpy.zeros(HIDDEN, numpy.float32),
               (random.standard_normal((HIDDEN, 2)) / HIDDEN**0.5).astype(numpy.float32), numpy.zeros(2, numpy.float32)]
    first, second = [numpy.zeros_like(w) for w in weights], [numpy.zeros_like(w) for w in weights]
    steps, size = 0, 4_096
    total = epochs * (len(valid) // size)
    for epoch in range(epochs):
        order = random.permutation(valid)
        loss = []
        for start in range(0, len(order) - size + 1, size):
            batch = order[start : start + size]
            x, y = stacked(rows, batch).astype(numpy.float32), speech[batch][:, None]
            hidden = numpy.maximum(0, x @ weights[0] + weights[1])
            z = hidden @ weights[2] + weights[3]
            p = 1 / (1 + numpy.exp(-numpy.clip(z, -30, 30)))
            cost = numpy.stack([possible[batch], certain[batch]], axis=1)
            loss.append(float((-cost * numpy.log(numpy.where(y > 0, p, 1 - p) + 1e-7)).mean()))
            slope = (p - y) * cost / len(batch)
            back = (slope @ weights[2].T) * (hidden > 0)
            gradients = (x.T @ back + 1e-5 * weights[0], back.sum(0), hidden.T @ slope, slope.sum(0))
            steps += 1
            rate = 3e-3 * min(1, steps / 200) * (0.02 + 0.98 * (1 - steps / total))
            for index, gradient in enumerate(gradients):
                first[index] = 0.9 * first[index] + 0.1 * gradient
                second[index] = 0.999 * second[index] + 0.001 * gradient**2
                step = first[index] / (1 - 0.9**steps) / (numpy.sqrt(second[index] / (1 - 0.999**steps)) + 1e-8)
                weights[index] = (weights[index] - rate * step).astype(numpy.float32)
        print(f"epoch {epoch + 1}: loss {numpy.mean(loss):.4f}", file=sys.stderr, flush=True)
    return weights


def quantised(weights):
    """Eight bits for each weight of the first layer, with a scale for each hidden unit."""
    scale = numpy.abs(weights[0]).max(axis=0) / 127
    return numpy.round(weights[0] / scale).astype(int), scale


def swift(weights):
    integers, scale = quantised(weights)
    text = "".join(f"{value & 255:02x}" for value in integers.T.reshape(-1))
    lines = "\n".join("        " + text[at : at + 108] + "\\" for at in range(0, len(text), 108))

    def numbers(values):
        return ", ".join(f"{value:.6g}" for value in values)

    return f'''// Written by Benchmarks/Voice/train.py.

extension VoiceModel {{
    /// Of the first layer, unit by unit: two digits for each weight, which is a signed byte times the unit's scale.
    static let digits = """
{lines[:-1]}
        """

    // swift-format-ignore
    static let scales: InlineArray<48, Float> = [{numbers(scale)}]
    // swift-format-ignore
    static let biases: InlineArray<48, Float> = [{numbers(weights[1])}]
    // swift-format-ignore
    static let possible: InlineArray<48, Float> = [{numbers(weights[2][:, 0])}]
    static let possibleBias: Float = {float(weights[3][0]):.6g}
    // swift-format-ignore
    static let certain: InlineArray<48, Float> = [{numbers(weights[2][:, 1])}]
    static let certainBias: Float = {float(weights[3][1]):.6g}
}}
'''


def main():
    voice, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    minutes = float(sys.argv[3]) if len(sys.argv) > 3 else 500
    parts = {"train": minutes, "tune": minutes / 4} if "--final" in sys.argv else {"train": minutes}
    random = numpy.random.default_rng(1)
    cache = folder / f"{'-'.join(parts)}-{minutes:g}.npz"
    if cache.exists():
        stored = numpy.load(cache)
        rows, labels = stored["rows"], stored["labels"]
    else:
        rows, labels = [], []
        for part, length in parts.items():
            data = corpus.open_corpus(folder, part)
            for _ in range(int(length * 60 / SECONDS)):
                heard, said, kinds = scene(data, random)
                found = features(voice, heard, said).astype(numpy.float16)
                rows += [numpy.zeros((LAGS[-1], FEATURES), numpy.float16), found]
                labels += [numpy.full(LAGS[-1], UNSURE, numpy.uint8), kinds[: len(found)]]
        rows, labels = numpy.concatenate(rows), numpy.concatenate(labels)
        numpy.savez(cache, rows=rows, labels=labels)
    weights = fit(rows, labels, random)
    numpy.savez(folder / "weights.npz", *weights)
    target = pathlib.Path(__file__).resolve().parents[2] / "Sources/Media/VoiceActivity/VoiceModel+Weights.swift"
    target.write_text(swift(weights))


if __name__ == "__main__":
    main()
