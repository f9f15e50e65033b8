"""Making odd input out of good input: bytes, lines, and the values of JSON records, from a seed that is printed.

Invariant: the same seed and the same corpus give the same inputs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

LONGEST = 1 << 16  # bytes of one input
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1e308, 10**40, 2**63, "", " ", "\x00", "\ud800", "\udc00\ud800", "\u202e", "\x1b[31m", "a" * 5000,
    [], {}, [[]], [None], {"": ""}, {"type": None}, [{}], "2026-99-99T99:99:99Z", "<observational-memory delivery=\"x\" part=\"1/1\"",
    "text", "tool_use", "tool_result", "user", "assistant", "system", "compact_boundary", "reasoning", "compacted", "../../../etc",
    "file:///", "-1", "NaN", float("inf"), "[" * 300,
)  # fmt: skip
PIECES = (
    b"\n", b"\r\n", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\ud800", b"\\u0000", b",",
    b":", b"null", b"{}\n", b"[]\n", b"\xed\xa0\x80", b"\x1b", b"1e999", b"[" * 2000, b'{"a":' * 1500, b"NaN", b"```json\n", b"```",
    b"<think>", b"</think>", b'{"notes": [', b" OR ", b" NEAR/2 ", b"*", b"^", b"(", b")", b"(?", b"(a+)+$", b"-", b"yesterday ",
)  # fmt: skip


def mutated(seed: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """One to four changes of a seed."""
    data = seed
    for _ in range(chance.choice((1, 1, 2, 4))):
        data = chance.choice(WAYS)(data, others, chance)[:LONGEST]
    return data


def _bytes(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 3, 20))):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _insert(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(PIECES) + data[at:]


def _delete(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.choice((1, 2, 50, 2000)) :]


def _cut(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _splice(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def _lines(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    what = chance.randrange(3)
    if what == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif what == 1:
        lines.insert(a, lines[b])
    else:
        del lines[a]
    return b"\n".join(lines)


def _values(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Put an odd value, or another record's, in the place of one in a JSON record."""
    lines = data.split(b"\n")
    whole = len(lines) > 1 and not data.lstrip().startswith(b"{\n")
    number = chance.randrange(len(lines))
    try:
        value = json.loads(lines[number] if whole else data)
    except (ValueError, RecursionError):
        return _insert(data, others, chance)
    places: list[tuple[Any, Any]] = []
    _places(value, places)
    for _ in range(chance.choice((1, 1, 3))):
        if places:
            holder, key = chance.choice(places)
            if chance.random() < 0.2 and isinstance(holder, dict) and key in holder:
                holder[str(chance.choice(ODD))[:50]] = holder.pop(key)
            elif isinstance(holder, list) or key in holder:
                other = chance.choice(places)
                swap = other[0][other[1]] if isinstance(other[0], list) or other[1] in other[0] else None
                holder[key] = chance.choice(ODD) if chance.random() < 0.7 else swap
    try:
        written = json.dumps(value).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return _insert(data, others, chance)
    if not whole:
        return written
    lines[number] = written
    return b"\n".join(lines)


def _places(value: Any, places: list[tuple[Any, Any]]) -> None:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        places.append((value, key))
        _places(value[key], places)


WAYS: tuple[Callable[[bytes, list[bytes], random.Random], bytes], ...] = (
    _bytes, _insert, _insert, _delete, _cut, _splice, _lines, _values, _values, _values, _values,
)  # fmt: skip
