#!/usr/bin/env python3
"""Compares the speech quality of `handset loopback call` with wideband PESQ (ITU-T P.862.2), and fits its scale to it.

usage: calibrate.py QUALITY [FOLDER]
       calibrate.py --known FOLDER        PESQ of the pairs that the unit tests wrote
Needs numpy, scipy, and pesq from PyPI; libopus, alsa-utils, flite

QUALITY is the command that this package builds. FOLDER keeps the pairs of files and PESQ's answers between runs.
Prints one JSON object: the constants for QualityScale.swift, and correlation, RMS and greatest difference to PESQ, over
the fitted pairs and over the held-out ones (other talkers, and every fourth kind of damage).
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import wave
import zlib

import damage
import numpy
import pesq
from scipy import optimize, signal

SENTENCES = (
    "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background.",
    "It is easy to tell the depth of a well. These days a chicken leg is a rare dish.",
    "Rice is often served in round bowls. The juice of lemons makes fine punch.",
)
#: Talkers whose speech the fit uses, and those that are held out.
FITTED, HELD_OUT = ("alsa-a", "slt", "awb"), ("alsa-b", "rms", "made")


def read(path):
    with wave.open(str(path)) as file:
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)
        return signal.resample_poly(samples, damage.RATE // file.getframerate(), 1)


def write(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, damage.RATE, 0, "NONE", ""))
        file.writeframes(damage.clip(samples).tobytes())


def talkers(quality, folder):
    """Some nine seconds of each talker, at −26 dBFS where there is speech."""
    pause = numpy.zeros(damage.RATE // 2)
    alsa = sorted(path for path in pathlib.Path("/usr/share/sounds/alsa").glob("*.wav") if path.name != "Noise.wav")
    made = {"alsa-a": [read(path) for path in alsa[::2]], "alsa-b": [read(path) for path in alsa[1::2]]}
    for voice in ("slt", "awb", "rms"):
        made[voice] = []
        for index, text in enumerate(SENTENCES[:2] if voice == "awb" else SENTENCES[1:]):
            path = folder / f"{voice}-{index}.wav"
            subprocess.run(["flite", "-voice", voice, "-t", text, "-o", path], check=True)
            made[voice].append(read(path))
    subprocess.run([quality, "--make", folder / "made.wav"], check=True)
    made["made"] = [read(folder / "made.wav")]
    for name, pieces in made.items():
        speech = numpy.concatenate([part for piece in pieces for part in (pause, piece)] + [pause])
        yield name, speech * 32768 * 10 ** (-26 / 20) / damage.active(speech)


def score(pair):
    """PESQ takes 16 kHz, and compares both from their beginning."""
    reference, degraded = (signal.resample_poly(read(path), 1, 3) for path in pair)
    return pesq.pesq(16_000, damage.clip(reference), damage.clip(degraded), "wb")


def prepare(quality, folder):
    """Writes missing pairs of files, and the PESQ of each."""
    pairs = {}
    for talker, speech in talkers(quality, folder):
        reference = folder / f"{talker}.reference.wav"
        write(reference, speech)
        for condition, change in damage.CONDITIONS.items():
            path = folder / f"{talker}.{condition}.wav"
            if not path.exists():
                random = numpy.random.default_rng(zlib.crc32(path.name.encode()))
                heard = change(speech.copy(), random)
                write(path, numpy.concatenate([numpy.zeros(int(random.integers(0, 14_400))), heard]))
            pairs[talker, condition] = (str(reference), str(path))
    cache = folder / "pesq.json"
    known = json.loads(cache.read_text()) if cache.exists() else {}
    missing = [key for key in pairs if ".".join(key) not in known]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for key, value in zip(missing, pool.map(score, [pairs[key] for key in missing])):
            known[".".join(key)] = value
    cache.write_text(json.dumps(known))
    return pairs, known


def scale(constants, disturbance):
    """The same as in QualityScale.swift."""
    symmetric, asymmetric, changes = constants
    all_of_it, added, jumps = disturbance.T
    x = numpy.log(0.36 / 3.64) + symmetric * all_of_it + asymmetric * added**0.75 + changes * jumps**0.5
    return 1 + 4 / (1 + numpy.exp(x))


def agreement(measured, expected):
    error = measured - expected
    return {
        "pairs": len(error),
        "correlation": round(float(numpy.corrcoef(measured, expected)[0, 1]), 3),
        "rms": round(float(numpy.sqrt((error**2).mean())), 3),
        "greatest": round(float(abs(error).max()), 2),
    }


def known_pairs(folder):
    reference = folder / "known.reference.wav"
    paths = (path for path in sorted(folder.glob("known.*.wav")) if path != reference)
    print(json.dumps({path.name.split(".")[1]: round(score((reference, path)), 2) for path in paths}, indent=1))


def main():
    if sys.argv[1] == "--known":
        known_pairs(pathlib.Path(sys.argv[2]))
        return
    quality = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    pairs, known = prepare(quality, folder)
    keys = list(pairs)
    lines = "".join("\t".join(pairs[key]) + "\n" for key in keys)
    answer = subprocess.run([quality, *sys.argv[3:]], input=lines, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in answer.splitlines()]
    disturbance = numpy.array([[row["symmetric"], row["asymmetric"], row["changes"]] for row in rows])
    shipped = numpy.array([row["quality"] for row in rows])
    expected = numpy.array([known[".".join(key)] for key in keys])
    kinds = list(damage.CONDITIONS)
    fitted = numpy.array([talker in FITTED and kinds.index(kind) % 4 != 3 for talker, kind in keys])

    fit = optimize.least_squares(
        lambda constants: scale(constants, disturbance[fitted]) - expected[fitted],
        (0.1, 0.1, 0.1),
        bounds=((0, 0, 0), (10, 10, 10)),
        loss="soft_l1",
        f_scale=0.3,
    )
    measured = scale(fit.x, disturbance)
    result = {
        "constants": [round(float(value), 5) for value in fit.x],
        "fitted": agreement(measured[fitted], expected[fitted]),
        "held out": agreement(measured[~fitted], expected[~fitted]),
        "as shipped": agreement(shipped, expected),
        "as shipped, held out": agreement(shipped[~fitted], expected[~fitted]),
        "talkers": {},
        "conditions": {},
    }
    names = numpy.array([talker for talker, _ in keys])
    for talker in (*FITTED, *HELD_OUT):
        result["talkers"][talker] = agreement(measured[names == talker], expected[names == talker])
    conditions = numpy.array([kind for _, kind in keys])
    for kind in kinds:
        chosen = conditions == kind
        result["conditions"][kind] = {
            "pesq": round(float(expected[chosen].mean()), 2),
            "measured": round(float(measured[chosen].mean()), 2),
            "greatest": round(float(abs(measured - expected)[chosen].max()), 2),
            "held out": kinds.index(kind) % 4 == 3,
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
