"""Scenes: speech whose onsets are known, and hours without speech. Each is a list of pieces (heard, said, hops, onsets)."""

import corpus
import numpy
from corpus import HOP, RATE, decibels

SECONDS = 60
#: Digital level of the caller, where there is speech.
CALLER = decibels(-26)


def pieces(seed, minutes, make):
    random = numpy.random.default_rng(seed)
    result = []
    for _ in range(int(minutes * 60 / SECONDS)):
        speech, other, said, hops = make(random)
        other = other + random.standard_normal(len(other)) * decibels(-75)
        onsets = corpus.onsets(hops, corpus.audible(speech, other, hops))
        result.append((corpus.line(speech + other, random), corpus.line(said, random), hops, onsets))
    return result


def silence():
    return numpy.zeros(SECONDS * RATE)


def nothing():
    return numpy.zeros(SECONDS * RATE // HOP, bool)


def caller(data, random):
    talker = data.talkers[random.integers(len(data.talkers))]
    speech, hops = corpus.conversation(talker, SECONDS * RATE, random, pause=(1.5, 4))
    return speech * CALLER * decibels(random.normal(0, 3)), hops


def bot(data, random):
    talker = data.talkers[random.integers(2)]
    return corpus.conversation(talker, SECONDS * RATE, random, pause=(0.2, 1.5))[0] * decibels(-22)


def speech(data, ratio):
    """Speech in recorded noise, `ratio` dB below it."""

    def make(random):
        heard, hops = caller(data, random)
        other = silence()
        if ratio is not None:
            other = corpus.fill(data.noise, len(heard), random) * CALLER * decibels(-ratio)
        return heard, other, silence(), hops

    return make


def barging(data, echo):
    """Speech while the bot speaks, whose echo is `echo` dB below the caller."""

    def make(random):
        heard, hops = caller(data, random)
        said = bot(data, random)
        return heard, corpus.room(said, random, CALLER * decibels(-echo)), said, hops

    return make


def noise(data, level):
    def make(random):
        sound = corpus.fill(data.noise, SECONDS * RATE, random) * decibels(level + random.uniform(-10, 10))
        return silence(), sound, silence(), nothing()

    return make


def music(data, level):
    def make(random):
        sound = corpus.fill(data.music, SECONDS * RATE, random) * decibels(level + random.uniform(-10, 10))
        return silence(), sound, silence(), nothing()

    return make


def bursts(sounds, count):
    """`count` short sounds a minute, about as loud as the caller."""

    def make(random):
        heard = silence()
        for _ in range(count):
            sound = sounds(random)
            corpus.put(heard, sound / corpus.level(sound) * CALLER * decibels(random.uniform(-12, 6)), random.integers(len(heard)))
        return silence(), heard, silence(), nothing()

    return make


def echo(data, level):
    def make(random):
        said = bot(data, random)
        return silence(), corpus.room(said, random, decibels(-22 + level)), said, nothing()

    return make


def all_scenes(data, minutes):
    """Name, with speech or not, and pieces. An hour of the second kind consists of equal parts."""

    def effect(random):
        return data.effects[random.integers(len(data.effects))]

    def cry(random):
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
