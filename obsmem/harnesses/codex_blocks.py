"""What the bytes of one rollout record say, without context.

A rollout line is ``{timestamp, type, payload}``; the first releases wrote the payload bare. Invariant: the blocks
depend on the record's bytes alone, so that an entry's text can be had again from the archive; which of them count as
entries (copies, forks, rewritten files) is for the reader to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from obsmem.core.model import Action, Entry, EntryKind, Speaker
from obsmem.harnesses.base import OWN_BLOCK, flatten, load_objects, parse_time
from obsmem.harnesses.codex_actions import actions_of, run_actions, search_actions
from obsmem.harnesses.codex_files import document_piece
from obsmem.harnesses.codex_results import item_text, joined_items, result_of

# The harness writes these with role "user"; nobody typed them.
INJECTED = (
    "# AGENTS.md instructions",
    "<permissions instructions",
    "<app-context>",
    "<environment_context>",
    "<user_instructions>",
    "<recommended_plugins>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<hook_prompt",
    "<skill>",
    "<INSTRUCTIONS>",
    "<heartbeat>",
    "<image name=",
    "</image>",
    OWN_BLOCK,
)
SUMMARY_START = "Another language model started to solve this problem"
_WRAPPED = re.compile(r"<([a-z]+(?:_[a-z]+)+)(?:\s[^>]*)?>.*</\1>\s*\Z", re.S)
_BARE_ITEM = frozenset({"role", "call_id", "summary", "action", "content", "output"})
_LINE_ENDS = frozenset({"\n", "\r\n", ""})
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_decode = json.JSONDecoder().raw_decode

Payload = Mapping[str, Any]


def record_objects(data: bytes) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Every object in a record's bytes, and the reasons for what is none (see ``base.load_objects``)."""
    try:
        # The common case, a whole object and a newline, without the detours of json.loads.
        text = data.decode()
        value, end = _decode(text)
        if type(value) is dict and text[end:] in _LINE_ENDS and _SURROGATE_ESCAPE.search(data) is None:
            return [value], ()
    except (ValueError, RecursionError):
        pass
    objects, reasons = load_objects(data)
    if "not JSON" in reasons:
        piece = document_piece(data)
        if piece is not None:
            return piece
    return objects, reasons


def open_record(value: dict[str, Any]) -> tuple[str, Payload, Any]:
    """Take the envelope off: (record type, payload, timestamp). Bare generations get the type that they would have."""
    kind = value.get("type")
    payload = value.get("payload")
    if isinstance(payload, dict) and isinstance(kind, str):
        return kind, payload, value.get("timestamp")
    if isinstance(value.get("session"), dict):
        return "session_meta", value["session"], value["session"].get("timestamp")
    if "record_type" in value:
        return "record_type", value, None
    if isinstance(kind, str) and "payload" not in value and _BARE_ITEM & value.keys():
        return "response_item", value, value.get("timestamp")
    if kind is None and isinstance(value.get("id"), str) and "timestamp" in value:
        return "session_meta", value, value["timestamp"]
    return str(kind), {}, value.get("timestamp")


def type_of(payload: Payload) -> str:
    """The payload's own type; '' where it names none."""
    value = payload.get("type")
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=64)
def _minute(text: str) -> int:
    return parse_time(text + ":00Z")


def time_of(stamp: Any) -> int:
    """Milliseconds of a timestamp, as ``base.parse_time``; of the usual form each minute is read once."""
    if isinstance(stamp, str) and len(stamp) == 24 and stamp[23] == "Z":
        minute = _minute(stamp[:16])
        rest = stamp[17:19] + stamp[20:23]
        if minute and rest.isdigit():
            return minute + int(rest)
    return parse_time(stamp)


def blocks(data: bytes) -> list[Entry]:
    """Everything that a record's bytes say; ``Entry.block`` is the index in this list."""
    found: list[Entry] = []
    for value in record_objects(data)[0]:
        kind, payload, stamp = open_record(value)
        found.extend(entries_of(kind, payload, stamp, len(found)))
    return found


