"""Which records of a rollout repeat one message.

Codex writes a message up to three times: as an item of the model's history, as an event, and (newest) as a completed
item, a few records apart and in any order. Rule: the first of them is the entry, later ones are its copies. Two
records pair only when they stand within ``WINDOW`` records, have the same text, and come from different sides; so
"yes" said twice is two messages. Invariant: a text that no other side repeats is never taken for a copy.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

WINDOW = 32
KEPT = 64


def text_key(text: str) -> str:
    """A short key of a text: length and checksum, enough among the few that are pending. Space around it is ignored."""
    raw = text.strip().encode("utf-8", "surrogatepass")
    return f"{len(raw)}.{crc32(raw)}"


class Mirrors:
    """Messages of late that another side may still repeat.

    ``pending`` is what must be kept, as JSON: channel and text key -> [sides seen, record number] of each message.
    """

    def __init__(self, pending: dict[str, list[list[Any]]] | None = None) -> None:
        self.pending: dict[str, list[list[Any]]] = pending or {}

    def is_copy(self, channel: str, side: str, key: str, number: int) -> bool:
        """True if another side said the text with this key (``text_key``) a moment ago; else remembers it.

        ``number`` counts records.
        """
        said = self.pending.setdefault(channel + key, [])
        for message in said:
            if message[1] >= number - WINDOW and side not in message[0]:
                message[0] += side
                return True
        said.append([side, number])
        if len(self.pending) > KEPT:
            self._expire(number)
        return False

    def forget(self, channel: str) -> None:
        """A new turn begins: nothing said before is repeated from here on."""
        self.pending = {key: said for key, said in self.pending.items() if not key.startswith(channel)}

    def _expire(self, number: int) -> None:
        recent = {
            key: [message for message in said if message[1] >= number - WINDOW] for key, said in self.pending.items()
        }
        self.pending = {key: said for key, said in recent.items() if said}
