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
from obsmem.memory.file_story import (
    Change,
    Saying,
    Shown,
    Touch,
    absolute,
    matching,
    replay,
    sayings_about,
    shown_text,
    touches_of,
)
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
    change of a text that is known whole, or that shows it, ``sha256`` that of the text, '' where it is not known to the last byte. ``disk`` is equal | changed | gone |
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


class _Content(NamedTuple):
    """A text that is known: the entry that shows its last change (or all of it), whether its last line's end is known, and
    whether nothing of it may be missing."""

    text: str
    id: str
    has_end: bool = True
    is_whole: bool = True


def _content(
    store: Store, story: FileStory, sessions: Mapping[str, StoredSession], *, reads: bool = True
) -> _Content | None:
    """The text after the last change, where the calls since one that wrote or showed it whole hold all of it; else what was
    shown of it last, from its first line on, if nothing was changed since."""
    touches = [touch for touch in story.touches if touch.ok is not False and (reads or touch.what != "read")]
    made: list[Change] = []
    last, shown_last = "", None
    for touch in reversed(touches):
        if touch.what == "deleted":
            return None
        if touch.what == "read":
            shown = _shown(sources_of(store, list(touch.ids)))
            if shown is not None and shown.is_whole:
                text = replay([Change(True, shown.text), *made])
                if text is None:
                    return None
                written = _content(store, story, sessions, reads=False)  # says where the last line ends
                if written is not None and written.text.rstrip("\n") == text.rstrip("\n"):
                    return written
                return _Content(text, last or touch.ids[-1], has_end=False)
            if shown is not None and not made and shown_last is None:
                shown_last = _Content(shown.text, touch.ids[-1], has_end=False, is_whole=False)
            continue
        found = _changes(sources_of(store, [touch.ids[0]]), story.path, sessions[touch.session].session.cwd)
        if not found:
            return shown_last
        made, last = [*found, *made], last or touch.ids[0]
        if touch.what == "wrote":
            text = replay(made)
            return shown_last if text is None else _Content(text, last)
    return shown_last


def _shown(sources: list[Source]) -> Shown | None:
    """What a call and its result show of a file."""
    entries = [source.entry for source in sources if source.entry is not None]
    call = next((one for one in entries if one.kind == "tool_call"), None)
    result = next((one for one in entries if one.kind == "tool_result"), None)
    if call is None or result is None:
        return None
    return shown_text(call.text, result.text[result.preface :])


def _changes(sources: list[Source], path: str, cwd: str) -> list[Change]:
    """What a call's actions did to a file's text."""
    return [
        Change(action.kind == "write", action.new, action.old)
        for source in sources
        if source.entry is not None
        for action in source.entry.actions
        if action.kind in ("write", "edit") and action.path and absolute(action.path, cwd) == path
    ]


def _compare(story: FileStory, content: _Content | None) -> FileStory:
    """The story with what the disk says."""
    known = story
    if content is not None and content.is_whole:
        digest = _sha256(content.text.encode("utf-8", "surrogatepass")) if content.has_end else ""
        known = story._replace(content_id=content.id, sha256=digest)
    try:
        stat = os.stat(story.path)
    except OSError:
        return known._replace(disk="gone")
    modified = int(stat.st_mtime * 1000)
    known = known._replace(modified_at=modified)
    if content is not None and stat.st_size <= READ_LIMIT:
        data = _read(story.path)
        if data in _forms(content):
            digest = known.sha256 or _sha256(data or b"")
            return known._replace(disk="equal", content_id=content.id, sha256=digest)
        if content.is_whole:
            return known._replace(disk="changed")
    last = story.touches[-1].at
    if last and modified > last + CLOCK_SLACK:
        return known._replace(disk="changed")
    return known._replace(disk="untouched" if last else "unknown")


def _forms(content: _Content) -> list[bytes]:
    """The bytes that a text may be on disk: with either line end, and with or without one at last where nobody said."""
    texts = [content.text] if content.has_end else [content.text, content.text + "\n"]
    plain = [text.encode("utf-8", "surrogatepass") for text in texts]
    return [*plain, *(text.replace("\n", "\r\n").encode("utf-8", "surrogatepass") for text in texts)]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(READ_LIMIT + 1)
    except OSError:
        return None
