"""The hooks of Cursor: payloads in, answers out. On the hook path, so nothing heavy is imported.

Invariant: an answer is always an object, since Cursor wants one where there is nothing to say.
"""

from __future__ import annotations

from obsmem.core.hooks import HookAnswer, HookEvent, ToolOutput, text_of, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "cursor"
KEEPS_BLOCK = False
SHOWS_NOTICES = False
STATUS_SECONDS = 1.2  # it gives a status line 2

EVENTS: Mapping[str, str] = {
    "sessionStart": "session_start",
    "preCompact": "before_compact",
    "stop": "turn_end",
    "sessionEnd": "session_end",
    "postToolUse": "prompt",
    "beforeSubmitPrompt": "other",
    "statusLine": "status",  # no event: what the command line's config runs for the line above the prompt
}


def read_event(event: str, payload: Mapping[str, Any]) -> HookEvent:
    """Turn a hook's payload into our words. The conversation's id is the session's, over compactions too."""
    kind = EVENTS.get(event, "other")
    roots = payload.get("workspace_roots")
    folders = [root for root in roots if isinstance(root, str)] if isinstance(roots, list) else []
    return HookEvent(
        kind,
        event,
        session_id=text_of(payload, "conversation_id") or text_of(payload, "session_id"),
        transcript=text_of(payload, "transcript_path"),
        cwd=text_of(payload, "cwd") or (folders[0] if folders else ""),
        source="startup" if kind == "session_start" else text_of(payload, "trigger"),
        agent_id=text_of(payload, "subagent_id"),
        held=_held(payload) if kind == "before_compact" else "",
    )


def _held(payload: Mapping[str, Any]) -> str:
    """What Cursor counts before a compaction; it is in none of its transcripts."""
    counts = [payload.get("context_tokens"), payload.get("context_window_size")]
    known = all(isinstance(count, int) and count > 0 for count in counts)
    return f"{counts[0]}/{counts[1]}" if known else ""


def answer(event: HookEvent, answer: HookAnswer) -> str:
    """Context where Cursor takes it (session start, a tool's result), else the empty object that it wants."""
    if answer.context and event.kind in ("session_start", "prompt"):
        return write_json({"additional_context": answer.context})
    return "{}"


def read_output(payload: Mapping[str, Any]) -> ToolOutput | None:
    """Nothing: Cursor takes no other output in the place of a shell's."""
    return None


def replace_output(payload: Mapping[str, Any], text: str) -> str:
    """Nothing, for the same reason."""
    return ""
