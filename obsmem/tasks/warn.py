"""Warning the user and the agent, once a window and mark, that a compaction comes near.

Invariants: a warning is decided once for each window (a window begins at a session's start and at each compaction) and
mark of the configuration, before anybody can be told; what was decided and neither waits nor was given (a process that was
killed in between) is left again, so that it is given once; a sub-agent's session is never warned. Of marks that were
passed at once only the highest is told.
"""

from __future__ import annotations

from typing import Any

from obsmem.core.decisions import WARN
from obsmem.core.pressure import Occupancy
from obsmem.harnesses import PROMPTS, load
from obsmem.memory.sections import pin_cost
from obsmem.memory.warning import Near, warning_words
from obsmem.store.archive import StoredSession
from obsmem.system.warningfile import drop_warning, given_warning, leave_warning_file, waiting_warning
from obsmem.tasks.called import command, recall_command
from obsmem.tasks.occupancy import occupancy
from obsmem.tasks.remember import visible_pins
from obsmem.tasks.store import Store

TOLD = "told: "
FAR = 1 << 40  # tokens to a mark that nobody knows
NEAR_SHARE = 2  # the background looks again after this part of the way to the next mark


def leave_warning(store: Store, stored: StoredSession) -> None:
    """Leave the warning that is due, if one is, for the session's next prompt; take back one that is no longer so."""
    folder, handle, marks = store.folder_of(stored), stored.session.handle, store.config["warn_at"]
    _note_given(store, handle, given_warning(folder))
    now = occupancy(store, stored) if _may_warn(store, stored) else Occupancy()
    mark = max((one for one in marks if now.window.mark and now.of_mark >= one), default=0.0)
    window = max(store.archive.boundaries(stored.no), default=-1)
    name = _name(window, mark)
    if waiting_warning(folder) not in ("", name):
        drop_warning(folder)
    if not mark or waiting_warning(folder) or store.memory.decided(handle, WARN, TOLD + _why(name)):
        return
    # A higher one was decided, and some of the window was taken back since.
    if any(store.memory.decided(handle, WARN, _why(_name(window, one))) for one in marks if one > mark):
        return
    if not store.memory.decided(handle, WARN, _why(name)):
        store.memory.record_decision(handle, WARN, _why(name), _numbers(now, window, mark))
    leave_warning_file(folder, name, *_words(store, stored, now, mark))


def _note_given(store: Store, handle: str, name: str) -> None:
    """Write down that a warning was given; its file says so until the next one is."""
    if name and not store.memory.decided(handle, WARN, TOLD + _why(name)):
        store.memory.record_decision(handle, WARN, TOLD + _why(name))


def until_warning(store: Store, stored: StoredSession) -> int:
    """Tokens of new material after which the background should look again, so that the next warning comes in time: a part
    of the way to the next mark, since not all that fills a window is counted as material. FAR where no warning comes."""
    if not _may_warn(store, stored):
        return FAR
    now = occupancy(store, stored)
    left = [one * now.window.mark - now.tokens for one in store.config["warn_at"] if now.of_mark < one]
    return max(1, int(min(left)) // NEAR_SHARE) if left and now.window.mark else FAR


def _may_warn(store: Store, stored: StoredSession) -> bool:
    session = stored.session
    return bool(store.config["warn_at"]) and session.role == "main" and session.harness in PROMPTS


def _name(window: int, mark: float) -> str:
    """What names a warning: the seq of the compaction that its window begins with (-1 for the first), and the mark."""
    return f"{window}:{mark:g}"


def _why(name: str) -> str:
    window, _, mark = name.partition(":")
    return f"past {mark} of the mark, after boundary {window}"


def _numbers(now: Occupancy, window: int, mark: float) -> dict[str, Any]:
    return {
        "warn_at": mark,
        "tokens": now.tokens,
        "counted": now.counted,
        "estimated": now.estimated,
        "mark": now.window.mark,
        "mark_source": now.window.mark_source,
        "size": now.window.size,
        "boundary": window,
    }


def _words(store: Store, stored: StoredSession, now: Occupancy, mark: float) -> tuple[str, str]:
    pins, recall = visible_pins(store, stored), recall_command()
    return warning_words(
        Near(
            now,
            is_last=mark == max(store.config["warn_at"]) and len(store.config["warn_at"]) > 1,
            pins=len(pins),
            pin_tokens=pin_cost(pins, recall),
            program=command(),
            recall=recall,
            shown=load(stored.session.harness).SHOWS_NOTICES,
        )
    )
