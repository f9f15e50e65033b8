"""Writes what a new Cursor session begins with: a file that its first prompt names.

Cursor takes no foreign session: what it has of one is held by its client and not documented. Invariant: the file says
what it is, holds the handoff and then the newest turns in plain words, and is no session of anybody's.
"""

from __future__ import annotations

import os
import shlex
import uuid

from obsmem.core.turns import Draft, ToolUse, Turn, Words, Written
from obsmem.system.files import write_new


def write_session(draft: Draft, home: str) -> Written:
    """Write the file; see ``Harness.write_session``. ``session`` of the answer is ''."""
    path = os.path.join(draft.keep, f"{draft.of.handle}-{uuid.uuid4().hex[:8]}.md")
    parts = [draft.preface, *([draft.handoff] if draft.handoff else []), *(_turn(turn) for turn in draft.turns)]
    write_new(path, ("\n\n".join(parts) + "\n").encode("utf-8", "replace"))
    prompt = f"Read {path} whole, then go on with the work that it describes."
    return Written(path, "", ("", ""), (f"cd {shlex.quote(draft.folder)} && cursor-agent {shlex.quote(prompt)}",))


def _turn(turn: Turn) -> str:
    lines = [f"## The user said ({words.id})\n\n{words.text}" for words in turn.prompt]
    for step in turn.steps:
        lines.append(f"The agent said ({step.id}): {step.text}" if isinstance(step, Words) else _use(step))
    return "\n\n".join(lines)


def _use(use: ToolUse) -> str:
    how = {True: "", False: ", which failed", None: ""}[use.ok]
    return f"The agent called {use.name} ({use.id}){how}:\n\n{_quoted(use.input)}\n\nIt gave back ({use.result_id}):\n\n{_quoted(use.output)}"


def _quoted(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))
