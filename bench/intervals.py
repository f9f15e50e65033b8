"""Medians with intervals, of figures that were measured in turn.

Invariant: the same figures always give the same interval, since the resampling draws from a seed of its own. What belongs to
one turn stays together when it is drawn again, so that a busy second of the machine counts for both sides of a ratio.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

RESAMPLES, SHARE, SEED = 1_000, 0.95, 5


class Middle(NamedTuple):
    """A median, and between which values it lies in ``SHARE`` of the resamples."""

    value: float
    low: float
    high: float

    def rounded(self, digits: int = 3) -> list[float]:
        """As an artefact holds it: value, low, high."""
        return [round(one, digits) for one in self]

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f})"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Middle:
    """Our median as a share of theirs; both have one figure a turn. Raises ValueError where they do not."""
    if len(ours) != len(theirs) or not ours:
        raise ValueError(f"{len(ours)} figures cannot be paired with {len(theirs)}; measure both in every turn.")
    dice, turns = random.Random(SEED), range(len(ours))
    found = sorted(
        median(ours[turn] for turn in drawn) / median(theirs[turn] for turn in drawn)
        for drawn in (dice.choices(turns, k=len(ours)) for _ in range(RESAMPLES))
    )
    edge = int(RESAMPLES * (1 - SHARE) / 2)
    return Middle(median(ours) / median(theirs), found[edge], found[-1 - edge])


def middle(figures: Sequence[float]) -> Middle:
    """The median of some figures."""
    return ratio(figures, [1.0] * len(figures))
