"""The window of a session's model, the part of it that is kept for answers, and the mark at which the harness compacts.

Invariants: what the harness reported of the session itself wins over what was learned of its model, that over what its
files say, and that over the usual window; a number that the session has shown to be wrong (it held more) is not given.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from obsmem.core.pressure import Window
from obsmem.harnesses import load
from obsmem.harnesses.base import Harness
from obsmem.store.archive import StoredSession
from obsmem.store.measures import OWN_REQUESTS, Measured, measures_of
from obsmem.store.windows import known_mark, known_window, save_mark, save_size
from obsmem.tasks.store import Store

SMALLEST, LARGEST = 1_000, 100_000_000  # tokens: what is no such number is no window
SLACK = 1.05  # of a mark that a session may hold without a compaction before the mark is not believed there
REFUSAL = "learned from a refusal"
LEARNED = "learned from compactions"
REPORTED = "reported by the harness"


def window_of(store: Store, stored: StoredSession) -> Window:
    """The window of a session's model; each of its numbers says where it came from."""
    return window_after(store, stored, measures_of(store.archive.connection, stored.no))


def window_after(store: Store, stored: StoredSession, measures: Sequence[Measured]) -> Window:
    """The same where the session's measures are at hand."""
    module, model = load(stored.session.harness), model_of(stored, measures)
    size, source, output = _size(store, module, stored, model, measures)
    size, source = _larger(module, size, source, measures)
    if not size:
        return Window()
    limits = module.limits(size, output)
    mark, mark_source = known_mark(store.memory.connection, stored.session.harness, model, size)
    if not mark:
        mark, mark_source = limits.mark, limits.mark_source
    usable, held = size - limits.reserve, _held(measures)
    if mark and held > mark * SLACK:
        mark, mark_source = max(usable, held), f"the usable window: {held} tokens were held past the mark"
    return Window(size, source, limits.reserve, limits.reserve_source, mark, mark_source)


def learn_window(store: Store, harness: str, model: str, size: int, why: str) -> None:
    """Keep the size of a model's window, in tokens; ``why`` says where it came from. What a refusal says is kept only where
    it is smaller than what is known, or nothing is."""
    model = bare_name(model)
    if not model or not SMALLEST <= size <= LARGEST:
        return
    known = known_window(store.memory.connection, harness, model)
    if known.size == size or (why == REFUSAL and 0 < known.size < size):
        return
    save_size(store.memory.connection, harness, model, size, why)


def learn_mark(store: Store, harness: str, model: str, mark: int, why: str, *, size: int = 0) -> None:
    """Keep the occupancy, in tokens, at which a harness compacted a window of ``size`` (the model's usual one by default)
    on its own: a lower one at once, a higher one by a fifth of the way."""
    model = bare_name(model)
    if not model or not SMALLEST <= mark <= LARGEST:
        return
    size = size or known_window(store.memory.connection, harness, model).size or load(harness).WINDOW
    save_mark(store.memory.connection, harness, model, size, mark, why)


def bare_name(model: str) -> str:
    """A model's name without what some harnesses put behind it to name its window: ``name[1m]``."""
    return model.partition("[")[0].strip()


def model_of(stored: StoredSession, measures: Sequence[Measured]) -> str:
    """The model that answered last."""
    named = (one.model for one in reversed(measures) if one.model and one.kind in OWN_REQUESTS)
    return bare_name(next(named, "") or stored.session.model)


def _size(
    store: Store, module: Harness, stored: StoredSession, model: str, measures: Sequence[Measured]
) -> tuple[int, str, int]:
    """(size, where it came from, the most that the model answers with)."""
    known = known_window(store.memory.connection, stored.session.harness, model)
    reported = next((one.window for one in reversed(measures) if one.window), 0) or stored.session.window
    if reported and not (known.source == REFUSAL and known.size < reported):
        return reported, REPORTED, 0
    size, output, source = module.model_window(os.path.expanduser("~"), model) if model else (0, 0, "")
    if known.size:
        return known.size, known.source, output
    if size:
        return size, source, output
    return module.WINDOW, "the usual window there", 0


def _larger(module: Harness, size: int, source: str, measures: Sequence[Measured]) -> tuple[int, str]:
    """The window of a session that held more than the size that is known: the next larger one. An automatic compaction that
    came below that size says that it is the right one again."""
    if source == REPORTED:
        return size, source
    most = 0
    for one in measures:
        if one.kind in OWN_REQUESTS:
            most = max(most, one.context)
        elif one.kind == "kept" and one.trigger == "auto" and _before(measures, one) <= size:
            most = 0
    if most <= size:
        return size, source
    larger = next((one for one in module.LARGER_WINDOWS if one >= most), most)
    return larger, f"{most} tokens were counted, more than {size}"


def _before(measures: Sequence[Measured], kept: Measured) -> int:
    """The context of the last request before a compaction; 0 for none."""
    return next((one.context for one in reversed(measures) if one.seq < kept.seq and one.kind in OWN_REQUESTS), 0)


def _held(measures: Sequence[Measured]) -> int:
    """The most that the session's own requests held since the last compaction."""
    most = 0
    for one in reversed(measures):
        if one.kind == "kept":
            break
        if one.kind in OWN_REQUESTS:
            most = max(most, one.context)
    return most
