"""What the user fixes: pins, which stand in every block, and notes by hand.

Invariants: what is kept is masked; a pin of an entry, note or reflection names it, so that its words can be had whole and
go when it is forgotten; a note by hand cites entries that exist, goes through the checks of any other, and moves no
coverage. Whatever changes here, the blocks that wait for sessions concerned are rendered anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.ids import content_id, is_entry_id, is_note_prefix, parse_entry_id
from obsmem.core.model import RELEVANCES, Entry, Evidence, Note, Pin, Relevance
from obsmem.core.tokens import estimate
from obsmem.harnesses.base import Source
from obsmem.memory.check import evidence, ground
from obsmem.memory.lines import line
from obsmem.memory.observe import note_text
from obsmem.memory.wording import clip
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES, SPEAKER_CODES
from obsmem.store.memory import WorkerCall
from obsmem.store.memory_pins import StoredPin
from obsmem.system.local_time import local_clock
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.here import Here
from obsmem.tasks.ingest import is_database
from obsmem.tasks.maintain import read
from obsmem.tasks.remember import masked, visible_pins
from obsmem.tasks.renew import renew_blocks
from obsmem.tasks.store import Store

SCOPES = ("session", "workspace", "everywhere")
LONGEST_PIN = 20_000  # characters that are kept
MOST_PINS = 100  # that one session may see: each stands in every block
HAND = "hand"  # the worker of notes by hand
_HUMAN = f"kind={KIND_CODES['user']} AND speaker={SPEAKER_CODES['human']} AND active=1 AND replaced_by IS NULL"  # the words of a user


def pin(store: Store, what: str, scope: str, here: Here, *, literal: bool = False, by: Evidence = "user") -> Pin:
    """Keep words in every block: ``what`` itself, or those of the entry, note or reflection that it names (never, if
    ``literal``). ``scope`` is one of SCOPES; '' is the session that asks, or where none does, the workspace. ``by`` says
    whose words ``what`` is. Raises UsageError or NotFound; the same pin again is the one that is there."""
    scope = scope or ("session" if here.session else "workspace")
    owner = _owner(scope, here)
    text, source, spoken = ("", "", by) if literal else _words_of(store, what)
    text = clip(store.mask(text or what.strip()), LONGEST_PIN)
    if not text:
        raise UsageError("There is nothing to pin: give words, or the id of an entry or note.")
    made = Pin(content_id(text, [scope, owner]), text, scope, int(time.time() * 1000), source, spoken if source else by)
    handle = here.session.session.handle if here.session else ""
    known = {one.pin.id: one for one in store.memory.all_pins()}
    if made.id in known:
        return known[made.id].pin
    if len(pins(store, here)) >= MOST_PINS:
        raise UsageError(
            f"There are {MOST_PINS} pins here already, and each stands in every block. Take one away first: "
            "'observational-memory pins' lists them, 'observational-memory unpin ID' takes one away."
        )
    store.memory.add_pin(made, handle, here.workspace)
    renew_blocks(store, StoredPin(made, handle, here.workspace))
    return made


def _owner(scope: str, here: Here) -> str:
    """What a pin of a scope belongs to. Raises UsageError."""
    if scope not in SCOPES:
        raise UsageError(f"--scope takes one of {', '.join(SCOPES)}, not {scope!r}.")
    if scope == "everywhere":
        return ""
    if scope == "workspace":
        return here.workspace
    if here.session is None:
        raise UsageError(
            "No session is known to ask here, so the pin cannot be for one. Name it with --session, or pin it with "
            "--scope workspace."
        )
    return here.session.session.handle


def _words_of(store: Store, what: str) -> tuple[str, str, Evidence]:
    """(words, id, who spoke them) of what an id names; ("", "", "user") for what is no id. Raises NotFound, UsageError."""
    name = what.strip().strip("[]").lower()
    if is_entry_id(name):
        entry = _entry(store, name)
        return entry.text, name, evidence([entry])
    if not is_note_prefix(name):
        return "", "", "user"
    notes, reflections = store.memory.find_notes(name), store.memory.find_reflections(name)
    ids = sorted({one.note.id for one in notes} | {one.reflection.id for one in reflections})
    if len(ids) > 1:
        raise UsageError(f"{name!r} is the beginning of {len(ids)} ids: {', '.join(ids[:8])}. Give more digits.")
    if notes:
        return notes[0].note.text, ids[0], notes[0].note.evidence
    if reflections:
        return reflections[0].reflection.text, ids[0], "agent"
    raise NotFound(f"No note has an id that begins with {name!r}. To pin these words as they are, add --text.")


def _entry(store: Store, name: str) -> Entry:
    """An entry with its words, which are masked. Raises NotFound, StoreError."""
    try:
        stored, row = find_entry(store, name)
    except NotFound as error:
        raise NotFound(f"{error} To take {name!r} as words, add --text.") from error
    entry = read_entries(store, stored, [row])[0]
    return entry._replace(text=store.mask(entry.text))


def unpin(store: Store, id_: str, here: Here, *, anywhere: bool = False) -> Pin:
    """Take a pin away, named by its id or the beginning of it: one that is visible here, or with ``anywhere`` any. Raises
    NotFound or UsageError."""
    name = id_.strip().strip("[]").lower()
    visible = {one.id for one in pins(store, here)}
    known = [one for one in store.memory.all_pins() if anywhere or one.pin.id in visible]
    found = [one for one in known if len(name) >= 4 and one.pin.id.startswith(name)]
    if not found:
        raise NotFound(f"No pin has an id that begins with {name!r}. 'observational-memory pins' lists them.")
    if len(found) > 1:
        ids = ", ".join(one.pin.id for one in found[:8])
        raise UsageError(f"{name!r} is the beginning of {len(found)} ids: {ids}. Give more digits.")
    store.memory.remove_pins([found[0].pin.id])
    renew_blocks(store, found[0])
    return found[0].pin


def pins(store: Store, here: Here) -> list[Pin]:
    """What is fixed for whoever asks, oldest first."""
    if here.session is not None:
        return visible_pins(store, here.session)
    return [masked(store, one) for one in store.memory.pins("", here.workspace)]


def write_note(
    store: Store, text: str, here: Here, entry_ids: Sequence[str] = (), relevance: Relevance = "high"
) -> Note:
    """Keep a note of the user's own in the session that asks, else in the newest of the workspace. It cites the given
    entries, else the newest words of the user there. Raises UsageError, NotFound, StoreError."""
    if relevance not in RELEVANCES:
        raise UsageError(f"--relevance takes one of {', '.join(RELEVANCES)}, not {relevance!r}.")
    text = note_text(store.mask(text))
    if not text:
        raise UsageError("The note has no words: give them behind 'note'.")
    cited = {name: _entry(store, name) for name in _names(entry_ids)}
    stored = here.session or _newest(store, here.workspace)
    if not cited:
        name, entry = _last_words(store, _brought_up_to_date(store, stored))
        cited = {name: entry}
    grounding, missing = ground(text, [e.text for e in cited.values()], " ".join(map(_label, cited.values())))
    now, handle = int(time.time() * 1000), stored.session.handle
    note = Note(content_id(text, cited), text, now, relevance, tuple(cited), "user", grounding, 0, missing)
    seqs = [seq for of, seq in map(parse_entry_id, cited) if of == handle] or [stored.last_seq]
    call = WorkerCall(handle, "note", HAND, now, min(seqs), max(seqs), "ok", items=1)
    note = note._replace(tokens=estimate(line(note)))
    store.memory.add_note(call, note)
    renew_blocks(store, StoredPin(Pin("", "", "session", now), handle, here.workspace))
    return note


def _names(entry_ids: Iterable[str]) -> list[str]:
    """Entry ids as given, each once, also where some stand in one word with commas. Raises UsageError."""
    words = [word.strip().strip("[]").lower() for given in entry_ids for word in given.split(",")]
    names = [f"{handle}.{seq}" for handle, seq in (parse_entry_id(word) for word in words if word)]
    return list(dict.fromkeys(names))


def _label(entry: Entry) -> str:
    return local_clock(entry.at)


def _newest(store: Store, workspace: str) -> StoredSession:
    """The main session of a workspace that grew last. Raises NotFound."""
    for stored in store.archive.sessions():
        if stored.session.role == "main" and stored.session.workspace == workspace:
            return stored
    raise NotFound(
        "No session of this folder is kept yet, so there is nothing for a note to stand on. Pin the words instead "
        "('observational-memory pin TEXT'), or name a session with --session."
    )


def _brought_up_to_date(store: Store, stored: StoredSession) -> StoredSession:
    """A session with what its harness wrote since the maintainer last looked: what is being noted was just said."""
    session = stored.session
    if not os.path.exists(session.transcript):
        return stored
    source = Source(session.transcript, session.id if is_database(session.transcript) else "")
    return read(store, session.harness, source) or stored


def _last_words(store: Store, stored: StoredSession) -> tuple[str, Entry]:
    """The newest words of the user in a session, that can be had. Raises NotFound."""
    for row in reversed(list(store.archive.entries(stored.no, where=_HUMAN))):
        for entry in read_entries(store, stored, [row], lost=True):
            return f"{stored.session.handle}.{row.seq}", entry._replace(text=store.mask(entry.text))
    raise NotFound(
        f"Session {stored.session.handle} keeps no words of a user that the note could cite. Name an entry with --cite, "
        "or pin the words instead: 'observational-memory pin TEXT'."
    )
