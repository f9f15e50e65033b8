"""Where the records of a file begin and end: one exported JSON document, or a stream of events with one object a line.

An export is ``{"info": {…}, "messages": [{"info": …, "parts": […]}, …]}`` as one document, often pretty-printed, possibly
with a status line glued before it, possibly cut off. Its records are: everything up to and including the ``[`` of
``messages``; each message with the separator *before* it; the rest. Invariants: the spans joined are the file; the spans
of an export that grows at its end do not move; a damaged message costs only itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from obsmem.core import late
from obsmem.core.tuples import NamedTuple
from obsmem.harnesses.written import load_objects

_decoder = json.JSONDecoder(strict=False)
_DOCUMENT = late.pattern(r'\{\s*"\w+"\s*:')
_MESSAGE = late.pattern(r'\{\s*"(?:info|parts)"\s*:')
_SPACE = late.pattern(r"[ \t\r\n]*")
_SEPARATORS = late.pattern(r"[ \t\r\n,]*")
_EXPORT_HEAD = late.pattern(rb'\{\s*"info"\s*:\s*\{')


class Span(NamedTuple):
    """Bytes ``start`` to ``end`` of a file. ``complete`` is False only for the torn rest of a document that was cut off."""

    start: int
    end: int
    complete: bool = True


def spans(data: bytes) -> Iterator[Span]:
    """Split the bytes of an export into its records. Joined they are the bytes; nothing for an empty file."""
    # Latin-1 gives one character per byte, so positions are byte offsets, and JSON's own signs are ASCII anyway.
    text = data.decode("latin-1")
    position = _messages_start(text)
    if position < 0:
        if text:
            yield Span(0, len(text), text.rstrip().endswith("}"))
        return
    yield Span(0, position)
    while True:
        begin = _after(_SEPARATORS, text, position)
        if text.startswith("]", begin):
            break
        value_end = _decode(text, begin)[1]
        if value_end < 0:
            # Nothing whole stands here: go on at the next message that is whole, if there is one.
            value_end = _next_message(text, begin + 1)
            if value_end < 0:
                break
        yield Span(position, value_end)
        position = value_end
    if position < len(text):
        closed = text.startswith("]", _after(_SEPARATORS, text, position)) and text.rstrip().endswith("}")
        yield Span(position, len(text), closed)


def _messages_start(text: str) -> int:
    """The position behind the ``[`` of the document's ``messages``; -1 where there is none."""
    opening = _DOCUMENT.search(text)
    if opening is None:
        return -1
    position = opening.start() + 1
    while True:
        key, position = _decode(text, _after(_SPACE, text, position))
        colon = _after(_SPACE, text, position) if position >= 0 else -1
        if colon < 0 or not text.startswith(":", colon):
            return -1
        position = _after(_SPACE, text, colon + 1)
        if key == "messages" and text.startswith("[", position):
            return position + 1
        position = _decode(text, position)[1]
        if position < 0:
            return -1
        position = _after(_SPACE, text, position)
        if not text.startswith(",", position):
            return -1
        position += 1


def _next_message(text: str, position: int) -> int:
    """Where the next whole message begins; -1 where there is none. Inside a string no quote stands unescaped."""
    for match in _MESSAGE.finditer(text, position):
        value, _ = _decode(text, match.start())
        if isinstance(value, dict) and "info" in value and "parts" in value:
            return match.start()
    return -1


def _decode(text: str, position: int) -> tuple[Any, int]:
    """The JSON value at a position and where it ends; end -1 where there is no whole value."""
    try:
        return _decoder.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, -1


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def is_export(head: bytes) -> bool:
    """True if a file that begins so is an export. Only a status line without braces may stand before the document."""
    match = _EXPORT_HEAD.search(head)
    if match is None or b"{" in head[: match.start()]:
        return False
    return b'"ses_' in head or b'"messages"' in head


def is_event_stream(head: bytes) -> bool:
    """True if the first line of a file is an event of the harness, or of its ``run --format json``."""
    objects, _ = load_objects(head.lstrip(b"\xef\xbb\xbf \r\n").split(b"\n", 1)[0])
    return len(objects) == 1 and is_event(objects[0])


def is_event(value: dict[str, Any]) -> bool:
    """True for an object that is, or wraps, one event: a type and properties, or a type and a part of a session."""
    event = value.get("event", value)
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        return False
    if isinstance(event.get("properties"), dict):
        return True
    return isinstance(event.get("sessionID"), str) and ("part" in event or "error" in event)
