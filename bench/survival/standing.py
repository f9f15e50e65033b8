"""Instructions of the user that nothing took back, and whether a text holds them as current.

Invariant: what may have been taken back is left out, not guessed at: later words with a cue that share rare words with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bench.survival.judge import flat
from bench.survival.record import Case

SHOWN = 300  # characters of an instruction that must stand in one line
SHARED = 2  # rare words that later words must share to be about it

_CUE = re.compile(r"(?i)\b(?:no|actually|instead|don'?t|do not|revert|undo|forget|rather|never mind|scrap|wait)\b")
_QUESTION = re.compile(r"\?\s*$")
# A mark that a memory puts behind what it holds for outdated; the user's own words have none in such brackets.
_MARK = re.compile(
    r"\[(?:superseded|stale|revoked|retired|outdated|withdrawn|replaced|no longer)[^\]]*\]", re.IGNORECASE
)


class Retired(NamedTuple):
    """How many instructions were looked for, and which of them a text does not hold as current (missing, or marked)."""

    asked: int
    missing: list[str]
    marked: list[str]


def instructions(case: Case) -> list[str]:
    """What the user said that is no question and that no later words may have taken back."""
    prompts = [flat(event.text) for event in case.known if event.kind == "prompt" and len(event.text.split()) >= 3]
    return [
        words
        for number, words in enumerate(prompts)
        if not _QUESTION.search(words)
        and not any(_CUE.search(later) and _shares(words, later) for later in prompts[number + 1 :])
    ]


def _shares(words: str, later: str) -> bool:
    def rare(text: str) -> set[str]:
        return {word.casefold() for word in re.findall(r"\w{5,}", text)}

    return len(rare(words) & rare(later)) >= SHARED


def judge_standing(text: str, instructions: Sequence[str]) -> Retired:
    """Which of these a text does not hold as current."""
    lines = [flat(line) for line in text.split("\n")]
    missing, marked = [], []
    for words in instructions:
        shown = words[:SHOWN]
        found = [line for line in lines if shown in line]
        if not found:
            missing.append(shown[:60])
        elif all(_MARK.search(line.replace(shown, "")) for line in found):
            marked.append(shown[:60])
    return Retired(len(instructions), missing, marked)
