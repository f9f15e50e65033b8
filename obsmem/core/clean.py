"""Make text safe to print and to put into a prompt: no control characters, no invisible ones, no encoded bulk.

Invariant: cleaning twice is cleaning once, and every visible character stays.
"""

from __future__ import annotations

import re

from obsmem.core import late

_TERMINAL = late.pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Control characters but \n and \t; direction overrides, zero-width space, tags: text that a reader cannot see.
_UNSEEN = late.pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_ENCODED = late.pattern(r"[A-Za-z0-9+/]{200,}={0,2}")
_RUN = b"a" * 200
# Every character of encoded data as one letter, so that a long run of them is found as a plain text, ten times as fast.
_AS_RUN = bytes(97 if chr(code).isalnum() or chr(code) in "+/" else 32 for code in range(128)) + b" " * 128
_ESCAPE = late.pattern(r"\b[A-Za-z]:\\\S*|(\\[nrt])")  # of a string in code, where it is no folder of Windows
_SPACE = late.pattern(r"\s+")


def strip_controls(text: str) -> str:
    """Remove terminal sequences and unseen characters; keep ``\\n`` and ``\\t``. A lone ``\\r`` becomes a newline."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _TERMINAL.sub("", text)
    return _UNSEEN.sub("", text)


def escape_unseen(text: str) -> str:
    """Write the unseen characters of a JSON document as JSON's own escapes: it stays the same value, and a terminal that it is
    shown on obeys none of them."""
    return _UNSEEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"


def leave_out_encoded(text: str) -> str:
    """Replace runs of more than 200 characters that look like base64 by a mark that says how long they were."""
    if len(text) < len(_RUN) or _RUN not in text.encode("utf-8", "replace").translate(_AS_RUN):
        return text
    return _ENCODED.sub(_encoded_mark, text)


def _encoded_mark(match: re.Match[str]) -> str:
    run = match.group()
    kinds = (any(map(test, run)) for test in (str.isdigit, str.isupper, str.islower))
    if sum(kinds) < 2:
        return run  # a ruler or a row of letters
    return f"[{len(run)} characters of encoded data]"


def part_escapes(text: str) -> str:
    """A text of code with a blank for each written-out line end or tab: the letter of an escape belongs to no name."""
    return _ESCAPE.sub(lambda match: " " if match[1] else match[0], text) if "\\" in text else text


def one_line(text: str) -> str:
    """Fold all whitespace to single spaces, without control characters."""
    return _SPACE.sub(" ", strip_controls(text)).strip()
