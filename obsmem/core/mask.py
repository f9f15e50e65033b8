"""Replace secrets by their kind: ``ghp_…[masked github token]``. Runs on every note, prompt, block and export.

Invariants: masking twice is masking once, because what stands in a mark is never looked at again; what is not a secret
(hashes, ids, paths, placeholders, code) stays as it is. Two sources of evidence: the shape of a value
(``mask_kinds``), and the name that it is assigned to (``password = …``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from obsmem.core import late
from obsmem.core.mask_kinds import Kind, kinds_in

_MARK = late.pattern(r"[^\s…]{0,4}…\[masked [a-z ]+\]")

# How the name that a value is assigned to ends, and what the value then is.
_NAMES = {
    "password": "password",
    "passwd": "password",
    "passphrase": "password",
    "pwd": "password",
    "token": "token",
    "secret": "secret",
    "credential": "secret",
    "credentials": "secret",
    "key": "key",
}
# Most texts hold none of these, and looking for a part that several share is as quick as looking for one of them.
_HINTS = (
    (late.pattern(r"p(?=ass|wd)"), ("password", "passwd", "passphrase", "pwd")),
    (late.pattern(r"k(?=e[ny])"), ("token", "key")),
    (late.pattern(r"cre[td]"), ("secret", "credential", "credentials")),
)
JUDGED_LENGTH = 1000  # the most characters of a value that _ASSIGNED takes
_KEY_NAME = late.pattern(r"(?:api|access|secret|private|signing|encryption|account|auth)[_-]?\Z")
_ASSIGNED = late.pattern(
    r"""(?:_base|_value)?(?P<close>\\{0,3}["'`]?)(?P<sign>\s{0,3}(?::=|=>|==?|:)\s{0,3}|[ ](?=[^\s=:]))"""
    r"""(?P<open>\\{0,3}["'`])?(?P<value>[^\s"'`\\,;(){}\[\]<>&|]{8,1000})(?P<after>.?)""",
    re.IGNORECASE,
)

_REST_OF_VALUE = late.pattern(r"""[^\s"'`\\,;(){}\[\]<>&|]*""")

_PLACEHOLDERS = (
    "your", "example", "placeholder", "changeme", "change_me", "change-me", "replace", "dummy", "redacted", "masked",
    "xxxx", "****", "....", "<", "…", "todo", "insert", "undefined",
)  # fmt: skip
_REFERENCE = late.pattern(
    r"[$%@#!*]|.*\$\{|.*\{\{|(?:process\.)?env[.:]|os\.|secrets?[.:]|vault:|ssm:|arn:|op://|https?://|file:|data:", re.I
)
_PATH = late.pattern(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ -]{1,40})+[/\\]?\Z|[\w.-]+(?:/[\w.-]+)*\.[A-Za-z]{1,5}\Z")
_DOTTED = late.pattern(r"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+\Z")
_SNAKE = late.pattern(r"[A-Za-z]+(?:_[A-Za-z]+)+\d{0,2}\Z|_+[A-Za-z_]+\Z")
_CAMEL = late.pattern(r"[A-Za-z][a-z]*\d{0,3}(?:[A-Z][a-z]+\d{0,3}){1,5}\Z")
_VERSION = late.pattern(r"[v^~=<>]*\d+(?:\.\d+)+[\w.+-]{0,12}\Z")
_WORDS = late.pattern(r"[A-Za-z]+(?:[-_./:+][A-Za-z]+)*[.!?:]?\Z")


def mask(text: str, extra: Sequence[re.Pattern[str]] = ()) -> str:
    """Return ``text`` with every secret replaced by at most four of its characters and the name of its kind.

    ``extra`` are a user's own patterns; whole matches of them go. Text that holds no secret comes back as it is.
    """
    for kind in kinds_in(text):
        text = _outside_marks(text, lambda part, kind=kind: _mask_kind(part, kind))  # type: ignore[misc]
    text = _mask_assignments(text)
    for pattern in extra:
        text = _outside_marks(text, lambda part, pattern=pattern: pattern.sub(_mask_custom, part))  # type: ignore[misc]
    return text


