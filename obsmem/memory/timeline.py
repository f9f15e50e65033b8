"""What happened, a line each: facts of cards and compactions, in the order in which they happened.

Invariant: a line names the entry that shows it, and its place in the order depends on that entry alone, so that a page
begins where the one before ended, whatever was added since.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from obsmem.core.ids import entry_id
from obsmem.core.model import Card, Fact

WORDS = 160  # characters of what was said
# What is worth a line; looking around is not.
_TOLD = {
    "instruction": ("user", "said"),
    "answer": ("user", "answered"),
    "interruption": ("user", "interrupted"),
    "edit": ("agent", "edited"),
    "write": ("agent", "wrote"),
    "delete": ("agent", "deleted"),
    "command": ("agent", "ran"),
    "commit": ("agent", "committed"),
    "decision": ("agent", "decided"),
    "conclusion": ("agent", "concluded"),
    "question": ("agent", "asked"),
}


class Line(NamedTuple):
    """One thing that happened: the entry that shows it (or the note or pin that it is), its time (milliseconds), who did what."""

    id: str
    session: str
    seq: int
    at: int
    who: str
    what: str
    text: str


def lines_of(cards: Iterable[Card], boundaries: Iterable[int] = (), times: dict[int, int] | None = None) -> list[Line]:
    """The lines of one session, in order. ``boundaries`` are seqs of compactions, ``times`` when they happened. Of what an
    agent says in a turn only the last conclusion is one, and an answer is told once."""
    lines: list[tuple[int, Line]] = []
    session = ""
    for card in cards:
        session = card.session
        lines += [(card.turn, line) for fact in card.facts if (line := _line(session, fact))]
    last = {turn: line for turn, line in lines if line.what == "concluded"}
    said = {line.id for _, line in lines if line.what == "said"}
    kept = [
        line
        for turn, line in lines
        if not (line.what == "concluded" and last[turn] is not line)
        and not (line.what == "answered" and line.id in said)
    ]
    if session:
        at = times or {}
        kept += [
            Line(entry_id(session, seq), session, seq, at.get(seq, 0), "harness", "compacted", "") for seq in boundaries
        ]
    return sorted(kept, key=lambda line: line.seq)


def fixed_line(id_: str, session: str, at: int, who: str, what: str, text: str, seq: int = 0) -> Line:
    """A line of what somebody fixed by hand, a note or a pin. ``seq`` is where it stands if no time tells."""
    return Line(id_, session, seq, at, who, what, _short(text))


def with_fixed(lines: Iterable[Line], fixed: Iterable[Line]) -> list[Line]:
    """The lines of a session, in order, with what was fixed by hand behind the last one that is no later: these have its seq,
    so that their places stay while entries arrive."""
    found = list(lines)
    added = []
    for one in fixed:
        before = [line.seq for line in found if 0 < line.at <= one.at]
        added.append(one._replace(seq=max(before, default=one.seq)))
    return sorted([*found, *sorted(added, key=lambda line: (line.at, line.id))], key=lambda line: line.seq)


def _line(session: str, fact: Fact) -> Line | None:
    if fact.kind not in _TOLD or (fact.kind == "command" and fact.detail.get("noise")):
        return None
    who, what = _TOLD[fact.kind]
    seq = max(fact.seqs)
    return Line(entry_id(session, seq), session, seq, fact.at, who, what, _text(fact))


def _text(fact: Fact) -> str:
    if fact.kind == "command":
        ended = {True: "ok", False: "failed", None: "how it ended is not known"}[fact.ok]
        code = fact.detail.get("exit")
        how = f"exit {code}" if fact.ok is False and code is not None else ended
        return f"`{_short(fact.subject)}` → {how}" + (f": {_short(fact.text)}" if fact.text else "")
    if fact.kind in ("edit", "write", "delete"):
        added, removed = fact.detail.get("added"), fact.detail.get("removed")
        size = f" (+{added or 0} −{removed or 0})" if added or removed else ""
        return f"{fact.subject}{size}"
    if fact.kind == "commit":
        return f"{fact.subject} {_short(fact.text)}".strip()
    if fact.kind == "answer":
        return f"{_short(fact.text)} (to: {_short(fact.subject)})"
    return _short(fact.text or fact.subject)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WORDS else line[: WORDS - 2].rstrip() + " …"
