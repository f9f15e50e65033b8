"""Why the program did what it did: decisions and hooks in order, the last block line by line, one note from end to end.

Invariants: nothing is decided again here: what is told was written down when it was decided, or, of a block, when it was rendered;
what was delivered is read from the transcript where that shows it, else from the file that a hook copied out. Nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from obsmem.core.decisions import OBSERVE, Decision
from obsmem.core.errors import NotFound, StoreError
from obsmem.core.ids import is_note_prefix
from obsmem.core.model import Note, Reason
from obsmem.core.tokens import estimate
from obsmem.harnesses.written import OWN_BLOCK
from obsmem.memory.render import CLOSE
from obsmem.store.archive import StoredSession
from obsmem.store.memory import StoredNote
from obsmem.system import blockfile, log
from obsmem.tasks.entries import read_entries
from obsmem.tasks.reasons import HANDOFF, Reasons, read_reasons
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store

LOGGED = "log"  # what a line of the log is called among decisions


class Happened(NamedTuple):
    """A decision, or with LOGGED as ``what`` a line that a process left in the log about its session; ``at`` in milliseconds."""

    at: int
    what: str
    why: str
    numbers: Mapping[str, Any]


class Given(NamedTuple):
    """The last block of a session: its text in ``parts`` (number -> text) of ``of``. ``source`` is transcript (the model has it),
    file (a hook gave it, and no transcript shows it) or waiting (no hook has asked for it yet); ``handed_by`` the session whose
    handoff it is, '' for its own. ``reasons`` are None where they are not kept any more."""

    delivery: str
    source: str
    at: int
    parts: Mapping[int, str]
    of: int
    handed_by: str
    reasons: Reasons | None
    notes: Mapping[str, Note]
    dropped: Mapping[str, str]


class Story(NamedTuple):
    """One note: where it came from, what became of it. ``observed`` is the decision that brought it, ``hidden`` why it is not visible
    ('' if it is), ``dropped`` the reason of its tombstone; ``in_block`` why it stands in the last block, or does not ('' where nothing
    is known)."""

    note: StoredNote
    worker: str
    observed: Decision | None
    hidden: str
    dropped: str
    dropped_at: int
    in_block: str
    delivery: str


def history(store: Store, stored: StoredSession, since: int = 0, until: int = 0) -> list[Happened]:
    """What was decided about a session, and what hooks and maintainers say of it in the log, in order of time: from ``since``
    up to, but not with, ``until`` (milliseconds, 0: no bound)."""
    end = until or 1 << 62
    found = [
        Happened(one.at, one.what, one.why, one.numbers)
        for one in store.memory.decisions(stored.session.handle, since, end - 1)
    ]
    for at, event, fields in log.lines_about(store.home, store.folder_of(stored)):
        if since <= at < end:
            name = fields.pop("name", fields.pop("harness", ""))
            fields.pop("session", None)
            found.append(Happened(at, LOGGED, f"{event} {name}".strip().replace("_", " "), fields))
    return sorted(found, key=lambda one: one.at)


def last_block(store: Store, stored: StoredSession) -> Given:
    """The newest block that a session was given, else the one that waits for it. Raises NotFound where there is neither."""
    folder, handle = store.folder_of(stored), stored.session.handle
    seen = _from_transcript(store, stored)
    for name in (blockfile.CURRENT, blockfile.KEPT):
        path = os.path.join(folder, name)
        delivery, texts = blockfile.read(path)
        if texts and (seen is None or (delivery != seen[0] and _changed(path) > seen[1])):
            seen = delivery, _changed(path), dict(enumerate(texts, 1)), len(texts), "file"
    if seen is None:
        path = os.path.join(folder, blockfile.NEXT)
        delivery, texts = blockfile.read(path)
        if not texts:
            raise NotFound(
                f"No block was made for session {handle} yet: hooks leave one when a turn ends. "
                f"'observational-memory block {handle}' prints what it would be."
            )
        seen = delivery, _changed(path), dict(enumerate(texts, 1)), len(texts), "waiting"
    delivery, at, parts, of, source = seen
    mark = store.memory.rotation_of_delivery(delivery)
    handed_by = mark.session if mark is not None and mark.session != handle else ""
    reasons = _handoff_reasons(store, handed_by, delivery) if handed_by else read_reasons(folder, delivery)
    ids = {id_ for one in (*reasons.shown, *reasons.left_out) for id_ in one.ids} if reasons else set[str]()
    notes = {one.note.id: one.note for one in store.memory.notes_by_id(sorted(ids))}
    dropped = {id_: one.drop.why for one in store.memory.drops(handle) for id_ in one.drop.note_ids}
    return Given(delivery, source, at, parts, of, handed_by, reasons, notes, dropped)


def _handoff_reasons(store: Store, handle: str, delivery: str) -> Reasons | None:
    """The reasons of a handoff, which are kept where it was made."""
    try:
        return read_reasons(store.folder_of(store.archive.by_handle(handle)), delivery, HANDOFF)
    except NotFound:  # it was forgotten
        return None


def _from_transcript(store: Store, stored: StoredSession) -> tuple[str, int, dict[int, str], int, str] | None:
    """(delivery, at, parts, of, 'transcript') of the delivery whose receipts are the newest; None where there are none."""
    receipts = store.memory.receipts(stored.session.handle)
    if not receipts:
        return None
    delivery, last_part, _, at = receipts[-1]
    parts: dict[int, str] = {}
    for name, part, seq, _ in receipts:
        text = block_text(store, stored, delivery, part, seq) if name == delivery else ""
        if text:
            parts[int(part.partition("/")[0])] = text
    return delivery, at, dict(sorted(parts.items())), int(last_part.partition("/")[2] or 1), "transcript"


def block_text(store: Store, stored: StoredSession, delivery: str, part: str, seq: int) -> str:
    """The part of a delivery that an entry brought; '' where its bytes are gone."""
    row = store.archive.entry(stored.no, seq)
    entries = read_entries(store, stored, [row], lost=True) if row is not None else []
    return _cut_out(entries[0].text, delivery, part) if entries else ""


def _cut_out(text: str, delivery: str, part: str) -> str:
    """The part of a block out of the text of the entry that brought it."""
    start = text.find(f'{OWN_BLOCK}delivery="{delivery}" part="{part}"')
    end = text.find(CLOSE, start)
    return text[start : end + len(CLOSE)] if 0 <= start < end else text


def lines_of(given: Given) -> tuple[Reason, ...]:
    """Every line of a block with its section, and with why it stands there as far as that is kept."""
    if given.reasons is not None:
        return given.reasons.shown
    found: list[Reason] = []
    section = ""
    for text in given.parts.values():
        for line in text.split("\n"):
            if line.startswith("## "):
                section = line[3:].removesuffix(" (continued)")
            elif section and line != CLOSE and not line.startswith(OWN_BLOCK) and not line.startswith("Continued: "):
                found.append(Reason(section, "shown", line, tokens=estimate(line + "\n")))
    return tuple(found)


def find_note(store: Store, stored: StoredSession, name: str) -> StoredNote | None:
    """The note of a session (or of those that it goes on from) that an id or its beginning names; None for no one note."""
    name = name.strip().strip("[]").lower()
    if not is_note_prefix(name):
        return None
    found = store.memory.find_notes(name)
    own = [one for one in found if one.session == stored.session.handle] or found
    return own[0] if len({one.note.id for one in own}) == 1 else None


def story_of(store: Store, stored: StoredSession, note: StoredNote) -> Story:
    """Why a note exists, why it is not visible where it is not, and why it does or does not stand in the last block."""
    id_ = note.note.id
    decisions = store.memory.decisions(note.session)
    stretch = (note.first_seq, note.last_seq)
    observed = [
        one for one in decisions
        if one.what == OBSERVE and (one.numbers.get("first"), one.numbers.get("last")) == stretch
    ]  # fmt: skip
    calls = [call for call in store.memory.calls(note.session) if (call.first_seq, call.last_seq) == stretch]
    brought = [call for call in calls if call.task in ("observe", "note") or call.items]
    drops = [one.drop for one in store.memory.drops(note.session) if id_ in one.drop.note_ids]
    in_block, delivery = _place_in_block(store, stored, id_)
    return Story(
        note,
        brought[-1].worker if brought else "",
        observed[-1] if observed else None,
        remember(store, stored).hidden.get(id_, ""),
        drops[-1].why if drops else "",
        drops[-1].at if drops else 0,
        in_block,
        delivery,
    )


def _place_in_block(store: Store, stored: StoredSession, id_: str) -> tuple[str, str]:
    """(why a note stands in the last block or does not, the delivery); ('', '') where nothing is known."""
    try:
        given = last_block(store, stored)
    except (NotFound, StoreError):
        return "", ""
    if given.reasons is None:
        return "", given.delivery
    for one in (*given.reasons.shown, *given.reasons.left_out):
        if id_ in one.ids:
            return _words(one), given.delivery
    why = dict(given.reasons.hidden).get(id_, "")
    return why or "not there when the block was made", given.delivery


def _words(one: Reason) -> str:
    rank = " ".join(f"{number:g}" for number in one.rank)
    return f"{one.why} in {one.section}, rank {rank}, {one.tokens} tokens"


def reason_value(one: Reason, handle: str, notes: Mapping[str, Note]) -> dict[str, Any]:
    """A reason for programs, with what is known of the note behind it and the ids that recall takes."""
    value: dict[str, Any] = {
        "section": one.section, "why": one.why, "text": one.text, "rank": list(one.rank), "tokens": one.tokens,
        "ids": list(one.ids), "entries": [f"{handle}.{seq}" for seq in one.seqs if seq >= 0],
    }  # fmt: skip
    note = next((notes[id_] for id_ in one.ids if id_ in notes), None)
    if note is not None:
        value |= {"relevance": note.relevance, "evidence": note.evidence, "grounding": note.grounding}
    return value


def count_reasons(reasons: Reasons) -> dict[str, int]:
    """How often each reason kept something out: reason -> count, of those that are listed."""
    counted: dict[str, int] = {}
    names: Sequence[str] = [one.why for one in reasons.left_out] + [why for _, why in reasons.hidden]
    for why in names:
        name = "equal text" if why.startswith("equal") else why
        counted[name] = counted.get(name, 0) + 1
    return counted


def _changed(path: str) -> int:
    try:
        return int(os.stat(path).st_mtime * 1000)
    except OSError:
        return 0
