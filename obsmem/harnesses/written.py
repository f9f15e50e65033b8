"""Reading what a harness wrote: objects in lines, times, texts in JSON values, marks of our own.

Invariants: a bad line costs only itself; no string that comes out holds half a character.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from obsmem.core import late

_decoder = json.JSONDecoder()
_raw_decode = _decoder.raw_decode
_whitespace = late.pattern(r"[\s\x00]*")
_LONE_SURROGATE_ESCAPE = late.pattern(rb"\\u[dD][89a-fA-F]")
_SURROGATE = late.pattern("[\ud800-\udfff]")
_ROLE_AND_MESSAGE = {"role", "message"}  # of a record that names no type


def load_objects(data: bytes) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Parse every JSON object that a line holds, and name what else it held.

    Survives NUL runs, BOMs, CRLF, two objects glued together, bytes that are no UTF-8 and lone surrogates (both become
    U+FFFD). Reasons: ``empty line``, ``NUL bytes``, ``not JSON``, ``not an object``.
    """
    try:
        # What json.loads does, without guessing the encoding and looking for blanks around: nearly every line is one
        # object and a newline.
        text = data.decode()
        value, end = _raw_decode(text)
        if end < len(text) - 1 and text[end:].strip():
            return _salvage(data)
    except (ValueError, RecursionError):
        return _salvage(data)
    if _LONE_SURROGATE_ESCAPE.search(data):
        value = replace_surrogates(value)
    if isinstance(value, dict):
        return [value], ()
    return [], ("not an object",)


def _salvage(data: bytes) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    text = data.decode("utf-8", "replace")
    reasons: list[str] = []
    if "\x00" in text:
        reasons.append("NUL bytes")
    stripped = text.replace("\ufeff", " ")
    objects: list[dict[str, Any]] = []
    position = _skip_space(stripped, 0)
    if position == len(stripped) and not reasons:
        return [], ("empty line",)
    while position < len(stripped):
        try:
            value, position = _decoder.raw_decode(stripped, position)
        except (ValueError, RecursionError):
            reasons.append("not JSON")
            # A torn record may be followed by a whole one on the same line.
            following = stripped.find('{"', position + 1)
            while following >= 0:
                try:
                    value, position = _decoder.raw_decode(stripped, following)
                except (ValueError, RecursionError):
                    following = stripped.find('{"', following + 1)
                    continue
                if isinstance(value, dict) and ("type" in value or value.keys() >= _ROLE_AND_MESSAGE):
                    break
                following = stripped.find('{"', position)
            if following < 0:
                break
        if isinstance(value, dict):
            objects.append(replace_surrogates(value))
        else:
            reasons.append("not an object")
        position = _skip_space(stripped, position)
    return objects, tuple(dict.fromkeys(reasons))


def _skip_space(text: str, position: int) -> int:
    match = _whitespace.match(text, position)
    return match.end() if match else position


def replace_surrogates(value: Any) -> Any:
    """Replace unpaired surrogates by U+FFFD in every string of a JSON value; pairs become their character."""
    if isinstance(value, str):
        if _SURROGATE.search(value) is None:
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    return value


def link_key(source_id: str) -> str:
    """A short key (16 hex digits) of a harness's record id, as ``history`` gives ids back. '' stays ''."""
    if not source_id:
        return ""
    return late.blake2b(source_id.encode("utf-8", "surrogatepass"), 8).hex()


def flatten(value: Any, name: str = "") -> str:
    """Write a JSON value as lines ``name: text`` with its strings verbatim (never escaped), nested names dotted."""
    if isinstance(value, str):
        return f"{name}: {value}" if name else value
    if isinstance(value, dict):
        before = f"{name}." if name else ""
        parts = [
            f"{before}{key}: {item}" if type(item) is str or type(item) is int else flatten(item, f"{before}{key}")
            for key, item in value.items()
        ]
        return "\n".join([part for part in parts if part])
    if isinstance(value, list):
        return "\n".join(part for index, item in enumerate(value) if (part := flatten(item, f"{name}[{index}]")))
    if value is None:
        return ""
    text = json.dumps(value)
    return f"{name}: {text}" if name else text


def time_of(stamp: Any) -> int:
    """As ``parse_time``; quick for the form that most harnesses write, ``2026-01-31T09:30:00.000Z``: of each hour of a session
    the beginning is read once."""
    if type(stamp) is str and len(stamp) == 24 and stamp[23] == "Z":
        within = stamp[14:16] + stamp[17:19] + stamp[20:23]
        if within.isdecimal() and (hour := _hour(stamp[:13])):
            minutes, millis = divmod(int(within), 100_000)
            return hour + minutes * 60_000 + millis
    return parse_time(stamp)


@lru_cache(maxsize=64)
def _hour(text: str) -> int:
    return parse_time(text + ":00:00Z")


_TIME = late.pattern(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")


def parse_time(value: Any) -> int:
    """Milliseconds since the epoch from an ISO time or a number of seconds or milliseconds; 0 where it is neither."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, (int, float)):
        if not 0 < value < 1e15:
            return 0
        return int(value if value > 1e11 else value * 1000)
    if not isinstance(value, str):
        return 0
    match = _TIME.match(value)
    if match is None:
        return 0
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction = (match.group(7) or "0").ljust(3, "0")[:3]
    days = _days_from_civil(year, month, day)
    millis = ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + int(fraction)
    zone = match.group(8)
    if zone and zone != "Z":
        digits = zone[1:].replace(":", "")
        shift = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
        millis += shift if zone[0] == "-" else -shift
    return max(millis, 0)


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar (H. Hinnant, "chrono-compatible date algorithms")."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


# Our own block carries this, so that a reader knows it again: <observational-memory delivery="k3f9" part="1/3" …>
OWN_BLOCK = "<observational-memory "
_RECEIPT = late.pattern(r'<observational-memory delivery="([0-9a-z]+)" part="(\d+/\d+)"')


def receipts(text: str) -> tuple[str, ...]:
    """The marks ``delivery part/of`` of our own block that a text carries."""
    if OWN_BLOCK not in text:
        return ()
    return tuple(f"{delivery} {part}" for delivery, part in _RECEIPT.findall(text))


# What every prompt of ours to a model begins with; a session whose first prompt has it is a worker's, never observed.
WORKER_MARK = "[observational-memory worker]"

_EXIT = late.pattern(r"(?:exit(?:ed with)?(?: code| status)?|Exit code|exit_code)[:\s]+(-?\d{1,5})\b")


def exit_code_in(text: str) -> int | None:
    """The exit status that a tool's output states in its first or last 200 characters; None where it states none."""
    match = _EXIT.search(text[:200]) or _EXIT.search(text[-200:])
    return int(match.group(1)) if match else None
