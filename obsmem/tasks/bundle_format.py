"""The file of a bundle: gzip over lines of JSON, each checked against a schema before anything is done with it.

Invariants: equal content gives equal bytes; a file of a newer format is refused in one sentence; what a file unfolds into
is bounded, whatever it claims; a file that breaks off is refused whole.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from obsmem.core.errors import UsageError
from obsmem.core.model import RELEVANCES
from obsmem.store.archive_schema import KINDS, SPEAKERS

FORMAT = 1
ENDING = ".omb"
MOST_BYTES = 4 << 30  # that a bundle may unfold into
MOST_LINE = 256 << 20  # bytes of one line of it
MOST_RATIO = 1100  # bytes that one byte of the file may unfold into; deflate itself cannot do more than 1032

Line = dict[str, Any]

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "minimum": -(1 << 53), "maximum": 1 << 53}
_SEQ = {"type": "integer", "minimum": -1, "maximum": (1 << 31) - 1}
_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_REFERENCE = {  # an entry: its number in this session, or [harness, session, hash, block, how many alike stand before it]
    "anyOf": [_SEQ, {"type": "array", "prefixItems": [_TEXT, _TEXT, _HASH, _SEQ, _SEQ], "minItems": 5, "maxItems": 5}]
}
_PARENT = {"anyOf": [{"type": "null"}, {"type": "array", "prefixItems": [_TEXT, _TEXT, {"anyOf": [{"type": "null"}, _REFERENCE]}],
                                        "minItems": 3, "maxItems": 3}]}  # fmt: skip
_IDS = {"type": "array", "items": {"type": "string", "pattern": "^[0-9a-f]{4,12}$"}}
_ENTRY = {
    "type": "object",
    "required": ["seq", "block", "kind", "speaker", "at", "tokens"],
    "additionalProperties": False,
    "properties": {
        "seq": _SEQ, "block": _SEQ, "kind": {"enum": list(KINDS)}, "speaker": {"enum": list(SPEAKERS)}, "at": _NUMBER,
        "tokens": _NUMBER, "off": {"const": True}, "copied": {"const": True}, "replaced_by": _SEQ, "side": _TEXT,
        "whole": {"type": "string", "pattern": "^raw_[0-9a-f]{10}$"},
    },
}  # fmt: skip
# Kind of line -> (what it must have, what it may have).
_LINES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "manifest": ({"format": {"type": "integer"}, "store": _TEXT, "masked": {"type": "boolean"}, "sessions": _NUMBER}, {}),
    "session": (
        {"harness": _TEXT, "id": {"type": "string", "minLength": 1, "maxLength": 500}, "role": {"enum": ["main", "subagent", "worker"]},
         "rewinds": _NUMBER, "updated_at": _NUMBER, "parent": _PARENT},
        dict.fromkeys(("name", "cwd", "workspace", "remote", "model", "parent_id"), _TEXT)
        | {"started_at": _NUMBER, "window": _NUMBER},
    ),
    "record": ({"sha256": _HASH, "entries": {"type": "array", "items": _ENTRY, "minItems": 1}},
               {"text": _TEXT, "base64": _TEXT, "masked": {"const": True}}),
    "note": (
        {"id": _TEXT, "text": _TEXT, "at": _NUMBER, "relevance": {"enum": list(RELEVANCES)},
         "entries": {"type": "array", "items": _REFERENCE}, "evidence": {"enum": ["user", "tool", "agent"]},
         "grounding": {"enum": ["verified", "partial", "none"]}, "tokens": _NUMBER,
         "missing": {"type": "array", "items": _TEXT}, "recorded_at": _NUMBER, "first": _SEQ, "last": _SEQ},
        {},
    ),
    "reflection": ({"id": _TEXT, "text": _TEXT, "notes": _IDS, "tokens": _NUMBER, "recorded_at": _NUMBER, "up_to": _SEQ}, {}),
    "drop": ({"note": _TEXT, "at": _NUMBER, "why": _TEXT, "up_to": _SEQ}, {}),
    "stretch": ({"first": _SEQ, "last": _SEQ, "worker": _TEXT, "reason": _TEXT}, {}),
    "pin": ({"text": _TEXT, "scope": {"enum": ["session", "workspace", "everywhere"]}, "at": _NUMBER,
             "evidence": {"enum": ["user", "tool", "agent"]}}, {"source": {"anyOf": [_TEXT, _REFERENCE]}, "workspace": _TEXT}),
    "end": ({"lines": _NUMBER}, {}),
}  # fmt: skip


def pack(lines: Iterable[Line]) -> bytes:
    """A bundle of these lines, the last of which is added. Without a time or a name in it, so that it depends on them alone."""
    target = io.BytesIO()
    count = 0
    with gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0, compresslevel=6) as file:
        for line in lines:
            file.write(_encoded(line))
            count += 1
        file.write(_encoded({"line": "end", "lines": count}))
    return target.getvalue()


def _encoded(line: Line) -> bytes:
    return json.dumps(line, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"


def unpack(data: bytes, name: str) -> Iterator[Line]:
    """The checked lines of a bundle. Raises UsageError, which names the file, at the first that is not as it must be."""
    count, total = 0, 0
    most = min(MOST_BYTES, (len(data) + 1000) * MOST_RATIO)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while True:
                raw = file.readline(MOST_LINE + 1)
                total += len(raw)
                if len(raw) > MOST_LINE or total > most:
                    raise UsageError(f"{name} unfolds into more than a bundle may hold: nothing of it was taken in.")
                if not raw.endswith(b"\n"):
                    raise UsageError(f"{name} breaks off after {count} lines: get it anew and import that.")
                line = _checked(raw, name, count)
                if line["line"] == "end":
                    if line["lines"] != count or file.read(1):
                        raise UsageError(f"{name} does not hold the lines that it says: get it anew and import that.")
                    return
                yield line
                count += 1
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{name} is no whole bundle ({error}): get it anew and import that.") from error


def _checked(raw: bytes, name: str, number: int) -> Line:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"Line {number + 1} of {name} is no JSON: it is no bundle, or was changed on its way."
        ) from error
    kind = line.get("line") if isinstance(line, dict) else None
    if (number == 0) != (kind == "manifest"):
        raise UsageError(f"{name} is no bundle: line {number + 1} is not what stands there in one.")
    if kind == "manifest" and isinstance(line.get("format"), int) and line["format"] > FORMAT:
        raise UsageError(
            f"{name} was written by a newer version of observational-memory (format {line['format']}). Install that."
        )
    from jsonschema.exceptions import best_match

    wrong = best_match(_validator(kind).iter_errors(line)) if kind in _LINES else None
    if kind not in _LINES or wrong is not None:
        what = wrong.message[:200] if wrong is not None else f"nothing is called {str(kind)[:40]!r}"
        raise UsageError(
            f"Line {number + 1} of {name} is not as it must be ({what}): nothing of this session was taken in."
        )
    return dict(line)


@lru_cache(len(_LINES))
def _validator(kind: str) -> Any:
    from jsonschema import Draft202012Validator

    needed, optional = _LINES[kind]
    return Draft202012Validator(
        {
            "type": "object",
            "required": ["line", *needed],
            "additionalProperties": False,
            "properties": {"line": {"const": kind}, **needed, **optional},
        }
    )


def as_text(data: bytes) -> dict[str, str]:
    """Bytes as a value of JSON: as they are where they are UTF-8, else in base64."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def as_bytes(line: Line) -> bytes:
    """The bytes that ``as_text`` put into a line. Raises UsageError."""
    try:
        return (
            base64.b64decode(line["base64"], validate=True) if "base64" in line else str(line.get("text", "")).encode()
        )
    except ValueError as error:
        raise UsageError("A record of the bundle is not encoded as it must be: get the bundle anew.") from error
