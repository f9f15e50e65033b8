"""One line per event in ``log.txt`` of the data folder: what ran, how it ended, how long it took.

Invariant: a line holds ids, counts, durations and error classes, never content. Writing never raises: a log that
cannot be written must not break what it describes. Importable on the hook path.
"""

from __future__ import annotations

import os
import time

from obsmem.system.files import PRIVATE_FILE, make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 10 << 20  # bytes; then the file becomes log.1.txt
TAIL = 1 << 18  # bytes at the end in which trouble is looked for
DAY_SECONDS = 86_400
STAMP = "%Y-%m-%dT%H:%M:%S"
FAILURES = ("failed-", "killed", "workers-", "disk-full")
FINE_EXITS = ("exit-0", "exit-4")  # 4: another process was about the same


def log_path(home: str) -> str:
    """Where the log of a data folder lies."""
    return os.path.join(home, "log.txt")


def write(home: str, event: str, **fields: object) -> None:
    """Append a line: time, event, then ``name=value`` pairs. Values are cut to 200 characters, blanks become ``_``."""
    stamp = time.strftime(STAMP)
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


def session_field(folders: Sequence[str]) -> dict[str, str]:
    """The field that names a session in a line, by its folder of small files: the last of these, nothing where there is none."""
    return {"session": os.path.basename(folders[-1])} if folders else {}


def lines_about(home: str, folder: str) -> list[tuple[int, str, dict[str, str]]]:
    """(time in milliseconds, event, fields) of every line about the session of a folder, oldest first. Damaged lines are
    passed over."""
    field = f" session={_clean(os.path.basename(folder))}".encode("utf-8", "replace")
    found = []
    for name in ("log.1.txt", "log.txt"):
        try:
            with open(os.path.join(home, name), "rb") as file:
                lines = [line for line in file if line.rstrip(b"\n").endswith(field) or field + b" " in line]
        except OSError:
            continue
        for line in lines:
            words = line.decode("utf-8", "replace").rstrip("\n").split(" ")
            try:
                at = int(time.mktime(time.strptime(words[0], STAMP)) * 1000)
            except (ValueError, OverflowError):
                continue
            fields = dict(pair.partition("=")[::2] for pair in words[2:])
            found.append((at, words[1], fields))
    return found


def last_trouble(home: str, now: float) -> str:
    """The newest line of the last day that tells of a failure; '' for none. A damaged log tells of none."""
    try:
        with open(log_path(home), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            lines = file.read(TAIL).decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    oldest = time.strftime(STAMP, time.localtime(now - DAY_SECONDS))
    for line in reversed(lines):
        if not line[:4].isdigit():
            continue  # a damaged line, or the end
        if line[: len(oldest)] < oldest:
            break
        if tells_of_failure(line):
            return line
    return ""


def tells_of_failure(line: str) -> bool:
    """True for a line of the log whose outcome is a failure."""
    return any(word.startswith("outcome=") and _is_failure(word[len("outcome=") :]) for word in line.split(" "))


def _is_failure(outcome: str) -> bool:
    """True for the classes of errors, and for the words with which our processes tell of failures."""
    if outcome.startswith("exit-"):
        return outcome not in FINE_EXITS
    return outcome[:1].isupper() or outcome.startswith(FAILURES)


def _clean(value: object) -> str:
    return "_".join(str(value)[:200].split())
