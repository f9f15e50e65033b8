"""The hooks of OpenCode: payloads in, answers out. On the hook path, so nothing heavy is imported.

Invariant: our own plugin is the caller: it reads what is written here.
"""

from __future__ import annotations

import os

from obsmem.core.hooks import HookAnswer, HookEvent, ToolOutput, text_of, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "opencode"
KEEPS_BLOCK = True
SHOWS_NOTICES = True
STATUS_SECONDS = 0.0

EVENTS: Mapping[str, str] = {
    "session.created": "session_start",
    "session.resumed": "session_start",  # our plugin's own word: a session that it sees for the first time
    "session.idle": "turn_end",
    "chat.message": "prompt",
    "experimental.session.compacting": "before_compact",
    "session.deleted": "session_end",
    "session.compacted": "other",
    "tool.execute.after": "tool_result",
}


def read_event(event: str, payload: Mapping[str, Any]) -> HookEvent:
    """Turn a call of our plugin into our words. Its payload has ``sessionID`` and ``directory``, and may have ``db``, the
    database's path, and ``parentID`` of a sub-agent's session. The transcript is the database: with the session id it
    names a source.

    A resumed session whose compaction left it a summary wants the block (source ``compact``), unless the block itself
    was made the summary; one that holds nothing but its first prompt is new (``startup``), and any other has all its words
    before it (``resume``)."""
    session_id = text_of(payload, "sessionID")
    source = text_of(payload, "source") or ("startup" if event == "session.created" else "")
    database = text_of(payload, "db") or _default_database()
    since = 0
    if event == "session.resumed":
        source, since = _how_it_goes_on(database, session_id)
    return HookEvent(
        kind=EVENTS.get(event, "other"),
        name=event,
        session_id=session_id,
        transcript=database,
        cwd=text_of(payload, "directory"),
        source=source,
        agent_id=session_id if text_of(payload, "parentID") else "",
        since=str(since or ""),
    )


def _how_it_goes_on(database: str, session_id: str) -> tuple[str, int]:
    """(why a session starts, when the compaction was that it goes on after, in milliseconds, or 0)."""
    from obsmem.harnesses.opencode_database import standing_of
    from obsmem.harnesses.written import OWN_BLOCK  # only where a session is seen for the first time

    try:
        standing = standing_of(database, session_id)
    except OSError:
        return "resume", 0
    if standing.summary and not standing.summary.startswith(OWN_BLOCK):
        return "compact", max(1, standing.summed_up_at)
    return "startup" if standing.fresh else "resume", 0


def _default_database() -> str:
    """The database that OpenCode uses where nothing else is said; '' where there is none."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    path = os.path.join(data, "opencode", os.environ.get("OPENCODE_DB") or "opencode.db")
    return path if os.path.isfile(path) else ""


def answer(event: HookEvent, answer: HookAnswer) -> str:
    """Our answer as our plugin reads it: ``{"context": …, "notice": …}``, or '' for nothing."""
    said = {"context": answer.context, "notice": answer.notice}
    return write_json({name: text for name, text in said.items() if text}) if any(said.values()) else ""


def read_output(payload: Mapping[str, Any]) -> ToolOutput | None:
    """What the shell tool printed, as our plugin hands it on: beside the names of every call ``callID``, ``command``, ``output``,
    ``exit``, and ``path`` and ``size`` of the file with the whole, where OpenCode cut it."""
    exit_code, size = payload.get("exit"), payload.get("size")
    return ToolOutput(
        text_of(payload, "callID"),
        text_of(payload, "command"),
        text_of(payload, "output"),
        exit_code if isinstance(exit_code, int) else None,
        text_of(payload, "path"),
        size if isinstance(size, int) else 0,
    )


def replace_output(payload: Mapping[str, Any], text: str) -> str:
    """Our answer as our plugin reads it: ``{"output": …}``."""
    return write_json({"output": text})
