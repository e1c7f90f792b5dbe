"""How several tries of one measurement are judged: all are reported, and the median is compared with the limit."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from typing import Self

# A machine that is busy stalls both sides now and then, so that one try is no evidence.
TRIES = 3
# Bad tries beside a stall of the machine do not count, up to this number.
WITHHELD = 3
# Seconds by which a thread that sleeps may wake up late: one frame. Tests/Support/Witness.swift has the same rule.
LIMIT = 0.020


class TooLow(AssertionError):
    """The median of the tries is below the limit."""


class Witness:
    """A thread that sleeps 5 ms at a time, and records how late it wakes up at most."""

    SLEEP = 0.005

    def __enter__(self) -> Self:
        self.worst, self._ends = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ends.is_set():
            before = time.monotonic()
            time.sleep(self.SLEEP)
            self.worst = max(self.worst, time.monotonic() - before - self.SLEEP)


def judge(what: str, least: float, measure: Callable[[], float], witness: Callable = Witness) -> dict:
    """Measures until the median of three tries is known to hold or not, which two that agree decide.

    A try below `least` during which the machine stalled is made again, three times at most. Answers with all figures that count, and
    their median; of two tries that is the lower one. Raises TooLow if the median is below `least`, or if the machine was never quiet.
    """
    figures, withheld = [], []
    while len(figures) < TRIES and not decided(figures, least):
        with witness() as seen:
            figure = round(measure(), 2)
        if figure < least and seen.worst > LIMIT:
            withheld.append(f"{figure:.2f} beside a stall of {seen.worst * 1000:.0f} ms")
            if len(withheld) > WITHHELD:
                raise TooLow(f"{what}: the machine is too busy: a PESQ of {', '.join(withheld)}; {least} is the least")
            continue
        figures.append(figure)
    median = statistics.median_low(figures)
    if median < least:
        raise TooLow(
            f"{what}: the median PESQ of {', '.join(f'{figure:.2f}' for figure in figures)} is {median:.2f}, and {least} is the least"
        )
    return {"tries": figures, "median": median}


def decided(figures: list[float], least: float) -> bool:
    """Whether no further try can change on which side of `least` the median lies."""
    good = sum(figure >= least for figure in figures)
    return max(good, len(figures) - good) > TRIES // 2
