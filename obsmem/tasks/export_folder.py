"""Writing a session as plain files that ``grep`` and ``ls`` read.

Invariants: nothing is written into a folder that holds somebody else's files; a file is replaced in one step, and only
where its text changed; what the record holds no more goes; secrets are masked in all of it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.errors import UsageError
from obsmem.core.ids import is_entry_id
from obsmem.core.model import Entry
from obsmem.memory.plain import File, Turn, files_of, front_page, pointer_text, turns_of
from obsmem.store.archive import StoredSession
from obsmem.system.files import make_folder, read_bytes, remove, write_atomic
from obsmem.tasks.entries import read_entries
from obsmem.tasks.store import Store

MARK = ".observational-memory-export"
BATCH = 2_000  # entries read at a time
_OURS = re.compile(r"\d{4,}\.(?:md|txt)\Z")
COMPARED = 64 << 20  # bytes of a file that may be there already


class Exported(NamedTuple):
    """What an export wrote: files of ``files`` that changed, turns, sub-agents, and the text that points there."""

    folder: str
    turns: int
    files: int
    written: int
    subagents: int
    pointer: str


def export_folder(store: Store, stored: StoredSession, folder: str, clock: Clock) -> Exported:
    """Write a session, and those of its sub-agents and of theirs below it, into a folder. Raises UsageError for a folder of
    others."""
    folder = os.path.abspath(folder)
    _claim(folder, stored)
    children = _below(store, stored)
    turns, files, written = 0, 0, 0
    for one in (stored, *children):
        is_root = one.no == stored.no
        where = folder if is_root else os.path.join(folder, "subagents", one.session.handle)
        names = [
            f"subagents/{child.session.handle}" if is_root else f"../{child.session.handle}"
            for child in children
            if child.session.parent and child.session.parent[0] == one.session.handle
        ]
        pages, kept = list[Turn](), set[str]()
        for turn, made in _turns(store, one, clock):
            kept.update(file.path for file in made)
            pages.append(turn._replace(entries=turn.entries[:1]))
            files += len(made)
            written += sum(_write(where, file) for file in made)
        _remove_others(where, kept)
        pointer = pointer_text(where, one.session.handle)
        written += _write(where, File("README.md", front_page(one.session, pages, names, clock, pointer)))
        files += 1
        turns += sum(page.number > 0 for page in pages) if is_root else 0
    _remove_forgotten(folder, {one.session.handle for one in children})
    return Exported(folder, turns, files, written, len(children), pointer_text(folder, stored.session.handle))


def _below(store: Store, stored: StoredSession) -> list[StoredSession]:
    """The sub-agents of a session and theirs, each after the one that started it."""
    known = [one for one in store.archive.sessions() if one.session.role == "subagent" and one.session.parent]
    found, handles = list[StoredSession](), [stored.session.handle]
    for handle in handles:  # grows as it goes
        for one in known:
            if one.session.parent and one.session.parent[0] == handle and one.session.handle not in handles:
                found.append(one)
                handles.append(one.session.handle)
    return found


def _claim(folder: str, stored: StoredSession) -> None:
    """Make the folder ours, for this session alone."""
    mark = os.path.join(folder, MARK)
    known = read_bytes(mark)
    name = f"{stored.session.harness}/{stored.session.id}"
    try:
        empty = not os.listdir(folder)
    except FileNotFoundError:
        empty = True
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be used ({error.strerror}). Name a folder that is empty or not there."
        ) from error
    if known:
        owner = _owner(known)
        if owner != name:
            raise UsageError(
                f"{folder} holds the export of another session ({owner or 'its mark cannot be read'}). Name another folder."
            )
    elif not empty:
        raise UsageError(f"{folder} is not empty, and nothing in it is ours. Name a folder that is empty or not there.")
    else:
        make_folder(folder)
        write_atomic(mark, json.dumps({"session": name, "version": 1}).encode() + b"\n")


def _owner(mark: bytes) -> str:
    """The session whose export a folder's mark names; '' where it cannot be read."""
    try:
        value = json.loads(mark)
    except ValueError:
        return ""
    return str(value.get("session", "")) if isinstance(value, dict) else ""


def _turns(store: Store, stored: StoredSession, clock: Clock) -> Iterator[tuple[Turn, list[File]]]:
    for turn in turns_of(_entries(store, stored)):
        yield turn, files_of(stored.session.handle, turn, clock)


def _entries(store: Store, stored: StoredSession) -> Iterator[Entry]:
    """The newest version of every entry that can be had, with the user's own secrets masked."""
    for first in range(0, stored.last_seq + 1, BATCH):
        rows = store.archive.entries(stored.no, first, first + BATCH - 1, "replaced_by IS NULL")
        for entry in read_entries(store, stored, list(rows), lost=True):
            yield entry._replace(text=store.mask(entry.text))


def _remove_others(folder: str, kept: set[str]) -> None:
    """Remove the pages and outputs of an earlier export that this one has no more: what they held was forgotten."""
    for name in ("turns", "outputs"):
        where = os.path.join(folder, name)
        for file in os.listdir(where) if os.path.isdir(where) else []:
            if f"{name}/{file}" not in kept and _OURS.match(file):
                remove(os.path.join(where, file))


def _remove_forgotten(folder: str, handles: set[str]) -> None:
    """Remove what an earlier export wrote of sub-agents that the record holds no more; files of others stay."""
    below = os.path.join(folder, "subagents")
    for handle in os.listdir(below) if os.path.isdir(below) else []:
        where = os.path.join(below, handle)
        if handle in handles or os.path.islink(where) or not is_entry_id(f"{handle}.0"):
            continue
        _remove_others(where, set())
        remove(os.path.join(where, "README.md"))
        for path in (os.path.join(where, "turns"), os.path.join(where, "outputs"), where):
            try:
                os.rmdir(path)
            except OSError:
                pass  # not there, or somebody put a file into it


def _write(folder: str, file: File) -> bool:
    """Write a file where its text is another one; True if it was."""
    path = os.path.join(folder, *file.path.split("/"))
    data = file.text.encode("utf-8", "replace")
    if read_bytes(path, COMPARED) == data and os.path.exists(path):
        return False
    make_folder(os.path.dirname(path))
    write_atomic(path, data, durable=False)
    return True
