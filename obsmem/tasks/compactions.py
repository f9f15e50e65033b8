"""What a session's compactions and refusals show: the marks and windows of models, and whether the mark was cleared.

Invariants: a mark is learned only from a compaction that the harness made on its own; each compaction is written down once,
when the request after it was counted; no word of anybody is kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core.decisions import COMPACT, Decision
from obsmem.core.pressure import Measure
from obsmem.core.refusals import read_refusal
from obsmem.harnesses import load
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES
from obsmem.store.measures import OWN_REQUESTS, Measured, Placed, measures_of, save_measures
from obsmem.store.schema import transaction
from obsmem.store.windows import known_window, save_ratio
from obsmem.tasks.decide import decide
from obsmem.tasks.entries import read_entries
from obsmem.tasks.occupancy import measured_ratio, occupancy_after
from obsmem.tasks.store import Store
from obsmem.tasks.windows import LARGEST, LEARNED, REFUSAL, REPORTED, learn_mark, learn_window, model_of, window_after

HARDLY = 0.9  # of the mark, or of what was held before: a compaction that leaves as much did not clear it
SAME_RATIO = 0.02  # a ratio that differs by no more is not written down again
REFUSAL_LENGTH = 4_000  # characters of a notice that may be a refusal
CLEARED, NOT_CLEARED, NO_SUMMARY = "cleared the mark", "did not clear the mark", "came without a summary"
LOOKED_AT = 20  # sessions of a harness, the last grown, by which is seen whether its compactions bring summaries
EXAMINED, REFUSED = "compactions", "refusals"  # how far a session was looked through
COUNTED = (*OWN_REQUESTS, "count")
TRIGGERS = ("auto", "manual")
_NOTICE = f"kind={KIND_CODES['notice']} AND replaced_by IS NULL"
_SUMMARY = f"kind={KIND_CODES['summary']} AND tokens>0"


class Compaction(NamedTuple):
    """One compaction, by the entry of its boundary. ``before`` is the occupancy that brought it about, ``asked`` the context of
    the last request before it, which had not yet; ``after`` that of the first request after it, 0 while there is none.
    ``trigger`` is auto, manual, or '' where nobody said."""

    seq: int
    before: int
    asked: int
    after: int
    trigger: str
    has_summary: bool
    size: int
    mark: int
    model: str

    @property
    def cleared(self) -> bool:
        """False where what came after holds as much as the mark or what was held before, or hardly less."""
        if self.mark and self.after >= HARDLY * self.mark:
            return False
        return self.after < HARDLY * self.before or self.after < self.mark / 2

    @property
    def outcome(self) -> str:
        """What is written down of it."""
        return (CLEARED if self.has_summary else NO_SUMMARY) if self.cleared else NOT_CLEARED


def learn_from(store: Store, stored: StoredSession) -> None:
    """Learn what a session newly shows of its model's window, and write down what became of its compactions."""
    measures = measures_of(store.archive.connection, stored.no)
    _learn_refusals(store, stored, measures)
    found = measured_ratio(store, stored, measures)
    model = model_of(stored, measures)
    known = known_window(store.memory.connection, stored.session.harness, model).ratio
    if found and model and abs(found - known) > SAME_RATIO:
        save_ratio(store.memory.connection, stored.session.harness, model, found)
    examined = store.memory.progress(stored.session.handle, EXAMINED)
    for one in compactions(store, stored, measures, examined):
        if not one.after:
            break
        _learn_mark(store, stored, one)
        decide(
            store, stored, COMPACT, one.outcome, boundary=one.seq, before=one.before, after=one.after, mark=one.mark,
            window=one.size, trigger=one.trigger or "unknown",
        )  # fmt: skip
        store.memory.set_progress(stored.session.handle, EXAMINED, one.seq)


def compactions(store: Store, stored: StoredSession, measures: Sequence[Measured], after: int = -1) -> list[Compaction]:
    """The compactions of a session whose boundary stands behind the entry ``after``, in order."""
    boundaries = store.archive.boundaries(stored.no)
    ends = [*boundaries[1:], stored.last_seq + 1]
    return [
        _compaction(store, stored, measures, seq, end)
        for seq, end in zip(boundaries, ends, strict=False)
        if seq > after
    ]


def _compaction(store: Store, stored: StoredSession, measures: Sequence[Measured], seq: int, end: int) -> Compaction:
    before = [one for one in measures if one.seq < seq]
    held = occupancy_after(store, stored, before, seq - 1)
    asked = next((one.context for one in reversed(before) if one.kind in OWN_REQUESTS), 0)
    first = next((one for one in measures if seq < one.seq < end and one.kind in COUNTED), None)
    kept = [one for one in measures if one.kind == "kept" and seq <= one.seq < (first.seq if first else end)]
    trigger = next((one.trigger for one in kept if one.trigger), "") or _heard(store, stored, seq)
    summary = next((one.summary for one in kept if one.summary), "")
    read = any(True for _ in store.archive.entries(stored.no, seq, first.seq if first else end - 1, _SUMMARY))
    window = window_after(store, stored, before)
    return Compaction(
        seq, held.tokens, asked, first.context if first else 0, trigger, summary == "hidden" or read, window.size, window.mark,
        held.model,
    )  # fmt: skip


