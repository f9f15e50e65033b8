"""Which records of a rollout repeat one message.

Codex writes a message up to three times: as an item of the model's history, as an event, and (newest) as a completed
item, a few records apart and in any order. Rule: the first of them is the entry, later ones are its copies. Two
records pair only when they stand within ``WINDOW`` records, have the same text, and come from different sides; so
"yes" said twice is two messages. Invariant: a text that no other side repeats is never taken for a copy.
"""

from __future__ import annotations

from typing import Any

from obsmem.harnesses.base import link_key

WINDOW = 32
KEPT = 64


def text_key(text: str) -> str:
    """A short key of a text; space around it does not count."""
    return link_key(text.strip())


class Mirrors:
    """Messages of late that another side may still repeat. ``pending`` is what must be kept, as JSON."""

    def __init__(self, pending: list[list[Any]] | None = None) -> None:
        self.pending: list[list[Any]] = pending or []  # [channel, text key, sides seen, record number]

    def is_copy(self, channel: str, side: str, key: str, number: int) -> bool:
        """True if another side said the text with this key (``text_key``) a moment ago; else remembers it.

        ``number`` counts records.
        """
        pending = self.pending
        while pending and (pending[0][3] < number - WINDOW or len(pending) > KEPT):
            del pending[0]
        for item in pending:
            if item[1] == key and item[0] == channel and side not in item[2]:
                item[2] += side
                return True
        pending.append([channel, key, side, number])
        return False

    def also(self, channel: str, side: str, text: str, number: int) -> None:
        """Let a text (several items joined) be matched by other sides, too."""
        self.pending.append([channel, text_key(text), side, number])

    def forget(self, channel: str) -> None:
        """A new turn begins: nothing said before is repeated from here on."""
        self.pending = [item for item in self.pending if item[0] != channel]
