"""What is visible now: records of notes, reflections, drops and pins, folded along the live path.

Invariants: a pure function of the records in the order they were made; the first record of an id holds; nothing here
removes anything, so that going back to a branch, or noting a fact again, brings a note back.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from obsmem.core.model import Drop, Memory, Note, Pin, Reflection
from obsmem.core.tuples import NamedTuple


class Recorded(NamedTuple):
    """A note and when it was recorded (milliseconds), which is not when it happened."""

    note: Note
    at: int


def fold(
    notes: Iterable[Recorded],
    reflections: Iterable[Reflection],
    drops: Iterable[Drop],
    pins: Iterable[Pin],
    is_active: Callable[[str], bool],
) -> Memory:
    """Fold records (oldest first) into what is visible.

    A note is visible while at least one of its entries is on the live path, and unless it was dropped after it was last
    recorded. Of equal texts the newest is shown; dropping it drops the older ones too, which it had hidden. A reflection
    is visible unless all the notes that it stands on are off the live path, or another one replaced it.
    """
    first: dict[str, Note] = {}
    last_recorded: dict[str, int] = {}
    for note, at in notes:
        first.setdefault(note.id, note)
        last_recorded[note.id] = max(at, last_recorded.get(note.id, at))
    live = {name for name, note in first.items() if any(map(is_active, note.entry_ids))}
    dropped_at = _latest((name, drop.at) for drop in drops for name in drop.note_ids)
    # By text, so that a note which the dropped one had hidden does not come up in its place.
    dropped_texts = _latest((first[name].text, at) for name, at in dropped_at.items() if name in first)
    hidden = {name for name, note in first.items() if last_recorded[name] <= dropped_texts.get(note.text, -1)}
    shown: dict[str, Note] = {}
    for note in sorted(first.values(), key=lambda note: note.at):
        if note.id in live and note.id not in hidden:
            shown[note.text] = note
    reasons = {}
    for name, note in first.items():
        if name in hidden:
            reasons[name] = "dropped"
        elif name not in live:
            reasons[name] = "off the live path"
        elif shown[note.text].id != name:
            reasons[name] = f"equal to {shown[note.text].id}"
    first_pins: dict[str, Pin] = {}
    for pin in pins:
        first_pins.setdefault(pin.id, pin)
    return Memory(
        notes=tuple(sorted(shown.values(), key=lambda note: note.at)),
        reflections=tuple(_visible_reflections(reflections, first, live, dropped_at.keys())),
        dropped=frozenset(hidden | (dropped_at.keys() - first.keys())),
        pins=tuple(first_pins.values()),
        hidden=reasons,
    )


def _latest(times: Iterable[tuple[str, int]]) -> dict[str, int]:
    latest: dict[str, int] = {}
    for name, at in times:
        latest[name] = max(at, latest.get(name, at))
    return latest


def _visible_reflections(
    reflections: Iterable[Reflection], notes: dict[str, Note], live: set[str], replaced: Container[str]
) -> Iterable[Reflection]:
    seen_ids: set[str] = set()
    seen_texts: set[str] = set()
    for reflection in reflections:
        known = [name for name in reflection.note_ids if name in notes]
        if (known and not live.intersection(known)) or reflection.id in replaced:
            continue
        if reflection.id not in seen_ids and reflection.text not in seen_texts:
            seen_ids.add(reflection.id)
            seen_texts.add(reflection.text)
            yield reflection
