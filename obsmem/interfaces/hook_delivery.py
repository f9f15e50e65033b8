"""What a session start and a prompt get of the block. Loaded only where there may be something to give.

Invariants: each part of a delivery is handed out once, however often a hook is registered and whatever starts a harness
fires for one compaction; all of it is one frozen text; where a file does not say that something is owed, nothing is given.
"""

from __future__ import annotations

import os
import time

from obsmem.system import process
from obsmem.system.blockfile import (
    CURRENT,
    DUE,
    HANDOFFS,
    KEPT_HANDOFF,
    RESUME,
    RETRY,
    begin_making,
    end_making,
    end_waiting,
    freeze,
    freeze_for_resume,
    held,
    hold_nothing,
    keep,
    kept,
    read,
    take_part,
    take_retry,
)
from obsmem.system.files import make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from obsmem.core.hooks import HookEvent
    from obsmem.harnesses.base import Hooks

RENDER_SECONDS = 8.0  # a block that was never rendered is made within this time, or not at all
WORK_SECONDS = "6"  # of these, what the maintainer gives itself
FRESH = ("startup", "clear")  # sources of a start with an empty window
BUSY = 4  # its exit status where another one prepares this compaction


def block_for_start(
    home: str, script: str, module: Hooks, what: HookEvent, folder: str, work: list[str], part: tuple[int, int]
) -> tuple[str, str]:
    """(text for the model, outcome for the log) of one session-start handler; ``part`` is (k, n) of its ``--part``."""
    number, of = part
    handoff = _handoff(home, module, what, folder)
    if handoff:
        return ("\n".join(handoff), "handoff") if module.KEEPS_BLOCK else _take(folder, handoff, number, of)
    if module.KEEPS_BLOCK:
        if what.source not in (*FRESH, "resume"):
            return _repeat(home, script, folder, work, what.since)
        kept_for_it = read(os.path.join(folder, RESUME))[1]  # a fork of ours begins with a block that it does not hold
        if not kept_for_it:
            return _index(home, module, what, folder)
        return "\n".join(kept_for_it), f"{len(kept_for_it)}-parts"
    parts: list[str] | None = None
    if what.source == "resume":
        parts = freeze_for_resume(folder, time.time())
    elif what.source not in FRESH:
        parts = _freeze_or_make(home, script, folder, work, number)
    elif _has_no_start_after_compaction(module.NAME):  # any start brings what is due
        parts = freeze(folder, time.time())
    text, outcome = _take(folder, parts or [], number, of)
    # What is told of the workspace goes with the last handler: a part beside it would pass the limit of one.
    told = what.source == "resume" or (what.source == "startup" and not parts)
    if number < of or not told or (text and of > 1):
        return text, outcome
    more, of_index = _index(home, module, what, folder)
    return "\n".join(filter(None, (text, more))), outcome or of_index


def _index(home: str, module: Hooks, what: HookEvent, folder: str) -> tuple[str, str]:
    """What is kept of the workspace, for a session that starts, or what others did, for one that goes on."""
    if not os.path.isdir(os.path.join(home, "workspaces")):
        return "", ""
    from obsmem.interfaces.hook_index import index_for_start

    text = index_for_start(home, module, what, folder)
    return text, "index" if text else ""


def _handoff(home: str, module: Hooks, what: HookEvent, folder: str) -> list[str]:
    """The parts of the handoff that waits for a fresh session here, or that this one was given; none where none is."""
    stays = module.KEEPS_BLOCK
    sources = (*FRESH, "resume") if stays else FRESH
    if what.source not in sources or os.path.exists(os.path.join(folder, DUE)):  # its own block goes before
        return []
    if what.source in FRESH and not what.agent_id and os.path.isdir(os.path.join(home, HANDOFFS)):
        from obsmem.system.handoff_file import handoff_path, take_handoff
        from obsmem.system.workspace import workspace_of

        path = handoff_path(home, module.NAME, workspace_of(what.cwd))
        take_handoff(path, folder, KEPT_HANDOFF if stays else CURRENT)
    return read(os.path.join(folder, KEPT_HANDOFF))[1] if stays else held(folder, time.time()) or []


