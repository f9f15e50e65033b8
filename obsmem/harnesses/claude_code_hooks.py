"""The hooks of Claude Code: payloads in, answers out. On the hook path, so nothing heavy is imported.

Invariant: nothing is printed except context and notice for the two events that take them; PreCompact's output
would become part of the summariser's instructions.
"""

from __future__ import annotations

from obsmem.core.hooks import HookAnswer, HookEvent, text_of, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "claude-code"
KEEPS_BLOCK = False

EVENTS: Mapping[str, str] = {
    "Stop": "turn_end",
    "SubagentStop": "other",
    "PreCompact": "before_compact",
    "PostCompact": "other",
    "SessionStart": "session_start",
    "SessionEnd": "session_end",
    "UserPromptSubmit": "prompt",
}
# The events whose output reaches the model. PreCompact's would become part of the summariser's instructions.
CONTEXT_EVENTS = ("SessionStart", "UserPromptSubmit")
_SOURCE_FIELDS = ("source", "trigger", "reason")


def read_event(event: str, payload: Mapping[str, Any]) -> HookEvent:
    """Turn a hook's payload into our words. A call that Cursor makes through these hooks is 'other'."""
    kind = "other" if "cursor_version" in payload else EVENTS.get(event, "other")
    return HookEvent(
        kind=kind,
        name=event,
        session_id=text_of(payload, "session_id"),
        transcript=text_of(payload, "transcript_path"),
        cwd=text_of(payload, "cwd"),
        source=next((value for name in _SOURCE_FIELDS if (value := text_of(payload, name))), ""),
        agent_id=text_of(payload, "agent_id"),
    )


def answer(event: HookEvent, answer: HookAnswer) -> str:
    """The JSON that puts our context before the model and our notice before the user, or '' where the event takes none."""
    if event.name not in CONTEXT_EVENTS or event.kind == "other":
        return ""
    output: dict[str, Any] = {"systemMessage": answer.notice} if answer.notice else {}
    if answer.context:
        output["hookSpecificOutput"] = {"hookEventName": event.name, "additionalContext": answer.context}
    return write_json(output) if output else ""
