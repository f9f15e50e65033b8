"""Running a session of the store again under other settings, and setting what is decided then beside what was.

Invariants: the store is only read: everything happens in a folder that is thrown away, on a copy that grows as the session grew.
Nothing but the extractive worker is asked unless the caller says so; what models answered once is used again where the same is
asked. Without a setting of its own, the policy is the one under which each decision was taken.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.decisions import BLOCK, REPLAYED, Decision
from obsmem.core.errors import NotFound
from obsmem.memory.lines import pool
from obsmem.store.archive import StoredSession
from obsmem.store.archive_copy import SessionCopy
from obsmem.store.memory_copy import copy_fixed, copy_sessions
from obsmem.system import config as configuration
from obsmem.system.config import Config
from obsmem.system.files import read_bytes, write_atomic
from obsmem.tasks.ask import cascade
from obsmem.tasks.decide import DUE, FAST
from obsmem.tasks.deliver import decide_block
from obsmem.tasks.observe import leave_gap, observe_up_to, run_passes
from obsmem.tasks.pins import HAND
from obsmem.tasks.remember import goes_on_from, remember
from obsmem.tasks.replay_recorded import BY_RULE, Recorded
from obsmem.tasks.replay_steps import GAP, PARENT, PASSES, Step, natural_steps, recorded_steps, turn_ends
from obsmem.tasks.store import KEY, Store, open_store
from obsmem.workers.base import Worker

# The settings that a replay turns on; any other has no part in what it decides.
POLICY = (
    "observe_after_tokens", "reflect_after_tokens", "chunk_max_tokens", "memory_max_tokens", "pool_target_tokens",
    "budget_tokens", "ungrounded", "workers",
)  # fmt: skip
# What is said beside a decision and is no part of what was decided: how often, at what cost, which bytes came of it, and the
# settings that it turned on (under the same policy they are the same because they are taken from it).
_BESIDE = frozenset((
    "routine", "times", "first_at", "first_seq", "tokens_in", "tokens_out", "delivery", "files_changed", "threshold", "target",
    "budget", "cap",
))  # fmt: skip


class Totals(NamedTuple):
    """What came of all decisions together. ``pool`` is what the visible notes cost, ``block`` the newest block, ``covered`` up to
    which entry everything is observed (or a gap); all but that and the counts in tokens."""

    calls: int
    notes: int
    visible: int
    rejected: int
    gaps: int
    reflections: int
    drops: int
    pool: int
    block: int
    covered: int
    tokens_in: int
    tokens_out: int


class Pair(NamedTuple):
    """A decision as it was recorded beside the one under the policy; None on a side that has none there."""

    recorded: Decision | None
    replayed: Decision | None

    @property
    def equal(self) -> bool:
        """True if the same was decided from the same numbers, whatever the settings."""
        if self.recorded is None or self.replayed is None:
            return False
        return _essence(self.recorded, self.replayed) == _essence(self.replayed, self.recorded)


class Compared(NamedTuple):
    """Both columns. ``apart`` counts the recorded decisions of kinds that no replay can take; ``was_recorded`` is False where
    nothing was written down, and the steps are those that hooks would have taken; ``reused`` counts answers of models."""

    stored: StoredSession
    policy: Mapping[str, Any]
    pairs: tuple[Pair, ...]
    recorded: Totals
    replayed: Totals
    apart: Mapping[str, int]
    was_recorded: bool
    reused: int

    @property
    def different(self) -> int:
        """How many pairs are not equal."""
        return sum(not pair.equal for pair in self.pairs)


def replay_stored(
    store: Store,
    stored: StoredSession,
    config: Config,
    policy: Mapping[str, Any],
    clock: Clock,
    *,
    workers: bool = False,
) -> Compared:
    """Run a stored session again under ``config`` with the settings of ``policy``, step by step as it grew. ``workers`` lets
    the configured ones be asked. Raises ConfigError for a wrong setting, NotFound for a session without entries."""
    handle = stored.session.handle
    if stored.last_seq < 0:
        raise NotFound(f"Session {handle} has no entries yet: there is nothing to replay.")
    decisions = store.memory.decisions(handle)
    steps = recorded_steps(decisions, turn_ends(store, stored) if "observe_after_tokens" in policy else ())
    was_recorded = bool(steps)
    if not workers and "workers" not in policy:
        config = configuration.override(config, {"workers": [BY_RULE]}, "replay")
    config = configuration.override(config, policy, "--policy")
    with tempfile.TemporaryDirectory(prefix="obsmem-replay-") as home:
        key = read_bytes(os.path.join(store.home, KEY), 1 << 10)
        if key:
            write_atomic(os.path.join(home, KEY), key, durable=False)  # the same text, the same mark
        with open_store(home, config) as scratch:
            run = _Run(store, scratch, stored, policy, clock, workers=workers)
            for step in steps or natural_steps(store, stored):
                run.take(step)
            replayed = scratch.memory.decisions(handle)
            totals = _totals(scratch, run.stored, replayed)
            reused = run.recorded.reused
    mine = _merged([one for one in decisions if one.what in REPLAYED])
    return Compared(
        stored, dict(policy), tuple(_align(mine, replayed)), _totals(store, stored, mine), totals,
        Counter(one.what for one in decisions if one.what not in REPLAYED), was_recorded, reused,
    )  # fmt: skip


class _Run:
    """One session being run again in a store of its own."""

    def __init__(
        self,
        store: Store,
        scratch: Store,
        stored: StoredSession,
        policy: Mapping[str, Any],
        clock: Clock,
        *,
        workers: bool,
    ) -> None:
        self.store, self.scratch, self.policy, self.clock, self.workers = store, scratch, policy, clock, workers
        self.config = scratch.config
        ancestors = _ancestors(store, stored)
        self.copy = SessionCopy(store.archive, scratch.archive, stored, ancestors)
        copy_sessions(store.memory, scratch.memory, [one.session.handle for one in ancestors])
        self.recorded = Recorded(store.memory, scratch.memory, stored.session.handle)
        self.stored = stored

    def take(self, step: Step) -> None:
        """Let the copy grow up to a step, and decide again what was decided there."""
        store, clock = self.scratch, self.clock
        counts = step.run.get("counts")
        known = None if counts is None else [(one[0], one[1]) for one in counts]
        self.stored = stored = self.copy.grow(step.seq, step.rewinds, known)
        copy_fixed(self.store.memory, store.memory, stored.session.handle, HAND, step.at)
        settings = {key: value for key, value in step.settings.items() if key not in self.policy}
        if self.workers or "workers" in self.policy:
            settings.pop("chunk_max_tokens", None)  # another model, another window
        store.config = configuration.override(self.config, settings, "replay")
        if step.kind == PASSES:
            fast = step.how == FAST
            run_passes(store, stored, clock, drain=step.how != DUE, fast=fast, gaps=not fast, team=self._team(fast))
        elif step.kind == PARENT:
            observe_up_to(store, stored, step.last, self._team(False), clock)
        elif step.kind == GAP:
            leave_gap(store, stored, step.first - 1, step.last, step.how, step.how, **step.run)
        else:
            decide_block(store, stored, clock, step.how)

    def _team(self, fast: bool) -> list[Worker]:
        """Who is asked: models' recorded answers, then the rules; or whoever the configuration names."""
        team = cascade(self.scratch, fast=fast, model=self.stored.session.model)
        return team if fast or self.workers or "workers" in self.policy else [self.recorded, *team]


