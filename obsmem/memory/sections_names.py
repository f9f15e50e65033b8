"""The lines of *Names*: what else was named in the session, each name beside the place that it stands in.

Invariant: only room that nothing else in the block had a use for, or that lesser notes would take, is filled with them; a name
that another section tells is not told again. Chosen first: what the user and the agent said, what was named often and late.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

from obsmem.core.fold import State
from obsmem.core.ids import entry_id
from obsmem.core.tokens import estimate
from obsmem.memory.wording import Line, View, clean

ROW = 400  # characters of names in one line, so that a part of a long list can be left out
LONGEST_NAME = 100  # characters; what is longer is no name
PLACE_LIMIT = 48  # characters of a command that names stand in
WORTH_A_LINE = 3  # names of one output; fewer are told with those of others
WEIGHTS: Mapping[str, float] = {"user": 4.0, "agent": 3.0, "edit": 3.0, "call": 2.0, "tool": 1.0, "read": 1.0}
OLDEST = 0.3  # what the oldest name is worth beside the newest
ENTRY_COST = 40  # tokens: what the names of one entry may take
SAID = {"user": "the user said", "agent": "the agent said"}
ELSEWHERE = "elsewhere"
_SMALLER = [1 - step * 0.04 for step in range(24)]  # of the room, for the names alone: their places cost, too

_WORD = re.compile(r"[\w-]+")


class Named(NamedTuple):
    """A name, the place where it stood last (a file, a command, who said it), its newest entry, by whom and how often."""

    name: str
    place: str
    seq: int
    by: str
    weight: float
    times: int = 1


def most_wanted(state: State) -> int:
    """The most tokens that the names of a session could use, by the number of entries and files that have some."""
    return ENTRY_COST * (len(state.naming) + len(state.files))


def name_lines(state: State, view: View, told: Iterable[str], room: int) -> list[Line]:
    """Lines of names by place, the newest place first, that cost at most ``room`` tokens; ``told`` are the lines that name
    some already."""
    names = _affordable(_untold(_ranked(_gather(state)), "\n".join(told)), room)
    lines: list[Line] = []
    for share in _SMALLER:
        lines = _lines(_affordable(names, room * share), state.files, view)
        if sum(line.cost for line in lines) <= room:
            return lines
    return []


def _gather(state: State) -> dict[str, Named]:
    """Every name that is known, beside the file that it lives in, or else where it was named last."""
    found: dict[str, Named] = {}

    def add(name: str, place: str, seq: int, by: str) -> None:
        known = found.get(name)
        if known is None:
            found[name] = Named(name, place, seq, by, WEIGHTS[by])
        else:
            newest = max(seq, known.seq)
            found[name] = Named(name, place, newest, by, max(known.weight, WEIGHTS[by]), known.times + 1)

    for fact in state.naming:
        by = str(fact.detail["by"])
        for name in fact.text.split(" "):
            add(name, fact.subject, fact.seqs[-1], by)
    for file in state.files.values():
        for name, seq in (*file.mentions, *file.identifiers):
            if len(name) <= LONGEST_NAME and " " not in name:  # a heading is prose
                add(name, file.path, seq, "read" if file.read_only else "edit")
    return found


def _ranked(found: Mapping[str, Named]) -> list[Named]:
    """Names by their worth, the best first."""
    newest = max((one.seq for one in found.values()), default=0) + 1

    def worth(one: Named) -> float:
        late = OLDEST + (1 - OLDEST) * one.seq / newest
        return one.weight * late * (1 + log(one.times)) / estimate(one.name)

    return sorted(found.values(), key=worth, reverse=True)


def _untold(names: Iterable[Named], text: str) -> Iterable[Named]:
    words = set(_WORD.findall(text))
    return (one for one in names if one.name not in words and (one.name.isidentifier() or one.name not in text))


def _affordable(names: Iterable[Named], room: float) -> list[Named]:
    chosen = []
    for one in names:
        cost = estimate(one.name + ", ")
        if cost <= room:
            chosen.append(one)
            room -= cost
    return chosen


def _lines(names: Sequence[Named], files: Collection[str], view: View) -> list[Line]:
    places: dict[tuple[str, str], list[Named]] = {}
    for one in names:
        places.setdefault(_place(one, files), []).append(one)
    few = [key for key, found in places.items() if key[0] == "output" and len(found) < WORTH_A_LINE]
    rest = [one for key in few for one in places.pop(key)]
    lines: list[Line] = []
    for (kind, place), found in sorted(places.items(), key=lambda item: -max(one.seq for one in item[1])):
        head = clean(place)
        if kind == "output":
            head = f"`{_cut(head)}` ({entry_id(view.handle, max(one.seq for one in found))})"
        lines += _rows(head, found, len(lines))
    return [*lines, *_rows(ELSEWHERE, rest, len(lines))]


def _place(one: Named, files: Collection[str]) -> tuple[str, str]:
    """(kind, words) of the line that a name stands in."""
    if one.place in files:
        return "file", one.place
    return ("said", SAID[one.by]) if one.by in SAID else ("output", one.place)


def _cut(place: str) -> str:
    return place if len(place) <= PLACE_LIMIT else place[:PLACE_LIMIT].rstrip() + "…"


def _rows(head: str, names: Sequence[Named], first: int) -> list[Line]:
    rows: list[list[str]] = []
    size = ROW
    for one in names:
        if size + len(one.name) > ROW:
            rows.append([])
            size = 0
        rows[-1].append(clean(one.name))
        size += len(one.name) + 2
    return [Line(f"{head}: {', '.join(row)}", (first + n,), first + n) for n, row in enumerate(rows)]
