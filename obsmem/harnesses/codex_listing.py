"""How Codex itself reads a session back: by its app server, over standard input and output.

Invariant: it is asked for what it has on disk, and for nothing that starts a turn, a hook or a model.
"""

from __future__ import annotations

import json
from typing import Any

from obsmem.core.turns import Command, Draft, unsaid

PAGE = 100  # newest sessions of the folder that are listed; the one just written is the newest
_HELLO, _LIST, _READ = 1, 2, 3  # ids of the questions


def listing(session: str, draft: Draft) -> Command:
    """The command that shows whether the picker of ``codex resume`` has a session, and whether Codex reads all of it."""

    def wrong(said: str) -> str:
        threads, thread = (_answer(said, number) for number in (_LIST, _READ))
        for one in (threads, thread):
            if "error" in one or "result" not in one:
                return f"it answered {json.dumps(one.get('error'))}"
        if session not in [one.get("id") for one in threads["result"].get("data", [])]:
            return "its list of the folder's sessions has it not"
        texts = "\n".join(_texts(thread["result"].get("thread", {}).get("turns")))
        missing = unsaid(draft.turns, texts)
        return f"it does not show the words of {missing}" if missing else ""

    about = {"name": "observational-memory", "title": "observational-memory", "version": "1"}
    questions: tuple[dict[str, Any], ...] = (
        {"id": _HELLO, "method": "initialize", "params": {"clientInfo": about}},
        {"method": "initialized"},
        {"id": _LIST, "method": "thread/list", "params": {"cwd": draft.folder, "limit": PAGE, "modelProviders": []}},
        {"id": _READ, "method": "thread/read", "params": {"threadId": session, "includeTurns": True}},
    )
    lines = tuple(json.dumps({"jsonrpc": "2.0", **one}) for one in questions)

    def enough(said: str) -> bool:  # answers come in any order
        return bool(_answer(said, _LIST) and _answer(said, _READ))

    return Command("codex app-server", ("codex", "app-server"), wrong, lines, enough)


def _answer(said: str, number: int) -> dict[str, Any]:
    """The whole answer to a question; {} before it has come."""
    for line in said.split("\n"):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and found.get("id") == number and "method" not in found:
            return found
    return {}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for one in value for text in _texts(one)] if isinstance(value, list) else []
