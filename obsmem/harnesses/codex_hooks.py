"""The hooks of Codex: payloads in, answers out. On the hook path, so nothing heavy is imported.

Invariant: an answer is valid for its event, or empty, which every event accepts.
"""

from __future__ import annotations

from obsmem.core.hooks import HookAnswer, HookEvent, ToolOutput, text_of, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "codex"
KEEPS_BLOCK = False
SHOWS_NOTICES = True
STATUS_SECONDS = 0.0

EVENTS: Mapping[str, str] = {
    "Stop": "turn_end",
    "PreCompact": "before_compact",
    "SessionStart": "session_start",
    "SessionEnd": "session_end",
    "UserPromptSubmit": "prompt",
    "PostCompact": "other",
    "PreToolUse": "other",
    "PostToolUse": "other",
    "PermissionRequest": "other",
    "SubagentStart": "other",
    "SubagentStop": "other",
    "Interrupt": "other",
}


def read_event(event: str, payload: Mapping[str, Any]) -> HookEvent:
    """Turn a hook's payload into our words. ``source`` is the start's source, the trigger or the reason."""
    name = event or text_of(payload, "hook_event_name")
    return HookEvent(
        EVENTS.get(name, "other"),
        name,
        text_of(payload, "session_id"),
        text_of(payload, "transcript_path"),
        text_of(payload, "cwd"),
        text_of(payload, "source") or text_of(payload, "trigger") or text_of(payload, "reason"),
        text_of(payload, "agent_id"),
    )


def answer(event: HookEvent, answer: HookAnswer) -> str:
    """JSON with context and notice for a session start or a prompt; '' for all else, which every event accepts."""
    if event.kind not in ("session_start", "prompt"):
        return ""
    output: dict[str, Any] = {"systemMessage": answer.notice} if answer.notice else {}
    if answer.context:
        output["hookSpecificOutput"] = {"hookEventName": event.name, "additionalContext": answer.context}
    return write_json(output) if output else ""


def read_output(payload: Mapping[str, Any]) -> ToolOutput | None:
    """Nothing: Codex takes no other output in the place of a tool's."""
    return None


def replace_output(payload: Mapping[str, Any], text: str) -> str:
    """Nothing, for the same reason."""
    return ""
