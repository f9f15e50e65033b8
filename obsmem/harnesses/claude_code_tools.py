"""Claude Code's tools: what a call does, in words that no harness owns, and what a result says.

Invariant: the words of a result stand in its entry, also those that only ``toolUseResult`` has (the program's copy of
the result, beside the block that the model saw). Copies of the call's input are left out; see IGNORED_KEYS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.model import Action
from obsmem.harnesses.claude_code_sheet import prune, text_of
from obsmem.harnesses.written import exit_code_in, flatten

Input = Mapping[str, Any]

_TODO_STATUS = {"pending": "open", "in_progress": "doing", "completed": "done", "deleted": "done"}
_ACCEPTED = "User has approved your plan"
_PLAN_FILE = late.pattern(r"Your plan has been saved to: ([^\n]+)")
_STARTED = late.pattern(r"Command running in background with ID: ([\w-]+)")
_TASK_ID = late.pattern(r"<task-id>([^<]+)</task-id>")
_TASK_STATE = late.pattern(r"<status>(\w+)</status>")
_CREATED = late.pattern(r"Task #(\S+) created successfully(?:: (.*))?")
_BYTES = frozenset(("data", "base64", "signature", "encrypted_content"))
# Parts of toolUseResult that repeat the call's input, or say nothing in words. See IGNORED_KEYS for the reasons.
_COPIES = frozenset(
    [
        "originalFile",
        "structuredPatch",
        "oldString",
        "newString",
        "oldTodos",
        "newTodos",
        "gitDiff",
        "questions",
        "prompt",
        "usage",
        "toolStats",
        "base64",
        "data",
        "signature",
        "encrypted_content",
        "tool_use_id",
    ]
)
# A short string is worth keeping only where it is the output or the answer itself.
_OUTPUTS = frozenset(("stdout", "stderr", "answers", "notes", "result", "error"))
_SHORT = 20
_REFUSAL = "the user said:\n"
_REFUSAL_NOTE = "\n\nNote: The user's next message"
_REFUSED = "The user doesn't want to "


def call_actions(tool: str, given: Any) -> tuple[Action, ...]:
    """What a tool call does. A tool that is not known, an MCP server's for one, does something 'other'."""
    if not isinstance(given, dict):
        given = {}
    make = _ACTIONS.get(tool)
    return make(given) if make else (Action("other"),)


def _path(given: Input) -> str:
    return text_of(given.get("file_path")) or text_of(given.get("notebook_path")) or text_of(given.get("path"))


def _run(given: Input) -> tuple[Action, ...]:
    return (Action("run", command=text_of(given.get("command"))),)


def _edit(given: Input) -> tuple[Action, ...]:
    edits = given.get("edits")
    changes = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else [given]
    return tuple(
        Action(
            "edit",
            path=_path(given),
            new=text_of(change.get("new_string")) or text_of(change.get("new_source")),
            old=text_of(change.get("old_string")),
        )
        for change in changes
    )


def _write(given: Input) -> tuple[Action, ...]:
    return (Action("write", path=_path(given), new=text_of(given.get("content"))),)


def _read(given: Input) -> tuple[Action, ...]:
    return (Action("read", path=_path(given)),)


def _search(given: Input) -> tuple[Action, ...]:
    wanted = text_of(given.get("pattern")) or text_of(given.get("query"))
    return (Action("search", path=text_of(given.get("path")), command=wanted),)


def _fetch(given: Input) -> tuple[Action, ...]:
    return (Action("fetch", path=text_of(given.get("url"))),)


def _todo_list(given: Input) -> tuple[Action, ...]:
    todos = given.get("todos")
    items = [item for item in todos if isinstance(item, dict)] if isinstance(todos, list) else []
    return (Action("todo", items=tuple(_todo(item, str(index)) for index, item in enumerate(items))),)


def _todo(item: Input, number: str) -> tuple[str, str, str]:
    words = text_of(item.get("content")) or text_of(item.get("subject"))
    return number, _TODO_STATUS.get(text_of(item.get("status")), "open"), words


