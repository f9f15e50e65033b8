"""The piece of a text that shows best why it was found: stored words, cut, never rewritten.

Invariant: what is cut away is marked, and the mask goes over whole lines before anything is cut, so that no piece of a
secret stays because the rest of it was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from obsmem.core.clean import one_line

LENGTH = 240  # characters of a snippet
MARGIN = 2_000  # characters on each side that are masked with it
MOST_MATCHES = 100  # places of one text that are weighed


def snippet(text: str, pattern: re.Pattern[str] | None, mask: Callable[[str], str], length: int = LENGTH) -> str:
    """About ``length`` characters of a text around what ``pattern`` finds in it, as one line; its beginning where it finds
    nothing."""
    start, end = _best_window(text, pattern, length)
    first = text.rfind("\n", 0, max(0, start - MARGIN)) + 1 if start > MARGIN else 0
    last = text.find("\n", end + MARGIN)
    last = len(text) if last < 0 else last
    first, last = max(first, start - 4 * MARGIN), min(last, end + 4 * MARGIN)
    around = one_line(mask(text[first:last]))
    low, high = _best_window(around, pattern, length)
    piece = around[low:high].strip()
    return ("…" if first or low else "") + piece + ("…" if high < len(around) or last < len(text) else "")


def _best_window(text: str, pattern: re.Pattern[str] | None, length: int) -> tuple[int, int]:
    """The window that shows the most different finds, the first of several; a few words of it stand before the first."""
    if len(text) <= length:
        return 0, len(text)
    places: list[tuple[int, int, str]] = []
    if pattern is not None:
        for match in pattern.finditer(text):
            places.append((match.start(), match.end(), match.group().casefold()))
            if len(places) == MOST_MATCHES:
                break
    if not places:
        return 0, length
    best, most = 0, 0
    for index, (start, _, _) in enumerate(places):
        shown = {word for at, end, word in places[index : index + 40] if end <= start + length * 3 // 4}
        if len(shown) > most:
            best, most = index, len(shown)
    start = max(0, min(places[best][0] - length // 4, len(text) - length))
    if start:
        blank = text.find(" ", start, start + 20)
        start = blank + 1 if blank >= 0 else start
    return start, min(len(text), start + length)
