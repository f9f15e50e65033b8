"""Telling a block of our own from the words that somebody put around it.

Invariant: joined in order, the pieces are the text, but for blanks between them; a block without its end goes to the end of the
text.
"""

from __future__ import annotations

from obsmem.core import late
from obsmem.harnesses.written import OWN_BLOCK

_BLOCK = late.pattern(r"<observational-memory .*?(?:</observational-memory>|\Z)", 16)  # re.DOTALL


def apart(text: str) -> list[tuple[bool, str]]:
    """(is our own block, words) of each piece of a text, in order; pieces of blanks are left out."""
    if OWN_BLOCK not in text:
        return [(False, text)]
    pieces: list[tuple[bool, str]] = []
    end = 0
    for match in _BLOCK.finditer(text):
        pieces += [(False, text[end : match.start()].strip()), (True, match.group(0))]
        end = match.end()
    pieces.append((False, text[end:].strip()))
    return [piece for piece in pieces if piece[1]]
