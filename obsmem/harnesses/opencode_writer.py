"""Writes a session for ``opencode import``, which ``opencode -s`` then goes on with.

Invariants: ids ascend in the order of the conversation (OpenCode compares them) and lie before those that it gives itself
from now on; each model step is a message of its own, with at most one tool call, which has ended. The mark of a record
stands in a part's ``metadata``, the only place that an import keeps.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from obsmem.core import jsonc
from obsmem.core.turns import Command, Draft, Step, ToolUse, Turn, Words, Written
from obsmem.harnesses import forks, opencode_database
from obsmem.system.files import write_new

VERSION = "1.18.33"  # of the records that are written
UNKNOWN_MODEL = ("unknown", "unknown")
_PRIORITY = re.compile(r"^todos\[(\d+)\]\.priority: (high|medium|low)$", re.MULTILINE)
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LISTED = 100  # newest sessions that are listed; the one just taken over is the newest
_EARLIER = 10_000  # milliseconds before now, so that no id of ours follows one of OpenCode's


def database_path(home: str) -> str:
    """The database that OpenCode uses."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    return os.path.join(data, "opencode", os.environ.get("OPENCODE_DB") or "opencode.db")


def write_session(draft: Draft, home: str) -> Written:
    """Write the file to import; see ``Harness.write_session``."""
    pages = _Pages(draft, usual_model(home))
    path = os.path.join(draft.keep, f"{draft.of.handle}-{pages.session}.json")
    write_new(path, json.dumps(pages.document(), ensure_ascii=False).encode("utf-8", "replace"))
    more = ["--model", "PROVIDER/MODEL"] if pages.model == UNKNOWN_MODEL else []
    return Written(
        path,
        pages.session,
        (database_path(home), pages.session),
        (
            forks.shell_line(draft.folder, "opencode", "import", path),
            forks.shell_line(draft.folder, "opencode", *more, "-s", pages.session),
        ),
        Command(
            "opencode import", ("opencode", "import", path), lambda said: "" if pages.session in said else said[-200:]
        ),
        (
            Command(
                "opencode session list",
                ("opencode", "session", "list", "--format", "json", "--max-count", str(LISTED)),
                lambda said: "" if pages.session in said else "its list of the folder's sessions has it not",
            ),
            Command("opencode export", ("opencode", "export", pages.session), pages.wrong_in),
        ),
    )


def usual_model(home: str) -> tuple[str, str]:
    """(provider, model) that the user spoke to last, else the one in the configuration: a resumed session goes on with
    the model of its last prompt. ``UNKNOWN_MODEL`` where neither says."""
    found = opencode_database.last_model(database_path(home))
    if all(found):
        return found
    folder = os.environ.get("OPENCODE_CONFIG_DIR") or os.path.join(
        os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode"
    )
    for name in ("opencode.json", "opencode.jsonc"):
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                provider, _, model = str(jsonc.load(file.read()).get("model", "")).partition("/")
        except (OSError, ValueError, AttributeError):
            continue
        if provider and model:
            return provider, model
    return UNKNOWN_MODEL


