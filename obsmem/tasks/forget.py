"""Forgetting on request, and retention: the two ways in which bytes leave the store.

Invariants: what is forgotten is gone from archive, notes, index and backups, and stays gone when its transcript is
read again (a tombstone holds a hash, never content). Retention removes raw bytes only; notes, ids and places stay, and
a recall says what was removed and when.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import NamedTuple

from obsmem.core.ids import entry_id, parse_entry_id, raw_id
from obsmem.core.model import Pin
from obsmem.store.archive_forget import remove_record, remove_segments, remove_session, segments_behind
from obsmem.store.archive_raw import RAW
from obsmem.store.archive_rows import EntryRow, StoredSession, session_hash
from obsmem.store.memory_pins import StoredPin
from obsmem.store.schema import transaction
from obsmem.system.files import remove, write_atomic
from obsmem.system.paths import safe_name, session_folder
from obsmem.system.raw_files import FOLDER, drop_raw
from obsmem.system.shortening import FORGOTTEN_FILE, VIEW_FOLDER
from obsmem.tasks.decide import prune
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.fork import drop_fork_files
from obsmem.tasks.remember import descendants
from obsmem.tasks.renew import sessions_seeing
from obsmem.tasks.rotation import drop_handoff
from obsmem.tasks.rule_files import clear_rule_files
from obsmem.tasks.store import Store
from obsmem.tasks.workspace_index import forget_in_indexes, leave_index

DAY = 86_400_000  # milliseconds


class Forgotten(NamedTuple):
    """What was removed: entries, bytes of transcript, notes."""

    entries: int
    bytes: int
    notes: int


def forget_session(store: Store, stored: StoredSession) -> Forgotten:
    """Remove a session with everything derived from it. Its handle is never given again."""
    size, _ = store.archive.sizes(stored.no)
    handle = stored.session.handle
    ids = _note_ids(store, "session=?", (handle,))
    going = [one for one in store.memory.all_pins() if _stands_on(one, handle, ids)]
    touched = [stored, *descendants(store, handle), *_seeing(store, going, ids)]
    folders = [folder for one in touched for folder in _folders(store, one)]
    folders_of_its_own = _folders(store, stored)
    # The session itself goes last: where this dies before, it can be named once more.
    store.memory.remove_pins(one.pin.id for one in going)
    notes = _forget_notes(store, ids)
    _forget_memory(store, handle)
    listed = _wipe(store, touched, folders)
    remove(
        os.path.join(store.home, VIEW_FOLDER, f"{safe_name(stored.session.id)}.json")
    )  # the plugin's: ids of masked calls
    for folder in folders_of_its_own:
        drop_raw(folder)  # what waits belongs to it, too
        if os.path.isdir(folder):
            write_atomic(os.path.join(folder, FORGOTTEN_FILE), b"", durable=False)  # it may go on: nothing is kept then
    count = remove_session(store.archive, stored)
    _forget_notes(store, _note_ids(store, "session=?", (handle,)))  # what a maintainer noted meanwhile
    _forget_memory(store, handle)
    _wipe_archive(store, listed)
    return Forgotten(count, size, notes)


def _stands_on(pinned: StoredPin, handle: str, ids: set[str]) -> bool:
    """True of a pin that is made of a session's words, was made for it alone, or by its agent. What the user typed for
    more than this session stays."""
    if pinned.pin.source:
        return pinned.pin.source in ids or pinned.pin.source.startswith(f"{handle}.")
    return pinned.session == handle and (pinned.pin.scope == "session" or pinned.pin.evidence == "agent")


def _note_ids(store: Store, where: str, values: tuple[object, ...]) -> set[str]:
    """The ids of the notes that cite some entries (by a condition on session and seq), or, of a whole session, are its
    own; and of the reflections on them."""
    run = store.memory.connection.execute
    ids = {id_ for (id_,) in run(f"SELECT note FROM note_entries WHERE {where}", values)}
    if len(values) == 1:
        ids |= {id_ for (id_,) in run("SELECT id FROM notes WHERE session=?", values)}
    return ids | {
        id_ for note in ids for (id_,) in run("SELECT reflection FROM reflection_notes WHERE note=?", (note,))
    }


def _seeing(store: Store, going: Iterable[StoredPin], ids: Iterable[str]) -> list[StoredSession]:
    """The sessions whose blocks may show pins or notes that go."""
    found = {one.no: one for pinned in going for one in sessions_seeing(store, pinned)}
    for one in store.memory.notes_by_id(ids):
        for stored in sessions_seeing(store, StoredPin(Pin("", "", "session", 0), one.session, "")):
            found[stored.no] = stored
    return list(found.values())


def _forget_memory(store: Store, handle: str) -> None:
    with transaction(store.memory.connection):
        tables = "reflections drops coverage gaps progress worker_calls blocks receipts decisions rotations reductions"
        for table in tables.split(" "):
            store.memory.connection.execute(f"DELETE FROM {table} WHERE session=?", (handle,))


def forget_entry(store: Store, name: str) -> Forgotten:
    """Remove one record's bytes (all entries of it) with its copies in forks, and the notes that cite any of them; where a
    harness wrote the same words down twice (as they waited, and as they were sent), both records.

    The bytes become NULs of the same length, so that all other places stay right.
    """
    stored, row = find_entry(store, name)
    twins = _twins(store, stored, row)
    calls = {one.call_id for one in read_entries(store, stored, [row], lost=True)} - {""}
    with transaction(store.archive.connection):  # ends last: where this dies before, the entry can be named once more
        size, gone = remove_record(store.archive, row)
        for twin in twins:
            bytes_, more = remove_record(store.archive, twin)
            size += bytes_
            gone = {session: [*gone.get(session, []), *more.get(session, [])] for session in {*gone, *more}}
        touched = [store.archive.by_number(session) for session in gone]
        names = {entry_id(one.session.handle, seq) for one in touched for seq in gone[one.no]}
        ids = set[str]().union(*(_note_ids(store, "session=? AND seq=?", parse_entry_id(name)) for name in names))
        going = [one for one in store.memory.all_pins() if one.pin.source in ids | names]
        touched += [below for one in touched for below in descendants(store, one.session.handle)]
        touched += _seeing(store, going, ids)
        store.memory.remove_pins(one.pin.id for one in going)
        notes = _forget_notes(store, ids)
        _forget_outputs(store, stored, names, calls)
        listed = _wipe(store, touched, [folder for one in touched for folder in _folders(store, one)])
    _wipe_archive(store, listed)
    return Forgotten(sum(map(len, gone.values())), size, notes)


def _forget_outputs(store: Store, stored: StoredSession, names: Iterable[str], calls: Iterable[str]) -> None:
    """Forget what was shortened of these entries, and the whole outputs of these calls that still wait."""
    for name in names:
        store.memory.remove_reduction(*parse_entry_id(name))
    for call_id in calls:
        id_ = raw_id(stored.session.harness, stored.session.id, call_id)
        for folder in _folders(store, stored):
            remove(os.path.join(folder, FOLDER, id_))


def _twins(store: Store, stored: StoredSession, row: EntryRow) -> list[EntryRow]:
    """The other entries of a session with the same human words that are off the live path, or stand for this one."""
    if row.speaker != "human" or not store.archive.is_readable(row):
        return []
    text = read_entries(store, stored, [row])[0].text
    alike = [
        one
        for one in store.archive.entries(stored.no)
        if one.no != row.no and one.speaker == row.speaker and one.tokens == row.tokens and one.active != row.active
    ]
    return [one for one in alike if [entry.text for entry in read_entries(store, stored, [one], lost=True)] == [text]]


def _forget_notes(store: Store, ids: Iterable[str]) -> int:
    """Remove notes and reflections; returns how many of them were notes."""
    count = 0
    with transaction(store.memory.connection):
        for id_ in ids:
            store.memory.connection.execute("DELETE FROM reflections WHERE id=?", (id_,))
            count += store.memory.connection.execute("DELETE FROM notes WHERE id=?", (id_,)).rowcount
    return count


def _folders(store: Store, stored: StoredSession) -> list[str]:
    """The folders of a session's small files, under every path that it was read from."""
    session = stored.session
    paths = [row.path for row in store.archive.sources(stored.no) if row.kind not in ("side", RAW)]
    return [session_folder(store.home, session.harness, path, session.id) for path in [session.transcript, *paths]]


