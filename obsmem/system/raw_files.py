"""Whole outputs of tools that wait for the archive: a file each, in the folder of their session.

Invariants: a file is there whole, and on the disk, before anybody is given less than the whole; it names the call that it
belongs to and the digest of its bytes, and one whose bytes do not have that digest is nobody's output. A file goes only when
the archive holds its bytes, or when they are to be forgotten. Importable on the hook path.
"""

from __future__ import annotations

import os

from obsmem.core import late
from obsmem.core.hooks import write_json
from obsmem.system.files import read_bytes, remove, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FOLDER = "raw"
MOST_BYTES = 32 << 20  # of one output; a longer one is left as it is
MOST_WAITING = 256 << 20  # bytes of one session's outputs that wait; beyond, nothing is shortened
HALF_SECONDS = 3600.0
_ABOUT_BYTES = 64 << 10


class RawFile:
    """A whole output that waits. ``about`` is what its first line says: id, call, sha256, at (milliseconds), command, cwd,
    rule and sizes."""

    __slots__ = ("about", "data", "path")

    def __init__(self, path: str, about: Mapping[str, Any], data: bytes) -> None:
        self.path = path
        self.about = about
        self.data = data

    @property
    def id(self) -> str:
        """The id by which it is recalled."""
        return str(self.about.get("id", ""))

    @property
    def call_id(self) -> str:
        """The harness's id of the call that gave it."""
        return str(self.about.get("call", ""))


def save_raw(folder: str, id_: str, about: Mapping[str, object], data: bytes) -> None:
    """Keep a whole output, durably. Raises OSError; then it is not kept."""
    if len(data) > MOST_BYTES or waiting_bytes(folder) + len(data) > MOST_WAITING:
        raise OSError("too much waits to be archived")
    first = write_json({"id": id_, "sha256": late.sha256(data).hex(), **about}).encode("ascii")
    path = os.path.join(folder, FOLDER, id_)
    write_atomic(path, first + b"\n" + data)
    _keep_name(os.path.dirname(path))


def _keep_name(folder: str) -> None:
    """Wait until the folder's own entry is on the disk, where the platform can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # on Windows a folder cannot be opened, and needs not
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def waiting_bytes(folder: str) -> int:
    """How many bytes of a session's outputs wait."""
    return sum(os.stat(path).st_size for path in _paths(folder) if os.path.exists(path))


def raw_files(folder: str) -> Iterator[RawFile]:
    """Every sound whole output that waits in a session's folder."""
    for path in _paths(folder):
        found = read_raw(path)
        if found is not None:
            yield found


def read_raw(path: str) -> RawFile | None:
    """A whole output that waits; None where the file is gone, or is not what was written."""
    import json

    first, newline, data = read_bytes(path, MOST_BYTES + _ABOUT_BYTES).partition(b"\n")
    try:
        about = json.loads(first)
    except ValueError:
        return None
    if not newline or not isinstance(about, dict) or about.get("sha256") != late.sha256(data).hex():
        return None
    return RawFile(path, about, data)


def find_raw(home: str, id_: str) -> RawFile | None:
    """The whole output with an id, of whatever session, while it waits."""
    for folder in _session_folders(home):
        path = os.path.join(folder, FOLDER, id_)
        if os.path.isfile(path):
            return read_raw(path)
    return None


def find_raw_of_call(home: str, call_id: str) -> RawFile | None:
    """The whole output of a call, of whatever session, while it waits."""
    for folder in _session_folders(home):
        for found in raw_files(folder):
            if found.call_id == call_id:
                return found
    return None


def drop_raw(folder: str) -> None:
    """Forget every output of a session that waits."""
    for path in _paths(folder, whole=False):
        remove(path)


def sweep(folder: str, now: float) -> None:
    """Remove what hooks that were killed left half written: they are given HALF_SECONDS."""
    raw = os.path.join(folder, FOLDER)
    for name in _names(raw):
        path = os.path.join(raw, name)
        try:
            if name.endswith(".tmp") and now - os.stat(path).st_mtime > HALF_SECONDS:
                remove(path)
        except OSError:
            pass  # it is gone, or whole by now


def _session_folders(home: str) -> Iterator[str]:
    root = os.path.join(home, "sessions")
    for harness in _names(root):
        for name in _names(os.path.join(root, harness)):
            yield os.path.join(root, harness, name)


def _paths(folder: str, *, whole: bool = True) -> list[str]:
    raw = os.path.join(folder, FOLDER)
    return [os.path.join(raw, name) for name in _names(raw) if not whole or not name.endswith(".tmp")]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
