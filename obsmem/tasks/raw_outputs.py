"""Whole outputs of tools whose results stand shortened: moved into the archive, each tied to its result.

Invariants: an output belongs to the entry of the very call that gave it, whatever words stand there; the file that holds it goes
only when the archive gives back the same bytes.
"""

from __future__ import annotations

import json
import os
import time

from obsmem.core import late
from obsmem.core.decisions import REDUCE, THIN
from obsmem.core.errors import StoreError
from obsmem.core.ids import RAW_LENGTH, RAW_PREFIX, raw_id
from obsmem.core.model import Entry
from obsmem.core.tokens import estimate
from obsmem.store.archive import StoredSession
from obsmem.store.archive_raw import add_raw, archived_raw, is_sound, raw_bytes, tie_raw
from obsmem.store.memory_reductions import Reduction
from obsmem.system.files import read_bytes, remove
from obsmem.system.paths import safe_name, session_folder
from obsmem.system.raw_files import FOLDER, RawFile, find_raw, read_raw, sweep
from obsmem.system.shortening import JOURNAL_FILE, VIEW_FOLDER
from obsmem.tasks.entries import whole_entry
from obsmem.tasks.store import Store
from obsmem.tasks.whole_outputs import number_of

FOOTER = 600  # characters at the end of a result in which the id of its whole output stands
MOST_JOURNAL = 4 << 20  # bytes
_IDS = late.pattern(rf"{RAW_PREFIX}[0-9a-f]{{{RAW_LENGTH}}}")


class RawOutputs:
    """Keeps the whole outputs of one session, whose transcript is ``path``."""

    def __init__(self, store: Store, stored: StoredSession, path: str) -> None:
        self._store, self._stored = store, stored
        self._folder = session_folder(store.home, stored.session.harness, path, stored.session.id)
        self._any = os.path.isdir(os.path.join(self._folder, FOLDER))

    def keep(self, entry: Entry) -> Entry | None:
        """Archive the whole output of a result, and give the result with it; None where there is none."""
        if not entry.call_id or not (self._any or RAW_PREFIX in entry.text[-FOOTER:]):
            return None
        own = raw_id(self._stored.session.harness, self._stored.session.id, entry.call_id)
        for id_ in dict.fromkeys([own, *_IDS.findall(entry.text[-FOOTER:])]):
            source = archived_raw(self._store.archive, self._stored.no, id_, entry.call_id)
            named = id_ in entry.text and source is None
            waiting = self._waiting(id_, entry.call_id, named=named)
            if waiting is None and (source is None or source.offset == 0):
                continue
            if waiting is not None and id_ not in entry.text and _holds(entry.text, waiting.data):
                remove(waiting.path)  # the hook ended before it answered: the result is whole
                return None
            return self._tie(entry, id_, waiting)
        return None

    def _waiting(self, id_: str, call_id: str, *, named: bool) -> RawFile | None:
        path = os.path.join(self._folder, FOLDER, id_)
        found = read_raw(path) if os.path.exists(path) else None
        if found is None and named:  # the same transcript, by another path
            found = find_raw(self._store.home, id_)
        return found if found is not None and found.call_id == call_id else None

    def _tie(self, entry: Entry, id_: str, waiting: RawFile | None) -> Entry:
        archive = self._store.archive
        data = waiting.data if waiting is not None else b""
        source = add_raw(archive, self._stored, id_, entry.call_id, data)
        tie_raw(archive, self._stored.no, entry.seq, source)
        try:
            sound, whole = is_sound(archive, source), raw_bytes(archive, source)
        except StoreError:
            return entry
        if waiting is None:
            self._store.memory.move_reduction(self._stored.session.handle, id_, entry.seq)
        elif sound and whole == waiting.data:
            self._note(entry, waiting)
            remove(waiting.path)
        return whole_entry(entry, whole)

    def _note(self, entry: Entry, raw: RawFile) -> None:
        """Write down what was saved, once."""
        about, handle = raw.about, self._stored.session.handle
        whole = estimate(raw.data.decode("utf-8", "replace"))
        one = Reduction(
            raw.id, handle, entry.seq, entry.call_id, number_of(about, "at"), str(about.get("rule", "")),
            self._store.mask(str(about.get("head", ""))), len(raw.data), number_of(about, "kept"), whole, estimate(entry.text),
            number_of(about, "folded"),
        )  # fmt: skip
        if self._store.memory.add_reduction(one):
            numbers = {"rule": one.rule, "whole": one.whole_bytes, "kept": one.kept_bytes, "id": one.id, "seq": one.seq}
            self._store.memory.record_decision(handle, REDUCE, f"shortened by {one.rule}", numbers)


def _note_view(store: Store, stored: StoredSession) -> None:
    """A decision for each time that more old results were masked in what a plugin sends."""
    path = os.path.join(store.home, VIEW_FOLDER, f"{safe_name(stored.session.id)}.json")
    try:
        masked = len(json.loads(read_bytes(path, MOST_JOURNAL) or b"[]"))
    except (ValueError, TypeError):
        return
    if masked:
        handle = stored.session.handle
        before = [one for one in store.memory.decisions(handle) if one.what == THIN]
        if not before or before[-1].numbers.get("masked") != masked:
            store.memory.record_decision(handle, THIN, "a request would not have fitted", {"masked": masked})


def _holds(text: str, data: bytes) -> bool:
    """True if a result has all that its tool printed."""
    return data.decode("utf-8", "replace").strip() in text


def take_journal(store: Store, stored: StoredSession) -> int:
    """Write down as decisions which long outputs hooks left as they are, and why, and how many old results a plugin masks;
    returns how many outputs."""
    _note_view(store, stored)
    sweep(store.folder_of(stored), time.time())
    path = os.path.join(store.folder_of(stored), JOURNAL_FILE)
    taken = f"{path}.taken"
    if os.path.exists(path) and not os.path.exists(taken):
        os.replace(path, taken)  # hooks go on in a new one
    count = 0
    for line in read_bytes(taken, MOST_JOURNAL).split(b"\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            numbers = {"whole": number_of(value, "whole"), "id": str(value.get("id", ""))[:20]}
            why = f"left as it is: {str(value.get('why', ''))[:40]}"
            store.memory.record_decision(stored.session.handle, REDUCE, why, numbers)
            count += 1
    remove(taken)
    return count
