"""What the user asked the next summary to attend to, as a small file of a session: hooks are told, transcripts may not be.

Invariant: it is that of the newest compaction, or none. On the hook path: ``os`` and our own ``files`` only. Where it cannot
be kept, the compaction goes on without.
"""

from __future__ import annotations

import os

from obsmem.system.files import make_folder, read_bytes, remove, write_atomic

FOCUS_FILE = "focus"
FOCUS_KEPT = 2_000  # bytes


def keep_focus(folder: str, words: str) -> None:
    """Keep what a compaction is to attend to; '' forgets that of an earlier one."""
    path = os.path.join(folder, FOCUS_FILE)
    try:
        if words.strip():
            make_folder(folder)
            write_atomic(path, words.strip().encode("utf-8", "replace")[:FOCUS_KEPT], durable=False)
        else:
            remove(path)
    except OSError:
        return


def read_focus(folder: str) -> str:
    """What the newest compaction is to attend to; '' for nothing."""
    return read_bytes(os.path.join(folder, FOCUS_FILE), FOCUS_KEPT).decode("utf-8", "ignore")
