"""What the prompts of the three passes have in common: the mark, prior memory under a cap, data framed as data.

Invariants: every prompt begins with the worker mark; nothing of unbounded length goes in; whatever comes from a
transcript stands between two lines whose tag depends on its content, so that it cannot close its own frame.
"""

from __future__ import annotations

import hashlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from obsmem.core.clock import Clock, utc_minute
from obsmem.core.ids import shorten
from obsmem.core.mask import mask
from obsmem.core.model import Memory
from obsmem.core.tokens import estimate
from obsmem.harnesses.written import WORKER_MARK
from obsmem.memory.lines import line, reflection_line

TIER_NAMES = ("none", "partial", "strong")


class Instructions(NamedTuple):
    """What a pass asks of a model: a data file in ``prompts``. ``version`` is counted up with every change of its words,
    and stands with each call, so that answers to different prompts can be told apart."""

    version: int
    rules: str
    answer: str


@cache
def instructions(task: str) -> Instructions:
    """The instructions of a pass, read once."""
    data = pkgutil.get_data(__package__, f"prompts/{task}.txt")
    head, rules, answer = (data or b"").decode("utf-8").split("=== ")
    return Instructions(int(head.split()[1]), rules.partition("\n")[2], answer.partition("\n")[2])


class Prior(NamedTuple):
    """The lines of memory that fit, in their original order, and how many of each did not."""

    notes: tuple[str, ...]
    reflections: tuple[str, ...]
    notes_left_out: int
    reflections_left_out: int


def prior_memory(
    memory: Memory, cap: int, clock: Clock = utc_minute, tiers: Mapping[str, int] | None = None, *, oldest: bool = False
) -> Prior:
    """Fit memory into ``cap`` tokens: notes get half, newest first (or oldest first), then reflections what is left,
    newest first, then notes again. With ``tiers`` each note says how well reflections cover it.
    """
    short = shorten([note.id for note in memory.notes] + [reflection.id for reflection in memory.reflections])
    notes = [line(note, short[note.id], clock) for note in memory.notes]
    if tiers is not None:
        notes = [
            text.replace("] ", f"] (covered: {TIER_NAMES[tiers.get(note.id, 0)]}) ", 1)
            for text, note in zip(notes, memory.notes, strict=True)
        ]
    reflections = [reflection_line(reflection, short[reflection.id]) for reflection in memory.reflections]
    costs = [estimate(text + "\n") for text in notes]
    first = range(len(notes)) if oldest else range(len(notes) - 1, -1, -1)
    chosen, used = _fit(costs, first, cap // 2)
    lasting, spent = _fit(
        [estimate(text + "\n") for text in reflections], range(len(reflections) - 1, -1, -1), cap - used
    )
    more, _ = _fit(costs, [index for index in first if index not in chosen], cap - used - spent)
    chosen |= more
    return Prior(
        tuple(mask(notes[index]) for index in sorted(chosen)),
        tuple(mask(reflections[index]) for index in sorted(lasting)),
        len(notes) - len(chosen),
        len(reflections) - len(lasting),
    )


def _fit(costs: Sequence[int], order: Sequence[int], cap: int) -> tuple[set[int], int]:
    """Take what fits in the given order; what does not is skipped and does not stop the rest."""
    chosen: set[int] = set()
    used = 0
    for index in order:
        if used + costs[index] <= cap:
            chosen.add(index)
            used += costs[index]
    return chosen, used


def memory_section(prior: Prior) -> str:
    """Write prior memory for a prompt."""
    reflections = "\n".join(prior.reflections) or "(none yet)"
    notes = "\n".join(prior.notes) or "(none yet)"
    text = f"Reflections:\n{reflections}\n\nNotes:\n{notes}"
    if prior.notes_left_out or prior.reflections_left_out:
        text += f"\n\n({prior.notes_left_out} notes and {prior.reflections_left_out} reflections more are not shown.)"
    return frame("memory", text)


def frame(name: str, text: str) -> str:
    """Put text between two lines that say what it is. The tag is a hash of the text."""
    tag = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"<{name} {tag}>\n{text}\n</{name} {tag}>"


def assemble(*parts: str) -> str:
    """Join the parts of a prompt behind the worker mark."""
    return "\n\n".join((WORKER_MARK, *(part.strip("\n") for part in parts if part)))