class _Pages:
    """The messages of one session."""

    def __init__(self, draft: Draft, model: tuple[str, str]) -> None:
        self.draft, self.model = draft, model
        self.count = 0
        self.session = self._id("ses", descending=True)
        self.messages: list[dict[str, Any]] = []
        self.prompt = ""  # the id of the newest user message
        self.times = forks.Times(0)
        self.marked = False

    def _id(self, kind: str, *, descending: bool = False) -> str:
        self.count += 1
        moment = ((self.draft.now - _EARLIER) << 12) + self.count
        moment = (~moment if descending else moment) & 0xFFFFFFFFFFFF
        return f"{kind}_{moment:012x}{''.join(secrets.choice(_LETTERS) for _ in range(14))}"

    def document(self) -> dict[str, Any]:
        """The document to import."""
        known = [one.at for turn in self.draft.turns for one in [*turn.prompt, *turn.steps] if one.at]
        started = min(known, default=self.draft.now)
        self.times.after(started)
        preface: list[Words] = [Words(self.draft.preface)]
        for turn in self.draft.turns:
            self._user([*preface, *turn.prompt])
            preface = []
            self._steps(turn)
        if preface:
            self._user(preface)
        if self.draft.closing:
            self._agent([Words(self.draft.closing)], None)
        info = {
            "id": self.session, "slug": "fork", "projectID": "global", "directory": self.draft.folder, "title": self.draft.title,
            "version": VERSION, "time": {"created": self.draft.now, "updated": self.draft.now},
        }  # fmt: skip
        return {"info": info, "messages": self.messages}

    def wrong_in(self, exported: str) -> str:
        """What an export lacks of these pages; '' for nothing."""
        try:
            messages = json.loads(exported)["messages"]
        except (ValueError, KeyError, TypeError):
            return f"it said {exported[-200:]!r}"
        have = {part.get("id") for message in messages for part in message.get("parts", ())}
        missing = [part["id"] for message in self.messages for part in message["parts"] if part["id"] not in have]
        return f"{len(missing)} parts are not in it, the first is {missing[0]}" if missing else ""

    def _steps(self, turn: Turn) -> None:
        said: list[Words] = []
        for step in turn.steps:
            if isinstance(step, Words):
                said.append(step)
            else:
                self._agent(said, step)
                said = []
        if said:
            self._agent(said, None)

    def _user(self, words: Sequence[Words]) -> None:
        if not words:
            return
        self.prompt = self._id("msg")
        at = self.times.after(max(one.at for one in words))
        info = {
            "id": self.prompt, "sessionID": self.session, "role": "user", "time": {"created": at}, "agent": "build",
            "model": {"providerID": self.model[0], "modelID": self.model[1]},
        }  # fmt: skip
        parts = [self._text(self.prompt, one, at, synthetic=not one.id) for one in words]
        self.messages.append({"info": info, "parts": parts})

    def _agent(self, words: Sequence[Words], use: ToolUse | None) -> None:
        id_ = self._id("msg")
        steps: list[Step] = [*words, *([use] if use else [])]
        at = self.times.after(steps[0].at)
        parts = [self._part(id_, {"type": "step-start"})]
        parts += [self._text(id_, one, self.times.after(one.at)) for one in words]
        if use is not None:
            parts.append(self._use(id_, use))
        usage = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        info = {
            "id": id_, "sessionID": self.session, "role": "assistant", "parentID": self.prompt, "mode": "build", "agent": "build",
            "path": {"cwd": self.draft.folder, "root": self.draft.folder}, "cost": 0, "tokens": usage,
            "providerID": self.model[0], "modelID": self.model[1], "finish": "tool-calls" if use else "stop",
            "time": {"created": at, "completed": self.times.last},
        }  # fmt: skip
        self.messages.append({"info": info, "parts": parts})

    def _text(self, message: str, words: Words, at: int, *, synthetic: bool = False) -> dict[str, Any]:
        fields = {"type": "text", "text": words.text, "time": {"start": at, "end": at}}
        return self._part(message, {**fields, **({"synthetic": True} if synthetic else {})}, [words.mark])

    def _use(self, message: str, use: ToolUse) -> dict[str, Any]:
        tool, given = tool_and_input(use)
        start = self.times.after(use.at)
        times = {"start": start, "end": self.times.after(use.ended_at)}
        state: dict[str, Any] = {"input": given, "time": times}
        if use.ok is False and tool != "bash":
            state.update(status="error", error=forks.outcome(use))
        else:
            exit_code = use.exit_code if use.exit_code is not None else int(use.ok is False)
            details = {"exit": exit_code} if tool == "bash" and use.ok is not None else {}
            state.update(status="completed", output=forks.outcome(use), title=tool, metadata=details)
        call = f"call_{secrets.token_hex(12)}"
        fields = {"type": "tool", "callID": call, "tool": tool, "state": state}
        return self._part(message, fields, [use.mark, use.result_mark])

    def _part(self, message: str, fields: Mapping[str, Any], marks: Sequence[str] = ()) -> dict[str, Any]:
        part = {**fields, "id": self._id("prt"), "sessionID": self.session, "messageID": message}
        if marks:
            mark = forks.make_mark(self.session, self.draft.of, marks, first=not self.marked)
            part["metadata"] = {forks.KEY: mark}
            self.marked = True
        return part


def tool_and_input(use: ToolUse) -> tuple[str, dict[str, Any]]:
    """A call as one of OpenCode's own tools; one that has no such counterpart keeps its name and its words."""
    action = forks.only_action(use, "run", "edit", "write", "read", "search", "fetch", "todo")
    if action is None:
        return forks.plain_name(use), {"input": forks.call_text(use)}
    if action.kind == "run" and action.command:
        return "bash", {"command": action.command, "description": forks.argument(use, "description")}
    if action.kind == "edit" and (action.old or action.new):
        everywhere = {"replaceAll": True} if forks.argument(use, "replace_all", "replaceAll") == "true" else {}
        return "edit", {"filePath": action.path, "oldString": action.old, "newString": action.new, **everywhere}
    if action.kind == "write" and action.path:
        return "write", {"filePath": action.path, "content": action.new}
    if action.kind == "read" and action.path:
        return "read", {"filePath": action.path}
    if action.kind == "search" and action.command:
        return "grep", {"pattern": action.command, **({"path": action.path} if action.path else {})}
    if action.kind == "fetch" and action.path:
        return "webfetch", {"url": action.path, "format": "markdown"}
    if action.kind == "todo" and action.items and all(text for _, _, text in action.items):
        states = {"open": "pending", "doing": "in_progress", "done": "completed"}
        weights = dict(_PRIORITY.findall(use.input))
        todos = [
            {"content": text, "status": states[state], "priority": weights.get(str(place), "medium")}
            for place, (_, state, text) in enumerate(action.items)
        ]
        return "todowrite", {"todos": todos}
    return forks.plain_name(use), {"input": forks.call_text(use)}
