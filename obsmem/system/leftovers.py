"""Removing what writers left that were killed before their last rename: once a day, off the hook path.

Invariant: only names that this project gives to files in the making are touched (``<name>.<pid>.tmp``, ``<name>.<pid>.<hex>.new``),
and only long after any writer of ours has ended.
"""

from __future__ import annotations

import os
import re
import time

from obsmem.system.files import remove, write_atomic

MARK = "swept"
EVERY_SECONDS = 86_400.0
OLD_SECONDS = 3_600.0  # no process of ours takes so long over one file
_MAKING = re.compile(r".+\.\d+\.(?:tmp|[0-9a-f]{8}\.new)(?:\.\d+\.tmp)?\Z")


def sweep(home: str, now: float = 0.0) -> int:
    """Remove half-made files below a data folder, unless that was done within the last day; how many. Never raises OSError."""
    now = now or time.time()
    removed = 0
    try:
        if not is_due(home, MARK, now):
            return 0
        for folder, _, names in os.walk(home):
            for name in names:
                path = os.path.join(folder, name)
                if _MAKING.fullmatch(name) and abs(now - os.stat(path).st_mtime) > OLD_SECONDS:
                    remove(path)
                    removed += 1
    except OSError:
        pass  # a full or read-only disk, or a file that its writer renamed meanwhile; tomorrow is another day
    return removed


def is_due(home: str, mark: str, now: float) -> bool:
    """True at most once a day: whoever asks does then what the file ``mark`` stands for. Raises OSError where that file
    cannot be written."""
    path = os.path.join(home, mark)
    try:
        if abs(now - os.stat(path).st_mtime) < EVERY_SECONDS:
            return False
    except OSError:
        pass  # it was never done
    write_atomic(path, b"", durable=False)
    return True
