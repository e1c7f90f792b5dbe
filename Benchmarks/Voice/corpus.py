"""Recordings for fit.py and compare.py, and scenes made of them.

FOLDER contains the unpacked Debian packages of PACKAGES (`corpus.py FOLDER` downloads and unpacks them). There are three parts, with
other talkers, noises, music and effects in each: `train` for the weights, `tune` for the thresholds, and `test` for the verdict.
"""

from __future__ import annotations

import hashlib
import pathlib
import pickle
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy
import soundfile
from scipy import signal

RATE, HOP = 8_000, 80
PACKAGES = [
    "asterisk-core-sounds-en-wav",
    "asterisk-core-sounds-es-wav",
    "asterisk-core-sounds-fr-wav",
    "asterisk-core-sounds-it-wav",
    "asterisk-core-sounds-ru-wav",
    "asterisk-moh-opsound-wav",
    "klettres-data",
    "ktuberling-data",
    "pocketsphinx-testdata",
    "sound-theme-freedesktop",
    "wesnoth-1.16-data",
    "wesnoth-1.16-music",
    "supertux-data",
    "hedgewars-data",
    "lincity-ng-data",
    "extremetuxracer-data",
]
#: Ambient recordings. The package is in Debian from 13 on, and is taken from the archive where apt does not know it.
AMBIENCE = ("pool/main/b/blanket/blanket_0.7.0-4_all.deb", "dbbf2a33f5763cf23330f94c8753d1c50e8a8e8df8a843dedaeda279e83558e6")
PROMPTS = "usr/share/asterisk/sounds/"
KTUBERLING = "usr/share/ktuberling/sounds/"
HEDGEWARS = "usr/share/games/hedgewars/Data/"
WESNOTH = "usr/share/games/wesnoth/1.16/data/core/"
SPEECH = {
    "train": [PROMPTS + name for name in ("en_US_f_Allison", "es_MX_f_Allison")]
    + [KTUBERLING + name for name in ("fr", "ca", "ru", "wa", "el", "gl", "lt")]
    + [HEDGEWARS + "Sounds/voices/" + name for name in ("Default", "Russian", "Mobster", "HillBilly")]
    + ["usr/share/klettres"],
    "tune": [PROMPTS + "fr_CA_f_June"] + [KTUBERLING + name for name in ("uk", "sl")] + [HEDGEWARS + "Sounds/voices/British"],
    "test": [PROMPTS + name for name in ("it_IT_m_Carlo", "ru_RU_f_IvrvoiceRU")]
    + [KTUBERLING + name for name in ("en", "de")]
    + ["usr/share/pocketsphinx"],
}
#: Numbers of blanket's recordings in the order of its file.
NOISE = {"train": (0, 1, 3, 6, 12), "tune": (5, 9), "test": (2, 4, 7, 8, 10, 11, 13)}
MUSIC = {
    "train": [WESNOTH + "music"],
    "tune": ["usr/share/games/supertux2/music"],
    "test": ["usr/share/asterisk/moh", HEDGEWARS + "Music", "usr/share/games/etr/music"],
}
EFFECTS = {
    "train": [HEDGEWARS + "Sounds/*.ogg", "usr/share/games/lincity-ng/sounds"],
    "tune": ["usr/share/games/supertux2/sounds"],
    "test": [WESNOTH + "sounds", "usr/share/sounds/freedesktop"],
}
#: Effects with a voice.
CRIES = (
    "human",
    "dwarf",
    "elf",
    "orc",
    "goblin",
    "ogre",
    "troll",
    "mermaid",
    "mermen",
    "naga",
    "zombie",
    "ghoul",
    "lich",
    "wail",
    "groan",
    "ugg",
    "yeti",
    "laugh",
    "cry",
    "petrified",
)


def download(folder: pathlib.Path) -> None:
    (folder / "packages").mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        subprocess.run(["apt-get", "download", "-q", name], cwd=folder / "packages", check=True)
    download_ambience(folder / "packages")
    for path in (folder / "packages").glob("*.deb"):
        subprocess.run(["dpkg", "-x", path, folder], check=True)


