"""What the bytes of one record say: a piece of an export, a row, or an event.

Owns the recognition of the record's form. Invariant: it depends on the bytes alone, so an entry's text can be had again
from the archive; bytes that nothing can be made of give a reason, never an exception.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.model import Entry
from obsmem.core.tuples import NamedTuple
from obsmem.harnesses.forks import KEY, Repeats, read_mark
from obsmem.harnesses.opencode_document import is_event
from obsmem.harnesses.opencode_parts import (
    Finding,
    Voice,
    has_voice,
    in_progress,
    message_findings,
    part_findings,
    voice_of,
)
from obsmem.harnesses.opencode_rows import Row, from_object, parsed
from obsmem.harnesses.written import flatten, load_objects, parse_time, replace_surrogates

_FRAME = b" \t\r\n,"
_INFO = late.pattern(r'"info"\s*:\s*')
_decoder = json.JSONDecoder(strict=False)
# Events that carry words of the harness, or the human's answer to it, which stand nowhere else.
_TOLD = ("permission.asked", "permission.updated", "permission.replied", "question.asked", "question.replied")


class Record(NamedTuple):
    """``session`` and ``message`` are the infos that the record tells; ``part_ids`` the parts of its message, in order;
    ``belongs`` the message that its entries belong to. ``unvoiced``: its entry is what the human or the agent said, and
    only the message's own record tells which. ``repeats`` is there where our own fork wrote the record."""

    entries: tuple[Entry, ...] = ()
    reasons: tuple[str, ...] = ()
    session: Mapping[str, Any] | None = None
    message: Mapping[str, Any] | None = None
    part_ids: tuple[str, ...] = ()
    belongs: str = ""
    unvoiced: bool = False
    repeats: Repeats | None = None


def interpret(data: bytes) -> Record:
    """What a record says. Never raises."""
    try:
        record, findings = _interpret(data)
        found = list(findings)
    except RecursionError:
        record, found = Record(), ["nested too deeply"]
    entries = [finding for finding in found if isinstance(finding, Entry)]
    reasons = [finding for finding in found if isinstance(finding, str)]
    return record._replace(
        entries=tuple(entry._replace(block=index) for index, entry in enumerate(entries)),
        reasons=tuple(dict.fromkeys(reasons)) or (() if entries else ("no words",)),
    )


def _interpret(data: bytes) -> tuple[Record, Iterator[Finding]]:
    stripped = data.strip(_FRAME)
    if stripped.startswith(b"]") or stripped.endswith(b"["):
        return _frame(stripped)
    objects, reasons = load_objects(stripped)
    if len(objects) != 1:
        return Record(), iter([*reasons, *_loose(objects)])
    value = objects[0]
    row = from_object(value)
    if row is not None:
        return _row(row)
    if isinstance(value.get("info"), dict) and "parts" in value:
        return _message(value)
    if is_event(value):
        return _event(value)
    if isinstance(value.get("info"), dict):
        return Record(session=value["info"]), iter(["session info"])
    return Record(), iter([*reasons, *_loose(objects)])


def _frame(stripped: bytes) -> tuple[Record, Iterator[Finding]]:
    """The beginning of an export, up to its messages, or what follows them. Either may hold the session's info."""
    text = stripped.decode("utf-8", "replace")
    match = _INFO.search(text)
    info: Any = None
    if match is not None:
        try:
            info = replace_surrogates(_decoder.raw_decode(text, match.end())[0])
        except (ValueError, RecursionError):
            info = None
    if isinstance(info, dict):
        return Record(session=info), iter(["session info"])
    return Record(), iter(["frame of the document"])


def _message(value: Mapping[str, Any]) -> tuple[Record, Iterator[Finding]]:
    info, parts = value["info"], value["parts"]
    parts = parts if isinstance(parts, list) else []
    ids = tuple(str(part.get("id") or "") for part in parts if isinstance(part, dict))
    record = Record(message=info, part_ids=ids, belongs=str(info.get("id") or ""), repeats=_repeats(info, parts))
    return record, _message_words(info, parts)


def _message_words(info: Mapping[str, Any], parts: list[Any]) -> Iterator[Finding]:
    voice = voice_of(info)
    for part in parts:
        yield from part_findings(part, voice)
    yield from message_findings(info)
    if not parts:
        yield "no parts"


def _row(row: Row) -> tuple[Record, Iterator[Finding]]:
    value = {**parsed(row.raw), "id": row.key}
    if len(value) == 1 and row.table != "session":
        return Record(belongs=row.message_id), iter([f"{row.table} is no JSON object"])
    if row.table == "session":
        return Record(session=value), iter(["session info"])
    if row.table == "message":
        return Record(message=value, belongs=row.key), _message_alone(value)
    voice = Voice(row.role, row.summary, row.message_time or row.time_created)
    return Record(belongs=row.message_id, repeats=_mark(value)), part_findings(value, voice)


def _mark(part: Any) -> Repeats | None:
    """What a part of our own fork repeats."""
    metadata = part.get("metadata") if isinstance(part, Mapping) else None
    return read_mark(metadata[KEY]) if isinstance(metadata, Mapping) and KEY in metadata else None


def _repeats(info: Mapping[str, Any], parts: list[Any]) -> Repeats | None:
    """What a message of our own fork repeats: the marks of its parts, one for each of their entries."""
    marks = [_mark(part) for part in parts]
    first = next((mark for mark in marks if mark), None)
    if first is None:
        return None
    voice, entries = voice_of(info), []
    for part, mark in zip(parts, marks, strict=True):
        count = sum(isinstance(finding, Entry) for finding in part_findings(part, voice))
        entries += [*(mark.entries if mark else ()), *[""] * count][:count]
    return first._replace(entries=tuple(entries))


def _message_alone(info: Mapping[str, Any]) -> Iterator[Finding]:
    yield "message info"
    yield from message_findings(info)


def _event(value: Mapping[str, Any]) -> tuple[Record, Iterator[Finding]]:
    """One event. A part's role is not told here: the reader knows it from the message's own event."""
    event = value.get("event", value)
    kind = event["type"]
    properties = event.get("properties", event)
    at = parse_time(value.get("timestamp"))
    info, part = properties.get("info"), properties.get("part")
    if isinstance(info, dict) and kind.startswith("session."):
        return Record(session=info), iter(["session info"])
    if isinstance(info, dict) and kind.startswith("message."):
        return Record(message=info, belongs=str(info.get("id") or "")), _message_alone(info)
    if isinstance(part, dict):
        record = Record(belongs=str(part.get("messageID") or ""))
        if in_progress(part):
            return record, iter(["part in progress"])
        if "properties" not in event:
            # ``run --format json`` prints the agent's parts only, and without wrapping them.
            return record, part_findings(part, Voice("assistant", at=at))
        return record._replace(unvoiced=has_voice(part)), part_findings(part, Voice("", at=at))
    told = properties if kind in _TOLD else properties.get("error")
    if isinstance(told, dict) and (text := flatten(told)):
        return Record(), iter([Entry(-1, str(told.get("id") or ""), "notice", "harness", text, at=at)])
    return Record(), iter([f"event {kind}"])


def _loose(objects: list[dict[str, Any]]) -> Iterator[Finding]:
    """Objects without a message around them, as a torn message leaves them: nobody knows who spoke."""
    for value in objects:
        if isinstance(value.get("type"), str) and ("messageID" in value or "text" in value or "state" in value):
            yield from part_findings(value, Voice(""))
        else:
            yield "no record of this harness"
