"""What the program decides, and the numbers that each decision turned on.

Invariant: a decision is written down once, when it is taken, with every number that a person would need to take it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obsmem.core.tuples import NamedTuple

OBSERVE = "observe"
WAIT = "wait"
REFLECT = "reflect"
DROP = "drop"
BLOCK = "block"
DELIVER = "deliver"
SECOND_TRY = "second-try"
UPGRADE = "upgrade tried"
COMPACT = "compact"
WARN = "warn"
REDUCE = "reduce"
THIN = "thin"
ROTATE = "rotate"
RUN = "run"

# Kind of decision -> what it says. SPEC prints this table.
DECISIONS: Mapping[str, str] = {
    OBSERVE: "an observer call was due",
    WAIT: "a pass was not due yet",
    REFLECT: "the reflector was due",
    DROP: "the dropper was due, and how many notes it may retire",
    BLOCK: "a block was made: what entered it, what was left out, sizes of its sections and parts",
    DELIVER: "a block was left for delivery, or its receipts were looked for",
    SECOND_TRY: "a delivery did not arrive, and is offered once more",
    UPGRADE: "a model observes again what only the extractive worker had observed",
    COMPACT: "a compaction was seen: what was held before and after it, and whether that cleared the mark",
    WARN: "the user and the agent are told that a compaction comes near",
    REDUCE: "a tool's output was shortened, or left as it is",
    THIN: "old tool results were masked in an outgoing request",
    ROTATE: "work moves to a fresh window",
    RUN: "a headless loop begins a turn, repeats none, or ends",
}

# What follows from the record and the settings alone, so that it can be decided again (``replay --policy``).
REPLAYED = (OBSERVE, WAIT, REFLECT, DROP, BLOCK)


class Decision(NamedTuple):
    """One row: ``what`` is a key of DECISIONS, ``why`` the reason in a few words (nothing anybody said), ``numbers`` name ->
    number or short word. ``at`` in milliseconds."""

    session: str
    at: int
    what: str
    why: str
    numbers: Mapping[str, Any] = {}