def _has_no_start_after_compaction(name: str) -> bool:
    """True where what is due comes within a turn, or with whatever start is next."""
    from obsmem.harnesses import PROMPTS

    return PROMPTS.get(name, ("", ""))[1] == DUE


def block_for_prompt(module: Hooks, folder: str) -> str:
    """What a prompt, or a tool's result, brings: the second try, or all that is due where no start follows a compaction."""
    from obsmem.harnesses import PROMPTS

    owed = PROMPTS[module.NAME][1]
    if owed == RETRY:
        return take_retry(folder, time.time())
    if owed != DUE or not os.path.exists(os.path.join(folder, DUE)):
        return ""
    return _take(folder, freeze(folder, time.time()) or [], 1, 1)[0]


def told_at_prompt(module: Hooks, what: HookEvent, folder: str) -> tuple[str, str]:
    """(text for the model, line for the user) at a prompt: what a delivery owes, and behind it a warning, where both are no
    longer than one part may be. A sub-agent is never warned."""
    text = block_for_prompt(module, folder)
    if what.agent_id:
        return text, ""
    from obsmem.system.warningfile import GIVEN_BYTES, take_warning

    notice, warning = take_warning(folder, GIVEN_BYTES - (len(text.encode("utf-8", "replace")) + 1 if text else 0))
    return "\n".join(filter(None, (text, warning))), notice


def _take(folder: str, parts: list[str], number: int, of: int) -> tuple[str, str]:
    """One part of a frozen block (all of it to a harness with a single handler), if nobody took it yet."""
    text = "\n".join(parts) if of == 1 else "".join(parts[number - 1 : number])
    if not text or not take_part(folder, number):
        return "", ""
    end_waiting(folder)
    return text, f"part-{number}-of-{len(parts)}"


def _freeze_or_make(home: str, script: str, folder: str, work: list[str], number: int) -> list[str] | None:
    """The frozen block. Where no rendering is due, a first handler has one made, and the others wait for it: harnesses
    start them all at the same time."""
    deadline = time.monotonic() + RENDER_SECONDS + 1
    parts = freeze(folder, time.time())
    if parts is None and number == 1 and begin_making(folder, time.time()):
        try:
            parts = freeze(folder, time.time())
            if parts is None:
                parts = _make(home, script, folder, work)
        finally:
            end_making(folder)
    can_come = parts is None and _is_writable(folder)  # nobody can make a block in a read-only place
    while parts is None and can_come and time.monotonic() < deadline:
        time.sleep(process.POLL_SECONDS)
        parts = freeze(folder, time.time())
    return parts


def _is_writable(folder: str) -> bool:
    """True where files can be made; the folder may be missing yet, at the very first start of all."""
    try:
        make_folder(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _make(home: str, script: str, folder: str, work: list[str]) -> list[str] | None:
    """Have the block made and freeze it; nothing is held where there is none, so that nobody waits for it."""
    arguments = ["maintain", *work, "--before-compact", "--seconds", WORK_SECONDS]
    status = process.run(home, script, arguments, RENDER_SECONDS)
    parts = freeze(folder, time.time())
    if parts is None and status != BUSY:
        hold_nothing(folder)
        return []
    return parts


def _repeat(home: str, script: str, folder: str, work: list[str], since: str) -> tuple[str, str]:
    """The block that is kept since the last compaction. Where none is (it happened before we were here, or had no time
    for us, or a later one was taken back), one is made now and kept from here on."""
    parts = kept(folder, since)
    if not parts:
        arguments = ["maintain", *work, "--before-compact", "--seconds", WORK_SECONDS]
        process.run(home, script, arguments, RENDER_SECONDS)
        parts = keep(folder, since)
    return "\n".join(parts), f"{len(parts)}-parts" if parts else ""
