"""What OpenCode's tool calls do, in words that no harness owns.

Owns the table of OpenCode's tool names and the names of their arguments. Invariant: a tool that is not known (a
plugin's, an MCP server's) is ``other``, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.model import Action, ActionKind

_KINDS: Mapping[str, ActionKind] = {
    "bash": "run",
    "shell": "run",
    "edit": "edit",
    "multiedit": "edit",
    "patch": "edit",
    "apply_patch": "edit",
    "write": "write",
    "read": "read",
    "grep": "search",
    "glob": "search",
    "list": "search",
    "websearch": "search",
    "codesearch": "search",
    "todowrite": "todo",
    "webfetch": "fetch",
    "task": "spawn",
    "question": "ask",
    "plan_enter": "plan",
    "plan_exit": "plan",
    "skill": "skill",
}
_TODO_STATUS = {"pending": "open", "in_progress": "doing", "completed": "done", "cancelled": "done"}
_ACCEPTED = late.pattern(r"The plan at (.+?) has been approved, you can now edit files\.")
_PATCH_HEADER = late.pattern(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_PATCH_KINDS: Mapping[str, ActionKind] = {"Add": "write", "Update": "edit", "Delete": "delete"}


def actions(tool: str, arguments: Any) -> tuple[Action, ...]:
    """What a call of this tool with these arguments does. Never raises.

    A search has its pattern or query in ``command``, a fetch its URL in ``path``; a call that edits several files, or
    one file several times, is several actions.
    """
    kind = _KINDS.get(tool, "other")
    if not isinstance(arguments, Mapping):
        return (Action(kind),)
    if kind == "edit":
        return tuple(_edits(arguments)) or (Action(kind, path=_text(arguments, "filePath")),)
    if kind == "todo":
        return (Action(kind, items=_items(arguments.get("todos"))),)
    if kind == "run":
        return (Action(kind, path=_text(arguments, "workdir"), command=_text(arguments, "command")),)
    if kind == "search":
        return (Action(kind, path=_text(arguments, "path"), command=_text(arguments, "pattern", "query")),)
    if kind == "skill":
        return (Action(kind, command=_text(arguments, "name")),)
    if kind == "write":
        return (Action(kind, path=_text(arguments, "filePath"), new=_text(arguments, "content")),)
    return (Action(kind, path=_text(arguments, "filePath", "url")),)


def notice_actions(text: str) -> tuple[Action, ...]:
    """What the program's own words say of a plan that the human accepted: the file that it lies in."""
    accepted = _ACCEPTED.match(text)
    return (Action("plan", path=accepted.group(1)),) if accepted else ()


def _edits(arguments: Mapping[str, Any]) -> Iterator[Action]:
    patch = _text(arguments, "patchText", "patch")
    if patch:
        yield from _patched(patch)
        return
    path = _text(arguments, "filePath")
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if isinstance(edit, Mapping):
            new, old = _text(edit, "newString"), _text(edit, "oldString")
            yield Action("edit", path=_text(edit, "filePath") or path, new=new, old=old)


def _patched(patch: str) -> Iterator[Action]:
    """One action per file of a patch. A file that is moved is deleted in one place and written in the other."""
    headers = list(_PATCH_HEADER.finditer(patch))
    for index, header in enumerate(headers):
        following = headers[index + 1] if index + 1 < len(headers) else None
        path = header.group(2).strip()
        if following and following.group(1) is None:
            yield Action("delete", path=path)
            continue
        lines = patch[header.end() : following.start() if following else len(patch)].split("\n")
        new = "\n".join(line[1:] for line in lines if line.startswith("+"))
        old = "\n".join(line[1:] for line in lines if line.startswith("-"))
        yield Action(_PATCH_KINDS.get(header.group(1), "write"), path=path, new=new, old=old)


def _items(todos: Any) -> tuple[tuple[str, str, str], ...]:
    if not isinstance(todos, list):
        return ()
    return tuple(
        (str(todo.get("id") or ""), _TODO_STATUS.get(str(todo.get("status")), "open"), str(todo.get("content") or ""))
        for todo in todos
        if isinstance(todo, Mapping)
    )


def _text(arguments: Mapping[str, Any], *names: str) -> str:
    """The first of these arguments that is a text; '' where none is."""
    return next((value for name in names if isinstance(value := arguments.get(name), str)), "")
