"""Writes a session that ``claude --resume`` goes on with.

Invariants: the records are one chain; every ``tool_use`` is followed at once by its ``tool_result``; there is no thinking
(providers check its signature); the file lies where Claude Code looks for sessions of the folder.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from obsmem.core.turns import Command, Draft, ToolUse, Words, Written
from obsmem.harnesses import forks
from obsmem.system.files import write_new

VERSION = "2.1.197"  # of the records that are written
LONGEST_SLUG = 200
MODEL = "observational-memory"  # of replies that are copied; "<synthetic>" would say that no model gave them
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def project_folder(home: str, folder: str) -> str:
    """Where Claude Code keeps the sessions of a folder: every sign of its real path but letters and digits is ``-``, and
    a long path ends with a hash (32 bits, in base 36)."""
    root = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    path = unicodedata.normalize("NFC", os.path.realpath(folder))
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [int.from_bytes(units[i : i + 2], "little") for i in range(0, len(units), 2)]
    slug = "".join(re.sub("[^a-zA-Z0-9]", "-", chr(code)) for code in codes)
    if len(slug) > LONGEST_SLUG:
        hash_ = 0
        for code in codes:
            hash_ = (hash_ * 31 + code) & 0xFFFFFFFF
        slug = f"{slug[:LONGEST_SLUG]}-{_base36(abs(hash_ - (1 << 32) if hash_ >= 1 << 31 else hash_))}"
    return os.path.join(root, "projects", slug)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def write_session(draft: Draft, home: str) -> Written:
    """Write the session; see ``Harness.write_session``."""
    session = str(uuid.uuid4())
    path = os.path.join(project_folder(home, draft.folder), f"{session}.jsonl")
    lines = _Lines(draft, session)
    lines.write()
    write_new(path, "".join(lines.lines).encode("utf-8", "replace"))
    line = forks.shell_line(draft.folder, "claude", "--resume", session)
    return Written(path, session, (path, ""), (line,), checks=(_resuming(session),))


def _resuming(session: str) -> Command:
    """The command that loads a session and then runs ``/cost``, which Claude Code answers by itself. Nothing is kept of it,
    and with the one kind of login that ``--bare`` takes left out, no model could be asked."""

    def wrong(said: str) -> str:
        try:
            ended = json.loads(said)
        except ValueError:
            return f"it said {said[-200:]!r}"
        return "" if ended.get("is_error") is False and not ended.get("num_turns") else str(ended.get("result"))[:200]

    quiet = ("--bare", "--setting-sources", "", "--fork-session", "--no-session-persistence", "--output-format", "json")
    return Command(
        "claude --resume",
        ("claude", "-p", "--resume", session, *quiet, "/cost"),
        wrong,
        environment={"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    )


class _Lines:
    """The records of one session, each a line."""

    def __init__(self, draft: Draft, session: str) -> None:
        self.draft, self.session = draft, session
        self.lines: list[str] = []
        self.parent: str | None = None
        self.reply = ""  # the id of the message that goes on while no record of the user's comes between
        self.times = forks.Times(0)

    def write(self) -> None:
        """Write everything down. The title comes first and has the time of the fork: copied records have their own."""
        title: dict[str, Any] = {"type": "custom-title", "customTitle": self.draft.title, "sessionId": self.session}
        title["timestamp"] = forks.iso(self.draft.now)
        title[forks.KEY] = forks.make_mark(self.session, self.draft.of, [""], first=True)
        self.lines.append(json.dumps(title, ensure_ascii=False) + "\n")
        preface: Words | None = Words(self.draft.preface)
        for turn in self.draft.turns:
            for words in turn.prompt or ((Words("", at=self.times.last),) if preface else ()):
                self._user([*([preface] if preface else []), *([words] if words.text else [])])
                preface = None
            for step in turn.steps:
                if isinstance(step, Words):
                    self._agent({"type": "text", "text": step.text}, step.mark, step.at)
                else:
                    self._use(step)
        if preface:
            self._user([preface])
        if self.draft.closing:
            self._agent({"type": "text", "text": self.draft.closing}, "", self.times.last)

    def _user(self, words: Sequence[Words]) -> None:
        content = [{"type": "text", "text": one.text} for one in words]
        at = max((one.at for one in words), default=0) or self._first_time()
        self._add("user", {"role": "user", "content": content}, [one.mark for one in words], at)

    def _first_time(self) -> int:
        steps = [step.at for turn in self.draft.turns for step in turn.steps if step.at]
        return min(steps, default=self.draft.now)

    def _use(self, use: ToolUse) -> None:
        name, given = tool_and_input(use)
        call = f"toolu_{uuid.uuid4().hex[:24]}"
        self._agent({"type": "tool_use", "id": call, "name": name, "input": given}, use.mark, use.at)
        output = forks.outcome(use)
        if name == "Bash" and use.ok is False and use.exit_code is not None and "xit code" not in output[:40]:
            output = f"Exit code {use.exit_code}\n{output}"
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": output}
        if use.ok is False:
            result["is_error"] = True
        self._add("user", {"role": "user", "content": [result]}, [use.result_mark], use.ended_at)

    def _agent(self, block: Mapping[str, Any], mark: str, at: int) -> None:
        self.reply = self.reply or f"msg_{uuid.uuid4().hex[:24]}"
        message = {
            "id": self.reply, "type": "message", "role": "assistant", "model": MODEL, "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        self._add("assistant", message, [mark], at)

    def _add(self, kind: str, message: Mapping[str, Any], marks: Sequence[str], at: int) -> None:
        if kind == "user":
            self.reply = ""
        id_ = str(uuid.uuid4())
        record = {
            "parentUuid": self.parent, "isSidechain": False, "userType": "external", "cwd": self.draft.folder,
            "sessionId": self.session, "version": VERSION, "gitBranch": "", "type": kind, "message": message, "uuid": id_,
            "timestamp": forks.iso(self.times.after(at)),
            forks.KEY: forks.make_mark(self.session, self.draft.of, marks, first=self.parent is None),
        }  # fmt: skip
        self.lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        self.parent = id_


def tool_and_input(use: ToolUse) -> tuple[str, dict[str, Any]]:
    """A call as one of Claude Code's own tools; one that has no such counterpart keeps its name and its words."""
    edits = forks.same_edits(use)
    if len(edits) > 1:
        changes = [{"old_string": one.old, "new_string": one.new} for one in edits]
        return "MultiEdit", {"file_path": edits[0].path, "edits": changes}
    action = forks.only_action(use, "run", "edit", "write", "read", "search", "fetch", "todo", "spawn")
    if action is None:
        return forks.plain_name(use), {"input": forks.call_text(use)}
    if action.kind == "run" and action.command:
        about = forks.argument(use, "description")
        return "Bash", {"command": action.command, **({"description": about} if about else {})}
    if action.kind == "edit" and (action.old or action.new):
        everywhere = {"replace_all": True} if forks.argument(use, "replace_all", "replaceAll") == "true" else {}
        return "Edit", {"file_path": action.path, "old_string": action.old, "new_string": action.new, **everywhere}
    if action.kind == "write" and action.path:
        return "Write", {"file_path": action.path, "content": action.new}
    if action.kind == "read" and action.path:
        return "Read", {"file_path": action.path}
    if action.kind == "search" and action.command:
        return "Grep", {"pattern": action.command, **({"path": action.path} if action.path else {})}
    if action.kind == "fetch" and action.path:
        return "WebFetch", {"url": action.path, "prompt": ""}
    if action.kind == "todo" and action.items and all(text for _, _, text in action.items):
        states = {"open": "pending", "doing": "in_progress", "done": "completed"}
        todos = [{"content": text, "status": states[state], "activeForm": text} for _, state, text in action.items]
        return "TodoWrite", {"todos": todos}
    if action.kind == "spawn" and action.new:
        return "Task", {"description": action.command, "prompt": action.new}
    return forks.plain_name(use), {"input": forks.call_text(use)}