def download_ambience(folder: pathlib.Path) -> None:
    """From the archive that apt uses, checked by its SHA-256."""
    path, digest = AMBIENCE
    archives = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"], capture_output=True, text=True, check=True
    ).stdout.split()
    for archive in dict.fromkeys(archives):
        try:
            with urllib.request.urlopen(archive + path, timeout=60) as answer:
                data = answer.read()
        except urllib.error.URLError:
            continue
        if hashlib.sha256(data).hexdigest() != digest:
            raise SystemExit(f"corpus.py: {archive + path} is not the package that the scenes were made with")
        (folder / pathlib.PurePosixPath(path).name).write_bytes(data)
        return
    raise SystemExit(f"corpus.py: {path} is in none of the archives that apt uses: {' '.join(dict.fromkeys(archives)) or 'none'}")


def load(path: pathlib.Path) -> numpy.ndarray:
    """Samples at 8 kHz, at −1…1."""
    if path.suffix == ".raw":
        samples, rate = numpy.fromfile(path, "<i2") / 32768, 16_000
    else:
        samples, rate = soundfile.read(path, dtype="float32")
    if samples.ndim > 1:
        samples = samples.mean(axis=1)
    if rate != RATE:
        divisor = numpy.gcd(rate, RATE)
        samples = signal.resample_poly(samples, RATE // divisor, rate // divisor)
    return samples.astype(numpy.float32)


def sounds(folder: pathlib.Path, places: Any, seconds: float = 90.0) -> list[numpy.ndarray]:
    """All recordings of at least a fifth of a second at `places`, each cut to `seconds`."""
    found = []
    for place in places:
        paths = folder.glob(place) if "*" in place else (folder / place).rglob("*")
        for path in sorted(paths):
            if path.suffix not in (".wav", ".ogg", ".raw"):
                continue
            try:
                samples = load(path)[: int(seconds * RATE)]
            except Exception:  # The format of some differs from their name.
                continue
            if len(samples) > RATE // 5 and numpy.abs(samples).max() > 0.003:
                found.append((path.name, samples))
    return found


def ambience(folder: pathlib.Path) -> Iterator[tuple[int, numpy.ndarray]]:
    """The Ogg streams in blanket's file of resources."""
    data = (folder / "usr/share/blanket/blanket.gresource").read_bytes()
    streams, at = [], data.find(b"OggS")
    while 0 <= at < len(data) - 27:
        segments = data[at + 26]
        size = 27 + segments + sum(data[at + 27 : at + 27 + segments])
        if data[at + 5] & 2:
            streams.append(bytearray())
        streams[-1] += data[at : at + size]
        at = data.find(b"OggS", at + size)
    for number, stream in enumerate(streams):
        path = folder / f"ambience-{number}.ogg"
        path.write_bytes(stream)
        yield number, load(path)


class Corpus:
    def __init__(self, folder: pathlib.Path, part: str) -> None:
        self.part = part
        self.talkers = []
        for place in SPEECH[part]:
            said = [samples for name, samples in sounds(folder, [place], 20) if not name.startswith(("beep", "silence"))]
            self.talkers.append(said[:: max(1, len(said) // 400)])
        self.noise = [samples for number, samples in ambience(folder) if number in NOISE[part]]
        if part == "test":
            self.noise += [samples for _, samples in sounds(folder, [WESNOTH + "sounds/ambient"])]
        self.music = [samples for _, samples in sounds(folder, MUSIC[part], 240)]
        effects = [(name, s) for name, s in sounds(folder, EFFECTS[part], 5)]
        self.effects = [samples for name, samples in effects if not name.startswith(CRIES)]
        self.cries = [samples for name, samples in effects if name.startswith(CRIES)]


def open_corpus(folder: pathlib.Path, part: str) -> Corpus:
    """The corpus of one part; kept in a file, since reading thousands of recordings takes minutes."""
    cache = folder / f"{part}.pickle"
    if not cache.exists():
        cache.write_bytes(pickle.dumps(Corpus(folder, part)))
    return pickle.loads(cache.read_bytes())


def decibels(value: float) -> float:
    return 10 ** (value / 20)


def level(samples: numpy.ndarray) -> float:
    """Root of the mean square where there is sound."""
    samples = numpy.pad(samples, (0, -len(samples) % HOP))
    powers = (samples.reshape(-1, HOP) ** 2).mean(axis=1)
    return numpy.sqrt(powers[powers >= powers.max() * 1e-3].mean()) + 1e-9


def speech_hops(samples: numpy.ndarray, gap: int = 15) -> numpy.ndarray:
    """Which hops are speech: within 22 dB of the active level; pauses of up to `gap` hops belong to it."""
    count = len(samples) // HOP
    powers = (samples[: count * HOP].reshape(-1, HOP) ** 2).mean(axis=1)
    active = powers > (level(samples) * decibels(-22)) ** 2
    # Single hops are clicks.
    active &= numpy.convolve(active, numpy.ones(5), "same") >= 3
    at = numpy.flatnonzero(active)
    for before, after in zip(at, at[1:]):
        if after - before <= gap:
            active[before:after] = True
    return active


def band(samples: numpy.ndarray) -> numpy.ndarray:
    """The band that a telephone carries."""
    return signal.sosfilt(signal.butter(4, (200, 3_400), "band", fs=RATE, output="sos"), samples)


def hop_powers(samples: numpy.ndarray) -> numpy.ndarray:
    count = len(samples) // HOP
    return (samples[: count * HOP].reshape(-1, HOP) ** 2).mean(axis=1)


def runs(hops: numpy.ndarray) -> list[tuple[int, int]]:
    """Beginnings and ends of what is True."""
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[False], hops, [False]]).astype(int)))
    return list(zip(edges[::2], edges[1::2]))


