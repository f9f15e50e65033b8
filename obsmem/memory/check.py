"""Check a note against the entries it cites, without a model: do they exist, do they bear its facts, who said it?

Invariant: only what can be looked up is checked (quotes, paths, numbers, hashes, identifiers, commands), and it counts
as found only as a whole: 12 is not in 128, ``a.py`` is not in ``a.pyc``. Plain prose cannot be refuted here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from obsmem.core import late
from obsmem.core.model import Chunk, Entry, Evidence, Grounding

_ID = late.pattern(r"(?:([a-z2-7]{4,26})\.)?(\d{1,12})\Z")


def citations(ids: Any, chunk: Chunk) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split cited ids into those that the chunk shows, in its order and once each, and those that it does not.

    Takes a list or a string; each as the number that the chunk gives an entry (``12``, ``[12]``), or as its id
    (``7c2e.812``).
    """
    asked = ids if isinstance(ids, (list, tuple)) else re.split(r"[,;\s]+", ids) if isinstance(ids, str) else [ids]
    numbered = dict(enumerate(chunk.shown, 1))
    known: set[str] = set()
    unknown: list[str] = []
    for item in asked:
        name = str(item).strip().strip("[]()#`'\"").strip()
        if not name:
            continue
        match = _ID.match(name)
        full = name
        if match and match.group(1):
            full = f"{match.group(1)}.{int(match.group(2))}"
        elif match:
            full = numbered.get(int(match.group(2)), name)
        if full in chunk.shown:
            known.add(full)
        else:
            unknown.append(name)
    return tuple(name for name in chunk.shown if name in known), tuple(dict.fromkeys(unknown))


def evidence(entries: Iterable[Entry]) -> Evidence:
    """The strongest voice among the cited entries: a user said it, a tool showed it, or an agent claimed it."""
    speakers = {entry.speaker for entry in entries}
    if "human" in speakers:
        return "user"
    return "tool" if "tool" in speakers else "agent"


def ground(text: str, cited_texts: Sequence[str], context: str = "") -> tuple[Grounding, tuple[str, ...]]:
    """Say how much of what can be checked in ``text`` stands in the cited entries, and what does not.

    ``context`` is what else a writer had before it (labels with their times): dates and times may come from there.
    verified: nothing is missing; partial: something is; none: all that could be checked is.
    """
    source = _Source("\n".join(cited_texts), context)
    checked = missing = 0
    names: dict[str, None] = {}
    for kind, piece in _pieces(text):
        checked += 1
        if not source.has(kind, piece):
            missing += 1
            names[piece] = None
    if not missing:
        return "verified", ()
    return ("none" if missing == checked else "partial"), tuple(names)


