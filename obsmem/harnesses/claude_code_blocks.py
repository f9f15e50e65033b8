"""What one Claude Code record says, from its bytes alone.

Keeps invariant 2 of SPEC.md: every string that a human, the agent or a tool wrote stands in an entry's text or under a
key of IGNORED_KEYS. Every level is checked for its type, since fields change their shape between versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.model import Entry, Speaker
from obsmem.harnesses import claude_code_tools as tools
from obsmem.harnesses.claude_code_human import add_tagged, add_user_text, may_be_human
from obsmem.harnesses.claude_code_sheet import Sheet, prune, text_of
from obsmem.harnesses.written import OWN_BLOCK, flatten, load_objects

AddText = Callable[[Sheet, str, Mapping[str, Any]], None]

SYNTHETIC = "<synthetic>"
BOUNDARY = "compact_boundary"

_SLASH_COMMAND = late.pattern(r"/[a-zA-Z][\w:-]*(?:\s|$)")
_REMINDER_END = "</system-reminder>"
# Attachments that repeat what other records say, or list what the harness offers. See IGNORED_KEYS.
_BARE_ATTACHMENTS = frozenset(
    [
        "prompt_snapshot",
        "task_reminder",
        "todo_reminder",
        "total_tokens_reminder",
        "token_usage",
        "output_style",
        "command_permissions",
        "deferred_tools_delta",
        "agent_listing_delta",
        "mcp_instructions_delta",
        "date_change",
        "auto_mode",
        "auto_mode_exit",
    ]
)
_ATTACHMENT_NOISE = frozenset(
    [
        "type",
        "toolUseID",
        "hookEvent",
        "command",
        "processId",
        "durationMs",
        "exitCode",
        "source_uuid",
        "timestamp",
        "isNew",
        "range",
        "numLines",
        "startLine",
        "totalLines",
        "displayPath",
        "base64",
        "data",
        "skillCount",
        "isInitial",
    ]
)
_BARE_TYPES = frozenset(
    [
        "progress",
        "file-history-snapshot",
        "file-history-delta",
        "last-prompt",
        "ai-title",
        "agent-name",
        "agent-setting",
        "mode",
        "permission-mode",
        "pr-link",
        "relocated",
        "worktree-state",
    ]
)
_MESSAGE_FIELDS = frozenset(["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"])
_SYSTEM_WORDS = ("error", "cause", "hookErrors", "hookAdditionalContext", "stopReason", "url")
_BARE_SYSTEM = frozenset(("turn_duration",))
_NO_OUTPUT = frozenset(("", "{}"))
_ERROR_NOISE = frozenset(["headers", "requestID", "request_id", "stack"])


def line_blocks(data: bytes) -> list[Entry]:
    """Every entry of every object on a line, counted through."""
    entries: list[Entry] = []
    for record in load_objects(data)[0]:
        entries.extend(record_entries(record, len(entries)).entries)
    return entries


def record_entries(record: Mapping[str, Any], first: int) -> Sheet:
    """The entries of one record, the first of them numbered ``first``, or reasons why there are none."""
    sheet = Sheet(record, first)
    kind = record.get("type")
    add = _TYPES.get(kind) if isinstance(kind, str) else None
    if add is None:
        sheet.reasons.append(f"type:{kind if isinstance(kind, str) else type(kind).__name__}")
    else:
        add(sheet, record)
        if not sheet.entries and not sheet.reasons:
            sheet.reasons.append("no text")
    return sheet


def _content(record: Mapping[str, Any]) -> list[Any]:
    """The blocks of a record's message; a plain string is one. Words under an unknown key count as an unknown block."""
    message = record.get("message")
    if not isinstance(message, dict):
        return [message]
    content = message.get("content")
    if isinstance(content, list):
        return content
    if content is None:
        return [{key: value for key, value in message.items() if key not in _MESSAGE_FIELDS}]
    return [content]


def _other_blocks(sheet: Sheet, record: Mapping[str, Any], add_text: AddText) -> Iterator[dict[str, Any]]:
    """Add what is text, in order with the blocks of other types, which are yielded."""
    for block in _content(record):
        if isinstance(block, str):
            text = block
        elif not isinstance(block, dict):
            sheet.reasons.append("no text")
            continue
        elif block.get("type") == "text" and isinstance(block.get("text"), str):
            text = block["text"]
        else:
            yield block
            continue
        if text.strip():
            add_text(sheet, text, record)


