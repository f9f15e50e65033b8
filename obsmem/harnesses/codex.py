"""Codex: what its hooks send and accept, and its rollouts (``$CODEX_HOME/sessions/**/rollout-*.jsonl[.zst]``).

The parts: ``codex_files`` (bytes to records), ``codex_records`` (a record's envelope), ``codex_blocks`` and
``codex_tools`` (what a record says), ``codex_actions`` and ``codex_results`` (what a tool does and gave back),
``codex_reader`` with ``codex_mirrors`` and ``codex_copies`` (records in order). They are imported when asked for, because
a hook needs none of them.

Invariants: a hook's answer is valid for its event or empty; the commands in the config never change between releases,
since Codex trusts a handler by the hash of its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from obsmem.core.model import Entry
from obsmem.harnesses.base import (
    Limits,
    Link,
    Raw,
    Reader,
    Source,
    no_model_window,
    no_reduce_config,
    no_rule_file,
    no_status_line,
)
from obsmem.harnesses.codex_agent import folder_of_server as folder_of_server
from obsmem.harnesses.codex_agent import mcp_config as mcp_config
from obsmem.harnesses.codex_agent import mcp_rule as mcp_rule
from obsmem.harnesses.codex_agent import session_of_call as session_of_call
from obsmem.harnesses.codex_agent import skill_file as skill_file
from obsmem.harnesses.codex_hooks import EVENTS as EVENTS
from obsmem.harnesses.codex_hooks import KEEPS_BLOCK as KEEPS_BLOCK
from obsmem.harnesses.codex_hooks import NAME as NAME
from obsmem.harnesses.codex_hooks import SHOWS_NOTICES as SHOWS_NOTICES
from obsmem.harnesses.codex_hooks import STATUS_SECONDS as STATUS_SECONDS
from obsmem.harnesses.codex_hooks import answer as answer
from obsmem.harnesses.codex_hooks import read_event as read_event
from obsmem.harnesses.codex_hooks import read_output as read_output
from obsmem.harnesses.codex_hooks import replace_output as replace_output

if TYPE_CHECKING:
    from obsmem.core.turns import Draft, Written

ROWS = False
SHOWS_RECEIPTS = True
TAKES_SESSIONS = True
WINDOW = 258_400
LARGER_WINDOWS = (380_000, 950_000)  # 95 % of 400,000 and of 1,000,000
MARK_SHARE = 0.9
PROGRAMS = ("codex",)
RESUME, PROMPT = ("resume",), ()
LOGIN_SHELL = True
SHORTENS = "its hooks cannot replace what a tool printed"
NEXT_STEP = (
    "Codex runs only handlers that you have trusted, and skips others without a word: start `codex` once and approve "
    "them (`/hooks` shows them later)."
)


_ID = "an id of the harness"
_TIME = "kept as the entry's time"
_SETTING = "a setting of the harness, not a word of anyone"
_OWN_PROMPT = "the harness's own prompt, the same in every session"
_UNESCAPED = "JSON in a string: the strings inside stand unescaped in the entry"
_TOLD = "repeats the output of the call, cut to 10,000 characters"

IGNORED_KEYS: Mapping[str, str] = {
    "timestamp": _TIME,
    "payload.type": "names the record's type; an unknown one is counted",
    "id": _ID,
    "call_id": "kept as the entry's call id",
    "turn_id": _ID,
    "client_id": _ID,
    "session_id": _ID,
    "parent_thread_id": _ID,
    "forked_from_id": _ID,
    "window_id": _ID,
    "first_window_id": _ID,
    "previous_window_id": _ID,
    "limit_id": _ID,
    "payload.arguments": _UNESCAPED,
    "payload.output": "framing around the output, which stands in the entry verbatim: " + _UNESCAPED,
    "payload.base_instructions": _OWN_PROMPT,
    "payload.instructions": "the user's standing instructions file, which the first messages repeat",
    "payload.dynamic_tools": "definitions of tools",
    "payload.tools": "definitions of tools that a tool search loaded; their names stand in the entry",
    "payload.user_instructions": "repeated in every turn_context; the first messages say it once",
    "payload.developer_instructions": _OWN_PROMPT,
    "developer_instructions": _OWN_PROMPT,
    "payload.state": "what the harness knows of the machine; its messages repeat it",
    "payload.thread_settings": _SETTING,
    "payload.git": "the state of the repository when the session began",
    "payload.cwd": "kept as the session's folder",
    "payload.originator": _SETTING,
    "payload.source": _SETTING,
    "payload.cli_version": _SETTING,
    "payload.model": "kept as the session's model",
    "payload.model_provider": _SETTING,
    "payload.effort": _SETTING,
    "payload.personality": _SETTING,
    "payload.approval_policy": _SETTING,
    "payload.collaboration_mode": _SETTING,
    "payload.collaboration_mode_kind": _SETTING,
    "payload.truncation_policy": _SETTING,
    "payload.sandbox_policy": _SETTING,
    "payload.permission_profile": _SETTING,
    "payload.file_system_sandbox_policy": _SETTING,
    "payload.workspace_roots": _SETTING,
    "rate_limits": "the account's limits",
    "payload.ghost_commit": "a snapshot of the work tree that the harness made for undo",
    "encrypted_content": "encrypted; nobody but the provider can read it",
    "payload.replacement_history": "the history that goes on after a compaction: it repeats records before it; where "
    "none stand before it, its messages are entries",
    "payload.parsed_cmd": "the harness's guess at what the command does; the command stands in the call",
    "payload.aggregated_output": _TOLD,
    "payload.formatted_output": _TOLD,
    "payload.stdout": _TOLD,
    "payload.stderr": _TOLD,
    "payload.command": "repeats the command of the call",
    "payload.changes": "repeats the patch of the call",
    "observationalMemoryFork": "the mark of a session that this program wrote as a fork",
    "image_url": "bytes of an image",
    "payload.images": "bytes of images",
}


def recognise(path: str, head: bytes) -> bool:
    """True if the first bytes of a file are a rollout of any generation."""
    from obsmem.harnesses import codex_files

    return codex_files.recognise(path, head)


def find(home: str) -> Iterator[Source]:
    """Yield every rollout on this machine; of a file and its compressed copy only the file."""
    from obsmem.harnesses import codex_files

    return codex_files.find(home)


def sources(path: str) -> list[Source]:
    """A rollout holds one session."""
    return [Source(path)]


def records(source: Source, offset: int, line: int) -> Iterator[Raw]:
    """Yield the records of a rollout from a byte offset on (see ``codex_files.records``)."""
    from obsmem.harnesses import codex_files

    return codex_files.records(source, offset, line)


def blocks(data: bytes) -> list[Entry]:
    """Everything that a record's bytes say, without context."""
    from obsmem.harnesses import codex_blocks

    return codex_blocks.blocks(data)


