"""What a Cursor message says: who spoke in each of its pieces, and which pieces the harness put around the human's words.

The shapes are shared by transcripts (JSONL, text) and by the rows of Cursor's databases. Invariants: only what stands in
``<user_query>``, or in a user text without any wrapper, is the human's; no time, id or result is made up; nothing
depends on other records. A *finding* is an entry, or a reason (text) why something yields none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.model import Entry, Speaker
from obsmem.harnesses.cursor_tools import actions, kind_of
from obsmem.harnesses.written import exit_code_in, flatten, parse_time

Finding = Entry | str

SUMMARY_MARK = "[Previous conversation summary]:"
_REDACTED = "[REDACTED]"
_QUERY = late.pattern(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
# What Cursor, or a hook, puts beside the human's words. Only these: a human may paste any other tag.
_WRAPPER = late.pattern(
    r"<(timestamp|attached_files|user_info|project_layout|rules|always_applied_workspace_rules|user_rules"
    r"|agent_requestable_workspace_rules|cursor_commands|system_reminder|system-reminder|additional_data|git_status"
    r"|open_and_recently_viewed_files|current_file|agent_transcripts|agent_skills|available_skills|image_files"
    r"|manually_attached_skills|linter_errors|task_notification|mcp_instructions|mcp_file_system|external_links"
    r"|observational-memory)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
_OWN_BLOCK = late.pattern(r"<observational-memory .*?</observational-memory>", re.DOTALL)
_TIME_TAG = late.pattern(r"<timestamp>(.*?)</timestamp>", re.DOTALL)
_WORDS_TIME = late.pattern(
    r"([A-Z][a-z]{2})[a-z]*\.? (\d{1,2}),? (\d{4}),?(?: at)? (\d{1,2}):(\d\d)(?::(\d\d))?\s*([AP]M)?"
    r"\s*\(?(?:UTC|GMT)([+-]\d{1,2}(?::?\d\d)?)?\)?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_GOOD = ("completed", "success", "succeeded")
_BAD = ("error", "failed", "cancelled", "canceled", "rejected", "aborted")


def notice(text: str) -> Entry:
    """Words of the harness."""
    return Entry(-1, "", "notice", "harness", text)


def message(role: str, content: Any) -> Iterator[Finding]:
    """What one message with this role says; its content is a text or a list of items."""
    items = [content] if isinstance(content, (str, Mapping)) else content
    if not isinstance(items, list):
        yield "no message content"
        return
    texts = [text for item in items if (text := item if isinstance(item, str) else text_of(item))]
    has_query = any(_QUERY.search(text) for text in texts)
    found: list[Finding] = [finding for item in items for finding in _item(role, item, has_query)]
    at = next((time for text in texts if (time := time_in(text))), 0) if role == "user" else 0
    yield from (finding if isinstance(finding, str) else finding._replace(at=at) for finding in found)
    if not found:
        yield "empty message"


def text_of(item: Any) -> str:
    """The text of a content item; '' where it has none."""
    value = item.get("text") if isinstance(item, Mapping) else None
    return value if isinstance(value, str) else ""


def _item(role: str, item: Any, has_query: bool) -> Iterator[Finding]:
    if isinstance(item, str):
        item = {"type": "text", "text": item}
    if not isinstance(item, Mapping):
        yield "content item is not an object"
        return
    kind = str(item.get("type", "text")).replace("-", "_")
    if kind == "text":
        yield from spoken(role, text_of(item), has_query)
    elif kind in ("thinking", "reasoning"):
        yield from thought(str(item.get("thinking") or item.get("text") or ""))
    elif kind in ("redacted_thinking", "redacted_reasoning"):
        yield "redacted thinking"
    elif kind in ("tool_use", "tool_call"):
        arguments = item.get("input", item.get("args"))
        yield tool_call(_tool_name(item), arguments, _call_id(item))
    elif kind == "tool_result":
        yield from tool_result(_tool_name(item), _result_text(item), _call_id(item), _went_well(item))
    elif kind in ("image", "file"):
        yield "image"
    else:
        yield f"unknown content {kind}"
        yield from _unknown(role, item)


def _unknown(role: str, item: Mapping[str, Any]) -> Iterator[Finding]:
    """Keep the words of a content type that is not known; only an agent's are taken for said."""
    text = text_of(item) or flatten({key: value for key, value in item.items() if key != "type"})
    if text:
        yield Entry(-1, "", "assistant", "agent", text) if role == "assistant" else notice(text)


def spoken(role: str, text: str, has_query: bool = False) -> Iterator[Finding]:
    """What a text of this role says. ``has_query``: another text of the same message marks the human's words."""
    if not text.strip():
        yield "empty text"
    elif text.strip() == _REDACTED:
        yield "redacted text"
    elif role == "user":
        yield from _user_text(text, has_query or _QUERY.search(text) is not None)
    elif role == "assistant":
        yield Entry(-1, "", "assistant", "agent", text)
    elif role == "tool":
        yield from tool_result("", text, "", None)
    else:
        yield notice(text)