# What can be checked, the first pattern that fits a place wins. Apostrophes are no quotes: they need a space before.
_QUOTES = (
    r"`{1,3}(?P<code>[^`\n]+)`{1,3}|\"(?P<q1>[^\"\n]+)\"|«(?P<q2>[^»\n]+)»|「(?P<q3>[^」\n]+)」"
    r"|(?<![\w'])'(?P<q4>[^'\n]{2,}?(?:'[a-z]{1,2}\b[^'\n]*?)*)'(?!\w)"
)
_WORDS = (
    r"(?P<url>\bhttps?://[^\s<>\"')\]]+)"
    r"|(?P<time>\b\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?\b|(?<![\d:.])\d{1,2}:\d\d(?::\d\d)?(?![\d:]))"
    r"|(?P<path>(?<![\w/.])(?:~|\.{1,2})?(?:/[\w.@+*-]+)+/?(?::\d+(?:[-:]\d+)?)?"
    r"|(?<![\w/.])[\w.@+-]+(?:/[\w.@+-]+)+/?(?::\d+(?:[-:]\d+)?)?"
    r"|(?<![\w/.])[\w-]+(?:\.[\w-]+)*\.(?:py|pyi|js|jsx|ts|tsx|mjs|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|sh|md|txt|rst"
    r"|json|jsonl|ya?ml|toml|ini|cfg|lock|html|css|scss|sql|csv|xml|log|env|proto|vue|svelte|ipynb|db)\b(?::\d+(?:[-:]\d+)?)?)"
    r"|(?P<hash>\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b)"
    r"|(?P<flag>(?<![\w-])--[A-Za-z][\w-]+)"
    r"|(?P<name>\b[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)+|\b[A-Za-z]\w*_\w+|\b_+[A-Za-z]\w+"
    r"|\b[a-z]+[0-9]*[A-Z]\w*|\b[A-Z][a-z0-9]+[A-Z]\w*|\b[A-Za-z_]\w*(?=\(\)))"
    r"|(?P<number>(?<![\w.])\d[\d,_]*(?:\.\d+)*(?:\s?(?:%|(?:[kKMGT]i?B?|ms|µs|us|ns|s|sec|min|h|bytes?|px|x|tokens?|seconds?|minutes?|hours?|days?)\b))?(?!\w))"
)
_CHECKABLE = late.pattern(_QUOTES + "|" + _WORDS)
_TYPOGRAPHIC = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'", "–": "-", "‑": "-", "\xa0": " "}
)
_SPACE = late.pattern(r"\s+")
_CUT = late.pattern(r"\s*(?:\[?…[^\]…]{0,60}\]|…|\.\.\.|\[\.\.\.\])\s*")
_NUMBER = late.pattern(r"(?<![\w.])(\d[\d,_]*(?:\.\d+)*)\s?([A-Za-zµ%]*)")
# Not inside a word (a hash, an identifier), but behind the v of a version.
_NUMBER_IN_SOURCE = late.pattern(r"(?:(?<!\w)|(?<=\bv))(?<!\d[.,])(\d[\d,_]*(?:\.\d+)*)(\s?[A-Za-zµ%]*)")
_LINES = late.pattern(r":\d+(?:[-:]\d+)?\Z")

# Names of products are written in one way whatever the source wrote.
_PRODUCTS = frozenset(
    ("GitHub", "GitLab", "JavaScript", "TypeScript", "OpenAI", "PostgreSQL", "MySQL", "SQLite", "macOS", "iOS", "iPhone",
     "YouTube", "LinkedIn", "PyPI", "NumPy", "GraphQL", "MongoDB", "DevOps", "WebSocket", "CoffeeScript", "OAuth",
     "DynamoDB", "BigQuery", "JetBrains", "PyTorch", "TensorFlow", "LaTeX", "e.g", "i.e")
)  # fmt: skip
_UNITS = {
    "second": "s", "seconds": "s", "sec": "s", "secs": "s", "minute": "min", "minutes": "min", "m": "min", "mins": "min",
    "hour": "h", "hours": "h", "us": "µs", "percent": "%", "byte": "bytes", "token": "tokens", "day": "days",
    "kb": "kb", "k": "kb", "kib": "kb", "mb": "mb", "mib": "mb", "gb": "gb", "gib": "gb", "tb": "tb", "px": "px",
    "ms": "ms", "ns": "ns", "s": "s", "h": "h", "min": "min", "%": "%", "µs": "µs", "x": "x", "bytes": "bytes",
    "tokens": "tokens", "days": "days",
}  # fmt: skip


def _pieces(text: str) -> Iterable[tuple[str, str]]:
    """Yield what can be checked in a text, as (kind, piece)."""
    for match in _CHECKABLE.finditer(_fold(text)):
        kind = match.lastgroup or ""
        piece = match.group(kind).strip()
        if kind in ("url", "path", "name"):
            piece = piece.rstrip(".,;:")
        if not piece or piece in _PRODUCTS:
            continue
        if kind == "path" and _is_word_pair(piece):
            continue
        yield ("quote" if kind in ("q1", "q2", "q3", "q4") else kind), piece


