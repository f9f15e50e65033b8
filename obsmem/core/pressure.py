"""How full a session's window is, how large the window is, and what was spent: values, without a word of what was said.

Occupancy and spend are different numbers: occupancy is what the next request will hold, spend is the sum over all
requests. Invariant: each number says where it came from; 0 means unknown, never empty.
"""

from __future__ import annotations

from typing import Literal

from obsmem.core.tuples import NamedTuple

MeasureKind = Literal["request", "side", "kept", "count"]
MEASURE_KINDS: tuple[MeasureKind, ...] = ("request", "side", "kept", "count")


class Measure(NamedTuple):
    """What was reported at one record, in tokens; 0 and '' where it was not. ``context`` is what the model had before it,
    ``cached`` and ``written`` the parts of that which were read from a cache and written to one, ``output`` what the model
    wrote. ``at`` in milliseconds. ``request`` names the request among its session's: a later record of the same name says
    more of it. ``kind``: a ``request`` of the session's own agent; one at its ``side`` (a sub-agent's, a summariser's);
    what a compaction ``kept``, as the harness estimates it, without what stands in every request; or a ``count`` that the
    harness made itself. ``trigger`` of a compaction is auto or manual; its ``summary`` is hidden (it is there, but nobody can
    read it), none, or '' where the entries after it show it. ``place`` says which entries it has counted: those up
    to this record, those ``before`` it, or those up to the last words that the agent ``spoke``."""

    context: int = 0
    window: int = 0
    model: str = ""
    output: int = 0
    cached: int = 0
    written: int = 0
    at: int = 0
    request: str = ""
    kind: MeasureKind = "request"
    trigger: str = ""
    summary: Literal["", "hidden", "none"] = ""
    place: Literal["here", "before", "spoke"] = "here"


class Limits(NamedTuple):
    """What a harness makes of a window: the part that it keeps for the answer, and the mark at which it compacts, each with
    where that is known from; 0 and '' where it is not."""

    reserve: int = 0
    reserve_source: str = ""
    mark: int = 0
    mark_source: str = ""


class Window(NamedTuple):
    """The context window of a session's model, in tokens. ``size`` as the provider counts it, ``reserve`` the part kept for
    the answer, ``mark`` the occupancy at which the harness compacts on its own. The sources say in a few words where each came from
    ('reported by the harness', 'learned from a refusal', …); 0 and '' where nothing is known."""

    size: int = 0
    size_source: str = ""
    reserve: int = 0
    reserve_source: str = ""
    mark: int = 0
    mark_source: str = ""

    @property
    def usable(self) -> int:
        """What may stand in a request beside the answer; 0 where the size is unknown."""
        return max(0, self.size - self.reserve)


class Occupancy(NamedTuple):
    """What the next request will hold, in tokens: ``counted`` by the provider for the last primary request (the answer to it
    included), ``estimated`` by us for what came after. ``at`` is when the provider counted (milliseconds), ``seq`` the last entry
    that it had counted; both 0 and -1 where it never did, all being estimated."""

    counted: int = 0
    estimated: int = 0
    at: int = 0
    seq: int = -1
    model: str = ""
    window: Window = Window()

    @property
    def tokens(self) -> int:
        """Counted and estimated together."""
        return self.counted + self.estimated

    @property
    def share(self) -> float:
        """The part of the usable window that is taken, 0 to 1 and more; 0 where the window is unknown."""
        return self.tokens / self.window.usable if self.window.usable else 0.0

    @property
    def of_mark(self) -> float:
        """The part of the way to the harness's own compaction; 0 where its mark is unknown."""
        return self.tokens / self.window.mark if self.window.mark else 0.0


class Spend(NamedTuple):
    """The sum over a session's requests, in tokens as the provider counted them: ``fresh`` input that was neither read from
    a cache nor written to one, ``cached`` read from a cache, ``written`` to a cache, ``output``."""

    requests: int = 0
    fresh: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0

    @property
    def tokens(self) -> int:
        """Everything together."""
        return self.fresh + self.cached + self.written + self.output

    def plus(self, other: Spend) -> Spend:
        """The sum, field by field."""
        return Spend(*(a + b for a, b in zip(self, other, strict=True)))
