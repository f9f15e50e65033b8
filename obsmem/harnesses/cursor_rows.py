"""What one row of a Cursor database says: a composer, one of its bubbles, or a piece of a command-line chat.

Owns the JSON line that a row becomes in the archive, ``{"table", "key", "raw"}`` (``hex`` for a value that is no UTF-8
text, ``raw`` null for an empty one), and its way back to entries. Invariant: a row is read by itself, and a row that cannot
be read costs only itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from obsmem.core.model import Entry
from obsmem.harnesses.base import Measure
from obsmem.harnesses.cursor_content import (
    Finding,
    compaction,
    message,
    notice,
    outcome,
    spoken,
    thought,
    tool_call,
    tool_result,
)
from obsmem.harnesses.written import flatten, load_objects, parse_time

_USER, _ASSISTANT = 1, 2
_EXIT_KEYS = ("exitCodeV2", "exitCode", "exit_code")


def row_line(table: str, key: str, value: bytes | None) -> bytes:
    """The line that keeps a row's value exactly."""
    row: dict[str, Any] = {"table": table, "key": key}
    try:
        row["raw"] = None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        row["hex"] = (value or b"").hex()
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def is_row(record: Mapping[str, Any]) -> bool:
    """True for a line that ``row_line`` made."""
    return len(record) == 3 and "table" in record and "key" in record and ("raw" in record or "hex" in record)


