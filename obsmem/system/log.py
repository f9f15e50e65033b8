"""One line per event in ``log.txt`` of the data folder: what ran, how it ended, how long it took.

Invariant: a line holds ids, counts, durations and error classes, never content. Writing never raises: a log that
cannot be written must not break what it describes. Importable on the hook path.
"""

from __future__ import annotations

import os
import time

from obsmem.system.files import PRIVATE_FILE, make_folder

LIMIT = 10 << 20  # bytes; then the file becomes log.1.txt


def log_path(home: str) -> str:
    """Where the log of a data folder lies."""
    return os.path.join(home, "log.txt")


def write(home: str, event: str, **fields: object) -> None:
    """Append a line: time, event, then ``name=value`` pairs. Values are cut to 200 characters, blanks become ``_``."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
    pairs = "".join(f" {name}={_clean(value)}" for name, value in fields.items())
    line = f"{stamp} {event}{pairs}\n".encode("utf-8", "replace")
    path = log_path(home)
    try:
        make_folder(home)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        try:
            if os.fstat(descriptor).st_size > LIMIT:
                os.replace(path, os.path.join(home, "log.1.txt"))
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError:
        pass


def _clean(value: object) -> str:
    return "_".join(str(value)[:200].split())
