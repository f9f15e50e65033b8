"""What the bytes of one rollout record say, without context.

Invariant: the blocks depend on the record's bytes alone, so that an entry's text can be had again from the archive;
which of them count as entries (copies, forks, rewritten files) is for the reader to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from obsmem.core import late
from obsmem.core.model import Action, Entry, EntryKind, Speaker
from obsmem.harnesses.codex_records import Payload, open_record, record_objects, sound, source_id, type_of
from obsmem.harnesses.codex_results import item_text, joined_items
from obsmem.harnesses.codex_tools import (
    custom_call,
    ended_event,
    function_call,
    local_shell_call,
    other_call,
    output,
    tool_search_output,
    web_search_call,
)
from obsmem.harnesses.own_block import apart
from obsmem.harnesses.written import OWN_BLOCK, flatten, time_of

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
PLAN_ACCEPTED = "Implement the plan."  # what 0.171.0 sends for a human who accepts (a string of the program)
_PLAN = late.pattern(r"<proposed_plan>(.*?)</proposed_plan>", re.S)
_SKILL = late.pattern(r"\s*<skill>\s*<name>([^<]+)</name>")
SUMMARY_START = "Another language model started to solve this problem"
_WRAPPED = late.pattern(r"<([a-z]+(?:_[a-z]+)+)(?:\s[^>]*)?>.*</\1>\s*\Z", re.S)


def blocks(data: bytes) -> list[Entry]:
    """Everything that a record's bytes say; ``Entry.block`` is the index in this list."""
    found: list[Entry] = []
    for value in record_objects(data)[0]:
        kind, name, payload, stamp = open_record(value)
        found.extend(entries_of(kind, name, payload, stamp, len(found)))
    return found


def builder_of(kind: str, name: str) -> Builder | None:
    """What builds the blocks of a record type (``name`` is the payload's type); None for a type that is not known."""
    if kind == "response_item":
        return ITEMS.get(name)
    if kind == "event_msg":
        return EVENTS.get(name)
    return RECORDS.get(kind)


