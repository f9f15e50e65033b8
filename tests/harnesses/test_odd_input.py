"""Input that once made a reader fail, and a short fuzzing of everything that reads words of others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.faults import fuzz

NAMES = [target.name for target in fuzz.targets("")]
TRIES = 250


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_whatever_stands_in_it_reading_raises_nothing_and_loses_no_byte(index: int, tmp_path: Path) -> None:
    target = fuzz.targets(str(tmp_path))[index]
    assert target.seeds
    tries = len(target.seeds) + TRIES
    assert fuzz.attempt_for(target, random.Random(5), 0, tries) == (tries, [])