def entries_of(kind: str, payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """The blocks of one object, numbered from ``first``."""
    if kind == "response_item":
        build = ITEMS.get(type_of(payload))
    elif kind == "event_msg":
        build = EVENTS.get(type_of(payload))
    else:
        build = RECORDS.get(kind)
    if build is None:
        return [] if is_known_silent(kind, payload) else _unknown(payload, time_of(stamp), first)
    return build(payload, time_of(stamp), first)


# What carries no words of anyone, or only words that another record holds.
SILENT_EVENTS = frozenset(
    {
        "token_count",
        "task_started",
        "turn_started",
        "thread_rolled_back",
        "thread_settings_applied",
        "exec_command_begin",
        "exec_command_output_delta",
        "patch_apply_begin",
        "mcp_tool_call_begin",
        "web_search_begin",
        "agent_message_delta",
        "agent_reasoning_delta",
        "agent_reasoning_section_break",
        "item_started",
        "raw_response_item",
        "session_configured",
        "turn_diff",
        "plan_update",
        "thread_name_updated",
        "shutdown_complete",
        "view_image_tool_call",
    }
)
SILENT_ITEMS = frozenset(
    {"compaction", "context_compaction", "compaction_summary", "compaction_trigger", "ghost_snapshot"}
)
SILENT_RECORDS = frozenset(
    {
        "session_meta",
        "turn_context",
        "world_state",
        "record_type",
        "token_usage_record",
        "dynamic_tools_updated",
        "security_risk_score",
        "id_allocation",
        "inter_agent_communication_metadata",
    }
)


def is_known_silent(kind: str, payload: Payload) -> bool:
    """True for the record types that are known to have nothing to say."""
    if kind == "event_msg":
        return type_of(payload) in SILENT_EVENTS
    if kind == "response_item":
        return type_of(payload) in SILENT_ITEMS
    return kind in SILENT_RECORDS


def is_fragment(text: Any) -> bool:
    """True for a fragment that the harness is known to put in with role user."""
    return isinstance(text, str) and text.lstrip().startswith(INJECTED)


def is_injected(text: str) -> bool:
    """True for a known fragment, and for an item that one ``<such_tag>`` wraps whole."""
    return is_fragment(text) or (text.lstrip().startswith("<") and _WRAPPED.match(text.lstrip()) is not None)


def source_id(payload: Payload) -> str:
    """The record's own id: the item's, else its call's."""
    value = payload.get("id") or payload.get("call_id")
    return value if isinstance(value, str) else ""


def call_id(payload: Payload) -> str:
    """The id that ties a call and its output together; '' where there is none."""
    value = payload.get("call_id")
    return value if isinstance(value, str) else ""


def _entry(payload: Payload, kind: EntryKind, speaker: Speaker, text: str, at: int, block: int) -> Entry:
    return Entry(-1, source_id(payload), kind, speaker, text, "", "", None, at, True, None, block)


def _said(payload: Payload, kind: EntryKind, speaker: Speaker, text: Any, at: int, block: int) -> list[Entry]:
    if not isinstance(text, str) or not text.strip():
        return []
    return [_entry(payload, kind, speaker, text, at, block)]


def _user_text(payload: Payload, text: str, at: int, block: int) -> Entry:
    if text.lstrip().startswith(SUMMARY_START):
        return _entry(payload, "summary", "harness", text, at, block)
    if is_injected(text):
        return _entry(payload, "notice", "harness", text, at, block)
    return _entry(payload, "user", "human", text, at, block)


def _message(payload: Payload, at: int, first: int) -> list[Entry]:
    """One block for each content item that has words."""
    content = payload.get("content")
    items = content if isinstance(content, list) else [content]
    role = payload.get("role")
    found: list[Entry] = []
    for item in items:
        text = "" if item is None else item_text(item)
        if not text.strip():
            continue
        block = first + len(found)
        if role == "user":
            found.append(_user_text(payload, text, at, block))
        elif role == "assistant":
            found.append(_entry(payload, "assistant", "agent", text, at, block))
        else:
            found.append(_entry(payload, "notice", "harness", text, at, block))
    return found


def _reasoning(payload: Payload, at: int, first: int) -> list[Entry]:
    found: list[Entry] = []
    for key in ("summary", "content"):
        part = payload.get(key)
        for item in part if isinstance(part, list) else [part]:
            text = "" if item is None else item_text(item)
            if text.strip():
                found.append(_entry(payload, "thinking", "agent", text, at, first + len(found)))
    return found


def _call(payload: Payload, tool: str, body: str, actions: tuple[Action, ...], at: int, first: int) -> list[Entry]:
    text = f"{tool}\n{body}" if body else tool
    ident = call_id(payload)
    return [
        Entry(-1, source_id(payload), "tool_call", "agent", text, tool, ident, None, at, True, None, first, actions)
    ]


def tool_name(payload: Payload, default: str = "tool") -> str:
    """The tool of a call, with its namespace where it has one."""
    name = payload.get("name")
    space = payload.get("namespace")
    name = name if isinstance(name, str) and name else default
    return f"{space}.{name}" if isinstance(space, str) and space else name


def _named_lines(arguments: Any) -> str:
    """``base.flatten`` for the arguments of a call, quick for the flat objects that nearly all of them are."""
    if type(arguments) is not dict:
        return flatten(arguments)
    lines = [
        f"{key}: {value}" if type(value) is str or type(value) is int else flatten(value, key)
        for key, value in arguments.items()
    ]
    return "\n".join([line for line in lines if line])


def _function_call(payload: Payload, at: int, first: int) -> list[Entry]:
    tool = tool_name(payload)
    arguments = payload.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            pass  # shown as it is
    return _call(payload, tool, _named_lines(arguments), actions_of(tool, arguments), at, first)


def _custom_call(payload: Payload, at: int, first: int) -> list[Entry]:
    tool = tool_name(payload)
    return _call(payload, tool, flatten(payload.get("input")), actions_of(tool, payload.get("input")), at, first)


def _local_shell_call(payload: Payload, at: int, first: int) -> list[Entry]:
    action = payload.get("action")
    command = action.get("command") if isinstance(action, dict) else None
    return _call(payload, "local_shell", flatten(action), run_actions(command), at, first)


def _web_search_call(payload: Payload, at: int, first: int) -> list[Entry]:
    action = payload.get("action")
    return _call(payload, "web_search", flatten(action), search_actions(action), at, first)


def _other_call(payload: Payload, at: int, first: int) -> list[Entry]:
    tool = str(payload.get("type")).removesuffix("_call")
    hidden = ("type", "id", "call_id", "status", "result", "internal_chat_message_metadata_passthrough")
    body = flatten({key: value for key, value in payload.items() if key not in hidden})
    return _call(payload, tool, body, (Action("other"),), at, first)


def _result(payload: Payload, text: str, ok: bool | None, code: int | None, at: int, first: int) -> list[Entry]:
    ident = call_id(payload)
    return [
        Entry(-1, source_id(payload), "tool_result", "tool", text, "", ident, ok, at, True, None, first, exit_code=code)
    ]


def _output(payload: Payload, at: int, first: int) -> list[Entry]:
    text, ok, code = result_of(payload.get("output"))
    return _result(payload, text, ok, code, at, first)


def _tool_search_output(payload: Payload, at: int, first: int) -> list[Entry]:
    tools = payload.get("tools")
    names = [tool_name(tool) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return _result(payload, "tools found: " + ", ".join(names), None, None, at, first)


def _ended_event(payload: Payload, at: int, first: int) -> list[Entry]:
    """``…_end`` events: what a command, a patch, a search or an MCP tool gave back."""
    output = payload.get("aggregated_output") or payload.get("formatted_output")
    if not output:
        output = "".join(part for key in ("stdout", "stderr") if isinstance(part := payload.get(key), str))
    parts = [output if isinstance(output, str) else ""]
    parts += [flatten(payload.get(key)) for key in ("changes", "result", "query")]
    code = payload.get("exit_code")
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    ok = payload.get("success")
    if not isinstance(ok, bool):
        ok = None if code is None else code == 0
    return _result(payload, "\n".join(part.rstrip("\n") for part in parts if part), ok, code, at, first)


def _user_message(payload: Payload, at: int, first: int) -> list[Entry]:
    text = payload.get("message")
    # Automations write such an event for their own prompts; any other text is taken for typed.
    plain = payload.get("kind") in (None, "plain") and not is_fragment(text)
    found = _said(payload, "user" if plain else "notice", "human" if plain else "harness", text, at, first)
    images = payload.get("local_images")
    if isinstance(images, list) and images:
        names = "\n".join(name for name in images if isinstance(name, str))
        found += _said(payload, "notice", "harness", f"attached images:\n{names}", at, first + len(found))
    return found


def _says(key: str, kind: EntryKind, speaker: Speaker) -> Callable[[Payload, int, int], list[Entry]]:
    def build(payload: Payload, at: int, first: int) -> list[Entry]:
        return _said(payload, kind, speaker, payload.get(key), at, first)

    return build


def _item_completed(payload: Payload, at: int, first: int) -> list[Entry]:
    """The newest mirror of a message: ``item.type`` names the speaker. Tool items repeat calls and outputs."""
    item = payload.get("item")
    if not isinstance(item, dict):
        return []
    content = item.get("content")
    text = joined_items(content) if isinstance(content, list) else item.get("text") or content
    if item.get("type") == "UserMessage":
        return _said(item, "user", "human", text, at, first)
    if item.get("type") in ("AgentMessage", "Plan"):
        return _said(item, "assistant", "agent", text, at, first)
    if item.get("type") == "Reasoning":
        return _reasoning({"id": item.get("id"), "summary": item.get("summary_text")}, at, first)
    return []


def _notice(payload: Payload, at: int, first: int) -> list[Entry]:
    """A notice of the harness, as names and words."""
    name = payload.get("type")
    body = flatten({key: value for key, value in payload.items() if key != "type"})
    return _said(payload, "notice", "harness", f"{name}\n{body}" if body else str(name), at, first)


def _unknown(payload: Payload, at: int, first: int) -> list[Entry]:
    """A type that is not known yet: kept as a notice, so that no words are lost; the reader counts it too."""
    return _notice(payload, at, first) if len(payload) > 1 else []


def _agent_letter(payload: Payload, at: int, first: int) -> list[Entry]:
    return _said(payload, "notice", "subagent", flatten(payload), at, first)


def _context_compacted(payload: Payload, at: int, first: int) -> list[Entry]:
    return [_entry(payload, "boundary", "harness", "The conversation was compacted here.", at, first)]


def _compacted(payload: Payload, at: int, first: int) -> list[Entry]:
    """The boundary; the summary where it is readable; then the messages that the new history begins with."""
    window = payload.get("window_number")
    text = "The conversation was compacted here" + (f" (window {window})." if isinstance(window, int) else ".")
    found = [_entry(payload, "boundary", "harness", text, at, first)]
    found += _said(payload, "summary", "harness", payload.get("message"), at, first + 1)
    history = payload.get("replacement_history")
    for item in history if isinstance(history, list) else []:
        if isinstance(item, dict) and item.get("type") == "message":
            found += _message(item, at, first + len(found))
    return found


Builder = Callable[[Payload, int, int], list[Entry]]

ITEMS: dict[str, Builder] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "local_shell_call": _local_shell_call,
    "web_search_call": _web_search_call,
    "tool_search_call": _other_call,
    "image_generation_call": _other_call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "local_shell_call_output": _output,
    "mcp_tool_call_output": _output,
    "tool_search_output": _tool_search_output,
}
EVENTS: dict[str, Builder] = {
    "user_message": _user_message,
    "agent_message": _says("message", "assistant", "agent"),
    "agent_reasoning": _says("text", "thinking", "agent"),
    "agent_reasoning_raw_content": _says("text", "thinking", "agent"),
    "task_complete": _says("last_agent_message", "assistant", "agent"),
    "turn_complete": _says("last_agent_message", "assistant", "agent"),
    "item_completed": _item_completed,
    "context_compacted": _context_compacted,
    "exec_command_end": _ended_event,
    "patch_apply_end": _ended_event,
    "mcp_tool_call_end": _ended_event,
    "web_search_end": _ended_event,
    "turn_aborted": _notice,
    "thread_goal_updated": _notice,
    "error": _notice,
    "stream_error": _notice,
    "warning": _notice,
    "entered_review_mode": _notice,
    "exited_review_mode": _notice,
}
RECORDS: dict[str, Builder] = {"compacted": _compacted, "inter_agent_communication": _agent_letter}
