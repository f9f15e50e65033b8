"""Writes a rollout that ``codex resume`` goes on with.

Invariants: every call is followed at once by its output; there is no reasoning (it is encrypted by the provider); the
file's name holds the day, the time and the id that its first record names.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from obsmem.core.turns import Draft, ToolUse, Turn, Words, Written
from obsmem.harnesses import forks
from obsmem.harnesses.codex_actions import PATCH_START
from obsmem.harnesses.codex_listing import listing
from obsmem.harnesses.codex_results import result_of
from obsmem.system.files import write_new

PATCH_END = "*** End Patch"
VERSION = "0.171.0"  # of the records that are written


def write_session(draft: Draft, home: str) -> Written:
    """Write the session; see ``Harness.write_session``."""
    root = os.environ.get("CODEX_HOME") or os.path.join(home, ".codex")
    session = forks.time_id(draft.now)
    local = time.localtime(draft.now / 1000)
    name = f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', local)}-{session}.jsonl"
    path = os.path.join(root, "sessions", *time.strftime("%Y %m %d", local).split(), name)
    lines = _Lines(draft, session)
    lines.write()
    write_new(path, "".join(lines.lines).encode("utf-8", "replace"))
    line = forks.shell_line(draft.folder, "codex", "resume", session)
    return Written(path, session, (path, ""), (line,), checks=(listing(session, draft),))


class _Lines:
    """The records of one rollout, each a line."""

    def __init__(self, draft: Draft, session: str) -> None:
        self.draft, self.session = draft, session
        self.lines: list[str] = []
        self.times = forks.Times(0)
        self.turn = ""

    def write(self) -> None:
        """Write everything down."""
        first = next((one.at for turn in self.draft.turns for one in [*turn.prompt, *turn.steps] if one.at), 0)
        self.times.after(first or self.draft.now)
        meta = {
            "session_id": self.session, "id": self.session, "timestamp": forks.iso(self.draft.now),
            "cwd": self.draft.folder, "originator": "codex_cli_rs", "cli_version": VERSION, "source": "cli",
            "thread_source": "user", "model_provider": None,
        }  # fmt: skip
        self._add("session_meta", meta, ())
        self._item({"type": "message", "role": "user", "content": [_typed(self.draft.preface)]}, ("",), 0)
        for turn in self.draft.turns:
            self._turn(turn)
        if self.draft.closing:
            self._said(Words(self.draft.closing))
            self._end()

    def _turn(self, turn: Turn) -> None:
        self._end()
        self.turn = forks.time_id(self.draft.now)
        self._event({"type": "task_started", "turn_id": self.turn}, (), 0)
        for words in turn.prompt:
            self._item({"type": "message", "role": "user", "content": [_typed(words.text)]}, (words.mark,), words.at)
            self._event({"type": "user_message", "message": words.text, "images": []}, (words.mark,), words.at)
        for step in turn.steps:
            if isinstance(step, Words):
                self._said(step)
            else:
                self._use(step)
        if turn is not self.draft.turns[-1]:
            self._end()

    def _end(self) -> None:
        if self.turn:
            self._event({"type": "task_complete", "turn_id": self.turn, "last_agent_message": None}, (), 0)
            self.turn = ""

    def _said(self, words: Words) -> None:
        content = [{"type": "output_text", "text": words.text}]
        self._item({"type": "message", "role": "assistant", "content": content}, (words.mark,), words.at)
        self._event({"type": "agent_message", "message": words.text}, (words.mark,), words.at)

    def _use(self, use: ToolUse) -> None:
        call = f"call_{uuid.uuid4().hex[:24]}"
        patch = patch_of(use)
        name, given = ("apply_patch", {}) if patch else tool_and_arguments(use)
        if patch:
            item = {"type": "custom_tool_call", "status": "completed", "call_id": call, "name": name, "input": patch}
        else:
            arguments = json.dumps(given, ensure_ascii=False)
            item = {"type": "function_call", "name": name, "arguments": arguments, "call_id": call}
        self._item(item, (use.mark,), use.at)
        kind = "custom_tool_call_output" if patch else "function_call_output"
        output = output_of(use, ran=bool(patch) or name == "exec_command")
        self._item({"type": kind, "call_id": call, "output": output}, (use.result_mark,), use.ended_at)

    def _item(self, payload: Mapping[str, Any], marks: Sequence[str], at: int) -> None:
        self._add("response_item", payload, marks, at)

    def _event(self, payload: Mapping[str, Any], marks: Sequence[str], at: int) -> None:
        self._add("event_msg", payload, marks, at)

    def _add(self, kind: str, payload: Mapping[str, Any], marks: Sequence[str], at: int = 0) -> None:
        mark = forks.make_mark(self.session, self.draft.of, marks, first=not self.lines)
        stamp = forks.iso(self.times.after(at))
        record = {"timestamp": stamp, "type": kind, "payload": payload, forks.KEY: mark}
        self.lines.append(json.dumps(record, ensure_ascii=False) + "\n")


def _typed(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}


def patch_of(use: ToolUse) -> str:
    """Edits, new files and deletions as one patch; '' where a call does anything else or says too little. One that was a
    patch already is kept as it is."""
    if use.input.startswith(PATCH_START) and use.input.rstrip().endswith(PATCH_END):
        return use.input
    if not use.actions or any(
        one.kind not in ("edit", "write", "delete") or not one.path or (one.kind == "edit" and not (one.old or one.new))
        for one in use.actions
    ):
        return ""
    lines = [PATCH_START]
    for one in use.actions:
        if one.kind == "delete":
            lines.append(f"*** Delete File: {one.path}")
        elif one.kind == "write":
            lines += [f"*** Add File: {one.path}", *("+" + line for line in one.new.split("\n"))]
        else:
            old = ["-" + line for line in one.old.split("\n")] if one.old else []
            new = ["+" + line for line in one.new.split("\n")] if one.new else []
            lines += [f"*** Update File: {one.path}", "@@", *old, *new]
    return "\n".join([*lines, PATCH_END, ""])


def tool_and_arguments(use: ToolUse) -> tuple[str, dict[str, Any]]:
    """A call as one of Codex's own tools; one that has no such counterpart keeps its name and its words."""
    action = forks.only_action(use, "run", "todo")
    if action is not None and action.kind == "run" and action.command:
        return "exec_command", {"cmd": action.command}
    if action is not None and action.items and all(text for _, _, text in action.items):
        states = {"open": "pending", "doing": "in_progress", "done": "completed"}
        return "update_plan", {"plan": [{"step": text, "status": states[state]} for _, state, text in action.items]}
    return forks.plain_name(use), {"input": forks.call_text(use)}


def output_of(use: ToolUse, *, ran: bool) -> str:
    """What a call gave back; that it failed, or went well where a command ran, is said the way Codex does."""
    output = forks.outcome(use)
    if use.ok is None or result_of(output).ok is not None:
        return output
    if ran:
        code = use.exit_code if use.exit_code is not None else int(not use.ok)
        return f"Exit code: {code}\nOutput:\n{output}"
    return output if use.ok else f"error: {output}"
