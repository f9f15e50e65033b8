"""The hooks of Claude Code: payloads in, answers out. On the hook path, so nothing heavy is imported.

Invariant: nothing is printed except context and notice for the two events that take them; PreCompact's output
would become part of the summariser's instructions.
"""

from __future__ import annotations

from obsmem.core.hooks import HookAnswer, HookEvent, ToolOutput, text_of, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "claude-code"
KEEPS_BLOCK = False
SHOWS_NOTICES = True
STATUS_SECONDS = 3.0  # it gives a status line 5

EVENTS: Mapping[str, str] = {
    "Stop": "turn_end",
    "SubagentStop": "other",
    "PreCompact": "before_compact",
    "PostCompact": "other",
    "SessionStart": "session_start",
    "SessionEnd": "session_end",
    "UserPromptSubmit": "prompt",
    "statusLine": "status",  # no event: what the settings run for the line below the prompt
    "PostToolUse": "tool_result",
}
SHELL = "Bash"
_WITHOUT_WORDS = ("interrupted", "isImage", "backgroundTaskId")  # of a response: not all of what a command printed
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
        focus=text_of(payload, "custom_instructions"),
    )


def answer(event: HookEvent, answer: HookAnswer) -> str:
    """The JSON that puts our context before the model and our notice before the user, or '' where the event takes none."""
    if event.name not in CONTEXT_EVENTS or event.kind == "other":
        return ""
    output: dict[str, Any] = {"systemMessage": answer.notice} if answer.notice else {}
    if answer.context:
        output["hookSpecificOutput"] = {"hookEventName": event.name, "additionalContext": answer.context}
    return write_json(output) if output else ""


def read_output(payload: Mapping[str, Any]) -> ToolOutput | None:
    """What the shell tool printed, where it may be replaced: not a sub-agent's, nor what is no whole text.

    The event comes only for a command that succeeded, or whose status the program explains (``returnCodeInterpretation``). Of
    an output over 30,000 characters the payload has the beginning, and the path of the file with the whole."""
    response = payload.get("tool_response")
    given = payload.get("tool_input")
    if payload.get("tool_name") != SHELL or not isinstance(response, dict) or text_of(payload, "agent_id"):
        return None
    if any(response.get(name) for name in _WITHOUT_WORDS):
        return None
    printed, errors = text_of(response, "stdout"), text_of(response, "stderr")
    size = response.get("persistedOutputSize")
    return ToolOutput(
        text_of(payload, "tool_use_id"),
        text_of(given, "command"),
        f"{printed}\n{errors}" if printed and errors else printed or errors,
        1 if response.get("returnCodeInterpretation") else 0,
        text_of(response, "persistedOutputPath"),
        size if isinstance(size, int) else 0,
    )


def replace_output(payload: Mapping[str, Any], text: str) -> str:
    """The JSON that puts ``text`` in the place of a shell's output. Without the path of the file that holds a long one, since the
    program would show that in place of our words; a replacement that has not the response's shape is ignored."""
    response: Mapping[str, Any] = payload["tool_response"]
    kept = {name: value for name, value in response.items() if isinstance(value, (bool, str))}
    for name in ("persistedOutputPath", "persistedOutputSize"):
        kept.pop(name, None)
    output = {**kept, "stdout": text, "stderr": ""}
    return write_json({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}})
