"""Leaving the index of a workspace where session starts find it: made by the maintainer, copied out by a hook.

Invariants: a digest of a session is a function of its archive, kept beside its cards and made anew when it grew or its live
path changed; where memory, or the index, is switched off, no file is left; what was forgotten stands in none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from obsmem.core.fold import fold
from obsmem.memory import workspace_index as told
from obsmem.memory.workspace_index import Counted, Digest
from obsmem.store.archive import StoredSession
from obsmem.system import config as configuration
from obsmem.system.files import read_bytes, remove, write_atomic
from obsmem.system.indexfile import BYTES, KEPT, MAGIC, changed, index_path
from obsmem.system.workspace import root_of
from obsmem.tasks.called import command, recall_command
from obsmem.tasks.cards import cards_of
from obsmem.tasks.store import Store

DIGEST = "digest"
MOST_READ = 16  # sessions of a workspace that are told of


def leave_index(store: Store, workspace: str, cwd: str = "") -> str:
    """Write the index file of a workspace and return its path; '' where none is left. ``cwd`` is the folder whose
    configuration was loaded."""
    path = index_path(store.home, workspace)
    sessions = [
        one for one in store.archive.sessions() if one.session.role == "main" and one.session.workspace == workspace
    ]
    if not workspace or not sessions or store.config["off"] or not store.config["start_index"]:
        remove(path)
        return ""
    digests = [made for one in sessions[:MOST_READ] if (made := digest_of(store, one)) is not None]
    counted = Counted(
        len(sessions),
        sum(one.last_seq + 1 for one in sessions),
        store.memory.count_notes(one.session.handle for one in sessions),
        len(store.memory.pins("", workspace)),
    )
    rows = [MAGIC, *(f"config\t{file}\t{changed(file)}" for file in _config_files(cwd or sessions[0].session.cwd))]
    rows.append(f"head\t{told.head(counted, command(), recall_command())}")
    rows += ["\t".join(("since", str(row[0]), *row[1:])) for row in told.since_lines(digests)]
    rows += ["\t".join(row) for row in told.lines(digests)]
    write_atomic(path, "\n".join(store.mask(row) for row in rows).encode("utf-8", "replace")[:BYTES], durable=False)
    return path


def renew_index(store: Store, workspace: str) -> None:
    """Write the index of a workspace again, where it has one."""
    if os.path.exists(index_path(store.home, workspace)):
        leave_index(store, workspace)


def digest_of(store: Store, stored: StoredSession) -> Digest | None:
    """What is told of a session; None of one in which nobody said anything."""
    reach, kept = store.with_index(lambda: store.index.reach(stored.no, DIGEST))
    if reach == stored.last_seq and kept.get("rewinds") == stored.rewinds:
        return told.from_state(kept.get("digest", {}))
    session = stored.session
    state = fold(cards_of(store, stored), session.cwd)
    if not state.instructions:
        return None
    last = store.archive.entry(stored.no, stored.last_seq)
    at = last.at if last is not None and last.at else stored.updated_at
    made = told.digest(
        session.handle, session.harness, session.id, at, stored.last_seq + 1, state, _below_root(session.cwd)
    )
    if not store.readonly:
        value = {"rewinds": stored.rewinds, "digest": told.as_state(made)}
        store.with_index(lambda: store.index.move_reach(stored.no, DIGEST, stored.last_seq, value))
    return made


def _below_root(cwd: str) -> str:
    """A working folder as a path below its repository's; '' where it is that, or is not here."""
    root = root_of(cwd)
    below = os.path.relpath(os.path.realpath(cwd), root) if root else "."
    return "" if below == "." or below.startswith("..") else below.replace(os.sep, "/")


def _config_files(cwd: str) -> list[str]:
    """The files that say whether memory is on here: hooks do not read them, but see that one has changed."""
    files = [configuration.user_file()]
    folder = cwd
    while folder and len(files) < 12:  # one that comes to be nearer counts, too
        files.append(os.path.join(folder, configuration.PROJECT_FILE))
        if os.path.exists(os.path.join(folder, ".git")) or os.path.dirname(folder) == folder:
            break
        folder = os.path.dirname(folder)
    return files


def forget_in_indexes(store: Store, handles: Iterable[str], workspaces: Iterable[str]) -> list[str]:
    """Remove index files with what is forgotten, and what sessions were given of them. The workspaces that had one are given
    back: ``leave_index`` makes it anew once all is gone."""
    names = set(handles)
    root = os.path.join(store.home, "sessions")
    for folder, _, files in os.walk(root):
        if KEPT in files:
            path = os.path.join(folder, KEPT)
            text = read_bytes(path).decode("utf-8", "replace")
            if any(f"{name} (" in text or f"({name}." in text for name in names):
                remove(path)
    listed = [one for one in set(workspaces) if os.path.exists(index_path(store.home, one))]
    for workspace in listed:
        remove(index_path(store.home, workspace))
    return listed