def _task_update(given: Input) -> tuple[Action, ...]:
    number = str(given.get("taskId", ""))
    if not number or ("status" not in given and "subject" not in given):
        return (Action("todo"),)
    return (Action("todo", items=(_todo(given, number),)),)


def _task_create(given: Input) -> tuple[Action, ...]:
    """The id of a new task is known only from its result."""
    return (Action("todo"),)


def _ask(given: Input) -> tuple[Action, ...]:
    questions = given.get("questions")
    asked = (
        [text_of(item.get("question")) for item in questions if isinstance(item, dict)]
        if isinstance(questions, list)
        else []
    )
    return (Action("ask", new="\n".join(question for question in asked if question)),)


def _plan(given: Input) -> tuple[Action, ...]:
    return (Action("plan", new=text_of(given.get("plan"))),)


def _spawn(given: Input) -> tuple[Action, ...]:
    return (Action("spawn", command=text_of(given.get("description")), new=text_of(given.get("prompt"))),)


def _skill(given: Input) -> tuple[Action, ...]:
    name = text_of(given.get("skill"))
    if name:
        return (Action("skill", command=name, new=text_of(given.get("args"))),)
    name, _, words = text_of(given.get("command")).partition(" ")
    return (Action("skill", command=name, new=words),)


def _look(given: Input) -> tuple[Action, ...]:
    return (Action("wait", path=_task_of(given)),)


def _stop(given: Input) -> tuple[Action, ...]:
    return (Action("end", path=_task_of(given), new="stopped"),)


def _task_of(given: Input) -> str:
    return next((name for key in _TASK_KEYS if (name := text_of(given.get(key)))), "")


_TASK_KEYS = ("task_id", "bash_id", "shell_id", "agentId", "agent_id")
_ACTIONS: dict[str, Callable[[Input], tuple[Action, ...]]] = {
    **dict.fromkeys(("Bash", "PowerShell", "Monitor"), _run),
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit"), _edit),
    "Write": _write,
    **dict.fromkeys(("Read", "NotebookRead"), _read),
    **dict.fromkeys(("Grep", "Glob", "LS", "WebSearch", "ToolSearch", "web_search"), _search),
    **dict.fromkeys(("WebFetch", "web_fetch"), _fetch),
    "TodoWrite": _todo_list,
    **dict.fromkeys(("TaskCreate", "TaskList", "TaskGet"), _task_create),
    "TaskUpdate": _task_update,
    "AskUserQuestion": _ask,
    **dict.fromkeys(("ExitPlanMode", "exit_plan_mode"), _plan),
    **dict.fromkeys(("Task", "Agent"), _spawn),
    **dict.fromkeys(("Skill", "SlashCommand"), _skill),
    **dict.fromkeys(("TaskOutput", "BashOutput", "AgentOutputTool"), _look),
    **dict.fromkeys(("TaskStop", "KillShell", "KillBash"), _stop),
}


def content_text(content: Any) -> str:
    """The words of a tool result's ``content``, whatever its shape."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for item in content if (part := _part_text(item)))
    return flatten(prune(content, _BYTES))


def _part_text(item: Any) -> str:
    if not isinstance(item, dict):
        return flatten(item)
    kind = item.get("type")
    if kind == "text":
        return text_of(item.get("text"))
    if kind == "image":
        source = item.get("source")
        return f"[image {text_of(source.get('media_type')) if isinstance(source, dict) else ''}]".replace(" ]", "]")
    if kind == "tool_reference":
        return f"tool: {text_of(item.get('tool_name'))}"
    return flatten(prune(item, _BYTES))


def unseen_words(result: Any, seen: str) -> str:
    """The words of a ``toolUseResult`` that the block's text (``seen``) does not have, as named lines."""
    if isinstance(result, str):
        words = result.removeprefix("Error: ").strip()
        return "" if words in seen else words
    lines: list[str] = []
    if isinstance(result, dict):
        copied = "filePath" in result  # then ``content`` is what the call wrote
        for key, value in result.items():
            if key in _COPIES or (copied and key == "content"):
                continue
            if key == "file" and isinstance(value, dict):
                value = {part: words for part, words in value.items() if part != "content"}
            _gather(value, key, seen, lines)
    else:
        _gather(result, "", seen, lines)
    return "\n".join(lines)


