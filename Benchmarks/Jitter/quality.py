#!/usr/bin/env python3
"""Computes wideband PESQ (ITU-T P.862.2) of the files that `jitter --wavs DIRECTORY` wrote, against the clean decode.

usage: quality.py DIRECTORY [SECONDS]      needs numpy, and pesq from PyPI
Prints one JSON object: for each profile the mean over seeds for the jitter buffer, for a decoder with unlimited buffer
and FEC, and for a constant delay of the buffer's mean, over the whole call and over its first SECONDS (8).
"""

import concurrent.futures
import json
import pathlib
import re
import sys
import wave

import numpy
import pesq

RATE = 16_000


def read(path):
    with wave.open(str(path)) as file:
        return numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(numpy.float64)


def delay(reference, degraded):
    """Samples by which most of `degraded` is later than `reference`, below a second."""
    size = 1 << (len(degraded) + RATE).bit_length()
    spectrum = numpy.fft.rfft(degraded, size) * numpy.conj(numpy.fft.rfft(reference, size))
    return int(numpy.argmax(numpy.fft.irfft(spectrum, size)[:RATE]))


def score(reference, degraded):
    """The mean over pieces of 8 s, each cut where it begins in `degraded`; PESQ is made for sentences, not calls."""
    piece = 8 * RATE
    scores = []
    for start in range(0, len(reference) - piece + 1, piece):
        end = start + piece
        begin = start + delay(reference[start:end], degraded[start : end + RATE])
        scores.append(pesq.pesq(RATE, reference[start:end], degraded[begin : begin + piece], "wb"))
    return sum(scores) / len(scores)


def measure(job):
    reference_path, degraded_path, first = job
    reference, degraded = read(reference_path), read(degraded_path)
    count = first * RATE
    return score(reference, degraded), score(reference[:count], degraded[: count + RATE])


def main():
    directory = pathlib.Path(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    jobs, keys = [], []
    for path in sorted(directory.glob("*-*.*.wav")):
        match = re.fullmatch(r"(.+)-(\d+)\.(out|unlimited|constant)-(\d+)\.wav", path.name)
        if match:
            keys.append((match[1], match[3]))
            jobs.append((directory / f"clean-{match[4]}.wav", path, first))
    with concurrent.futures.ProcessPoolExecutor() as pool:
        results = list(pool.map(measure, jobs))
    table = {}
    for (profile, kind), (whole, beginning) in zip(keys, results):
        entry = table.setdefault(profile, {})
        name = "pesq" if kind == "out" else f"pesq_{kind}"
        entry.setdefault(name, []).append(whole)
        entry.setdefault(f"{name}_first_{first}_s", []).append(beginning)
    means = {profile: {key: round(sum(v) / len(v), 3) for key, v in entry.items()} for profile, entry in table.items()}
    print(json.dumps({"quality": means}, indent=1))


if __name__ == "__main__":
    main()
