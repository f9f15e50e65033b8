"""What Cursor's tool calls do, in words that no harness owns.

Owns the table of Cursor's tool names over the years (``Shell`` was ``run_terminal_cmd``, ``StrReplace`` was
``search_replace``) and of the names of their arguments. Invariant: a tool that is not known is ``other``, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.model import Action, ActionKind

# Names without case, underscores and version suffix ("_v2").
_KINDS: Mapping[str, ActionKind] = {
    "shell": "run",
    "bash": "run",
    "runterminalcmd": "run",
    "runterminalcommand": "run",
    "write": "write",
    "writefile": "write",
    "createfile": "write",
    "strreplace": "edit",
    "edit": "edit",
    "editfile": "edit",
    "multiedit": "edit",
    "searchreplace": "edit",
    "applypatch": "edit",
    "reapply": "edit",
    "editnotebook": "edit",
    "delete": "delete",
    "deletefile": "delete",
    "read": "read",
    "readfile": "read",
    "grep": "search",
    "grepsearch": "search",
    "ripgrep": "search",
    "ripgreprawsearch": "search",
    "glob": "search",
    "globfilesearch": "search",
    "filesearch": "search",
    "ls": "search",
    "listdir": "search",
    "codebasesearch": "search",
    "semanticsearch": "search",
    "semanticsearchfull": "search",
    "todowrite": "todo",
    "webfetch": "fetch",
    "fetch": "fetch",
    "websearch": "search",
    "task": "spawn",
    "agent": "spawn",
    "subagent": "spawn",
    "askquestion": "ask",
    "createplan": "plan",
    "exitplanmode": "plan",
}
_PATHS = (
    "path",
    "file_path",
    "filePath",
    "target_file",
    "targetFile",
    "target_notebook",
    "relative_workspace_path",
    "relativeWorkspacePath",
    "target_directory",
    "targetDirectory",
    "directory",
    "url",
)
_COMMANDS = ("command", "cmd")
_QUERIES = ("pattern", "query", "search_term", "searchTerm", "glob_pattern", "globPattern", "regex", "explanation")
_NEW = ("new_string", "newString", "contents", "content", "code_edit", "codeEdit", "streamContent", "file_text")
_OLD = ("old_string", "oldString")
_STATUS = {"pending": "open", "in_progress": "doing", "completed": "done", "cancelled": "done"}
_VERSION = late.pattern(r"_v\d+\Z")
_NOT_LETTER = late.pattern(r"[^a-z]")
_PATCH_FILE = late.pattern(r"\*\*\* (Add|Update|Delete) File: (.+)")
_PATCH_KINDS: Mapping[str, ActionKind] = {"Add": "write", "Update": "edit", "Delete": "delete"}


def kind_of(name: str) -> ActionKind:
    """What a tool of this name does; "other" for one that is not known."""
    return _KINDS.get(_NOT_LETTER.sub("", _VERSION.sub("", name.lower())), "other")


def actions(name: str, arguments: Any) -> tuple[Action, ...]:
    """What a call of this tool with these arguments (an object, or a patch as text) does. Never raises."""
    kind = kind_of(name)
    if kind == "edit" and (patch := _patch_in(arguments)):
        return tuple(_patched(patch))
    if not isinstance(arguments, Mapping):
        return (Action(kind),)
    if kind == "todo":
        return (Action(kind, items=_todo_items(arguments.get("todos"))),)
    path = _first(arguments, _PATHS)
    if kind == "run":
        return (Action(kind, path=path, command=_first(arguments, _COMMANDS)),)
    if kind in ("search", "fetch"):
        return (Action(kind, path=path, command=_first(arguments, _QUERIES)),)
    if kind in ("edit", "write"):
        return (Action(kind, path=path, new=_first(arguments, _NEW), old=_first(arguments, _OLD)),)
    if kind == "spawn":
        return (Action(kind, command=_first(arguments, ("description",)), new=_first(arguments, ("prompt",))),)
    if kind in ("ask", "plan"):
        return (Action(kind, new=_first(arguments, ("question", "plan")) or _questions(arguments.get("questions"))),)
    return (Action(kind, path=path),)


def _questions(asked: Any) -> str:
    items = [item for item in asked if isinstance(item, Mapping)] if isinstance(asked, list) else []
    return "\n".join(text for item in items if (text := _first(item, ("prompt", "question"))))


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _todo_items(todos: Any) -> tuple[tuple[str, str, str], ...]:
    if not isinstance(todos, list):
        return ()
    return tuple(
        (str(item.get("id", "")), _STATUS.get(str(item.get("status")), "open"), str(item.get("content", "")))
        for item in todos
        if isinstance(item, Mapping)
    )


def _patch_in(arguments: Any) -> str:
    """The text of a patch among the arguments; '' where there is none."""
    values = arguments.values() if isinstance(arguments, Mapping) else [arguments]
    return next((value for value in values if isinstance(value, str) and _PATCH_FILE.search(value)), "")


def _patched(patch: str) -> Iterator[Action]:
    headers = list(_PATCH_FILE.finditer(patch))
    for index, header in enumerate(headers):
        end = headers[index + 1].start() if index + 1 < len(headers) else len(patch)
        lines = patch[header.end() : end].split("\n")
        new = "\n".join(line[1:] for line in lines if line.startswith("+"))
        old = "\n".join(line[1:] for line in lines if line.startswith("-"))
        yield Action(_PATCH_KINDS[header.group(1)], path=header.group(2).strip(), new=new, old=old)
