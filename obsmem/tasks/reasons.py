"""Why each line of a block stands in it, and what was left out, kept beside the block for whoever asks later.

Invariants: there are reasons for the renderings that wait, that are delivered or that are kept, and for no other: as many as there
are block files, and one for the newest handoff; they go with the session's folder when it is forgotten. What they quote is
masked, as the block is.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, NamedTuple

from obsmem.core.model import Block, Memory, Reason
from obsmem.system import blockfile
from obsmem.system.files import read_bytes, remove, write_atomic

PREFIX = "reasons."  # of a file in a session's folder; then the delivery
HANDOFF = "handoff.reasons"  # of the handoff that a session left last
MOST_LEFT = 400  # lines and notes that were left out of which one file tells; the others are counted
QUOTED = 160  # characters of a line that was left out
LIMIT = 4 << 20  # bytes of such a file that are read
# Those that wait first: what a hook takes meanwhile is then seen as delivered.
_BLOCKS = (
    blockfile.DUE, blockfile.RESUME, blockfile.RETRY, blockfile.NEXT, blockfile.CURRENT, blockfile.KEPT, blockfile.RETRIED,
)  # fmt: skip


class Reasons(NamedTuple):
    """``shown`` are the lines of a block in order, ``left_out`` what could have stood there, ``hidden`` the notes that could not,
    each with why; ``more`` counts those of either that are not listed."""

    shown: tuple[Reason, ...] = ()
    left_out: tuple[Reason, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    more: int = 0


def reasons_of(block: Block, memory: Memory) -> Reasons:
    """The reasons of a block that was rendered of a memory; of what is hidden, the newest."""
    shown = tuple(one for one in block.reasons if one.why == "shown")
    left = [one for one in block.reasons if one.why != "shown"]
    hidden = list(memory.hidden.items())[::-1]
    more = max(0, len(left) - MOST_LEFT) + max(0, len(hidden) - MOST_LEFT)
    return Reasons(shown, tuple(left[:MOST_LEFT]), tuple(hidden[:MOST_LEFT]), more)


def count_left_out(block: Block, memory: Memory) -> dict[str, int]:
    """Of how many lines and notes it holds why they do not stand in a block: reason -> count."""
    counted = Counter(one.why for one in block.reasons if one.why != "shown")
    counted.update("equal text" if why.startswith("equal") else why for why in memory.hidden.values())
    return dict(sorted(counted.items()))


def keep_reasons(folder: str, block: Block, memory: Memory) -> None:
    """Leave the reasons of a block that was just written, and remove those of blocks that are gone."""
    _write(os.path.join(folder, PREFIX + block.nonce), block, memory)
    there = {PREFIX + blockfile.read(os.path.join(folder, name))[0] for name in _BLOCKS}
    for name in os.listdir(folder):
        if name.startswith(PREFIX) and name not in there:
            remove(os.path.join(folder, name))


def keep_handoff_reasons(folder: str, block: Block) -> None:
    """Leave the reasons of the handoff of a session, in its own folder: whoever takes it is not known yet."""
    _write(os.path.join(folder, HANDOFF), block, Memory())


def _write(path: str, block: Block, memory: Memory) -> None:
    found = reasons_of(block, memory)
    value = {
        "delivery": block.nonce,
        "shown": found.shown,
        "left_out": [one._replace(text=one.text[:QUOTED]) for one in found.left_out],
        "hidden": found.hidden,
        "more": found.more,
    }
    write_atomic(path, json.dumps(value).encode(), durable=False)


def read_reasons(folder: str, delivery: str, name: str = "") -> Reasons | None:
    """The reasons of a delivery (in the file of that name, for a handoff); None where they are not kept, or cannot be read."""
    try:
        value = json.loads(read_bytes(os.path.join(folder, name or PREFIX + delivery), LIMIT) or b"null")
        if value is None or value["delivery"] != delivery:
            return None
        return Reasons(
            tuple(_reason(one) for one in value["shown"]),
            tuple(_reason(one) for one in value["left_out"]),
            tuple((str(name), str(why)) for name, why in value["hidden"]),
            int(value["more"]),
        )
    except (ValueError, TypeError, KeyError):
        return None


def _reason(value: list[Any]) -> Reason:
    section, why, text, rank, tokens, ids, seqs = value
    return Reason(section, why, text, tuple(rank), tokens, tuple(ids), tuple(seqs))
