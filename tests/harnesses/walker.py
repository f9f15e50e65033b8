"""An independent look at a JSONL transcript: which of its strings stand in no entry?

Knows nothing of entries or harnesses, only of JSON, so that a parser's mistake cannot hide itself here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SHORTEST = 20
_SURROGATE = re.compile("[\ud800-\udfff]")
_INDEX = re.compile(r"\[\d+\]")
_BREAK = re.compile(r"\n|(?=<)|(?<=>)|(?<=\AError: )")


def missing_strings(path: Path, ignored: set[str], texts: Iterable[str]) -> list[tuple[int, str, str]]:
    """List the strings of a JSONL file, 20 characters or longer, that stand in none of the texts.

    Each as (line, dotted key path, start of the string). ``ignored`` holds keys, or dotted ends of a key path
    (``toolUseResult.originalFile``), without list indexes; a leading dot means a key of the record itself. Everything
    below such a key is passed over. A string may be divided over texts: it is then looked for line by line,
    tag by tag, and without the word Error that a program puts before it.
    """
    haystack = "\x00".join(texts)
    top = {key for key in ignored if key.startswith(".")}
    ends = tuple("." + key for key in ignored if not key.startswith("."))
    missing: list[tuple[int, str, str]] = []
    found: set[str] = set()
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        for value in _objects(line.decode("utf-8", "replace")):
            for key, text in _strings(value, "", top, ends):
                text = _repaired(text).strip()
                if len(text) < SHORTEST or text in found:
                    continue
                if text in haystack or all(part in haystack for part in _parts(text)):
                    found.add(text)
                else:
                    missing.append((number, key.lstrip("."), text[:80]))
    return missing


def _objects(text: str) -> Iterator[Any]:
    """Every whole JSON object on the line; after a torn one, only what looks like a record again."""
    decoder = json.JSONDecoder()
    position = text.find("{")
    torn = False
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            torn = True
            position = text.find('{"', position + 1)
            continue
        if not torn or "timestamp" in value:
            yield value
            torn = False
        position = text.find("{", end)


def _strings(value: Any, key: str, top: set[str], ends: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    plain = _INDEX.sub("", key)
    if key and (plain in top or plain.endswith(ends)):
        return
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _strings(item, f"{key}.{name}", top, ends)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, f"{key}[{index}]", top, ends)


def _parts(text: str) -> Iterator[str]:
    for line in _BREAK.split(text):
        part = line.strip()
        if len(part) >= SHORTEST:
            yield part


def _repaired(text: str) -> str:
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