def _wipe(store: Store, touched: Iterable[StoredSession], folders: Iterable[str]) -> list[str]:
    """Take what was removed out of free pages, index, backups, damaged files kept aside, and rendered blocks too; returns
    the workspaces whose lists are to be made anew."""
    touched = list(touched)
    store.memory.connection.execute("VACUUM")
    for stored in touched:
        store.index.forget(stored.no)
    for folder in folders:
        _empty(folder)
    for stored in touched:
        drop_handoff(store, stored)
        drop_fork_files(store, stored)
    clear_rule_files(store.home, touched)
    store.index.vacuum()
    for name in os.listdir(store.home):
        if ".damaged" in name:
            remove(os.path.join(store.home, name))
    backups = os.path.join(store.home, "backups")
    if os.path.isdir(backups):
        _empty(backups)
        store.memory.back_up(backups)
    return forget_in_indexes(store, (one.session.handle for one in touched), (one.session.workspace for one in touched))


def _wipe_archive(store: Store, listed: Iterable[str]) -> None:
    """Take what was removed out of the archive's free pages; make the lists of these workspaces anew."""
    store.archive.connection.execute("VACUUM")
    for workspace in listed:
        leave_index(store, workspace)


def _empty(folder: str) -> None:
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        remove(os.path.join(folder, name))


def undo_forget(store: Store, harness: str, session_id: str) -> bool:
    """Allow a forgotten session to be read again. True if there was a tombstone. Its bytes do not come back."""
    for folder in glob.glob(os.path.join(glob.escape(store.home), "sessions", harness, f"{safe_name(session_id)}-*")):
        remove(os.path.join(folder, FORGOTTEN_FILE))
    run = store.archive.connection.execute
    return run("DELETE FROM tombstones WHERE hash=?", (session_hash(harness, session_id),)).rowcount > 0


def apply_retention(store: Store, now: int) -> int:
    """Remove the raw bytes of sessions that have not grown for ``retention_days``; returns how many bytes. Old decisions
    go, too, whatever the configuration says.

    With ``retention_keep: cited`` the segments stay that hold an entry which a note cites.
    """
    prune(store, now)
    days = store.config["retention_days"]
    if days <= 0:
        return 0
    removed = 0
    for stored in store.archive.sessions():
        if now - stored.updated_at <= days * DAY:
            continue
        drop_raw(store.folder_of(stored))  # what no reading has fetched by now, no reading will
        kept = _cited_segments(store, stored) if store.config["retention_keep"] == "cited" else set()
        removed += remove_segments(store.archive, stored.no, kept)
    if removed:
        store.archive.connection.execute("VACUUM")
    return removed


def _cited_segments(store: Store, stored: StoredSession) -> set[int]:
    kept: set[int] = set()
    for note in store.memory.notes(stored.session.handle):
        for name in note.note.entry_ids:
            row = store.archive.entry(stored.no, parse_entry_id(name)[1])
            if row is not None:
                kept |= segments_behind(store.archive, row)
    return kept
