"""Stored words as they may leave the store in a report.

Invariant: what comes out holds no secret and nothing that a reader cannot see; it is masked whole, before anything is cut off.
"""

from __future__ import annotations

from obsmem.core.clean import one_line, strip_controls
from obsmem.core.mask import mask
from obsmem.tasks.store import Store


def clean_text(store: Store, text: str) -> str:
    """A text without secrets, before and after what nobody can see is taken out of it."""
    seen = strip_controls(text)
    return store.mask(seen) if seen == text else mask(store.mask(strip_controls(store.mask(text))))


def clean_words(store: Store, text: str, limit: int = 0) -> str:
    """The same in one line, of at most ``limit`` characters where that is given."""
    line = one_line(clean_text(store, text))
    return line if not limit or len(line) <= limit else line[: limit - 1].rstrip() + "…"
