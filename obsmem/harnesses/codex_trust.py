"""Whether Codex will run the handlers of a hooks file: it runs those whose hash the user has approved, and skips others.

Reads only: a trust that a program writes for itself is none. The hash was compared with what Codex 0.171.0 reports for
its own handlers (``hooks/list`` of its app server).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from obsmem.core import jsonc, late

_HEADER = late.pattern(r"""^[ \t]*\[[ \t]*hooks[ \t]*\.[ \t]*state[ \t]*\.[ \t]*("(?:[^"\\]|\\.)*"|'[^']*')[ \t]*\]""")
_HASH = late.pattern(r"""^[ \t]*trusted_hash[ \t]*=[ \t]*["']([^"']*)["']""")
# The events whose handlers may carry a limit of their own for what they say; of others Codex drops it.
_LIMITED = frozenset({"session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "subagent_start"})
_LIMIT = "additionalContextLimit"
_DISABLED = late.pattern(r"^[ \t]*enabled[ \t]*=[ \t]*false\b")


def states(hooks_file: str, config_file: str) -> list[tuple[str, str]]:
    """(command, state) of every command handler in a hooks file, in its order. Nothing where it cannot be read."""
    try:
        hooks = jsonc.load(_read(hooks_file)).get("hooks")
    except (OSError, ValueError, AttributeError):
        return []
    try:
        recorded = dict(_recorded(_read(config_file)))
    except (OSError, ValueError):
        recorded = {}
    found = []
    for event, group, group_no, handler, handler_no in _handlers(hooks):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        keys = [f"{path}:{name}:{group_no}:{handler_no}" for path in (hooks_file, os.path.realpath(hooks_file))]
        approved = next((recorded[key] for key in keys if key in recorded), None)
        found.append((str(handler["command"]), _state(approved, fingerprint(name, group.get("matcher"), handler))))
    return found


def fingerprint(event: str, matcher: object, handler: Mapping[str, Any]) -> str:
    """The hash by which Codex knows a handler: of its event (in snake case), its group's matcher, and itself."""
    normal = {key: handler[key] for key in ("type", "command", "statusMessage", "commandWindows") if key in handler}
    if event in _LIMITED and _LIMIT in handler:
        normal[_LIMIT] = handler[_LIMIT]
    normal["timeout"] = handler.get("timeout", 600)
    normal["async"] = bool(handler.get("async", False))
    value: dict[str, Any] = {"event_name": event, "hooks": [normal]}
    if matcher is not None:
        value["matcher"] = matcher
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _state(approved: tuple[str, bool] | None, now: str) -> str:
    if approved is None or not approved[0]:
        return "disabled" if approved and approved[1] else "untrusted"
    if approved[1]:
        return "disabled"
    return "trusted" if approved[0] == now else "changed"


def _handlers(hooks: Any) -> Iterator[tuple[str, dict[str, Any], int, dict[str, Any], int]]:
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group_no, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for handler_no, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if isinstance(handler, dict) and isinstance(handler.get("command"), str):
                    yield event, group, group_no, handler, handler_no


def _recorded(text: str) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Key -> (approved hash, disabled) of each section ``[hooks.state."…"]``."""
    key, approved, disabled = "", "", False
    for line in [*text.split("\n"), "["]:
        if line.lstrip().startswith("["):
            if key:
                yield key, (approved, disabled)
            match = _HEADER.match(line)
            quoted = match.group(1) if match else ""
            key = json.loads(quoted) if quoted.startswith('"') else quoted[1:-1]
            approved, disabled = "", False
        elif match := _HASH.match(line):
            approved = match.group(1)
        elif _DISABLED.match(line):
            disabled = True


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
