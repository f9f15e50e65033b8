"""Files beside a transcript that hold a long tool output whole: archived, and tied to the entry that names them."""

from __future__ import annotations

import os

from obsmem.store.archive import StoredSession
from obsmem.store.archive_write import SourceWriter
from obsmem.tasks.store import Store


def find_side_file(path: str, transcript: str, session_id: str) -> str:
    """Where a file that a tool result points to is now; '' if it is gone."""
    beside = os.path.join(os.path.dirname(transcript), session_id, "tool-results", os.path.basename(path))
    for candidate in (path, beside):
        if os.path.isfile(candidate):
            return candidate
    return ""


def keep_side_file(store: Store, stored: StoredSession, seq: int, path: str) -> None:
    """Archive a file that holds an entry's whole output, once."""
    if store.archive.has_side(stored.no, seq):
        return
    writer = SourceWriter(store.archive, stored.no, path, "side")
    try:
        if writer.position == 0:
            with open(path, "rb") as file:
                offset = 0
                while block := file.read(1 << 20):
                    writer.add(block, 1, offset, ())
                    offset += len(block)
            writer.commit({}, stored.session._replace(transcript=""), "")
        store.archive.add_side(stored.no, seq, writer.row.no)
    finally:
        writer.close()
