"""Records without secrets: what leaves this machine in a bundle still parses as its harness wrote it.

Invariants: a record that holds no secret stays byte for byte as it is; one that does yields as many entries after masking
as before, or its strings are masked one by one, or it is left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from obsmem.harnesses import load
from obsmem.tasks.store import Store

_MARK = re.compile(r"…\[masked ([a-z ]+)\]")


def mask_record(store: Store, harness: str, data: bytes) -> bytes | None:
    """The bytes of a record without its secrets; None where they cannot be taken out of it without breaking it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None if store.mask(data.decode("utf-8", "replace")) != data.decode("utf-8", "replace") else data
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return store.mask(text).encode("utf-8")
    inner = _each_string(value, store.mask)
    if inner != value:
        text = json.dumps(inner, ensure_ascii=False, separators=(",", ":")) + ("\n" if text.endswith("\n") else "")
    masked = store.mask(text)
    if masked == text:
        return data if inner == value else text.encode("utf-8", "surrogatepass")
    whole = masked.encode("utf-8", "surrogatepass")
    return whole if _yields_as_many(harness, data, whole) else None


def _yields_as_many(harness: str, before: bytes, after: bytes) -> bool:
    module = load(harness)
    try:
        json.loads(after)
        return [one.kind for one in module.blocks(before)] == [one.kind for one in module.blocks(after)]
    except ValueError:
        return False


def _each_string(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_string(one, change) for one in value]
    if isinstance(value, dict):
        return {key: _each_string(one, change) for key, one in value.items()}
    return value


def kinds_of_secrets(store: Store, text: str) -> Counter[str]:
    """Kind of secret -> how many of it masking would take out of a text."""
    marks = Counter(_MARK.findall(store.mask(text)))
    marks.subtract(_MARK.findall(text))
    return +marks