def _user_text(text: str, has_query: bool) -> Iterator[Finding]:
    if text.lstrip().startswith(SUMMARY_MARK):
        yield from compaction(text.strip())
        return
    position = 0
    for match in (_QUERY if has_query else _WRAPPER).finditer(text):
        yield from _around(text[position : match.start()], has_query)
        if not has_query:
            yield notice(match.group())
        elif match.group(1).strip():
            yield Entry(-1, "", "user", "human", match.group(1))
        position = match.end()
    yield from _around(text[position:], has_query)


def _around(text: str, has_query: bool) -> Iterator[Finding]:
    """Text outside of the matches: the harness's where the human's words are marked, else the human's."""
    stripped = text.strip()
    if stripped and stripped != _REDACTED:
        yield notice(stripped) if has_query else Entry(-1, "", "user", "human", stripped)


def compaction(text: str) -> Iterator[Finding]:
    """A summary that took the place of the conversation so far: the boundary, then the harness's words."""
    yield Entry(-1, "", "boundary", "harness", "The conversation so far was summarised.")
    yield Entry(-1, "", "summary", "harness", text)


def thought(text: str) -> Iterator[Finding]:
    """The agent's thinking; a reason where it is empty or withheld."""
    if not text.strip() or text.strip() == _REDACTED:
        yield "redacted thinking" if text.strip() else "empty thinking"
    else:
        yield Entry(-1, "", "thinking", "agent", text)


def tool_call(name: str, arguments: Any, call_id: str = "") -> Entry:
    """A tool call, its arguments written out with their strings verbatim."""
    text = "\n".join(part for part in (name, flatten(arguments)) if part)
    return Entry(-1, "", "tool_call", "agent", text, tool=name, call_id=call_id, actions=actions(name, arguments))


def tool_result(name: str, text: str, call_id: str, ok: bool | None, exit_code: int | None = None) -> Iterator[Finding]:
    """What a tool answered; our own block, which a hook may have added to it, is told apart."""
    answer = _OWN_BLOCK.sub("", text).strip("\n")
    for match in _OWN_BLOCK.finditer(text):
        yield notice(match.group())
    if not answer.strip():
        yield "empty tool result"
        return
    exit_code = exit_code_in(answer) if exit_code is None else exit_code
    if ok is not False and exit_code is not None:
        ok = exit_code == 0
    # What comes back from a question is the human's answer.
    speaker: Speaker = "human" if kind_of(name) == "ask" else "tool"
    yield Entry(-1, "", "tool_result", speaker, answer, tool=name, call_id=call_id, ok=ok, exit_code=exit_code)


def outcome(status: Any) -> bool | None:
    """True or False where a status says how a tool went, else None."""
    word = str(status).lower()
    return True if word in _GOOD else False if word in _BAD else None


def _went_well(item: Mapping[str, Any]) -> bool | None:
    error = item.get("is_error", item.get("isError"))
    return not error if isinstance(error, bool) else outcome(item.get("status"))


def _tool_name(item: Mapping[str, Any]) -> str:
    return str(item.get("name") or item.get("toolName") or "")


def _call_id(item: Mapping[str, Any]) -> str:
    return str(next((item[key] for key in ("tool_use_id", "toolCallId", "call_id", "id") if item.get(key)), ""))


def _result_text(item: Mapping[str, Any]) -> str:
    for key in ("content", "result", "output", "text", "experimental_content"):
        value = item.get(key)
        if isinstance(value, list):
            value = "\n".join(text_of(part) or flatten(part) for part in value)
        if value:
            return flatten(value)
    return ""


def time_in(text: str) -> int:
    """Milliseconds of the first ``<timestamp>`` in a text; 0 where it has none that names a zone.

    Cursor writes the user's own clock, ``Tuesday, Jan 6, 2026, 1:15 PM (UTC+1)``. Without a zone the moment is unknown.
    """
    tag = _TIME_TAG.search(text)
    if tag is None:
        return 0
    words = _WORDS_TIME.search(tag.group(1))
    if words is None or words.group(1) not in _MONTHS:
        return parse_time(tag.group(1).strip())
    month, day, year, hour, minute, second, half, zone = words.groups()
    hours = int(hour) % 12 + (12 if half == "PM" else 0) if half else int(hour)
    sign, shift = (zone or "+0")[0], (zone or "+0")[1:].replace(":", "")
    offset = f"{sign}{shift[:-2]:0>2}:{shift[-2:]}" if len(shift) > 2 else f"{sign}{shift:0>2}:00"
    number = _MONTHS.index(month) + 1
    return parse_time(f"{year}-{number:02}-{int(day):02}T{hours:02}:{minute}:{second or '00'}{offset}")
