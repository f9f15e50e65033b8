"""Finding transcripts: below a path that a person gives, or everything that the harnesses keep on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from obsmem.harnesses import REGISTRY, load, recognise
from obsmem.harnesses.base import SNIFF_SIZE, Source


class Found(NamedTuple):
    """A source and its harness ('' where none knows it), with its size in bytes and when it last changed (seconds)."""

    harness: str
    source: Source
    size: int
    changed: float


def find_below(path: str, harness: str = "") -> Iterator[Found]:
    """Yield every source in a file or below a folder, in order of path. ``harness`` overrides recognition.

    Files that no harness knows come with harness ''. Folders that one harness knows as a whole (a storage tree) count
    as one. Raises FileNotFoundError.
    """
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(path)
    if os.path.isfile(path):
        yield from _sources(path, harness or _recognise(path))
        return
    tree = _tree(path)
    if tree:
        yield from _sources(path, tree)
        return
    for name in sorted(os.listdir(path)):
        below = os.path.join(path, name)
        if os.path.islink(below) and _leads_up(below, path):
            continue
        if os.path.isdir(below) or os.path.isfile(below):
            yield from find_below(below, harness)


def _leads_up(link: str, path: str) -> bool:
    """True if a link in a folder leads to that folder or to one above it."""
    target = os.path.realpath(link)
    return os.path.commonpath([target, os.path.realpath(path)]) == target


def find_on_machine(home: str, only: str = "") -> Iterator[Found]:
    """Yield every session of every harness (``only`` one, where named) below a home folder. Raises UsageError."""
    if only:
        load(only)
    for name in REGISTRY:
        if only and name != only:
            continue
        for source in load(name).find(home):
            size, changed = _measure(source.path)
            yield Found(name, source, size, changed)


def newest_on_machine(home: str) -> Found | None:
    """The source that changed last, databases by their file; None where there is none."""
    return max(find_on_machine(home), key=lambda found: found.changed, default=None)


def _recognise(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return recognise(path, file.read(SNIFF_SIZE))
    except OSError:
        return ""


def _tree(path: str) -> str:
    """The harness that keeps whole sessions in this folder as rows; '' where it is a plain folder."""
    for name in REGISTRY:
        module = load(name)
        found = module.sources(path) if module.ROWS else []
        # All of them: a folder with files of other harnesses beside one database is a plain folder.
        if found and all(source.session_id for source in found):
            return name
    return ""


def _sources(path: str, harness: str) -> Iterator[Found]:
    size, changed = _measure(path)
    if not harness:
        yield Found("", Source(path), size, changed)
        return
    for source in load(harness).sources(path):
        yield Found(harness, source, size, changed)


def _measure(path: str) -> tuple[int, float]:
    try:
        if os.path.isdir(path):
            sizes = [
                os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names
            ]
            return sum(sizes), os.path.getmtime(path)
        status = os.stat(path)
    except OSError:
        return 0, 0.0
    return status.st_size, status.st_mtime
