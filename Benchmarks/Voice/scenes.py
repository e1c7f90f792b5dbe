"""Scenes: speech whose onsets are known, and hours without speech. Each is a list of pieces (heard, said, hops, onsets)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import corpus
import numpy
from corpus import HOP, RATE, decibels

SECONDS = 60
#: Digital level of the caller, where there is speech.
CALLER = decibels(-26)

Sound = Callable[[numpy.random.Generator], numpy.ndarray]
#: What the caller says, what else is heard, what the bot says, and which hops are speech.
Parts = tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, numpy.ndarray]
Make = Callable[[numpy.random.Generator], Parts]
#: What is heard, what the bot says, which hops are speech, and the onsets.
Piece = tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, list[int | None]]


def pieces(seed: int, minutes: float, make: Make) -> list[Piece]:
    random = numpy.random.default_rng(seed)
    result = []
    for _ in range(int(minutes * 60 / SECONDS)):
        speech, other, said, hops = make(random)
        other = other + random.standard_normal(len(other)) * decibels(-75)
        onsets = corpus.onsets(hops, corpus.audible(speech, other, hops))
        result.append((corpus.line(speech + other, random), corpus.line(said, random), hops, onsets))
    return result


def silence() -> numpy.ndarray:
    return numpy.zeros(SECONDS * RATE)


def nothing() -> numpy.ndarray:
    return numpy.zeros(SECONDS * RATE // HOP, bool)


def caller(data: corpus.Corpus, random: numpy.random.Generator) -> tuple[numpy.ndarray, numpy.ndarray]:
    talker = data.talkers[random.integers(len(data.talkers))]
    speech, hops = corpus.conversation(talker, SECONDS * RATE, random, pause=(1.5, 4))
    return speech * CALLER * decibels(random.normal(0, 3)), hops


def bot(data: corpus.Corpus, random: numpy.random.Generator) -> numpy.ndarray:
    talker = data.talkers[random.integers(2)]
    return corpus.conversation(talker, SECONDS * RATE, random, pause=(0.2, 1.5))[0] * decibels(-22)


def speech(data: corpus.Corpus, ratio: float | None) -> Make:
    """Speech in recorded noise, `ratio` dB below it."""

    def make(random: numpy.random.Generator) -> Parts:
        heard, hops = caller(data, random)
        other = silence()
        if ratio is not None:
            other = corpus.fill(data.noise, len(heard), random) * CALLER * decibels(-ratio)
        return heard, other, silence(), hops

    return make


def barging(data: corpus.Corpus, echo: float) -> Make:
    """Speech while the bot speaks, whose echo is `echo` dB below the caller."""

    def make(random: numpy.random.Generator) -> Parts:
        heard, hops = caller(data, random)
        said = bot(data, random)
        return heard, corpus.room(said, random, CALLER * decibels(-echo)), said, hops

    return make


def noise(data: corpus.Corpus, level: float) -> Make:
    def make(random: numpy.random.Generator) -> Parts:
        sound = corpus.fill(data.noise, SECONDS * RATE, random) * decibels(level + random.uniform(-10, 10))
        return silence(), sound, silence(), nothing()

    return make


def music(data: corpus.Corpus, level: float) -> Make:
    def make(random: numpy.random.Generator) -> Parts:
        sound = corpus.fill(data.music, SECONDS * RATE, random) * decibels(level + random.uniform(-10, 10))
        return silence(), sound, silence(), nothing()

    return make


def bursts(sounds: Sound, count: int) -> Make:
    """`count` short sounds a minute, about as loud as the caller."""

    def make(random: numpy.random.Generator) -> Parts:
        heard = silence()
        for _ in range(count):
            sound = sounds(random)
            corpus.put(heard, sound / corpus.level(sound) * CALLER * decibels(random.uniform(-12, 6)), random.integers(len(heard)))
        return silence(), heard, silence(), nothing()

    return make


def echo(data: corpus.Corpus, level: float) -> Make:
    def make(random: numpy.random.Generator) -> Parts:
        said = bot(data, random)
        return silence(), corpus.room(said, random, decibels(-22 + level)), said, nothing()

    return make


def all_scenes(data: corpus.Corpus, minutes: float) -> Iterator[tuple[str, bool, list[Piece]]]:
    """Name, with speech or not, and pieces. An hour of the second kind consists of equal parts."""

    def effect(random: numpy.random.Generator) -> numpy.ndarray:
        return data.effects[random.integers(len(data.effects))]

    def cry(random: numpy.random.Generator) -> numpy.ndarray:
        return data.cries[random.integers(len(data.cries))]

    yield "speech, quiet line", True, pieces(1, minutes, speech(data, None))
    yield "speech, noise −20 dB", True, pieces(2, minutes, speech(data, 20))
    yield "speech, noise −10 dB", True, pieces(3, minutes, speech(data, 10))
    yield "speech over the bot, echo −30 dB", True, pieces(4, minutes, barging(data, 30))
    yield "speech over the bot, echo −15 dB", True, pieces(5, minutes, barging(data, 15))
    yield "noise", False, pieces(6, minutes, noise(data, -40))
    yield "music", False, pieces(7, minutes, music(data, -35))
    yield "coughs", False, pieces(8, minutes, bursts(corpus.cough, 6))
    yield (
        "clicks and effects",
        False,
        pieces(9, minutes, bursts(lambda random: corpus.click(random) if random.random() < 0.5 else effect(random), 10)),
    )
    yield "bot's echo, −40 dB", False, pieces(10, minutes, echo(data, -40))
    yield "bot's echo, −25 dB", False, pieces(11, minutes, echo(data, -25))
    yield "bot's echo, −12 dB", False, pieces(12, minutes, echo(data, -12))
    if data.cries:
        yield "cries (voices of a game)", False, pieces(13, minutes, bursts(cry, 4))
