"""The text that lets a fresh window go on: that work is in progress, the last instruction, what is open, and by style the
notes, the deterministic facts turn by turn, nothing more, or where the record lies. Values in, values out.

Invariants: it is a block like any other (its budget, its parts, its mark), so that it is known again and never observed;
nothing in it comes from a harness's summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from obsmem.core.clock import Clock, utc_minute
from obsmem.core.fold import State
from obsmem.core.model import Block, Card, Memory, Session
from obsmem.memory.render import render
from obsmem.memory.timeline import Line as Happening
from obsmem.memory.timeline import lines_of
from obsmem.memory.wording import Line, View, clean, clip

STYLES = ("notes", "anchor", "pointer", "cards")
OLDEST_SHARE, MIDDLE_SHARE = 4, 2  # the oldest third of the turns gets a quarter of a turn's characters, the next half


def render_handoff(
    session: Session,
    state: State,
    memory: Memory,
    cards: Sequence[Card],
    *,
    style: str,
    budget: int,
    key: bytes,
    clock: Clock = utc_minute,
    recall: str = "recall",
    program: str = "observational-memory",
    pointer: str = "",
    disk: Mapping[str, str] | None = None,
) -> Block:
    """Render the handoff of a session in at most ``budget`` tokens. ``style`` is one of STYLES; ``pointer`` tells where the
    record lies as files, where it does. No parts where the session holds nothing to go on with."""
    preface = _preface(session, program, pointer if style == "pointer" else "")
    if style in ("anchor", "pointer"):
        state = state._replace(files={}, commands={})
    if style != "notes":
        memory = Memory(pins=memory.pins)
    return render(
        session,
        state,
        memory,
        budget=budget,
        key=key,
        clock=clock,
        recall=recall,
        show=f"{program} notes",
        disk=disk,
        preface=preface,
        turns=(lambda view, limit: turn_lines(cards, view, limit)) if style == "cards" else None,
    )


def _preface(session: Session, program: str, pointer: str) -> str:
    handle = session.handle
    where = f" in {clean(session.cwd)}" if session.cwd else ""
    said = (
        f"WORK IS IN PROGRESS. This window goes on where session {handle}{where} stopped: do not begin anew or greet; do "
        f"what the last instruction below asks, unless it is done by now. `{program} timeline {handle}` lists what "
        f"happened, `{program} search WORDS` finds the rest."
    )
    if pointer:
        return f"{said}\n{pointer}"
    return said


def commands_pointer(session: Session, program: str) -> str:
    """What to read first, where the record lies nowhere as files."""
    return (
        f"Read the end of the record first: `{program} timeline {session.handle}` (what happened), then "
        f"`{program} around ENTRY --count 10` at its last line; then say in one paragraph what was asked, what is done and "
        "what is left, and go on."
    )


def turn_lines(cards: Sequence[Card], view: View, limit: int) -> list[Line]:
    """A line for each turn, the newest ones longest: what was asked, what was done, how it ended."""
    turns: dict[int, list[Happening]] = {}
    for card in cards:
        turns.setdefault(card.turn, []).extend(lines_of([card]))
    told = [(turn, happened) for turn, happened in sorted(turns.items()) if happened]
    lines = []
    for number, (_, happened) in enumerate(told):
        third = number * 3 // max(1, len(told))
        share = limit // (OLDEST_SHARE, MIDDLE_SHARE, 1)[third]
        text = clip(clean(_turn_text(happened)), max(40, share))
        lines.append(Line(f"{view.source(happened[0].at, happened[0].seq)} {text}", (len(told) - number,), number))
    return lines


def _turn_text(happened: Sequence[Happening]) -> str:
    """One turn in one line; what was done to the same file counts once."""
    pieces: dict[str, None] = {}
    for one in happened:
        name = one.text.partition(" (+")[0] if one.what in ("edited", "wrote", "deleted") else one.text
        pieces[f"{one.who} {one.what}: {name}"] = None
    return " · ".join(pieces)
