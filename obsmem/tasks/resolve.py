"""Finding what a person names: an entry, note or reflection by its id (a session: ``sessions``).

Invariant: one of several notes is never meant: an ambiguous id is refused with the candidates.
"""

from __future__ import annotations

from obsmem.core.errors import NotFound, SourceMissing, StoreError, UsageError
from obsmem.core.ids import entry_id, is_entry_id, is_note_prefix, is_raw_id, parse_entry_id
from obsmem.core.model import Entry, Speaker
from obsmem.memory.recall import Found, Source
from obsmem.store.archive_rows import EntryRow
from obsmem.store.memory import StoredNote, StoredReflection
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.outdated import outdated_entries
from obsmem.tasks.sessions import find_session as find_session  # also imported from here
from obsmem.tasks.sessions import pick_session as pick_session
from obsmem.tasks.store import Store


def find(store: Store, name: str) -> Found:
    """Everything that an id names: a note, a reflection, or an entry. Raises NotFound or UsageError (ambiguous)."""
    found = _find(store, name)
    said = [
        one.id
        for one in found.sources
        if one.entry is not None and one.entry.speaker == "human" and is_entry_id(one.id)
    ]
    later = outdated_entries(store, said)
    if not later:
        return found
    return found._replace(sources=tuple(one._replace(later=later.get(one.id, "")) for one in found.sources))


def _find(store: Store, name: str) -> Found:
    name = name.strip().strip("[]").lower()
    if is_raw_id(name):
        return _whole(store, name)
    if is_entry_id(name):
        find_entry(store, name)
        return Found(sources=tuple(sources_of(store, [name])))
    if not is_note_prefix(name):
        raise UsageError(
            f"{name!r} is no id: notes and reflections have 4 to 12 hex digits (3fa9c1d), entries a handle and a number (7c2e.812), "
            "whole outputs raw_ and 10 hex digits."
        )
    notes, reflections = store.memory.find_notes(name), store.memory.find_reflections(name)
    ids = {one.note.id for one in notes} | {one.reflection.id for one in reflections}
    if not ids and (pinned := _pinned(store, name)) is not None:
        return pinned
    if not ids:
        raise NotFound(
            f"No note or reflection has an id that begins with {name!r}. 'observational-memory notes' lists them."
        )
    if len(ids) > 1:
        raise UsageError(
            f"{name!r} is the beginning of {len(ids)} ids: {', '.join(sorted(ids)[:8])}. Give more digits."
        )
    return _gather(store, notes, reflections)


def _whole(store: Store, name: str) -> Found:
    """The entry whose whole output has this id; while that waits to be archived, what waits."""
    from obsmem.tasks.whole_outputs import entry_of, find_whole  # few ids are of this kind

    whole = find_whole(store, name)
    if whole.entry:
        return Found(sources=tuple(sources_of(store, [whole.entry])))
    return Found(sources=(Source(whole.id, entry_of(whole)),))


def _pinned(store: Store, name: str) -> Found | None:
    """What a pin stands on; its own words where they were typed, or where that is gone. None where no one pin is meant."""
    found = [one.pin for one in store.memory.all_pins() if one.pin.id.startswith(name)]
    if len(found) != 1:
        return None
    (pin,) = found
    if pin.source:
        try:
            return find(store, pin.source)
        except NotFound:
            pass
    speaker: Speaker = "agent" if pin.evidence == "agent" else "human"
    return Found(sources=(Source(pin.id, Entry(-1, "", "user", speaker, pin.text, at=pin.at)),))


def _gather(store: Store, notes: list[StoredNote], reflections: list[StoredReflection]) -> Found:
    from obsmem.tasks.remember import remember  # an entry's id asks for no notes

    supports = [id_ for one in reflections for id_ in one.reflection.note_ids]
    known = {one.note.id: one for one in [*notes, *store.memory.notes_by_id(supports)]}
    sessions = {one.session for one in known.values()}
    said = sorted({one.note.text for one in known.values()})
    dropped: dict[str, str] = {}
    for handle in sessions | {one.session for one in reflections}:
        reasons = {id_: one.drop.why for one in store.memory.drops(handle) for id_ in one.drop.note_ids}
        try:
            hidden = remember(store, store.archive.by_handle(handle), texts=said).dropped
        except NotFound:  # the archive was lost: the note is there all the same
            hidden = frozenset(reasons)
        dropped.update({id_: reasons.get(id_, "") for id_ in hidden})
    ids = known.keys() | {one.reflection.id for one in reflections}
    names = list(dict.fromkeys(name for one in known.values() for name in one.note.entry_ids))
    return Found(
        notes=tuple(one.note for one in known.values()),
        reflections=tuple(one.reflection for one in reflections),
        sources=tuple(sources_of(store, names)),
        dropped={id_: why for id_, why in dropped.items() if id_ in ids},
        missing_notes=tuple(id_ for id_ in supports if id_ not in known),
    )


def sources_of(store: Store, names: list[str]) -> list[Source]:
    """The entries with these ids, each with its exact text, or with the reason why it cannot be had."""
    found = []
    for name in names:
        try:
            stored, row = find_entry(store, name)
            entry = read_entries(store, stored, [row], places=True)[0]
            found.append(Source(name, entry))
        except (NotFound, StoreError, SourceMissing) as error:
            found.append(Source(name, None, str(error)))
    return found


def neighbours(store: Store, name: str, count: int, *, live: bool = False) -> tuple[str, list[Entry]]:
    """(handle, entries) of a session around an entry, ``count`` on each side; those that cannot be had are passed over, and
    with ``live`` those off the live path."""
    handle, seq = parse_entry_id(name)
    stored = store.archive.by_handle(handle)
    where = "replaced_by IS NULL" + (" AND active=1" if live else "")
    rows: list[EntryRow] = []
    for reach in (count * 4, count * 64, stored.last_seq + 1):  # what was rewound may lie in between
        rows = list(store.archive.entries(stored.no, max(0, seq - reach), seq + reach, where))
        before, after = sum(row.seq < seq for row in rows), sum(row.seq > seq for row in rows)
        if (before >= count or seq <= reach) and (after >= count or seq + reach >= stored.last_seq):
            break
    rows = [
        *[row for row in rows if row.seq <= seq][-count - 4 :],
        *[row for row in rows if row.seq > seq][: count + 4],
    ]
    around = sources_of(store, [entry_id(handle, row.seq) for row in rows])
    return handle, [source.entry for source in around if source.entry is not None]
