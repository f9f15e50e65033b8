"""How things are named: session handles, entry ids, note ids, and the short forms that people type.

Invariant: an id depends on content alone, so the same observation twice is the same note and needs no lock.
"""

from __future__ import annotations

from collections.abc import Iterable

from obsmem.core import late
from obsmem.core.errors import UsageError

HANDLE_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
HANDLE_LENGTH = 4
NOTE_ID_LENGTH = 12
SHORT_LENGTH = 7
RAW_PREFIX = "raw_"
RAW_LENGTH = 10

_ENTRY_ID = late.pattern(r"([a-z2-7]{4,26})\.(\d{1,12})\Z")
_RAW_ID = late.pattern(rf"{RAW_PREFIX}[0-9a-f]{{{RAW_LENGTH}}}\Z")
_NOTE_PREFIX = late.pattern(r"[0-9a-f]{4,12}\Z")


def handle_candidates(harness: str, session_id: str) -> Iterable[str]:
    """Yield ever longer handles for a session; the store takes the first that is free.

    Four base32 characters first. They come from a hash of harness and id, so a lost store gives the same session the
    same handle again in all but colliding cases.
    """
    digest = late.sha256(f"{harness}\n{session_id}".encode("utf-8", "surrogatepass"))
    number = int.from_bytes(digest[:20], "big")
    letters = []
    for _ in range(26):
        number, index = divmod(number, 32)
        letters.append(HANDLE_ALPHABET[index])
    text = "".join(letters)
    # An all-digit or "e"-like handle would read as a number in "7222.12"; a letter first keeps ids unmistakable.
    if not text[0].isalpha():
        text = HANDLE_ALPHABET[int(text[0])] + text[1:]
    for length in range(HANDLE_LENGTH, 27):
        yield text[:length]


def entry_id(handle: str, seq: int) -> str:
    """Name an entry: ``<session handle>.<seq>``."""
    return f"{handle}.{seq}"


def parse_entry_id(text: str) -> tuple[str, int]:
    """Split an entry id into handle and seq. Raises UsageError where it is none."""
    match = _ENTRY_ID.match(text)
    if match is None:
        raise UsageError(f"{text!r} is no entry id: it should look like 'abcd.12'.")
    return match.group(1), int(match.group(2))


def is_entry_id(text: str) -> bool:
    """True if the text has the form of an entry id."""
    return _ENTRY_ID.match(text) is not None


def is_note_prefix(text: str) -> bool:
    """True if the text may be (the beginning of) a note or reflection id."""
    return _NOTE_PREFIX.match(text) is not None


def raw_id(harness: str, session_id: str, call_id: str) -> str:
    """Name the whole output of a tool's call, where the model was given a shortened one: ``raw_`` and 10 hex digits."""
    words = f"{harness}\n{session_id}\n{call_id}".encode("utf-8", "surrogatepass")
    return RAW_PREFIX + late.sha256(words).hex()[:RAW_LENGTH]


def is_raw_id(text: str) -> bool:
    """True if the text has the form of the id of a whole output."""
    return _RAW_ID.match(text) is not None


def content_id(text: str, source_ids: Iterable[str]) -> str:
    """Name a note or reflection: 12 hex digits of SHA-256 over the text, a newline and the sorted source ids."""
    joined = text + "\n" + "\n".join(sorted(source_ids))
    return late.sha256(joined.encode("utf-8", "surrogatepass")).hex()[:NOTE_ID_LENGTH]


def shorten(ids: Iterable[str]) -> dict[str, str]:
    """Map each id to its shortest prefix of at least 7 characters that is unique among the given ones."""
    ordered = sorted(set(ids))
    short: dict[str, str] = {}
    for index, whole in enumerate(ordered):
        length = SHORT_LENGTH
        for neighbour in ordered[max(0, index - 1) : index] + ordered[index + 1 : index + 2]:
            while length < len(whole) and neighbour[:length] == whole[:length]:
                length += 1
        short[whole] = whole[:length]
    return short