def _ancestors(store: Store, stored: StoredSession) -> list[StoredSession]:
    """The sessions that a session goes on from, the farthest first."""
    found: list[StoredSession] = []
    current = stored
    while (point := goes_on_from(store, current)) is not None and len(found) < 20:
        current = store.archive.by_handle(point[0])
        if current.no == stored.no or any(one.no == current.no for one in found):
            break
        found.insert(0, current)
    return found


def _totals(store: Store, stored: StoredSession, decisions: Sequence[Decision]) -> Totals:
    handle = stored.session.handle
    calls = [call for call in store.memory.calls(handle) if call.worker != HAND]
    observed = [call for call in calls if call.task == "observe" and call.outcome in ("ok", "empty")]
    visible = remember(store, stored).notes
    blocks = [one.numbers.get("tokens", 0) for one in decisions if one.what == BLOCK]
    return Totals(
        len(observed), len(store.memory.notes(handle)), len(visible), sum(call.rejected for call in observed),
        len(store.memory.gaps(handle)), len(store.memory.reflections(handle)), len(store.memory.drops(handle)),
        pool(visible), blocks[-1] if blocks else 0, store.memory.covered_to(handle), sum(call.tokens_in for call in calls),
        sum(call.tokens_out for call in calls),
    )  # fmt: skip


def _essence(one: Decision, other: Decision) -> tuple[Any, ...]:
    """What a decision says, without what is no part of it; where the files on disk are not as they were, a block's sizes are
    none either, and of a model's answer only what was kept is known."""
    numbers = {name: value for name, value in one.numbers.items() if name not in _BESIDE}
    if one.numbers.get("files_changed") != other.numbers.get("files_changed"):
        for name in ("tokens", "sections", "part_bytes", "left_out", "notes_shown"):
            numbers.pop(name, None)
    if numbers.get("worker", BY_RULE) != BY_RULE:
        numbers.pop("rejected", None)
    return one.what, one.why, numbers


def _merged(decisions: Sequence[Decision]) -> list[Decision]:
    """Routine decisions as they would stand if no others had been taken but these: of each kind in a row only the newest."""
    kept: list[Decision] = []
    for one in decisions:
        if one.numbers.get("routine"):
            start = max((n for n, old in enumerate(kept, 1) if not old.numbers.get("routine")), default=0)
            kept[start:] = [old for old in kept[start:] if (old.what, old.why) != (one.what, one.why)]
        kept.append(one)
    return kept


def _align(recorded: Sequence[Decision], replayed: Sequence[Decision]) -> list[Pair]:
    """Set decisions side by side that were taken about the same, at the same place in the record."""
    left, right = [_place(one) for one in recorded], [_place(one) for one in replayed]
    pairs: list[Pair] = []
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs += [Pair(one, two) for one, two in zip(recorded[a:b], replayed[c:d], strict=True)]
        else:
            pairs += [Pair(one, None) for one in recorded[a:b]] + [Pair(None, two) for two in replayed[c:d]]
    return pairs


def _place(one: Decision) -> tuple[str, int]:
    return one.what, int(one.numbers.get("seq", -1))
