"""A transcript of Claude Code as events, read by rules of the bench's own.

Invariant: nothing of the product's is imported; side conversations and the harness's own words are left out.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

LEAST_EVENTS, LEAST_CALLS = 40, 8  # before a compaction, and tool calls after it, for it to count

_TAGGED = re.compile(r"\s*<(?:command-|local-command|system-reminder|bash-|task-notification|user-memory)")
_HARNESS = ("Caveat:", "[Request interrupted", "This session is being continued")
_REMINDER = re.compile(r"<(system-reminder|ide_[a-z_]+)>.*?</\1>", re.DOTALL)


class Event(NamedTuple):
    """``kind``: prompt | said | call | result. A call has its tool and input; a result the id of its call and whether it failed."""

    kind: str
    text: str
    line: int
    tool: str = ""
    call: str = ""
    failed: bool = False
    given: dict[str, Any] = {}  # noqa: RUF012


class Case(NamedTuple):
    """One compaction: the session's lines before it (``before``), its events on both sides, and the summary that the harness wrote.
    ``later_summaries``: the lines before each later compaction of the session, and its summary."""

    session: str
    number: int
    repository: str
    before: list[bytes]
    known: list[Event]
    later: list[Event]
    after: list[bytes]
    native: str
    later_summaries: list[tuple[list[bytes], str]]


def load_cases(paths: list[Path], calls: int = LEAST_CALLS) -> list[Case]:
    """Every compaction of every file that is large enough on both sides (``calls`` tool calls after it)."""
    files = [
        file
        for path in paths
        for file in (sorted(path.glob("*.jsonl*")) if path.is_dir() else [path])
        if file.name.endswith((".jsonl", ".jsonl.gz"))
    ]
    cases = [case for file in files for case in _cases(file)]
    return [
        case
        for case in cases
        if len(case.known) >= LEAST_EVENTS and sum(event.kind == "call" for event in case.later) >= calls
    ]


def _cases(file: Path) -> Iterator[Case]:
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    lines = data.split(b"\n")
    records = [_parse(line) for line in lines]
    bounds = [
        number
        for number, record in enumerate(records)
        if record.get("type") == "system" and record.get("subtype") == "compact_boundary"
    ]
    natives = [
        next((_text(record) for record in records[bound : bound + 6] if record.get("isCompactSummary") is True), "")
        for bound in bounds
    ]
    repository = next((str(record["cwd"]) for record in records if record.get("cwd")), "")
    begin = 0
    for count, (bound, native) in enumerate(zip(bounds, natives, strict=True)):
        end = bounds[count + 1] if count + 1 < len(bounds) else len(lines)
        known = list(events(records[begin:bound], begin))
        later = list(events(records[bound + 1 : end], bound + 1))
        following = [(lines[:at], text) for at, text in list(zip(bounds, natives, strict=True))[count + 1 :] if text]
        if native:
            name = file.name.removesuffix(".gz").removesuffix(".jsonl")
            yield Case(name, count, repository, lines[:bound], known, later, lines[bound:end], native, following)
        begin = bound + 1  # what an earlier compaction already left out is no fair question to the native summary


def _parse(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def events_of(lines: list[bytes]) -> list[Event]:
    """The events of these lines of a transcript."""
    return list(events([_parse(line) for line in lines]))


def events(records: list[dict[str, Any]], first: int = 0) -> Iterator[Event]:
    """The events of records on the main conversation; ``first`` is the number of the first line."""
    for number, record in enumerate(records, first):
        if record.get("isSidechain") is True or record.get("isCompactSummary") is True:
            continue
        if record.get("type") == "assistant":
            yield from _of_agent(record, number)
        elif record.get("type") == "user":
            yield from _of_user(record, number)


def _of_agent(record: dict[str, Any], number: int) -> Iterator[Event]:
    message = record.get("message")
    if not isinstance(message, dict) or message.get("model") == "<synthetic>":
        return
    for block in _blocks(message.get("content")):
        if block.get("type") == "text" and str(block.get("text", "")).strip():
            yield Event("said", str(block["text"]), number)
        elif block.get("type") == "tool_use":
            given = block.get("input")
            given = given if isinstance(given, dict) else {}
            text = "\n".join(str(value) for value in given.values() if isinstance(value, (str, int)))
            yield Event("call", text, number, str(block.get("name", "")), str(block.get("id", "")), given=given)


def _of_user(record: dict[str, Any], number: int) -> Iterator[Event]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    words = []
    for block in _blocks(content):
        if block.get("type") == "tool_result":
            text = _flat(block.get("content"))
            yield Event(
                "result", text, number, call=str(block.get("tool_use_id", "")), failed=block.get("is_error") is True
            )
        elif block.get("type") == "text":
            words.append(str(block.get("text", "")))
    text = _REMINDER.sub("", "\n".join(words)).strip()
    if text and record.get("isMeta") is not True and not _TAGGED.match(text) and not text.startswith(_HARNESS):
        yield Event("prompt", text, number)


def strings(value: Any, *, keys: bool = False) -> list[str]:
    """The strings and numbers in a value, however deep; with ``keys`` the names of its fields, too."""
    if isinstance(value, dict):
        return [*(value if keys else ()), *(one for part in value.values() for one in strings(part, keys=keys))]
    if isinstance(value, list):
        return [one for part in value for one in strings(part, keys=keys)]
    return [] if value is None else [str(value)]


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in _blocks(content))


def _text(record: dict[str, Any]) -> str:
    message = record.get("message")
    return _flat(message.get("content")) if isinstance(message, dict) else ""
