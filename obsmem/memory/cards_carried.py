"""Facts about what goes on beside the words: skills in use, the plan that was agreed, what runs in the background.

Invariants: something that runs is known by the id that its harness gave it, so that its end, told anywhere, is its own;
a plan counts once a human has accepted it. What is kept for later is bounded, whatever was fed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from obsmem.core.model import Action, Entry, Fact

PLAN_KEPT = 4_000  # characters
WORDS_KEPT = 600  # characters of what a skill was given, or of a focus
TASKS_KEPT = 32

Tasks = dict[str, list[str]]  # id -> [what it is, its shell line]


def spoken_facts(entry: Entry, proposed: list[Any]) -> Iterator[Fact]:
    """What a harness wrote of a human's doing: a skill called by name, a focus for the summary, a plan accepted:
    the one that it names, or that was ``proposed`` (seq and text) before."""
    for action in entry.actions:
        if action.kind == "skill" and action.command:
            yield skill_fact(action, (entry.seq,), entry.at)
        elif action.kind == "focus" and action.new.strip():
            yield Fact("focus", (entry.seq,), entry.at, text=action.new.strip()[:WORDS_KEPT])
        elif action.kind == "plan" and (action.path or proposed):
            seqs = (int(proposed[0]), entry.seq) if proposed else (entry.seq,)
            yield plan_fact(proposed[1] if proposed else "", action.path, seqs, entry.at)


def skill_fact(action: Action, seqs: tuple[int, ...], at: int) -> Fact:
    """A skill or a command of the user's own was taken up."""
    return Fact("skill", seqs, at, subject=action.command.strip()[:200], text=action.new.strip()[:WORDS_KEPT])


def plan_fact(plan: str, path: str, seqs: tuple[int, ...], at: int) -> Fact:
    """The human accepted a plan; ``path`` is the file that it lies in, if any."""
    detail = {"path": path} if path else {}
    return Fact("plan", seqs, at, subject=_title(plan), text=plan.strip()[:PLAN_KEPT], ok=True, detail=detail)


def _title(plan: str) -> str:
    lines = (line.strip("# \t") for line in plan.split("\n"))
    return next((line for line in lines if line), "")[:200]


def begin_tasks(tasks: Tasks, actions: Iterable[Action], label: str, command: str, entry: Entry, seqs: tuple[int, ...]) -> Iterator[Fact]:  # fmt: skip
    """What a result says goes on running."""
    for action in actions:
        if action.kind == "start" and action.path:
            known = tasks.pop(action.path, None)
            tasks[action.path] = known or [label or action.command, command]
            while len(tasks) > TASKS_KEPT:
                del tasks[next(iter(tasks))]
            if known is None:
                yield _task_fact(action.path, tasks[action.path][0], "running", entry.at, seqs)


def end_tasks(tasks: Tasks, actions: Iterable[Action], at: int, seqs: tuple[int, ...]) -> Iterator[Fact]:
    """What a result or a notice says has ended."""
    for action in actions:
        if action.kind == "end" and action.path in tasks:
            label, _ = tasks.pop(action.path)
            yield _task_fact(action.path, label, action.new or "ended", at, seqs)


def _task_fact(name: str, label: str, state: str, at: int, seqs: tuple[int, ...]) -> Fact:
    detail: dict[str, Any] = {"id": name, "state": state}
    return Fact("task", seqs, at, subject=label[:300], detail=detail)
