"""What a Codex tool call does, in words that no harness owns.

Shell lines, patches (as a tool, in a heredoc, in a script), plans and searches become ``Action`` values. Invariant:
this reads arguments only and never raises; what it does not understand is ``other``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.model import Action
from obsmem.harnesses.written import replace_surrogates

RUN_TOOLS = frozenset({"shell", "exec_command", "local_shell", "shell_command", "container.exec", "unified_exec"})
SHELLS = frozenset({"bash", "sh", "zsh", "fish", "dash", "ksh", "pwsh", "powershell", "cmd"})
PATCH_START = "*** Begin Patch"
PLAN_STATUS = {"pending": "open", "in_progress": "doing", "completed": "done"}
OTHER = (Action("other"),)

_PATCHED_FILE = late.pattern(r"\n\*\*\* (Add|Update|Delete) File: ")
_MOVED = "*** Move to: "

# A string literal of JavaScript, in any of its three quotes.
_LITERAL = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)"""
_SCRIPT_CALL = late.pattern(r"tools\.(\w+)\(")
_SCRIPT_COMMAND = late.pattern(r"""cmd["']?\s*[:=]\s*""" + _LITERAL, re.S)
_SCRIPT_PATCH = late.pattern(r"""(?=["'`]\*\*\* Begin Patch)""" + _LITERAL, re.S)
_SCRIPT_STEP = late.pattern(rf"""step["']?\s*:\s*{_LITERAL}\s*,\s*["']?status["']?\s*:\s*{_LITERAL}""", re.S)
_ESCAPE = late.pattern(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.S)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}


def actions_of(tool: str, arguments: Any) -> tuple[Action, ...]:
    """Say what a call does. ``arguments`` is the parsed object of a function call, or the raw text of a custom tool."""
    if isinstance(arguments, str):
        return _text_actions(tool, arguments)
    if not isinstance(arguments, dict):
        return OTHER
    if tool in RUN_TOOLS:
        return run_actions(arguments.get("command") or arguments.get("cmd"))
    if tool == "apply_patch":
        patch = arguments.get("input") or arguments.get("patch")
        return patch_actions(patch) if isinstance(patch, str) else OTHER
    if tool == "update_plan":
        return _plan_actions(arguments.get("plan"))
    if tool in ("view_image", "read_file"):
        return (Action("read", path=_text(arguments, "path") or _text(arguments, "file_path")),)
    if tool == "spawn_agent":
        return (Action("spawn", new=_text(arguments, "message") or _text(arguments, "prompt")),)
    if tool == "write_stdin":
        return (Action("wait", path=str(arguments.get("session_id") or "")),)
    if tool == "request_user_input":
        return (Action("ask"),)
    return OTHER


def _text_actions(tool: str, text: str) -> tuple[Action, ...]:
    if tool == "apply_patch":
        return patch_actions(text)
    if tool == "exec":
        return _script_actions(text)
    return OTHER


def run_actions(command: Any) -> tuple[Action, ...]:
    """A shell call: the patch that it carries, else its command line (of ``["bash", "-lc", X]`` only X)."""
    line = command_line(command)
    if PATCH_START in line:
        return patch_actions(line)
    return (Action("run", command=line),) if line else OTHER


def command_line(command: Any) -> str:
    """The command line in a string or in an argument list; '' where there is none."""
    if isinstance(command, str):
        return command
    if not isinstance(command, list) or not command:
        return ""
    words = [word for word in command if isinstance(word, str)]
    program = re.split(r"[\\/]", words[0])[-1].lower().removesuffix(".exe") if words else ""
    if program in SHELLS and len(words) > 2:
        return words[-1]
    return " ".join(word if re.fullmatch(r"[\w@%+=:,./-]+", word) else _quoted(word) for word in words)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\"'\"'") + "'"


def patch_actions(text: str) -> tuple[Action, ...]:
    """One action for each file of a patch; a moved file is an edit of the new path and a delete of the old one."""
    patch = text[max(0, text.find(PATCH_START)) :].replace("\r\n", "\n").partition("\n*** End Patch")[0]
    sections = _PATCHED_FILE.split(patch)
    found: list[Action] = []
    for verb, section in zip(sections[1::2], sections[2::2], strict=False):
        lines = section.split("\n")
        path = lines[0].strip()
        new = "\n".join([line[1:] for line in lines if line[:1] == "+"])
        if verb == "Add":
            found.append(Action("write", path=path, new=new))
        elif verb == "Update":
            moved = lines[1].removeprefix(_MOVED).strip() if len(lines) > 1 and lines[1].startswith(_MOVED) else ""
            old = "\n".join([line[1:] for line in lines if line[:1] == "-"])
            found.append(Action("edit", path=moved or path, new=new, old=old))
            if moved:
                found.append(Action("delete", path=path))
        else:
            found.append(Action("delete", path=path))
    return tuple(found) or OTHER


def _plan_actions(plan: Any) -> tuple[Action, ...]:
    if not isinstance(plan, list):
        return OTHER
    steps = [(_text(step, "step"), _text(step, "status")) for step in plan if isinstance(step, dict)]
    return _todo(steps)


def _todo(steps: list[tuple[str, str]]) -> tuple[Action, ...]:
    items = tuple((str(index), PLAN_STATUS.get(status, "open"), step) for index, (step, status) in enumerate(steps))
    return (Action("todo", items=items),)


def _script_actions(script: str) -> tuple[Action, ...]:
    """Code mode: the tool's input is JavaScript that calls ``tools.exec_command({cmd: "…"})`` and the like."""
    found: list[Action] = []
    called = set(_SCRIPT_CALL.findall(script))
    if called & RUN_TOOLS:
        for literal in _SCRIPT_COMMAND.findall(script):
            found.extend(run_actions(unquote(literal)))
    if "apply_patch" in called:
        for literal in _SCRIPT_PATCH.findall(script):
            found.extend(patch_actions(unquote(literal)))
    if "update_plan" in called:
        found.extend(_todo([(unquote(step), unquote(status)) for step, status in _SCRIPT_STEP.findall(script)]))
    return tuple(found) or OTHER


def unquote(literal: str) -> str:
    """The text of a JavaScript string literal. Placeholders of a template stay as they are written."""
    if literal[0] == '"':
        try:
            return str(replace_surrogates(json.loads(literal, strict=False)))
        except ValueError:
            pass
    return str(replace_surrogates(_ESCAPE.sub(_unescaped, literal[1:-1])))


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _ESCAPED.get(code, code)


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def search_actions(action: Any) -> tuple[Action, ...]:
    """A web search's action: a query, or a page that was opened."""
    if not isinstance(action, dict):
        return (Action("search"),)
    url = _text(action, "url")
    if url and _text(action, "type") != "search":
        return (Action("fetch", path=url, command=_text(action, "pattern")),)
    queries = action.get("queries")
    listed = [query for query in queries if isinstance(query, str)] if isinstance(queries, list) else []
    return (Action("search", command=_text(action, "query") or " · ".join(listed)),)
