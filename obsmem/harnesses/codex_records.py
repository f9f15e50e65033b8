"""The envelope of a rollout record: its objects, type, payload, time and ids.

A rollout line is ``{timestamp, type, payload}``; the first releases wrote the payload bare, or one document for all.
Invariant: whatever the bytes are, these functions answer and never raise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.tuples import NamedTuple
from obsmem.harnesses.codex_files import document_piece
from obsmem.harnesses.written import load_objects, replace_surrogates, time_of

Payload = Mapping[str, Any]

_BARE_ITEM = frozenset({"role", "call_id", "summary", "action", "content", "output"})
_LINE_ENDS = frozenset({"\n", "\r\n", ""})
_TOKEN_COUNT = b'"type":"event_msg","payload":{"type":"token_count"'
_USAGE = late.pattern(
    rb'(?:"total_token_usage":\{[^{}]{0,300}"total_tokens":(\d{1,15})\},)?"last_token_usage":\{"input_tokens":(\d{1,12})'
    rb'(?:,"cached_input_tokens":(\d{1,12}))?(?:,"cache_write_input_tokens":(\d{1,12}))?(?:,"output_tokens":(\d{1,12}))?'
    rb'[^{}]{0,200}"total_tokens":(\d{1,12})\},?(?:"model_context_window":(\d{1,12}))?'
)
_STAMP = b'{"timestamp":"'
_decode = json.JSONDecoder().raw_decode


def whole_object(data: bytes) -> dict[str, Any] | None:
    """The one object that a line holds, as nearly all do, without the detours of json.loads; None for any other."""
    try:
        text = data.decode()
        value, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict and text[end:] in _LINE_ENDS else None


def record_objects(data: bytes) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Every object in a record's bytes, and the reasons for what is none (see ``written.load_objects``)."""
    value = whole_object(data)
    if value is not None:
        return [value], ()
    objects, reasons = load_objects(data)
    if "not JSON" in reasons:
        piece = document_piece(data)
        if piece is not None:
            return piece
    return objects, reasons


class Usage(NamedTuple):
    """What a token_count record says: of the last request its context, the parts of that which came from the cache and went
    into it, and what the model wrote; the window; ``all`` that was spent so far; ``at`` in milliseconds. A record without a
    request, after a compaction, has only ``kept``: what the program estimates that the next one will hold."""

    context: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    kept: int = 0
    window: int = 0
    all: int = 0
    at: int = 0


def token_usage(data: bytes) -> Usage | None:
    """What a token_count record says, read without parsing it: a fifth of all lines are such.

    None for any other line, and for one that holds more than that record or is in an unusual form.
    """
    if data.find(_TOKEN_COUNT, 0, 150) < 0 or data.count(b'"payload"') != 1 or not data.endswith(b"}}\n"):
        return None
    start = data.find(b'"total_token_usage":{')
    match = _USAGE.match(data, start if start >= 0 else data.find(b'"last_token_usage":{'))
    if match is None:
        return None
    spent, context, cached, written, output, total, window = map(int, match.groups(0))
    at = time_of(data[14:38].decode("ascii", "replace")) if data.startswith(_STAMP) else 0
    return Usage(context, cached, written, output, 0 if context else total, window, spent, at)


def usage_of(payload: Payload, stamp: Any) -> Usage | None:
    """The same of a token_count's payload; None where it names no request."""
    info = payload.get("info")
    last = info.get("last_token_usage") if isinstance(info, dict) else None
    if not isinstance(info, dict) or not isinstance(last, dict) or type(last.get("input_tokens")) is not int:
        return None
    total = info.get("total_token_usage")
    context = _number(last, "input_tokens")
    return Usage(
        context,
        _number(last, "cached_input_tokens"),
        _number(last, "cache_write_input_tokens"),
        _number(last, "output_tokens"),
        0 if context else _number(last, "total_tokens"),
        _number(info, "model_context_window"),
        _number(total, "total_tokens") if isinstance(total, dict) else 0,
        time_of(stamp),
    )


def _number(values: Payload, name: str) -> int:
    value = values.get(name)
    return value if type(value) is int and value > 0 else 0


def open_record(value: dict[str, Any]) -> tuple[str, str, Payload, Any]:
    """Take the envelope off: (record type, payload type, payload, timestamp).

    Records of the bare generations get the types that they would have.
    """
    kind = value.get("type")
    payload = value.get("payload")
    if type(payload) is dict and type(kind) is str:
        name = payload.get("type")
        return kind, name if type(name) is str else "", payload, value.get("timestamp")
    if isinstance(value.get("session"), dict):
        return "session_meta", "", value["session"], value["session"].get("timestamp")
    if "record_type" in value:
        return "record_type", "", value, None
    if isinstance(kind, str) and "payload" not in value and _BARE_ITEM & value.keys():
        return "response_item", kind, value, value.get("timestamp")
    if kind is None and isinstance(value.get("id"), str) and "timestamp" in value:
        return "session_meta", "", value, value["timestamp"]
    return str(kind)[:60], "", {}, value.get("timestamp")


def sound(value: Any) -> str:
    """A string that can be written as UTF-8: unpaired surrogates become U+FFFD. '' for what is no string."""
    if not isinstance(value, str):
        return ""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return str(replace_surrogates(value))
    return value


def type_of(payload: Payload) -> str:
    """The payload's own type; '' where it names none."""
    value = payload.get("type")
    return value if isinstance(value, str) else ""


def source_id(payload: Payload) -> str:
    """The record's own id: the item's, else its call's."""
    return sound(payload.get("id") or payload.get("call_id"))


def call_id(payload: Payload) -> str:
    """The id that ties a call and its output together; '' where there is none."""
    return sound(payload.get("call_id"))


def tool_name(payload: Payload, default: str = "tool") -> str:
    """The tool of a call, with its namespace where it has one."""
    name = sound(payload.get("name")) or default
    space = payload.get("namespace")
    return f"{sound(space)}.{name}" if space else name
