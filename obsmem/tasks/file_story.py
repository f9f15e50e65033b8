"""Telling what the record knows of one file, over all sessions of a workspace, and whether it still is what it was.

Invariant: "equal" is only said of bytes that were compared; where the record holds no whole text of the file, times are
compared, and the answer says that it was only times.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import NamedTuple

from obsmem.core.errors import NotFound, UsageError
from obsmem.memory.file_story import Change, Saying, Touch, absolute, matching, replay, sayings_about, touches_of
from obsmem.memory.recall import Source
from obsmem.store.archive import StoredSession
from obsmem.tasks.cards import cards_of, count_behind
from obsmem.tasks.here import Here
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import sources_of
from obsmem.tasks.store import Store

READ_LIMIT = 32 << 20  # bytes of a file on disk that are compared
CLOCK_SLACK = 2_000  # milliseconds by which a file's time may be after the call that wrote it


class FileStory(NamedTuple):
    """What is known of a file. ``touches`` and ``sayings`` are in order of time. ``content_id`` is the entry with the last
    change of a text that is known whole, ``sha256`` that of the text, '' for none. ``disk`` is equal | changed | gone |
    untouched (no later than the last change, by its time alone) | unknown; ``modified_at`` in milliseconds, 0 if gone."""

    path: str
    touches: tuple[Touch, ...]
    sayings: tuple[Saying, ...]
    harnesses: Mapping[str, str]
    content_id: str = ""
    sha256: str = ""
    disk: str = "unknown"
    modified_at: int = 0

    def last(self, *what: str) -> Touch | None:
        """The last time that one of these was done and did not fail."""
        return next((one for one in reversed(self.touches) if one.what in what and one.ok is not False), None)


def tell_file(store: Store, path: str, here: Here) -> FileStory:
    """The story of a file that sessions of this workspace touched. Raises NotFound, and UsageError where several files
    end like that."""
    if not path.strip():
        raise UsageError("Give the path of a file, or the end of one.")
    sessions = [one for one in store.archive.sessions() if one.session.workspace == here.workspace]
    cards = {one.session.handle: cards_of(store, one) for one in sessions}
    touches = [touch for one in sessions for touch in touches_of(cards[one.session.handle], one.session.cwd)]
    found = matching((touch.path for touch in touches), path, here.cwd)
    if not found:
        behind = count_behind(store, sessions)
        unseen = f" that was looked into ({behind} were not: run 'observational-memory index')" if behind else ""
        raise NotFound(
            f"No session of this workspace{unseen} touched {path!r}. 'observational-memory search --path {path}' looks everywhere."
        )
    if len(found) > 1:
        raise UsageError(f"{path!r} is the end of {len(found)} paths: {', '.join(found[:6])}. Give more of it.")
    (whole,) = found
    own = tuple(sorted((one for one in touches if one.path == whole), key=lambda one: (one.at, one.ids)))
    sayings = [
        saying
        for one in sessions
        for saying in sayings_about(whole, cards[one.session.handle], remember(store, one).notes)
    ]
    unique = {saying.id: saying for saying in sorted(sayings, key=lambda one: (one.at, one.id))}
    story = FileStory(whole, own, tuple(unique.values()), {one.session.handle: one.session.harness for one in sessions})
    return _compare(story, _content(store, story, {one.session.handle: one for one in sessions}))


def _content(store: Store, story: FileStory, sessions: Mapping[str, StoredSession]) -> str | None:
    """The text after the last change, where the calls since the last one that wrote it whole hold all of it."""
    changes = [touch for touch in story.touches if touch.what != "read" and touch.ok is not False]
    begin = max((index for index, touch in enumerate(changes) if touch.what == "wrote"), default=None)
    if begin is None or changes[-1].what == "deleted":
        return None
    made: list[Change] = []
    for touch in changes[begin:]:
        cwd = sessions[touch.session].session.cwd
        found = _changes(sources_of(store, [touch.ids[0]]), story.path, cwd)
        if not found:
            return None
        made += found
    return replay(made)


def _changes(sources: list[Source], path: str, cwd: str) -> list[Change]:
    """What a call's actions did to a file's text."""
    return [
        Change(action.kind == "write", action.new, action.old)
        for source in sources
        if source.entry is not None
        for action in source.entry.actions
        if action.kind in ("write", "edit") and action.path and absolute(action.path, cwd) == path
    ]


def _compare(story: FileStory, content: str | None) -> FileStory:
    """The story with what the disk says."""
    changed = story.last("edited", "wrote", "deleted")
    known = story._replace(
        content_id=changed.ids[0] if changed and content is not None else "",
        sha256=hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest() if content is not None else "",
    )
    try:
        stat = os.stat(story.path)
    except OSError:
        return known._replace(disk="gone")
    modified = int(stat.st_mtime * 1000)
    known = known._replace(modified_at=modified)
    if content is not None and stat.st_size <= READ_LIMIT:
        same = _read(story.path) in (content.encode("utf-8", "surrogatepass"), _with_returns(content))
        return known._replace(disk="equal" if same else "changed")
    last = story.touches[-1].at
    if last and modified > last + CLOCK_SLACK:
        return known._replace(disk="changed")
    return known._replace(disk="untouched" if last else "unknown")


def _with_returns(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode("utf-8", "surrogatepass")


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(READ_LIMIT + 1)
    except OSError:
        return None
