"""How an answer to a model is put together: stored words stand inside a fence that says whose they are, under a budget.

Invariants: the fence's name comes from the words themselves and a local key, so that nothing stored can close it, and the
same words come back as the same bytes; whatever stands outside of a fence is ours; an answer never exceeds its budget.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from obsmem.core.clean import one_line, strip_controls
from obsmem.core.tokens import clip, estimate
from obsmem.memory.own import INTRODUCTION as INTRODUCTION
from obsmem.tasks.store import Store

DEFAULT_TOKENS = 2_000
LEAST_TOKENS = 200
MOST_TOKENS = 8_000
WHO = {"human": "user"}
SMALLEST_PIECE = 40  # tokens of an entry's words, below which it is only named
_ODD = re.compile(r"[^\w.:/@ -]+")


class Piece(NamedTuple):
    """Words to be fenced. ``text`` is whole; ``start`` is where it begins in the entry, ``total`` the entry's length."""

    id: str
    who: str
    at: str
    text: str
    tool: str = ""
    session: str = ""
    note: str = ""
    start: int = 0
    total: int = 0


def fence(key: bytes, text: str, **about: str) -> str:
    """Words in a fence of their own. What is ``about`` them is cut to plain characters."""
    written = "".join(f' {name}="{plain(value)}"' for name, value in about.items() if value)
    mark = hmac.new(key, f"{written}\n{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:10]
    return f"<record-{mark}{written}>\n{text}\n</record-{mark}>"


def plain(value: str) -> str:
    """A short value for the head of a fence: on one line, without what could end it."""
    return _ODD.sub("_", one_line(value))[:120]


def inside(text: str) -> str:
    """Stored words on one line, moved in, so that none of them can look like a heading of ours."""
    return "  " + one_line(text)


def pieces(key: bytes, found: Sequence[Piece], room: int) -> str:
    """Several entries under a budget: short ones leave what they do not need to the longer ones. What is cut says how to
    go on; what has no room at all is named."""
    heads = [estimate(_fenced(key, one, "")) + 45 for one in found]
    kept = _how_many(heads, room)
    names = [one.id for one in found[kept:]]
    rest = clip(f"{len(names)} more: get each by its id: {' '.join(names)}", 80) if names else ""
    spare = room - sum(heads[:kept]) - estimate(rest)
    shares = _share([estimate(one.text) for one in found[:kept]], max(0, spare))
    blocks = [_cut(key, one, share) for one, share in zip(found[:kept], shares, strict=True)]
    return "\n".join([*blocks, rest] if rest else blocks)


def _fenced(key: bytes, one: Piece, text: str) -> str:
    return fence(key, text, id=one.id, who=one.who, at=one.at, tool=one.tool, session=one.session, about=one.note)


def _cut(key: bytes, one: Piece, room: int) -> str:
    shown = one.text if estimate(one.text) <= room else clip(one.text, room)
    end = one.start + len(shown)
    total = max(one.total, one.start + len(one.text))
    more = f'\n(characters {one.start} to {end} of {total}; go on with get id="{one.id}" start={end})'
    return _fenced(key, one, shown) + (more if end < total else "")


def _how_many(costs: Sequence[int], room: int) -> int:
    """How many of these fit, with a few words of each and a line that names the others; at least the first."""
    used = 0
    for index, cost in enumerate(costs):
        used += cost + SMALLEST_PIECE
        if used > room - (80 if index + 1 < len(costs) else 0):
            return max(1, index)
    return len(costs)


def _share(costs: Sequence[int], room: int) -> list[int]:
    shares = [0] * len(costs)
    left = len(costs)
    for index in sorted(range(len(costs)), key=lambda one: costs[one]):
        shares[index] = min(costs[index], room // left)
        room -= shares[index]
        left -= 1
    return shares


def lines(key: bytes, found: Sequence[str], room: int, **about: str) -> tuple[str, int]:
    """As many lines as fit, in one fence; returns it, and how many are in it. One alone is cut to fit."""
    room -= estimate(fence(key, "", **about)) + 4
    used, kept = 0, 0
    for text in found:
        used += estimate(text + "\n")
        if used > room:
            break
        kept += 1
    shown = list(found[:kept]) or [clip(text, room) for text in found[:1]]
    return fence(key, "\n".join(shown), **about), max(kept, len(shown))


def fit(make: Callable[[int], str], counts: Sequence[int], room: int) -> str:
    """The longest of the answers that fits, the counts being tried from the front; the last one is cut if it must be."""
    text = ""
    for count in counts:
        text = make(count)
        if estimate(text) <= room:
            return text
    return clip(text, room)


def words_of(store: Store, text: str) -> str:
    """Stored words as they may be shown: without secrets and unseen characters."""
    return store.mask(strip_controls(text))