def _gather(value: Any, name: str, seen: str, lines: list[str]) -> None:
    if isinstance(value, str):
        if len(value) < _SHORT and name.partition(".")[0] not in _OUTPUTS:
            return
        words = value.strip()
        if words and words not in seen:
            lines.append(f"{name}: {words}" if name else words)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _COPIES:
                _gather(item, f"{name}.{key}" if name else key, seen, lines)
    elif isinstance(value, list):
        for item in value:
            _gather(item, name, seen, lines)


def result_actions(result: Any, text: str) -> tuple[Action, ...]:
    """What a result tells beyond its call: ids and states of to-dos, what runs in the background or ended, a plan that
    was accepted."""
    beside = _background(result, text)
    if beside:
        return beside
    if isinstance(result, dict):
        task, tasks = result.get("task"), result.get("tasks")
        if isinstance(task, dict) and "subject" in task:
            return (Action("todo", items=(_todo(task, str(task.get("id", ""))),)),)
        if isinstance(tasks, list):
            items = [item for item in tasks if isinstance(item, dict) and "subject" in item]
            return (
                (Action("todo", items=tuple(_todo(item, str(item.get("id", ""))) for item in items)),) if items else ()
            )
    created = _CREATED.match(text) if text.startswith("Task #") else None
    return (Action("todo", items=((created[1], "open", created[2] or ""),)),) if created else ()


def _background(result: Any, text: str) -> tuple[Action, ...]:
    if text.startswith(_ACCEPTED):
        saved = _PLAN_FILE.search(text[:2000])
        return (Action("plan", path=saved[1].strip() if saved else ""),)
    if isinstance(result, dict):
        name = text_of(result.get("backgroundTaskId"))
        if not name and result.get("status") == "async_launched":
            name = text_of(result.get("agentId")) or text_of(result.get("taskId"))
        if name:
            return (Action("start", path=name, command=text_of(result.get("summary"))),)
        task = result.get("task")
        if (
            isinstance(task, dict)
            and "task_id" in task
            and text_of(task.get("status")) not in ("", "running", "pending")
        ):
            return (Action("end", path=text_of(task["task_id"]), new=text_of(task["status"])),)
    started = _STARTED.match(text) if text.startswith("Command running in background") else None
    return (Action("start", path=started[1]),) if started else ()


def notice_actions(text: str) -> tuple[Action, ...]:
    """What the harness says of a task in the background: that it ended, and how."""
    if "<task-id>" not in text[:500]:
        return ()
    task, state = _TASK_ID.search(text[:500]), _TASK_STATE.search(text[:4000])
    if task is None or state is None or state[1] in ("running", "pending"):
        return ()
    return (Action("end", path=task[1].strip(), new=state[1]),)


def is_answer(result: Any, text: str) -> bool:
    """True if a result holds what the human answered to the agent's questions."""
    if isinstance(result, dict) and isinstance(result.get("answers"), dict):
        return bool(result["answers"])
    return text.startswith("User has answered your questions")


def refusal_words(text: str) -> str:
    """What the human said in refusing a tool call, without the harness's frame; '' where nothing was said."""
    if not text.startswith(_REFUSED):
        return ""
    _, said, words = text.partition(_REFUSAL)
    return words.partition(_REFUSAL_NOTE)[0].strip() if said else ""


def exit_code(text: str, ok: bool) -> int | None:
    """The exit status that a failed shell call's text opens with."""
    return exit_code_in(text[:40]) if not ok and "xit code" in text[:40] else None