def hear(store: Store, stored: StoredSession, announced: str) -> None:
    """Remember what a hook says of a compaction that comes (``auto:24000/200000``: how it came about, what the window holds,
    how large it is), for harnesses whose transcripts do not say."""
    trigger, _, counts = announced.partition(":")
    held, _, size = counts.partition("/")
    if trigger in TRIGGERS:
        store.memory.set_progress(stored.session.handle, trigger, stored.last_seq)
    if held.isdecimal() and size.isdecimal() and 0 < int(held) <= LARGEST:
        told = Measure(int(held), int(size), stored.session.model, at=int(time.time() * 1000), kind="count")
        with transaction(store.archive.connection):
            save_measures(store.archive.connection, stored.no, [Placed(max(stored.last_seq, 0), told)])
        learn_window(store, stored.session.harness, stored.session.model, int(size), REPORTED)


def _heard(store: Store, stored: StoredSession, seq: int) -> str:
    """How a compaction came about by the hook that announced it, since the boundary before; '' where none did."""
    earlier = max((one for one in store.archive.boundaries(stored.no) if one < seq), default=-1)
    heard = {name: store.memory.progress(stored.session.handle, name) for name in TRIGGERS}
    near = {name: at for name, at in heard.items() if earlier <= at < seq and at >= 0}
    return max(near, key=lambda name: near[name]) if near else ""


def _learn_mark(store: Store, stored: StoredSession, one: Compaction) -> None:
    """The mark lies above what was still asked, and not above what was held. Where the harness's own figure lies there, it is
    that; where a hook or the transcript does not say who compacted, only such a figure is believed."""
    if one.trigger == "manual" or not one.before or not one.size:
        return
    limits = load(stored.session.harness).limits(one.size, 0)
    if one.asked < limits.mark <= one.before:
        mark = limits.mark
    elif one.trigger != "auto":
        return
    else:
        mark = one.before if one.before < limits.mark or not limits.mark else one.asked
    learn_mark(store, stored.session.harness, one.model, mark, LEARNED, size=one.size)


def _learn_refusals(store: Store, stored: StoredSession, measures: Sequence[Measured]) -> None:
    """Learn the window that a refusal names: of the harness's own words only, and none that the session has exceeded."""
    handle = stored.session.handle
    examined = store.memory.progress(handle, REFUSED)
    if examined >= stored.last_seq:
        return
    rows = store.archive.entries(stored.no, examined + 1, stored.last_seq, _NOTICE)
    for entry in read_entries(store, stored, rows, lost=True):
        refused = read_refusal(entry.text) if len(entry.text) < REFUSAL_LENGTH else None
        if refused and refused[0]:
            before = [one for one in measures if one.seq < entry.seq]
            most = max((one.context for one in before if one.kind in OWN_REQUESTS), default=0)
            if refused[0] >= most:
                learn_window(store, stored.session.harness, model_of(stored, before or measures), refused[0], REFUSAL)
    store.memory.set_progress(handle, REFUSED, stored.last_seq)


def trouble(store: Store, stored: StoredSession) -> Decision | None:
    """The newest compaction of a session, where it did not clear the mark or came without a summary; None where all is
    well."""
    found = store.memory.last_decision(stored.session.handle, COMPACT)
    return found if found is not None and found.why != CLEARED else None


def recent_trouble(store: Store, since: int) -> list[tuple[StoredSession, Decision]]:
    """The main sessions that grew since a time in milliseconds and whose newest compaction did not help, the last grown first."""
    found = [(one, trouble(store, one)) for one in store.archive.sessions() if one.updated_at >= since]
    return [(one, wrong) for one, wrong in found if wrong is not None and one.session.role == "main"]


def in_progress_words(store: Store, stored: StoredSession) -> str:
    """What the block says first where a compaction leaves the model without knowing that work goes on: where the session's last
    one did not help, or the harness's last one brought no summary. '' otherwise."""
    wrong = trouble(store, stored)
    if wrong is None:
        others = [one for one in store.archive.sessions() if one.session.harness == stored.session.harness][:LOOKED_AT]
        last = (store.memory.last_decision(one.session.handle, COMPACT) for one in others)
        newest = max((one for one in last if one is not None), key=lambda one: one.at, default=None)
        wrong = newest if newest is not None and newest.why == NO_SUMMARY else None
    if wrong is None:
        return ""
    return (
        "WORK IS IN PROGRESS. The window may begin with no summary, or a poor one: do not begin anew or greet; do what the last "
        "instruction below asks, unless it is done by now."
    )


def trouble_words(wrong: Decision) -> str:
    """What is wrong with a compaction, in one sentence."""
    numbers = wrong.numbers
    if wrong.why == NO_SUMMARY:
        return "the last one came without a summary: the model knew nothing of the work but what our block said"
    return (
        f"the last one did not clear the mark: {numbers.get('before', 0):,} tokens before it, {numbers.get('after', 0):,} after "
        f"it, and the harness compacts at {numbers.get('mark', 0):,}; large instructions, tools or pinned files stay in "
        "every request"
    )
