"""What a session start is told of its workspace. Loaded only at a start that gets no block, or after the last part of one.

Invariants: a session is told once, at its first start; one that goes on hears only what others did since, and of each such
deed once; where the harness keeps our words in every request they stay the same text until something new is told at a start.
"""

from __future__ import annotations

import os
import time

from obsmem.system.files import PRIVATE_FILE, make_folder, read_bytes, remove, write_atomic
from obsmem.system.indexfile import (
    GIVEN,
    KEPT,
    NEWS,
    OPEN,
    IndexFile,
    index_path,
    meanwhile,
    news_text,
    read_index,
    start_text,
)
from obsmem.system.workspace import workspace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from obsmem.core.hooks import HookEvent
    from obsmem.harnesses.base import Hooks

SAME_START = 60.0  # seconds within which a second handler belongs to the same start


def index_for_start(home: str, module: Hooks, what: HookEvent, folder: str) -> str:
    """The text for a start of a session; '' for nothing. ``folder`` is that of the session's small files."""
    if what.agent_id:
        return ""
    index = read_index(index_path(home, workspace_of(what.cwd)))
    if index is None or not index.is_current:
        return ""
    if module.KEEPS_BLOCK:
        return _kept(index, module.NAME, what.session_id, folder)
    if what.source == "startup":
        mark = os.path.join(folder, KEPT)
        if _take(mark):
            return start_text(index, module.NAME, what.session_id, time.time())[0] if index.lines else ""
        if abs(time.time() - os.stat(mark).st_mtime) < SAME_START:
            return ""  # registered twice
    return _news(index, module.NAME, what.session_id, folder)


def _news(index: IndexFile, harness: str, session_id: str, folder: str) -> str:
    since, newest, _ = meanwhile(index, harness, session_id, time.time())
    if not since or not _take(os.path.join(folder, f"{GIVEN}{newest}")):
        return ""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.startswith(GIVEN) and name != f"{GIVEN}{newest}":
            remove(os.path.join(folder, name))
    return news_text(since)


def _kept(index: IndexFile, harness: str, session_id: str, folder: str) -> str:
    """The text that stands in every request of a session: what it was told first, and the newest news behind it."""
    path = os.path.join(folder, KEPT)
    told, newline, text = read_bytes(path).decode("utf-8", "replace").partition("\n")
    now = time.time()
    if not newline:
        if not index.lines:
            return ""
        text, newest = start_text(index, harness, session_id, now)
    else:
        since, newest, _ = meanwhile(index, harness, session_id, now)
        if not since or newest <= (int(told) if told.isdigit() else 0):
            return text
        text = f"{text.partition(f'{chr(10)}{OPEN}{chr(10)}{NEWS}')[0]}\n{news_text(since)}"
    try:
        write_atomic(path, f"{newest}\n{text}".encode("utf-8", "replace"), durable=False)
    except OSError:
        pass  # nothing can be kept here; the caller remembers it while it runs
    return text


def _take(path: str) -> bool:
    """Be the first to make a mark; True also where none can be made: better twice than not at all."""
    try:
        make_folder(os.path.dirname(path))
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    except FileExistsError:
        return False
    except OSError:
        pass
    return True
