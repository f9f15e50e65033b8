"""The block in a file that a harness shows to its model in every request: one for each folder where a user asked for it.

Invariants: only a file that installing made, and that still begins as we write it, is ever written or removed; deleting
it is the end of it. It holds the block of the conversation that was compacted last, changes before a compaction and when
the user pins or notes something, at no other time, and is empty again once that conversation has ended, or is forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import takewhile

from obsmem.core.errors import ConfigError
from obsmem.core.model import Block
from obsmem.harnesses import load
from obsmem.store.archive_rows import StoredSession
from obsmem.system.files import read_bytes, remove, write_atomic
from obsmem.tasks.config_files import Change, Records, missing_folders, read_records, remove_empty, write_records

RECORD = "rules.json"
LIMIT = 16 << 20  # bytes
MODE = 0o644  # as a project's own files


def plan_rule_file(home: str, harness: str, project: str) -> Change | None:
    """What making the rule file of a folder would change; None where this harness has none. Raises ConfigError where
    somebody else's file stands there."""
    path, content = load(harness).rule_file(os.path.realpath(project), "")
    if not path:
        return None
    if os.path.lexists(path) and not _is_ours(harness, path):
        raise ConfigError(f"{path} is not ours, and was left as it is. Rename it, then run this again.")
    if path in records(home) and os.path.exists(path):
        now = read_bytes(path, LIMIT)
        return Change(path, now, now, None, is_recorded=True)
    return Change(path, None, content.encode("utf-8"), None, is_recorded=False)


def make_rule_file(home: str, harness: str, project: str, change: Change) -> None:
    """Make what ``plan_rule_file`` planned. Raises OSError."""
    known = records(home)
    folders = [*known.get(change.path, {}).get("folders", []), *missing_folders(os.path.dirname(change.path))]
    known[change.path] = {"harness": harness, "project": project, "folders": folders}
    write_records(os.path.join(home, RECORD), known)
    write_atomic(change.path, change.after, MODE)


def fill_rule_file(home: str, stored: StoredSession, project: str, block: Block) -> None:
    """Put a session's block into the rule file of the folder that it works in, if there is one."""
    harness = stored.session.harness
    path, content = load(harness).rule_file(os.path.realpath(project), "\n".join((_mark(stored), "", *block.parts)))
    if path in records(home) and _is_ours(harness, path):
        write_atomic(path, content.encode("utf-8", "replace"), MODE)


def renew_rule_files(home: str, stored: StoredSession, block: Block) -> None:
    """Put a session's new block into the rule files that hold its old one."""
    for path, record in records(home).items():
        if _mark(stored) in read_bytes(path, LIMIT).decode("utf-8", "replace"):
            fill_rule_file(home, stored, record["project"], block)


def clear_rule_files(home: str, sessions: Iterable[StoredSession]) -> None:
    """Take the blocks of sessions out of whatever rule files hold them."""
    marks = [_mark(stored) for stored in sessions]
    for path, record in records(home).items():
        text = read_bytes(path, LIMIT).decode("utf-8", "replace")
        if any(mark in text for mark in marks) and _is_ours(record["harness"], path):
            empty = load(record["harness"]).rule_file(record["project"], "")[1]
            write_atomic(path, empty.encode("utf-8"), MODE)


def remove_rule_files(home: str, harness: str) -> list[tuple[str, str]]:
    """Remove every rule file of a harness; returns (file, what was done)."""
    known = records(home)
    done = []
    for path in [path for path, record in known.items() if record["harness"] == harness]:
        if _is_ours(harness, path):
            remove(path)
            done.append((path, "removed, as it was not there before"))
        remove_empty(known.pop(path)["folders"])
        write_records(os.path.join(home, RECORD), known)
    return done


def records(home: str) -> Records:
    """Path -> harness, folder, and the folders made for it, of each rule file."""
    return read_records(os.path.join(home, RECORD))


def _mark(stored: StoredSession) -> str:
    """What says whose block a rule file holds."""
    return f"Memory of the conversation {stored.session.id}, as of its last compaction."


def _is_ours(harness: str, path: str) -> bool:
    """True where a file begins as everything that we write there begins."""
    module = load(harness)
    empty, full = (module.rule_file("", text)[1] for text in ("", "x"))
    head = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(empty, full, strict=False)))
    return read_bytes(path, LIMIT).decode("utf-8", "replace").startswith(head)