def audible(speech: numpy.ndarray, other: numpy.ndarray, hops: numpy.ndarray) -> numpy.ndarray:
    """Where a listener hears the speech: within 15.9 dB of the utterance's active level (the margin of ITU-T P.56), and no more
    than 6 dB below everything else, both in the telephone's band. `other` is averaged over 110 ms."""
    said, rest = hop_powers(band(speech)), hop_powers(band(other))
    rest = numpy.convolve(rest, numpy.ones(11) / 11, "same")
    heard = numpy.zeros(len(hops), bool)
    for start, end in runs(hops):
        powers = said[start:end]
        active = powers[powers > powers.max() * 1e-3].mean()
        heard[start:end] = (powers >= active * 10**-1.59) & (powers >= rest[start:end] * 10**-0.6)
    return heard


def onsets(hops: numpy.ndarray, heard: numpy.ndarray, pause: Any = 100) -> list[int | None]:
    """For each utterance after a second without speech the first of two hops that are audible; None if none is."""
    found = []
    for start, end in runs(hops):
        if start < pause or hops[start - pause : start].any():
            continue
        pairs = numpy.flatnonzero(heard[start : end - 1] & heard[start + 1 : end])
        found.append(start + int(pairs[0]) if len(pairs) else None)
    return found


def trimmed(samples: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray] | None:
    """The speech from its first to its last hop, and its hops."""
    hops = speech_hops(samples)
    at = numpy.flatnonzero(hops)
    if len(at) < 15:
        return None
    return samples[at[0] * HOP : (at[-1] + 1) * HOP], hops[at[0] : at[-1] + 1]


def cough(random: numpy.random.Generator) -> numpy.ndarray:
    """A burst, turbulent noise through a tract, and often a voiced end; one to three in a row."""
    out = []
    for _ in range(random.integers(1, 4)):
        length = int(random.uniform(0.18, 0.45) * RATE)
        time = numpy.arange(length) / RATE
        noise = random.standard_normal(length)
        tract = numpy.zeros(length)
        for _ in range(3):
            tract += signal.lfilter(*signal.iirpeak(random.uniform(400, 3_200), random.uniform(1, 4), RATE), noise)
        shape = numpy.exp(-time / random.uniform(0.03, 0.12)) + 0.3 * numpy.exp(-time / 0.2)
        shape *= numpy.minimum(1, time / 0.004)
        one = tract * shape
        if random.random() < 0.6:
            pitch = random.uniform(100, 350) * (1 - 0.3 * time / time[-1])
            voice = signal.sawtooth(2 * numpy.pi * numpy.cumsum(pitch) / RATE)
            voice = signal.lfilter(*signal.butter(2, random.uniform(700, 1_500), fs=RATE), voice)
            one += 0.5 * voice * numpy.exp(-(((time - time[-1] * 0.6) / 0.05) ** 2))
        out += [one, numpy.zeros(int(random.uniform(0.05, 0.3) * RATE))]
    return numpy.concatenate(out).astype(numpy.float32)