def _is_word_pair(piece: str) -> bool:
    """``read/write`` is no path; ``/read/write``, ``read/write.py`` and ``read/write_2`` are."""
    return re.fullmatch(r"[A-Za-z-]+/[A-Za-z-]+", piece) is not None


def _fold(text: str) -> str:
    return _SPACE.sub(" ", text.translate(_TYPOGRAPHIC))


def _unit(word: str) -> str:
    return _UNITS.get(word, _UNITS.get(word.lower(), ""))


def _value(digits: str) -> str:
    """A number without separators; ``12.0`` is ``12``. A version such as 1.2.3 stays as it is."""
    plain = digits.rstrip(",_").replace(",", "").replace("_", "")
    whole, dot, rest = plain.partition(".")
    return whole if dot and not rest.strip("0") else plain


class _Source:
    """The cited words, ready to be searched."""

    def __init__(self, text: str, context: str) -> None:
        self.text = _fold(text)
        self.lowered = self.text.lower()
        self.times = self.text + " " + _fold(context)
        self._numbers: dict[str, set[str]] | None = None

    def has(self, kind: str, piece: str) -> bool:
        """True if the piece stands in the words, as its kind is compared."""
        if kind in ("quote", "code"):
            return self._has_quote(piece, exact=kind == "code")
        if kind == "number":
            return self._has_number(piece)
        if kind == "time":
            return all(part in self.times for part in piece.replace("T", " ").split(" "))
        if kind == "path":
            line = _LINES.search(piece)
            bare = piece[: line.start()] if line else piece
            numbers = re.findall(r"\d+", line.group()) if line else []
            return self._has_word(bare.rstrip("/")) and all(self._has_number(number) for number in numbers)
        if kind == "hash":
            return re.search(r"(?<![0-9a-zA-Z])" + piece, self.lowered) is not None
        return self._has_word(piece)

    def _has_word(self, word: str) -> bool:
        start = self.text.find(word)
        while start >= 0:
            end = start + len(word)
            before, after = self.text[start - 1 : start], self.text[end : end + 1]
            if not _continues(before, word[0]) and not _continues(after, word[-1]):
                return True
            start = self.text.find(word, start + 1)
        return False

    def _has_quote(self, quote: str, *, exact: bool) -> bool:
        """A quote may be clipped, may end with the writer's comma, and may begin with the writer's capital."""
        if self._has_text(quote, exact):
            return True
        parts = [part for part in _CUT.split(quote) if part.strip(" .,;:")]
        if len(parts) > 1 or (parts and parts[0] != quote):
            return all(self._has_text(part, exact) for part in parts)
        return False

    def _has_text(self, piece: str, exact: bool) -> bool:
        bare = piece.strip().rstrip(".,;:!?") or piece
        for form in dict.fromkeys((piece, bare, bare.removesuffix("()"))):
            if re.fullmatch(r"[\w$.-]+", form):
                if self._has_word(form):
                    return True
            elif form in self.text or (not exact and form.lower() in self.lowered):
                return True
        return False

    def _has_number(self, piece: str) -> bool:
        match = _NUMBER.match(piece)
        if match is None:
            return piece in self.text
        if self._numbers is None:
            self._numbers = {}
            for found in _NUMBER_IN_SOURCE.finditer(self.text):
                attached = found.group(2)
                if not attached or attached[0] == " " or _unit(attached):
                    self._numbers.setdefault(_value(found.group(1)), set()).add(_unit(attached.strip()))
        units = self._numbers.get(_value(match.group(1)))
        if units is None:
            return False
        unit = _unit(match.group(2))
        return not unit or unit in units or "" in units


def _continues(neighbour: str, edge: str) -> bool:
    """True if the neighbour makes a longer word of what it stands beside."""
    if not neighbour:
        return False
    return (neighbour.isalnum() or neighbour == "_") and (edge.isalnum() or edge in "_$")