def row_value(row: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The JSON object that a row holds, and '' or the reason why there is none."""
    raw = row.get("raw", row.get("hex"))
    if not isinstance(raw, str) or not raw:
        return {}, "empty value"
    data = raw.encode("utf-8", "replace")
    if "hex" in row or row["table"] == "meta":  # the command line writes its chat's facts as hexadecimal JSON
        try:
            data = bytes.fromhex(raw)
        except ValueError:
            pass
    if not data.lstrip().startswith(b"{"):
        return {}, "binary value"
    objects, reasons = load_objects(data)
    return (objects[0], "") if objects else ({}, reasons[0] if reasons else "not an object")


def row_findings(row: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[Finding]:
    """Everything that a row with this value says."""
    key = str(row["key"])
    if row["table"] == "blobs":
        yield from _named(_blob(value), key)
    elif key.startswith("bubbleId:"):
        yield from _named(_bubble(value), key.rpartition(":")[2])
    else:
        yield "session metadata"
        yield from _composer(value)


def _named(findings: Iterator[Finding], source_id: str, at: int = 0) -> Iterator[Finding]:
    for finding in findings:
        if isinstance(finding, str):
            yield finding
        else:
            yield finding._replace(source_id=source_id, at=finding.at or at)


def _blob(value: Mapping[str, Any]) -> Iterator[Finding]:
    role = value.get("role")
    if isinstance(role, str):
        yield from message(role, value.get("content"))
    else:
        yield "blob without a role"


def _composer(value: Mapping[str, Any]) -> Iterator[Finding]:
    """A composer's own words: the summary of its beginning and, in old versions, its bubbles."""
    summary = value.get("latestConversationSummary") or value.get("conversationSummary")
    if text := _summary_text(summary):
        yield Entry(-1, "", "summary", "harness", text)
    bubbles = value.get("conversation")
    for bubble in bubbles if isinstance(bubbles, list) else ():
        if isinstance(bubble, Mapping):
            yield from _named(_bubble(bubble), str(bubble.get("bubbleId", "")))
        else:
            yield "bubble is not an object"


def _summary_text(summary: Any) -> str:
    while isinstance(summary, Mapping):
        summary = summary.get("summary")
    return summary if isinstance(summary, str) else ""


def _bubble(value: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _named(_bubble_parts(value), "", parse_time(value.get("createdAt")))


def _bubble_parts(value: Mapping[str, Any]) -> Iterator[Finding]:
    kind = value.get("type")
    text = value.get("text")
    tool = value.get("toolFormerData")
    found: list[Finding] = []
    if summary := _summary_text(value.get("conversationSummary")):
        found.extend(compaction(summary))
    if thinking := _thinking_text(value):
        found.extend(thought(thinking))
    if isinstance(text, str) and text.strip():
        role = {_USER: "user", _ASSISTANT: "assistant"}.get(kind if isinstance(kind, int) else 0, "")
        found.extend(spoken(role, text))
    if isinstance(tool, Mapping) and tool:
        found.extend(_tool(tool))
    if isinstance(error := value.get("errorDetails"), Mapping) and (words := flatten(error.get("message"))):
        found.append(notice(words))
    yield from found or ["empty bubble"]


def _thinking_text(value: Mapping[str, Any]) -> str:
    thinking = value.get("thinking")
    if isinstance(thinking, Mapping):
        thinking = thinking.get("text")
    if isinstance(thinking, str) and thinking:
        return thinking
    blocks = value.get("allThinkingBlocks")
    parts = (
        [block.get("text", "") for block in blocks if isinstance(block, Mapping)] if isinstance(blocks, list) else []
    )
    return "\n".join(part for part in parts if isinstance(part, str))


def _tool(tool: Mapping[str, Any]) -> Iterator[Finding]:
    name = str(tool.get("name") or "")
    call_id = str(tool.get("toolCallId") or "")
    arguments, written = _opened(tool.get("params")), _opened(tool.get("rawArgs"))
    if isinstance(written, Mapping) and isinstance(arguments, Mapping):
        # The model's own arguments, too, where Cursor made something else of them.
        text = flatten(arguments)
        arguments = {**{key: item for key, item in written.items() if flatten(item) not in text}, **arguments}
    yield tool_call(name, arguments or written, call_id)
    result = _opened(tool.get("result")) or _opened(tool.get("error"))
    decision = tool.get("userDecision")
    refused = f"The user's decision: {decision}" if decision == "rejected" else ""
    text = "\n".join(part for part in (refused, flatten(result)) if part)
    ok = False if refused or tool.get("error") else outcome(tool.get("status"))
    code = next((result[key] for key in _EXIT_KEYS if key in result), None) if isinstance(result, Mapping) else None
    yield from tool_result(name, text, call_id, ok, code if type(code) is int else None)


def _opened(value: Any) -> Any:
    """A value that Cursor wrote as JSON inside of a string, opened once; any other value as it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def row_measure(row: Mapping[str, Any], value: Mapping[str, Any]) -> Measure | None:
    """What a composer says of how full its window is, or a bubble of the request that it answers; None for nothing."""
    if row["table"] == "blobs":
        return None
    tokens = value.get("tokenCount")
    counts = tokens if isinstance(tokens, Mapping) else {}
    model = value.get("modelInfo") or value.get("modelConfig")
    used, window = _number(value.get("contextTokensUsed")), _number(value.get("contextTokenLimit"))
    name = str(model.get("modelName") or "") if isinstance(model, Mapping) else ""
    at = parse_time(value.get("createdAt"))
    if used or window:
        return Measure(used, window, name, at=at, kind="count")
    context, output = _number(counts.get("inputTokens")), _number(counts.get("outputTokens"))
    if not context:
        return None
    return Measure(context, 0, name, output, at=at, request=str(row["key"]), place="here")


def row_session(row: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of its session: fields of Session. Only composers and the command line's facts say anything."""
    if row["table"] == "blobs" or str(row["key"]).startswith("bubbleId:"):
        return {}
    model = value.get("modelConfig")
    name = model.get("modelName") if isinstance(model, Mapping) else value.get("lastUsedModel")
    fields = {
        "name": value.get("name"),
        "started_at": parse_time(value.get("createdAt")),
        "model": name,
        "window": _number(value.get("contextTokenLimit")),
    }
    return {key: item for key, item in fields.items() if item and isinstance(item, (str, int))}


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12 else 0