def click(random: numpy.random.Generator) -> numpy.ndarray:
    length = int(random.uniform(0.003, 0.06) * RATE)
    return (random.standard_normal(length) * numpy.exp(-numpy.arange(length) / length * 4)).astype(numpy.float32)


def put(target: numpy.ndarray, samples: numpy.ndarray, at: int) -> None:
    end = min(len(target), at + len(samples))
    if end > at:
        target[at:end] += samples[: end - at]


def fill(recordings: Any, length: int, random: numpy.random.Generator) -> numpy.ndarray:
    """`length` samples of one recording, from anywhere in it, repeated if it is short."""
    samples = recordings[random.integers(len(recordings))]
    start = random.integers(len(samples))
    out = numpy.resize(numpy.roll(samples, -start), length)
    return out / level(out)


def room(samples: numpy.ndarray, random: numpy.random.Generator, gain: float) -> numpy.ndarray:
    """The echo of what we say: a delay of up to 400 ms, a room, a small loudspeaker's distortion."""
    delay = int(random.uniform(0.02, 0.4) * RATE)
    tail = int(random.uniform(0.02, 0.25) * RATE)
    response = random.standard_normal(tail) * numpy.exp(-numpy.arange(tail) / tail * 5)
    response[0] += 2
    response /= numpy.sqrt((response**2).sum())
    driven = numpy.tanh(samples * random.uniform(0.5, 4) / (level(samples) * 4))
    heard = signal.fftconvolve(driven, response)[: len(samples)]
    heard = numpy.concatenate([numpy.zeros(delay), heard])[: len(samples)]
    if random.random() < 0.3:  # An echo canceller that is on and off.
        switching = numpy.repeat(random.uniform(0.1, 1, len(samples) // 1_600 + 1), 1_600)[: len(samples)]
        heard = heard * switching
    return heard / level(heard) * gain


def line(samples: numpy.ndarray, random: numpy.random.Generator) -> numpy.ndarray:
    """The effect of a telephone line or a microphone: a band, rounding to 16 bits, sometimes µ-law, sometimes clipping."""
    kind = random.random()
    if kind < 0.4:
        samples = signal.sosfilt(signal.butter(4, (300, 3_400), "band", fs=RATE, output="sos"), samples)
    elif kind < 0.6:
        low = random.uniform(60, 250)
        samples = signal.sosfilt(signal.butter(2, low, "high", fs=RATE, output="sos"), samples)
    clipped = numpy.clip(samples, -1, 0.999)
    if random.random() < 0.3:
        coded = numpy.sign(clipped) * numpy.log1p(255 * numpy.abs(clipped)) / numpy.log(256)
        coded = numpy.round(coded * 128) / 128
        clipped = numpy.sign(coded) * (256 ** numpy.abs(coded) - 1) / 255
    return numpy.clip(numpy.round(clipped * 32_767), -32_768, 32_767).astype("<i2")


def conversation(talker: Any, length: int, random: numpy.random.Generator, pause: Any = (0.6, 3.5)) -> tuple[numpy.ndarray, numpy.ndarray]:
    """A talker's utterances with pauses, at level 1, and which hops are speech."""
    samples = numpy.zeros(length, numpy.float32)
    hops = numpy.zeros(length // HOP, bool)
    at = int(random.uniform(*pause) * 100)
    while at < len(hops):
        piece = trimmed(talker[random.integers(len(talker))])
        if piece is None:
            at += 1
            continue
        said, active = piece
        put(samples, said / level(said) * decibels(random.normal(0, 2)), at * HOP)
        count = min(len(active), len(hops) - at)
        hops[at : at + count] |= active[:count]
        at += len(active) + int(random.uniform(*pause) * 100)
    return samples, hops


if __name__ == "__main__":
    download(pathlib.Path(sys.argv[1]))
