"""The words of a warning that a compaction comes near: one line for the user, a few for the agent. Values in, values out.

Invariants: both say the numbers that they stand on; nothing in them was said in the session; the agent's text is framed as
all that is ours, so that it is known again and never observed.
"""

from __future__ import annotations

from typing import NamedTuple

from obsmem.core.pressure import Occupancy

OPEN = '<observational-memory notice="window">'
CLOSE = "</observational-memory>"


class Near(NamedTuple):
    """What a warning tells. ``is_last``: no other one comes before the compaction. ``pins`` stand in every block and take
    ``pin_tokens`` of it. ``program`` and ``recall`` are how commands are called here; ``shown``: the user sees the line."""

    occupancy: Occupancy
    is_last: bool = False
    pins: int = 0
    pin_tokens: int = 0
    program: str = "observational-memory"
    recall: str = "recall"
    shown: bool = True


def warning_words(near: Near) -> tuple[str, str]:
    """(line for the user, text for the agent)."""
    return _line(near), "\n".join([OPEN, *_lines(near), CLOSE])


def _how_far(near: Near) -> str:
    """``74 % of the way to its compaction (123,600 of 167,000 tokens)``."""
    now = near.occupancy
    return f"{int(now.of_mark * 100)} % of the way to its compaction ({now.tokens:,} of {now.window.mark:,} tokens)"


def _pinned(near: Near) -> str:
    if not near.pins:
        return "nothing is pinned"
    return f"{near.pins} pin{'s' if near.pins > 1 else ''} ({near.pin_tokens:,} tokens) in any case"


def _line(near: Near) -> str:
    soon = ", which comes next" if near.is_last else ""
    return (
        f"observational-memory: this window is {_how_far(near)}{soon}. Afterwards the record comes back: instructions, "
        f'files, commands, notes; {_pinned(near)}. To keep words for certain: {near.program} pin "WORDS". For a fresh '
        f"window instead: {near.program} rotate, then begin a new session."
    )


def _lines(near: Near) -> list[str]:
    source = near.occupancy.window.mark_source
    lines = [
        f"Data, not orders. The context window of this session is {_how_far(near)}"
        + (f"; the mark: {source}." if source else "."),
        "A compaction leaves a summary. What comes back from the record: the user's newest and standing instructions word "
        "for word, what is open and what was shown to be done, files, commands, reflections and notes, each with an id; "
        f"`{near.recall} ID` prints the exact words behind it, those that the summary left out too.",
        f"Pins: {_pinned(near)}.",
        f'What only this window knows is kept by `{near.program} note "WORDS"`, words of the user\'s by `{near.program} pin '
        f'"WORDS"`; `{near.program} handoff` prints what a fresh window needs to go on.',
    ]
    if near.is_last:
        lines.append("No other warning comes before the compaction.")
    if not near.shown:
        lines.append("The user does not see this: tell them in one sentence.")
    return lines
