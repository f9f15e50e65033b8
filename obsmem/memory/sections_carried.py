"""The lines of *Now* about what goes on beside the words: the plan, the skills in use, what runs, the focus asked for.

Invariant: a line says only what the transcript shows: that something was started and no end of it was seen, not that it
runs; each names the entry that has the whole.
"""

from __future__ import annotations

from obsmem.core.fold import State
from obsmem.core.ids import entry_id
from obsmem.memory.wording import Line, View, clean, clip

PLAN_LIMIT = 600  # characters
GIVEN_LIMIT = 200
SKILLS_SHOWN = 4
TASKS_SHOWN = 6


def carried_lines(state: State, view: View) -> list[Line]:
    """Focus, plan, tasks in the background and skills, where the transcript has any."""
    return [*_focus(state, view), *_plan(state, view), *_tasks(state, view), *_skills(state, view)]


def _focus(state: State, view: View) -> list[Line]:
    if state.focus is None:
        return []
    source = view.source(state.focus.at, *state.focus.seqs)
    where = f" {source}" if source != "()" else ""
    text = f'The user asked the compaction to attend to{where}: "{clip(clean(state.focus.text), GIVEN_LIMIT * 2)}"'
    return [Line(text, (0.8,), 5, seqs=state.focus.seqs)]


def _plan(state: State, view: View) -> list[Line]:
    plan = state.plan
    if plan is None:
        return []
    whole = f"; whole: {view.recall} {entry_id(view.handle, plan.seqs[0])}"
    path = clean(str(plan.detail.get("path", "")))
    words = clip(clean(plan.text), PLAN_LIMIT, whole)
    said = f': "{words}"' if words else ""
    saved = f" [in {path}]" if path else ""
    return [
        Line(f"Plan that the user accepted {view.source(plan.at, *plan.seqs)}{saved}{said}", (1.5,), 18, seqs=plan.seqs)
    ]


def _tasks(state: State, view: View) -> list[Line]:
    lines = []
    for number, task in enumerate(reversed(state.tasks[-TASKS_SHOWN:])):
        name = clean(str(task.detail.get("id", "")))
        what = clip(clean(task.subject), GIVEN_LIMIT)
        text = f"Started in the background, no end seen {view.source(task.at, task.seqs[-1])}: `{what}` (id {name})"
        lines.append(Line(text, (2.8, number), 27 + number * 0.01, seqs=task.seqs))
    return lines


def _skills(state: State, view: View) -> list[Line]:
    lines = []
    for number, skill in enumerate(reversed(state.skills[-SKILLS_SHOWN:])):
        given = f' with "{clip(clean(skill.text), GIVEN_LIMIT)}"' if skill.text else ""
        text = f"Skill taken up {view.source(skill.at, skill.seqs[0])}: {clean(skill.subject)}{given}"
        lines.append(Line(text, (3.5, number), 35 + number * 0.01, seqs=skill.seqs[:1]))
    return lines
