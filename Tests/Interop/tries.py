"""How several tries of one measurement are judged: all are reported, and the median is held to the limit."""

import statistics

# A machine that is busy stalls both sides now and then, so that one try says little.
TRIES = 3


class TooLow(AssertionError):
    """The median of the tries is below the limit."""


def judge(what, least, measure):
    """Measures until the median of three tries is known to hold or not, which two that agree decide.

    Answers with all figures and their median; of two tries that is the lower one. Raises TooLow if the median is below
    `least`.
    """
    figures = []
    while len(figures) < TRIES and not decided(figures, least):
        figures.append(round(measure(), 2))
    median = statistics.median_low(figures)
    if median < least:
        raise TooLow(f"{what}: the median PESQ of {', '.join(f'{figure:.2f}' for figure in figures)} is {median:.2f}, and "
                     f"{least} is the least")
    return {"tries": figures, "median": median}


def decided(figures, least):
    """Whether no further try can change on which side of `least` the median lies."""
    good = sum(figure >= least for figure in figures)
    return max(good, len(figures) - good) > TRIES // 2
