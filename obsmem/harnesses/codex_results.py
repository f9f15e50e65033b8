"""The text of a Codex tool's output, and how it went, in every shape that the releases wrote.

Invariant: the output's own words stand in the text unescaped; only framing (JSON around them) is taken away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.tuples import NamedTuple
from obsmem.harnesses.written import exit_code_in, flatten


class Result(NamedTuple):
    """An output as text. ``ok`` and ``exit_code`` are None where it does not say."""

    text: str
    ok: bool | None = None
    exit_code: int | None = None


_HEADER = late.pattern(
    r"\A(?:(?:Chunk ID|Wall time|Exit code)[^\n]*\n)*?(?:Process exited with code|Exit code:) (-?\d+)\b"
)
_RUNNING = late.pattern(r"^Process running with session ID (\w+)", re.MULTILINE)
_PREFACE = late.pattern(
    r"\A(?:(?:Chunk ID|Wall time|Exit code|Process exited|Process running|Original token count|Total output lines|"
    r"Script (?:completed|failed))[^\n]*\n)+(?:Output:\n)?"
)
_FAILED = late.pattern(
    r"(?i)(?:apply_patch verification failed|error:|failed |execution error|script failed|unsupported call|aborted"
    r"|exec command rejected|patch rejected|tool call error|err: )"
)
_REPORTED = late.pattern(r'"exit_code":\s*(-?\d{1,10})')
_decode = json.JSONDecoder().raw_decode
_FRAMING = frozenset({"output", "content", "metadata", "success"})
_SCRIPT = late.pattern(r"Script (completed|failed)")


def result_of(output: Any) -> Result:
    """Read the ``output`` of any tool: a string, JSON in a string, a list of items, or an object."""
    if isinstance(output, str):
        return _string_result(output)
    if isinstance(output, list):
        return _list_result(output)
    if isinstance(output, dict):
        return _object_result(output)
    return Result(flatten(output))


def running_in(preface: str) -> str:
    """The number of the process that goes on running, as the lines before an output say; '' where none does."""
    match = _RUNNING.search(preface)
    return match.group(1) if match else ""


def preface_of(text: str) -> int:
    """How many characters of an output's text are the lines that the harness puts before it."""
    match = _PREFACE.match(text)
    return match.end() if match else 0


def _string_result(output: str) -> Result:
    if output.startswith("{"):
        try:
            value, end = _decode(output)
        except (ValueError, RecursionError):
            return Result(output)
        if isinstance(value, dict) and isinstance(value.get("output"), str) and not output[end:].strip():
            return _object_result(value)
        return Result(output)
    header = _HEADER.match(output)
    if header:
        return _ended(output, int(header.group(1)))
    if _FAILED.match(output):
        return Result(output, False, exit_code_in(output[:200]))
    return Result(output)


def _object_result(value: Mapping[str, Any]) -> Result:
    """``{"output": …, "metadata": {"exit_code": …}}``, or ``{"content": …, "success": …}``."""
    body = value.get("output")
    if body is None:
        body = value.get("content")
    text = body if isinstance(body, str) else result_of(body).text
    if not value.keys() <= _FRAMING:
        rest = {key: item for key, item in value.items() if key not in _FRAMING}
        text = "\n".join(part for part in (text, flatten(rest)) if part)
    metadata = value.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else value.get("exit_code")
    if isinstance(code, int) and not isinstance(code, bool):
        return _ended(text, code)
    success = value.get("success")
    return Result(text, success if isinstance(success, bool) else None)


def _list_result(items: list[Any]) -> Result:
    text = joined_items(items)
    script = _SCRIPT.match(text)
    if script is None:
        return _string_result(text) if not text.startswith("{") else Result(text)
    codes = [int(code) for code in _REPORTED.findall(text)]
    code = next((code for code in codes if code), 0) if codes else None
    text = joined_items([_unwrapped(item) for item in items])
    if script.group(1) == "failed":
        return Result(text, False, code)
    return _ended(text, code) if code is not None else Result(text)


def _unwrapped(item: Any) -> Any:
    """What a script printed of a tool's result: an object in JSON, whose own words come first."""
    said = item_text(item)
    if not said.startswith("{"):
        return item
    try:
        value, end = _decode(said)
    except (ValueError, RecursionError):
        return item
    if not isinstance(value, dict) or said[end:].strip():
        return item
    output = value.pop("output", None)
    body = output if isinstance(output, str) else flatten(output)
    return "\n".join(part for part in (body, flatten(value)) if part)


def _ended(text: str, code: int) -> Result:
    return Result(text, code == 0, code)


def joined_items(items: list[Any]) -> str:
    """Join content items, one under the other; an image is named, not shown."""
    text = ""
    for item in items:
        part = item_text(item)
        if text and part and not text.endswith("\n"):
            text += "\n"
        text += part
    return text


def item_text(item: Any) -> str:
    """The words of one content item."""
    if isinstance(item, str):
        return item
    if not isinstance(item, dict):
        return flatten(item)
    text = item.get("text")
    if isinstance(text, str):
        return text
    url = item.get("image_url") or item.get("file_data")
    if isinstance(url, dict):
        url = url.get("url")
    if isinstance(url, str):
        return "[image]" if url.startswith("data:") else f"[image] {url}"
    if "encrypted_content" in item:
        return ""
    return flatten({key: value for key, value in item.items() if key != "type"})
