"""The points at which decisions about a session were taken, with the settings that they turned on then.

Invariants: steps are in the order of the record that they stand in; a step's settings are those that its own decisions name, else
those of the step before it. Where nothing was written down, the steps are those that hooks would have taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from obsmem.core.decisions import BLOCK, DROP, OBSERVE, REFLECT, REPLAYED, WAIT, Decision
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES, SPEAKER_CODES
from obsmem.tasks.decide import DUE, FAST, FORK
from obsmem.tasks.deliver import AFTER_TURN, BEFORE_COMPACTION
from obsmem.tasks.store import Store

PASSES, PARENT, GAP, RENDER = "passes", "parent", "gap", "render"
_HUMAN = f"kind={KIND_CODES['user']} AND speaker={SPEAKER_CODES['human']} AND active=1 AND replaced_by IS NULL"
# Number of a decision -> the setting that it was.
_SETTINGS: Mapping[tuple[str, str], str] = {
    (OBSERVE, "cap"): "chunk_max_tokens", (OBSERVE, "threshold"): "observe_after_tokens",
    (WAIT, "threshold"): "observe_after_tokens", (REFLECT, "threshold"): "reflect_after_tokens",
    (DROP, "target"): "pool_target_tokens", (BLOCK, "budget"): "budget_tokens",
}  # fmt: skip


class Step(NamedTuple):
    """One thing that was done when the record reached ``seq``, at a time (milliseconds). ``how`` is the mode of the passes, or why a
    block was made; ``last`` is where a parent's observation or a gap ends, ``first`` where a gap begins, and ``run`` what the decision
    about it says of the run that it belongs to; ``rewinds`` how often the live path had changed (None: as it is now)."""

    seq: int
    at: int
    kind: str
    how: str
    settings: Mapping[str, Any]
    last: int = -1
    first: int = -1
    run: Mapping[str, Any] = {}
    rewinds: int | None = None


def recorded_steps(decisions: Sequence[Decision], turn_ends: Sequence[int] = ()) -> list[Step]:
    """The steps behind the decisions of a session, in order. ``turn_ends`` (seqs) are looked at, too, where it was decided again
    and again to wait: under another threshold that may end."""
    settings: dict[str, Any] = {}
    steps: list[Step] = []
    open_run: list[Decision] = []  # observer calls whose run did not say yet that it ended

    def end_run() -> None:
        if open_run:
            steps.append(_step(open_run[-1], PASSES, dict(settings)))
            open_run.clear()

    for one in decisions:
        numbers = one.numbers
        if one.what not in REPLAYED or "seq" not in numbers:
            continue
        if open_run and open_run[-1].numbers["seq"] != numbers["seq"]:
            end_run()
        settings.update(
            {key: numbers[name] for (what, name), key in _SETTINGS.items() if what == one.what and name in numbers}
        )
        if one.what == OBSERVE and numbers.get("outcome") == "gap":
            end_run()
            steps.append(_step(one, GAP, dict(settings)))
        elif one.what == OBSERVE and numbers["mode"] == FORK:
            steps.append(_step(one, PARENT, dict(settings)))
        elif one.what == OBSERVE:
            open_run.append(one)
        elif one.what in (WAIT, BLOCK):
            if one.what == BLOCK:
                end_run()
            open_run.clear()
            step = _step(one, PASSES if one.what == WAIT else RENDER, dict(settings))
            began = int(numbers.get("first_seq", step.seq))
            waited = [seq for seq in turn_ends if began <= seq < step.seq] if step.kind == PASSES else []
            steps += [step._replace(seq=seq, run={}) for seq in waited] + [step]
    end_run()
    return sorted(steps, key=lambda step: step.seq)


def _step(one: Decision, kind: str, settings: Mapping[str, Any]) -> Step:
    numbers = one.numbers
    how = one.why if kind in (RENDER, GAP) else str(numbers.get("mode", DUE))
    last = numbers.get("up_to", -1) if kind == PARENT else numbers.get("last", -1)
    run = {name: numbers[name] for name in ("mode", "clock", "threshold", "counts") if name in numbers}
    return Step(
        int(numbers["seq"]),
        one.at,
        kind,
        how,
        settings,
        int(last),
        int(numbers.get("first", -1)),
        run,
        int(numbers.get("rewinds", 0)),
    )


def turn_ends(store: Store, stored: StoredSession) -> list[int]:
    """The seqs of the last entries before a human spoke again, and of the last one."""
    ends = {row.seq - 1 for row in store.archive.entries(stored.no, where=_HUMAN) if row.seq > 0}
    return sorted({*ends, stored.last_seq})


def natural_steps(store: Store, stored: StoredSession) -> list[Step]:
    """What hooks would have done: at the end of every turn what is due, before every compaction everything, by rule."""
    compactions = [seq - 1 for seq in store.archive.boundaries(stored.no) if seq > 0]
    steps: list[Step] = []
    for seq in sorted({*turn_ends(store, stored), *compactions}):
        row = store.archive.entry(stored.no, seq)
        at = row.at if row is not None else 0
        compacted = seq in compactions
        steps.append(Step(seq, at, PASSES, FAST if compacted else DUE, {}))
        steps.append(Step(seq, at, RENDER, BEFORE_COMPACTION if compacted else AFTER_TURN, {}))
    return steps
