"""How anything is put into words in the block: a line with its rank, times and entries, and texts made fit to stand there.

Invariant: what comes out of ``clean`` is one line, masked, without control characters, and without a tag of our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from obsmem.core.clean import one_line
from obsmem.core.clock import Clock
from obsmem.core.ids import entry_id
from obsmem.core.mask import mask
from obsmem.core.tokens import estimate
from obsmem.harnesses.written import OWN_BLOCK

_OWN_TAG = re.compile(rf"<(?=/?{OWN_BLOCK[1:].strip()})")


class Line(NamedTuple):
    """A candidate line. ``rank`` says who is chosen first (lowest), ``order`` where it then stands (lowest on top).

    ``ids`` are the notes, ``seqs`` the entries that it shows.
    """

    text: str
    rank: tuple[float, ...]
    order: float
    ids: tuple[str, ...] = ()
    seqs: tuple[int, ...] = ()

    @property
    def cost(self) -> int:
        """Tokens of the line with its newline."""
        return estimate(self.text + "\n")


class View(NamedTuple):
    """How things are written here: the session's handle, the clock, how to recall, and the day that needs no date."""

    handle: str
    clock: Clock
    recall: str
    day: str

    def when(self, at: int) -> str:
        """The minute of a time; with its date where that is another day than the newest."""
        if at <= 0:
            return ""
        minute = self.clock(at)
        return minute[11:] if minute[:10] == self.day else minute[5:]

    def source(self, at: int, *seqs: int) -> str:
        """``(14:02, 7c2e.812)``: the time and the entries behind a line."""
        names = [entry_id(self.handle, seq) for seq in seqs if seq >= 0]
        return "(" + ", ".join(part for part in (self.when(at), *names) if part) + ")"


@lru_cache(maxsize=8_192)  # a block is filled several times over before it is the one
def clean(text: str) -> str:
    """A text as it may stand in a block: one line, masked, and without tags that would open or end a block."""
    return _OWN_TAG.sub("‹", mask(one_line(text)))


def clip(text: str, limit: int, more: str = "") -> str:
    """Head and tail of a text around a mark, in at most ``limit`` characters (plus the mark)."""
    if len(text) <= limit:
        return text
    head = text[: limit * 2 // 3].rstrip()
    tail = text[-(limit // 3) :].lstrip()
    return f"{head} […{len(text) - len(head) - len(tail)} characters{more}…] {tail}"


def clip_names(names: Iterable[str], limit: int) -> str:
    """Names joined by commas in at most ``limit`` characters; the rest is counted."""
    kept, size, rest = [], 0, 0
    for name in names:
        if rest or size + len(name) + 2 > limit:
            rest += 1
            continue
        kept.append(name)
        size += len(name) + 2
    return ", ".join(kept) + (f" (+{rest})" if rest else "")