def reader(
    source: Source, state: Mapping[str, Any] | None, history: Callable[[], Iterable[tuple[int, Link]]]
) -> Reader:
    """Make a reader; ``history`` is never called, because rollbacks count turns and need no ids."""
    from obsmem.harnesses import codex_reader

    return codex_reader.Reader(source, state)


def hook_config(command: Callable[[str], str]) -> dict[str, Any]:
    """What goes into ``hooks.json``. Without matchers, so that no source of a session start is missed.

    One handler gives the whole block: its own limit, 0 for none, lifts the cut at 2,500 tokens. A version that does not
    know the key cuts out the middle, and names a file that has it.
    """

    def handler(event: str, timeout: int, **more: int) -> list[dict[str, Any]]:
        call = {"type": "command", "command": command(f"hook {NAME} {event}"), "timeout": timeout, **more}
        return [{"hooks": [call]}]

    return {
        "hooks": {
            "SessionStart": handler("SessionStart", 10, additionalContextLimit=0),
            "UserPromptSubmit": handler("UserPromptSubmit", 10),
            "PreCompact": handler("PreCompact", 60),
            "Stop": handler("Stop", 10),
            "SessionEnd": handler("SessionEnd", 3),
        }
    }


def config_file(home: str, project: str) -> str:
    """``hooks.json`` of the user's or a project's Codex folder."""
    import os

    folder = (
        os.path.join(project, ".codex") if project else os.environ.get("CODEX_HOME") or os.path.join(home, ".codex")
    )
    return os.path.join(folder, "hooks.json")


def recall_rule(home: str, project: str, command: str) -> tuple[str, dict[str, Any]]:
    """None is needed: a sandboxed command may read everything, and recalling only reads."""
    return "", {}


reduce_config = no_reduce_config
rule_file = no_rule_file
model_window = no_model_window
status_config = no_status_line


def trust(home: str, project: str) -> list[tuple[str, str]]:
    """What Codex will do with each handler of the hooks file."""
    import os

    from obsmem.harnesses.codex_trust import states

    user = os.path.dirname(config_file(home, ""))
    return states(config_file(home, project), os.path.join(user, "config.toml"))


def other_ways(home: str, project: str) -> list[str]:
    """None are known."""
    return []


def write_session(draft: Draft, home: str) -> Written:
    """Write a session to go on with; see ``codex_writer``."""
    from obsmem.harnesses import codex_writer

    return codex_writer.write_session(draft, home)


def limits(size: int, output: int) -> Limits:
    """What it reports as the window is what is left of the model's own after a reserve of a twentieth; compactions were
    seen at nine tenths of it."""
    return Limits(
        0, "already taken off by the harness", int(size * MARK_SHARE), "where the harness compacts on its own"
    )


def headless(arguments: list[str], session: str) -> list[str] | None:
    """The words behind the program that run one prompt from standard input, in a thread where one is named."""
    return ["exec", *arguments, *(["resume", session] if session else []), "-"]