def entries_of(kind: str, name: str, payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """The blocks of one object, numbered from ``first``."""
    build = builder_of(kind, name) or _unknown
    found = build(payload, stamp, first)
    for entry in found:
        if not entry.text.isascii():
            return [_mended(each) for each in found]
    return found


def _mended(entry: Entry) -> Entry:
    """The entry without unpaired surrogates, which an escape in JSON, or in JSON in a string, may bring."""
    text = sound(entry.text)
    if text is entry.text:
        return entry
    actions = [
        action._replace(
            path=sound(action.path),
            command=sound(action.command),
            new=sound(action.new),
            old=sound(action.old),
            items=tuple((key, status, sound(text)) for key, status, text in action.items),
        )
        for action in entry.actions
    ]
    return entry._replace(text=text, actions=tuple(actions))


def is_fragment(text: Any) -> bool:
    """True for a fragment that the harness is known to put in with role user."""
    return isinstance(text, str) and text.lstrip().startswith(INJECTED)


def is_injected(text: str) -> bool:
    """True for a known fragment, and for an item that one ``<such_tag>`` wraps whole."""
    return is_fragment(text) or (text.lstrip().startswith("<") and _WRAPPED.match(text.lstrip()) is not None)


def _entry(payload: Payload, kind: EntryKind, speaker: Speaker, text: str, stamp: Any, block: int) -> Entry:
    return Entry(-1, source_id(payload), kind, speaker, text, "", "", None, time_of(stamp), True, None, block)


def _said(payload: Payload, kind: EntryKind, speaker: Speaker, text: Any, stamp: Any, block: int) -> list[Entry]:
    if not isinstance(text, str) or not text or text.isspace():
        return []
    return [_entry(payload, kind, speaker, text, stamp, block)]


def _user_text(payload: Payload, text: str, stamp: Any, block: int) -> Entry:
    if text.lstrip().startswith(SUMMARY_START):
        return _entry(payload, "summary", "harness", text, stamp, block)
    if is_injected(text):
        notice = _entry(payload, "notice", "harness", text, stamp, block)
        skill = _SKILL.match(text)
        return notice._replace(actions=(Action("skill", command=skill.group(1).strip()),)) if skill else notice
    return _accepting(_entry(payload, "user", "human", text, stamp, block))


def _accepting(said: Entry) -> Entry:
    """The human's words; those that the program writes for them, when they accept the plan before, say so."""
    return said._replace(actions=(Action("plan"),)) if said.text.strip() == PLAN_ACCEPTED else said


def _proposing(said: Entry) -> Entry:
    """The agent's words; those that propose a plan carry it."""
    plan = _PLAN.search(said.text) if "<proposed_plan>" in said.text else None
    return said._replace(actions=(Action("plan", new=plan.group(1).strip()),)) if plan else said


def _message(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """One block for each content item that has words."""
    content = payload.get("content")
    items = content if isinstance(content, list) else [content]
    role = payload.get("role")
    found: list[Entry] = []
    for item in items:
        text = "" if item is None else item_text(item)
        if not text or text.isspace():
            continue
        block = first + len(found)
        if role == "user":
            found += [
                _user_text(payload, words, stamp, block + number) for number, (_, words) in enumerate(apart(text))
            ]
        elif role == "assistant":
            found.append(_proposing(_entry(payload, "assistant", "agent", text, stamp, block)))
        else:
            found.append(_entry(payload, "notice", "harness", text, stamp, block))
    return found


def _reasoning(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    found: list[Entry] = []
    for key in ("summary", "content"):
        part = payload.get(key)
        for item in part if isinstance(part, list) else [part]:
            text = "" if item is None else item_text(item)
            if text.strip():
                found.append(_entry(payload, "thinking", "agent", text, stamp, first + len(found)))
    return found


def _user_message(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    text = payload.get("message")
    # Automations write such an event for their own prompts; any other text is taken for typed.
    plain = payload.get("kind") in (None, "plain")
    found: list[Entry] = []
    for _, words in apart(text) if isinstance(text, str) else ():
        human = plain and not is_fragment(words)
        kind, speaker = ("user", "human") if human else ("notice", "harness")
        found += _said(payload, kind, speaker, words, stamp, first + len(found))  # type: ignore[arg-type]
    found = [_accepting(said) if said.kind == "user" else said for said in found]
    images = payload.get("local_images")
    if isinstance(images, list) and images:
        names = "\n".join(name for name in images if isinstance(name, str))
        found += _said(payload, "notice", "harness", f"attached images:\n{names}", stamp, first + len(found))
    return found


def _agent_message(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    return [_proposing(said) for said in _said(payload, "assistant", "agent", payload.get("message"), stamp, first)]


def _says(key: str, kind: EntryKind, speaker: Speaker) -> Callable[[Payload, Any, int], list[Entry]]:
    def build(payload: Payload, stamp: Any, first: int) -> list[Entry]:
        return _said(payload, kind, speaker, payload.get(key), stamp, first)

    return build


def _item_completed(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """The newest mirror of a message: ``item.type`` names the speaker. Tool items repeat calls and outputs."""
    item = payload.get("item")
    if not isinstance(item, dict):
        return []
    content = item.get("content")
    text = joined_items(content) if isinstance(content, list) else item.get("text") or content
    if item.get("type") == "UserMessage":
        return _said(item, "user", "human", text, stamp, first)
    if item.get("type") in ("AgentMessage", "Plan"):
        return _said(item, "assistant", "agent", text, stamp, first)
    if item.get("type") == "Reasoning":
        return _reasoning({"id": item.get("id"), "summary": item.get("summary_text")}, stamp, first)
    return []


def _notice(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """A notice of the harness, as names and words."""
    body = flatten({key: value for key, value in payload.items() if key != "type"})
    return _said(payload, "notice", "harness", f"{type_of(payload)}\n{body}".strip(), stamp, first)


def _unknown(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """A type that is not known yet: kept as a notice, so that no words are lost; the reader counts it too."""
    return _notice(payload, stamp, first) if payload.keys() - {"type"} else []


def _agent_letter(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    return _said(payload, "notice", "subagent", flatten(payload), stamp, first)


def _context_compacted(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    return [_entry(payload, "boundary", "harness", "The conversation was compacted here.", stamp, first)]


def _compacted(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """The boundary; the summary where it is readable; then the messages that the new history begins with."""
    window = payload.get("window_number")
    text = "The conversation was compacted here" + (f" (window {window})." if isinstance(window, int) else ".")
    found = [_entry(payload, "boundary", "harness", text, stamp, first)]
    found += _said(payload, "summary", "harness", payload.get("message"), stamp, first + 1)
    history = payload.get("replacement_history")
    for item in history if isinstance(history, list) else []:
        if isinstance(item, dict) and item.get("type") == "message":
            found += _message(item, stamp, first + len(found))
    return found


Builder = Callable[[Payload, Any, int], list[Entry]]
_NOTHING: list[Entry] = []


def _silent(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """Says nothing, or only what another record holds."""
    return _NOTHING


ITEMS: dict[str, Builder] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": function_call,
    "custom_tool_call": custom_call,
    "local_shell_call": local_shell_call,
    "web_search_call": web_search_call,
    "tool_search_call": other_call,
    "image_generation_call": other_call,
    "function_call_output": output,
    "custom_tool_call_output": output,
    "local_shell_call_output": output,
    "mcp_tool_call_output": output,
    "tool_search_output": tool_search_output,
}
EVENTS: dict[str, Builder] = {
    "user_message": _user_message,
    "agent_message": _agent_message,
    "agent_reasoning": _says("text", "thinking", "agent"),
    "agent_reasoning_raw_content": _says("text", "thinking", "agent"),
    "task_complete": _says("last_agent_message", "assistant", "agent"),
    "turn_complete": _says("last_agent_message", "assistant", "agent"),
    "item_completed": _item_completed,
    "context_compacted": _context_compacted,
    "exec_command_end": ended_event,
    "patch_apply_end": ended_event,
    "mcp_tool_call_end": ended_event,
    "web_search_end": ended_event,
}
RECORDS: dict[str, Builder] = {"compacted": _compacted, "inter_agent_communication": _agent_letter}

NOTICES = "turn_aborted thread_goal_updated error stream_error warning entered_review_mode exited_review_mode"
SILENT_ITEMS = "compaction context_compaction compaction_summary compaction_trigger ghost_snapshot"
SILENT_EVENTS = """
    token_count task_started turn_started thread_rolled_back thread_settings_applied thread_name_updated
    exec_command_begin exec_command_output_delta patch_apply_begin mcp_tool_call_begin web_search_begin item_started
    agent_message_delta agent_reasoning_delta agent_reasoning_section_break raw_response_item session_configured
    turn_diff plan_update shutdown_complete view_image_tool_call
"""
SILENT_RECORDS = """
    session_meta turn_context world_state record_type token_usage_record dynamic_tools_updated security_risk_score
    id_allocation inter_agent_communication_metadata
"""
EVENTS.update(dict.fromkeys(NOTICES.split(), _notice))
ITEMS.update(dict.fromkeys(SILENT_ITEMS.split(), _silent))
EVENTS.update(dict.fromkeys(SILENT_EVENTS.split(), _silent))
RECORDS.update(dict.fromkeys(SILENT_RECORDS.split(), _silent))