def mask_all(value: Any, mask: Callable[[str], str]) -> Any:
    """A value with every string in it masked by ``mask``; keys stay, as they are names and ids."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {key: mask_all(item, mask) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        masked = [mask_all(item, mask) for item in value]
        return masked if isinstance(value, list) else tuple(masked)
    return value


def _outside_marks(text: str, replace: Callable[[str], str]) -> str:
    """Apply ``replace`` to what lies between marks that are there already."""
    if "…[masked " not in text:
        return replace(text)
    parts: list[str] = []
    end = 0
    for mark in _MARK.finditer(text):
        parts += [replace(text[end : mark.start()]), mark.group()]
        end = mark.end()
    parts.append(replace(text[end:]))
    return "".join(parts)


def _mask_kind(text: str, kind: Kind) -> str:
    grouped = "secret" in kind.pattern.groupindex

    def replace(match: re.Match[str]) -> str:
        whole = match.group()
        secret = match.group("secret") if grouped else whole
        if kind.mixed and not (_has(secret, str.isdigit) and _has(secret, str.isupper)):
            return whole
        if grouped and (_REFERENCE.match(secret) or set(secret) <= set("*x.X")):
            return whole
        start = match.start("secret") - match.start() if grouped else 0
        return whole[:start] + _mark(secret[: kind.keep], kind.name) + whole[start + len(secret) :]

    return kind.pattern.sub(replace, text)


def _mark(prefix: str, name: str) -> str:
    return f"{prefix}…[masked {name}]"


def _has(text: str, test: Callable[[str], bool]) -> bool:
    return any(map(test, text))


def _mask_custom(match: re.Match[str]) -> str:
    return _mark("", "custom") if match.group() else ""


def _mask_assignments(text: str) -> str:
    """Mask the values that stand behind a name such as ``password`` or ``api_key``."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters grow when lowered, and positions would no longer agree
        lowered = "".join(map(_lower_letter, text))
    found: dict[int, tuple[str, re.Match[str]]] = {}
    for word in [word for hint, words in _HINTS if hint.search(lowered) for word in words]:
        start = lowered.find(word)
        while start >= 0:
            end = start + len(word)
            # In the middle of a word, as most are, nothing is assigned.
            match = None if text[end : end + 1].isalnum() else _ASSIGNED.match(text, end)
            if match is not None and _names_a_secret(word, lowered, start):
                found[match.start("value")] = (_NAMES[word], match)
            start = lowered.find(word, end)
    if not found:
        return text
    parts: list[str] = []
    position = 0
    for start in sorted(found):
        name, match = found[start]
        if start >= position and _assigns_secret(text, name, match):
            parts += [text[position:start], _mark("", name)]
            # A value is judged by its first JUDGED_LENGTH characters, so that a hostile text costs no more; all of it goes.
            rest = _REST_OF_VALUE.match(text, match.end("value"))
            position = rest.end() if rest else match.end("value")
    parts.append(text[position:])
    return "".join(parts)


def _lower_letter(letter: str) -> str:
    lowered = letter.lower()
    return lowered if len(lowered) == 1 else letter


def _names_a_secret(word: str, lowered: str, start: int) -> bool:
    before = lowered[max(0, start - 12) : start]
    if word == "key":
        return _KEY_NAME.search(before) is not None
    return not (word == "token" and before.endswith("publickey"))  # the name of a .NET assembly, not a secret


def _assigns_secret(text: str, name: str, match: re.Match[str]) -> bool:
    """True if what stands behind a secret's name is a secret: not code, a type, a reference or a sentence."""
    quoted, sign = bool(match.group("open")), match.group("sign")
    if sign == " ":
        # Only a command's option stands before its value with nothing but a space: --password hunter2…
        option = text[max(0, match.start() - 40) : match.start()].rsplit(maxsplit=1)
        if match.group("close") or not (option and option[-1].startswith("--")):
            return False
    after = match.group("after") if len(match.group("value")) < JUDGED_LENGTH else ""
    if quoted and after not in ("", '"', "'", "`", "\\"):
        return False  # a sentence in quotes, or a string that code goes on building
    if not quoted and after in ("(", "[", "{", "<"):
        return False  # a call, an index, a type, or a mark
    shell_variable = not quoted and sign == "=" and text[max(0, match.start() - 4) : match.start()].isupper()
    return _is_secret(match.group("value"), name, quoted or shell_variable)


def _is_secret(value: str, name: str, literal: bool) -> bool:
    """True if a value assigned to such a name is the secret itself. ``literal``: it cannot be a variable's name."""
    lowered = value.lower()
    if any(word in lowered for word in _PLACEHOLDERS) or _REFERENCE.match(value):
        return False
    if len(set(value)) < 4 or _PATH.match(value) or _VERSION.match(value) or _DOTTED.match(value):
        return False
    if _has(value, str.isdigit):
        if _SNAKE.match(value) or (not literal and name != "password" and _CAMEL.match(value)):
            return False
        return name == "password" or _has(value, str.isalpha)
    if not literal or name not in ("password", "key", "secret"):
        # Words, types and variables have no digits; a random value without one is rare.
        return not _WORDS.match(value) and _has(value, str.isalpha) and literal
    if _SNAKE.match(value) or name in lowered:
        return False
    return name == "password" or not _WORDS.match(value)
