"""The blocks of tool calls and of what tools gave back.

Invariant: the text of a call is its tool's name and every argument; the text of a result is its output verbatim.
"""

from __future__ import annotations

import json
from typing import Any

from obsmem.core.model import Action, Entry
from obsmem.harnesses.codex_actions import actions_of, run_actions, search_actions
from obsmem.harnesses.codex_records import Payload, call_id, source_id, tool_name
from obsmem.harnesses.codex_results import preface_of, result_of, running_in
from obsmem.harnesses.written import flatten, time_of

_decode = json.JSONDecoder().raw_decode


def _call(payload: Payload, tool: str, body: str, actions: tuple[Action, ...], stamp: Any, first: int) -> list[Entry]:
    text = f"{tool}\n{body}" if body else tool
    ident, call, at = source_id(payload), call_id(payload), time_of(stamp)
    return [Entry(-1, ident, "tool_call", "agent", text, tool, call, None, at, True, None, first, actions)]


def function_call(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """A function call; its arguments are JSON in a string, shown unescaped."""
    tool = tool_name(payload)
    arguments = payload.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments, _ = _decode(arguments.strip())
        except (ValueError, RecursionError):
            pass  # shown as it is
    return _call(payload, tool, flatten(arguments), actions_of(tool, arguments), stamp, first)


def custom_call(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """A custom tool call; its input is raw text."""
    tool = tool_name(payload)
    return _call(payload, tool, flatten(payload.get("input")), actions_of(tool, payload.get("input")), stamp, first)


def local_shell_call(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """A shell call of the model's own kind."""
    action = payload.get("action")
    command = action.get("command") if isinstance(action, dict) else None
    return _call(payload, "local_shell", flatten(action), run_actions(command), stamp, first)


def web_search_call(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """A web search, or a page that it opened."""
    action = payload.get("action")
    return _call(payload, "web_search", flatten(action), search_actions(action), stamp, first)


def other_call(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """Any other call: every field that is no id."""
    tool = str(payload.get("type")).removesuffix("_call")
    hidden = ("type", "id", "call_id", "status", "result", "internal_chat_message_metadata_passthrough")
    body = flatten({key: value for key, value in payload.items() if key not in hidden})
    return _call(payload, tool, body, (Action("other"),), stamp, first)


def _result(payload: Payload, text: str, ok: bool | None, code: int | None, stamp: Any, first: int) -> list[Entry]:
    ident, call, at = source_id(payload), call_id(payload), time_of(stamp)
    preface = preface_of(text)
    running = running_in(text[:preface])
    goes_on = (Action("start", path=running),) if running else ()
    return [
        Entry(
            -1,
            ident,
            "tool_result",
            "tool",
            text,
            "",
            call,
            ok,
            at,
            True,
            None,
            first,
            goes_on,
            code,
            0,
            preface,
        )
    ]


def output(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """What a call gave back."""
    text, ok, code = result_of(payload.get("output"))
    return _result(payload, text, ok, code, stamp, first)


def tool_search_output(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """The names of the tools that a tool search loaded."""
    tools = payload.get("tools")
    names = [tool_name(tool) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return _result(payload, "tools found: " + ", ".join(names), None, None, stamp, first)


def ended_event(payload: Payload, stamp: Any, first: int) -> list[Entry]:
    """``…_end`` events: what a command, a patch, a search or an MCP tool gave back."""
    said = payload.get("aggregated_output") or payload.get("formatted_output")
    if not said:
        said = "".join(part for key in ("stdout", "stderr") if isinstance(part := payload.get(key), str))
    parts = [said if isinstance(said, str) else ""]
    parts += [flatten(payload.get(key)) for key in ("changes", "result", "query")]
    code = payload.get("exit_code")
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    ok = payload.get("success")
    if not isinstance(ok, bool):
        ok = None if code is None else code == 0
    text = "\n".join(part.rstrip("\n") for part in parts if part)
    found = _result(payload, text, ok, code, stamp, first)
    process = payload.get("process_id")
    if not isinstance(process, str) or not process:
        return found
    how = "ended" if code is None else f"exit {code}"
    return [entry._replace(actions=(Action("end", path=process, new=how),)) for entry in found]
