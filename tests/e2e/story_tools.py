"""How each harness's model calls its tools: from the story's five kinds of calls to the real ones.

Owns the tools' names and keys. Invariant: a call has the same effect in every harness, by that harness's own tool where
it has one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .story import TODO, Call

Made = list[dict[str, Any]]
Tools = Callable[[Sequence[Call]], Made]


def _use(name: str, given: Any) -> dict[str, Any]:
    return {"name": name, "input": given}


def claude_code(project: Path) -> Tools:
    """Paths are absolute; the to-do list is one call for each item and each change."""

    def made(call: Call) -> Made:
        first, *more = call.words
        if call.tool == "shell":
            return [_use("Bash", {"command": first, "description": more[0]})]
        if call.tool == "todo":
            if first:
                return [_use("TaskUpdate", {"taskId": str(first), "status": "completed"})]
            return [_use("TaskCreate", {"subject": item, "description": f"{item}, with tests."}) for item in TODO]
        named = {"file_path": str(project / first)}
        if call.tool == "read":
            return [_use("Read", named)]
        if call.tool == "write":
            return [_use("Write", {**named, "content": more[0]})]
        return [_use("Edit", {**named, "old_string": more[0], "new_string": more[1]})]

    return lambda calls: [use for call in calls for use in made(call)]


def opencode(project: Path) -> Tools:
    """Paths are absolute; the to-do list is written whole."""

    def made(call: Call) -> dict[str, Any]:
        first, *more = call.words
        if call.tool == "shell":
            return _use("bash", {"command": first, "description": more[0]})
        if call.tool == "todo":
            return _use("todowrite", {"todos": [{**item, "priority": "high"} for item in _listed(first, "content")]})
        named = {"filePath": str(project / first)}
        if call.tool == "read":
            return _use("read", named)
        if call.tool == "write":
            return _use("write", {**named, "content": more[0]})
        return _use("edit", {**named, "oldString": more[0], "newString": more[1]})

    return lambda calls: [made(call) for call in calls]


def codex(calls: Sequence[Call]) -> Made:
    """Files are read by the shell; all that an answer changes in files is one patch, as this model does it."""
    made, patch = [], ""
    for call in calls:
        first, *more = call.words
        if call.tool == "shell":
            made.append(_use("exec_command", {"cmd": first}))
        elif call.tool == "read":
            made.append(_use("exec_command", {"cmd": f"cat {first}"}))
        elif call.tool == "todo":
            made.append(_use("update_plan", {"plan": _listed(first, "step")}))
        elif call.tool == "write":
            patch += f"*** Add File: {first}\n" + "".join(f"+{line}\n" for line in more[0].split("\n")[:-1])
        else:
            patch += f"*** Update File: {first}\n@@\n{_hunk(*more)}"
    return [*made, _use("apply_patch", f"*** Begin Patch\n{patch}*** End Patch\n")] if patch else made


def _hunk(old: str, new: str) -> str:
    changed = difflib.ndiff(old.split("\n")[:-1], new.split("\n")[:-1])
    return "".join(f"{line[0]}{line[2:]}\n" for line in changed if not line.startswith("?"))


def _listed(done: int, key: str) -> list[dict[str, str]]:
    statuses = ["completed"] * done + ["in_progress"] + ["pending"] * len(TODO)
    return [{key: text, "status": status} for text, status in zip(TODO, statuses, strict=False)]
