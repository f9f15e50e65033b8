"""Read a model's answer: find the JSON in it, repair small slips, and give its fields one set of names.

Invariant: an answer that was cut off is a failure, never a shorter answer; a blank one is a failure too; only an
explicit empty list says "nothing to note". Prose and code fences around the JSON are let pass.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.errors import WorkerError
from obsmem.core.model import RELEVANCES

_LISTS = ("notes", "observations", "reflections", "drops", "drop", "dropped", "items", "facts", "results", "records")
_IDS = (
    "entry_ids", "entryIds", "entries", "sources", "source_ids", "sourceIds", "source_entry_ids", "sourceEntryIds",
    "source", "citations", "cites", "refs", "entry_id", "note_ids", "noteIds", "notes", "supports", "support_ids",
    "supportingObservationIds", "supporting_note_ids", "observation_ids", "observationIds", "ids",
)  # fmt: skip
_TEXTS = ("text", "content", "note", "observation", "reflection", "fact", "summary", "message")

# Task -> our name of a field -> the names that models give it, best first.
FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "observe": {
        "text": _TEXTS,
        "relevance": ("relevance", "importance", "priority"),
        "entry_ids": _IDS,
        "at": ("at", "timestamp", "time", "when", "date"),
        "refutes": ("refutes", "refuted", "contradicts", "corrects"),
    },
    "reflect": {"text": _TEXTS, "note_ids": ("note_ids", *_IDS), "replaces": ("replaces", "replaced", "retires")},
    "drop": {"note_id": ("note_id", "noteId", "id", "observation_id", "observationId"), "why": ("why", "reason")},
}


def _answer_schema(name: str, items: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": items}},
        "required": [name],
        "additionalProperties": False,
    }


def _fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_ID_LIST = {"type": "array", "items": {"type": "string"}}
# Task -> the JSON schema of an answer. Every property is required, since some providers accept no others.
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "observe": _answer_schema(
        "notes",
        _fields(
            text={"type": "string"},
            relevance={"type": "string", "enum": list(RELEVANCES)},
            entry_ids={"type": "array", "items": {"type": "integer"}},
            at={"type": "string"},
            refutes=_ID_LIST,
        ),
    ),
    "reflect": _answer_schema("reflections", _fields(text={"type": "string"}, note_ids=_ID_LIST, replaces=_ID_LIST)),
    "drop": {
        "type": "object",
        "properties": {"ids": _ID_LIST},
        "required": ["ids"],
        "additionalProperties": False,
    },
}

_THINKING = late.pattern(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_START = late.pattern(r"""\{\s*["'}]|\[\s*[\[\]{"']|\[\s*\d+\s*[,\]]""")
_TRAILING_COMMA = late.pattern(r",\s*(?=[}\]])")
_DECODER = json.JSONDecoder(strict=False)  # a raw newline inside a string is a slip that costs nothing


def parse_answer(text: str, task: str = "observe") -> list[dict[str, Any]]:
    """Turn a model's answer into proposals whose fields have our names (see ``FIELDS``).

    Raises WorkerError for an answer that is blank, has no JSON, was cut off, or has no list where one belongs.
    """
    words = _THINKING.sub("", text).strip()
    if not words:
        raise WorkerError(
            "The worker gave a blank answer. Nothing was read as covered; it will be asked again.", retry=True
        )
    if "<think>" in words:
        raise WorkerError("The worker's answer ends while it is still thinking. Nothing of it was kept.", retry=True)
    proposals: list[dict[str, Any]] = []
    understood = False
    for value in _values(words):
        items = _items(value, task)
        if items == [] and isinstance(value, list) and re.sub(r"```\w*|\s", "", words) != "[]":
            continue  # brackets somewhere in a sentence are no answer
        if items is not None:
            understood = True
            proposals += [_rename(item, task) for item in items]
    if not understood:
        raise WorkerError("The worker's answer holds no list of notes in JSON. It will be asked again.", retry=True)
    return proposals


def _values(text: str) -> list[Any]:
    """Every JSON value in a text, in order. A value that starts and does not end is an error."""
    values: list[Any] = []
    position = 0
    while (start := _START.search(text, position)) is not None:
        try:
            value, position = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            value, position = _repaired(text, start.start())
        values.append(value)
    return values


def _repaired(text: str, start: int) -> tuple[Any, int]:
    end = _closing(text, start)
    if end < 0:
        raise WorkerError("The worker's answer was cut off before its end. Nothing of it was kept.", retry=True)
    region = text[start:end]
    for attempt in (_without_trailing_commas(region), region):
        try:
            return _DECODER.decode(attempt), end
        except (ValueError, RecursionError):
            pass
    try:
        value = ast.literal_eval(region)  # single quotes, as in Python
        return json.loads(json.dumps(value)), end
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise WorkerError("The worker's answer is no valid JSON. Nothing of it was kept.", retry=True) from None


def _closing(text: str, start: int) -> int:
    """The position behind the bracket that closes the one at ``start``; -1 where there is none."""
    depth = 0
    quote = ""
    position = start
    while position < len(text):
        letter = text[position]
        if quote:
            if letter == "\\":
                position += 1
            elif letter == quote:
                quote = ""
        elif letter == '"' or (letter == "'" and text[position - 1] in "{[,: \n"):
            quote = letter
        elif letter in "{[":
            depth += 1
        elif letter in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return -1


def _without_trailing_commas(text: str) -> str:
    """Drop commas before a closing bracket, outside strings."""
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', text, flags=re.DOTALL)
    # A comma and its bracket never have a string between them, so each piece can be looked at alone.
    return "".join(piece if index % 2 else _TRAILING_COMMA.sub("", piece) for index, piece in enumerate(pieces))


def _items(value: Any, task: str) -> list[Any] | None:
    """The list of proposals that a value is or holds; None where it is something else."""
    if isinstance(value, (list, tuple)):
        items = list(value)
        if task == "drop" or not items or any(isinstance(item, dict) for item in items):
            return items
        return None
    if not isinstance(value, dict):
        return None
    fields = FIELDS[task]
    if task == "drop":
        for name in ("ids", "note_ids", "drop_ids", "observation_ids"):
            if isinstance(value.get(name), list):
                return list(value[name])
    if any(isinstance(value.get(name), str) for name in fields.get("text", fields.get("note_id", ()))):
        return [value]
    for name in _LISTS:
        if isinstance(value.get(name), list):
            return list(value[name])
        if isinstance(value.get(name), dict):
            return [value[name]]
    return None


def _rename(item: Any, task: str) -> dict[str, Any]:
    """Give a proposal's fields our names; what has no name of ours is left out."""
    fields = FIELDS[task]
    if not isinstance(item, dict):
        return {next(iter(fields)): item if isinstance(item, (str, int)) else ""}
    renamed: dict[str, Any] = {}
    for name, spellings in fields.items():
        for spelling in spellings:
            if spelling in item:
                renamed[name] = item[spelling]
                break
    return renamed