def _add_user(sheet: Sheet, record: Mapping[str, Any]) -> None:
    if record.get("isCompactSummary") is True:
        add_text: AddText = _add_summary
    elif record.get("isMeta") is True or not may_be_human(record):
        add_text = _add_notice
    else:
        add_text = add_user_text
    result = record.get("toolUseResult")
    for block in _other_blocks(sheet, record, add_text):
        if block.get("type") == "tool_result":
            _add_result(sheet, block, result)
            result = None
        else:
            _add_unknown_block(sheet, block)
    if result is not None and (words := tools.unseen_words(result, "")):
        sheet.add("tool_result", "tool", words)


def _add_summary(sheet: Sheet, text: str, record: Mapping[str, Any]) -> None:
    sheet.add("summary", "harness", text)


def _add_notice(sheet: Sheet, text: str, record: Mapping[str, Any]) -> None:
    sheet.notice(text, tools.notice_actions(text))


def _add_reply(sheet: Sheet, text: str, record: Mapping[str, Any]) -> None:
    if OWN_BLOCK in text:
        sheet.notice(text)
    else:
        sheet.add("assistant", "agent", text)


def _add_result(sheet: Sheet, block: Mapping[str, Any], result: Any) -> None:
    text = tools.content_text(block.get("content"))
    ok = block.get("is_error") is not True
    reminders: list[str] = []
    while text.endswith((_REMINDER_END, _REMINDER_END + "\n")) and (start := text.rfind("<system-reminder>")) >= 0:
        reminders.append(text[start:])
        text = text[:start]
    more = tools.unseen_words(result, text) if result is not None else ""
    whole = f"{text}\n{more}" if more and text else text or more
    speaker: Speaker = "human" if tools.is_answer(result, text) else "tool"
    if OWN_BLOCK in whole:
        speaker = "harness"  # our own words, printed by a command
    sheet.add(
        "tool_result",
        speaker,
        whole,
        call_id=text_of(block.get("tool_use_id")),
        ok=ok,
        actions=tools.result_actions(result, text),
        exit_code=tools.exit_code(text, ok),
    )
    said = tools.refusal_words(text)
    if said:
        sheet.add("user", "human", said)
    for reminder in reversed(reminders):
        sheet.notice(reminder)


def _add_unknown_block(sheet: Sheet, block: Mapping[str, Any]) -> None:
    """A block type that is not known is the harness's until it is; pictures have no words."""
    kind = block.get("type")
    if kind == "image":
        sheet.reasons.append("image")
        return
    text = flatten(prune(block, _ATTACHMENT_NOISE))
    if text.strip():
        sheet.notice(text)
    else:
        sheet.reasons.append(f"block:{kind}")


def _add_assistant(sheet: Sheet, record: Mapping[str, Any]) -> None:
    message = record.get("message")
    synthetic = isinstance(message, dict) and message.get("model") == SYNTHETIC
    add_text: AddText = _add_notice if synthetic or record.get("isApiErrorMessage") is True else _add_reply
    for block in _other_blocks(sheet, record, add_text):
        _add_assistant_block(sheet, block)


def _add_assistant_block(sheet: Sheet, block: Mapping[str, Any]) -> None:
    kind = text_of(block.get("type"))
    if kind == "thinking":
        thought = text_of(block.get("thinking"))
        if thought.strip():
            sheet.add("thinking", "agent", thought)
        else:
            sheet.reasons.append("empty thinking")
    elif kind == "redacted_thinking":
        sheet.reasons.append("redacted thinking")
    elif kind.endswith("tool_use"):
        tool = text_of(block.get("name"))
        given = block.get("input")
        words = flatten(given)
        sheet.add(
            "tool_call",
            "agent",
            f"{tool}\n{words}" if words else tool,
            tool,
            text_of(block.get("id")),
            actions=tools.call_actions(tool, given),
        )
    elif kind.endswith("tool_result"):
        _add_result(sheet, block, None)
    else:
        _add_unknown_block(sheet, block)


def _add_attachment(sheet: Sheet, record: Mapping[str, Any]) -> None:
    attachment = record.get("attachment")
    if not isinstance(attachment, dict):
        sheet.reasons.append("no text")
        return
    kind = text_of(attachment.get("type"))
    if kind == "queued_command":
        _add_queued_command(sheet, attachment, record)
    elif kind == "hook_success":
        outputs = [text_of(attachment.get(key)).strip() for key in ("content", "stdout", "stderr")]
        said = [output for output in dict.fromkeys(outputs) if output not in _NO_OUTPUT]
        if said:
            sheet.notice("\n".join([text_of(attachment.get("hookName")), *said]))
        else:
            sheet.reasons.append(f"attachment:{kind}")
    elif kind in _BARE_ATTACHMENTS:
        sheet.reasons.append(f"attachment:{kind}")
    else:
        words = flatten(prune(attachment, _ATTACHMENT_NOISE))
        if words.strip():
            sheet.notice(f"{kind}\n{words}")
        else:
            sheet.reasons.append(f"attachment:{kind}")


def _add_queued_command(sheet: Sheet, attachment: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """What was typed while the agent was busy, and reached it between two of its steps."""
    text = tools.content_text(attachment.get("prompt"))
    if not text.strip():
        sheet.reasons.append("no text")
    elif attachment.get("commandMode") in (None, "prompt") and may_be_human(attachment):
        add_user_text(sheet, text, record)
    elif attachment.get("commandMode") == "bash":
        add_tagged(sheet, "bash-input", f"<bash-input>{text}</bash-input>", record)
    else:
        sheet.notice(text, tools.notice_actions(text))


def _add_system(sheet: Sheet, record: Mapping[str, Any]) -> None:
    subtype = text_of(record.get("subtype"))
    content = text_of(record.get("content"))
    if subtype == BOUNDARY:
        sheet.add("boundary", "harness", boundary_text(record.get("compactMetadata"), content))
    elif subtype in _BARE_SYSTEM:
        sheet.reasons.append(f"system:{subtype}")
    elif subtype == "local_command":
        add_user_text(sheet, content, record)
    else:
        details = {key: value for key in _SYSTEM_WORDS if (value := record.get(key))}
        words = "\n".join(part for part in (content, flatten(prune(details, _ERROR_NOISE))) if part.strip())
        if words:
            sheet.notice(f"{subtype}\n{words}")
        else:
            sheet.reasons.append(f"system:{subtype}")


def boundary_text(metadata: Any, content: str) -> str:
    """``compacted (auto, 155000 tokens before)``, and what the record itself says."""
    facts: list[str] = []
    extra = ""
    if isinstance(metadata, dict):
        if trigger := text_of(metadata.get("trigger")):
            facts.append(trigger)
        before = metadata.get("preTokens")
        if isinstance(before, (int, float)) and before:
            facts.append(f"{before} tokens before")
        extra = text_of(metadata.get("userContext"))
    head = f"compacted ({', '.join(facts)})" if facts else "compacted"
    return "\n".join(part for part in (head, content, extra) if part)


def _add_queue_operation(sheet: Sheet, record: Mapping[str, Any]) -> None:
    """A prompt typed while the agent was busy. Where a later record repeats it, the reader retires this one."""
    text = text_of(record.get("content"))
    if record.get("operation") != "enqueue" or not text.strip():
        sheet.reasons.append(f"queue-operation:{text_of(record.get('operation'))}")
    elif _SLASH_COMMAND.match(text):
        sheet.notice(text)
    else:
        add_user_text(sheet, text, record)


def _add_title(sheet: Sheet, record: Mapping[str, Any]) -> None:
    sheet.notice(flatten({key: record.get(key) for key in ("summary", "customTitle", "title", "path", "frameUrl")}))


def _add_nothing(sheet: Sheet, record: Mapping[str, Any]) -> None:
    sheet.reasons.append(f"type:{record['type']}")


_TYPES: dict[str, Callable[[Sheet, Mapping[str, Any]], None]] = {
    **dict.fromkeys(_BARE_TYPES, _add_nothing),
    "user": _add_user,
    "assistant": _add_assistant,
    "attachment": _add_attachment,
    "system": _add_system,
    "queue-operation": _add_queue_operation,
    **dict.fromkeys(("summary", "custom-title", "frame-link"), _add_title),
}
