"""Claude Code, from 1.0.51 on: its hooks, its answers, and where its sessions lie.

Owns the harness interface. What a record says is in ``claude_code_blocks``, what follows from the records before it in
``claude_code_reader``; both are imported on demand, because a SessionStart hook needs neither. Invariants: nothing is
printed except context for the two events that take it; records are physical lines, never cut or joined.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from obsmem.core import late
from obsmem.core.model import Entry
from obsmem.harnesses.base import Limits, Link, Raw, Reader, Source, no_model_window, no_rule_file, split_lines
from obsmem.harnesses.claude_code_agent import folder_of_server as folder_of_server
from obsmem.harnesses.claude_code_agent import mcp_config as mcp_config
from obsmem.harnesses.claude_code_agent import mcp_rule as mcp_rule
from obsmem.harnesses.claude_code_agent import session_of_call as session_of_call
from obsmem.harnesses.claude_code_agent import skill_file as skill_file
from obsmem.harnesses.claude_code_hooks import CONTEXT_EVENTS as CONTEXT_EVENTS
from obsmem.harnesses.claude_code_hooks import EVENTS as EVENTS
from obsmem.harnesses.claude_code_hooks import KEEPS_BLOCK as KEEPS_BLOCK
from obsmem.harnesses.claude_code_hooks import NAME as NAME
from obsmem.harnesses.claude_code_hooks import SHELL
from obsmem.harnesses.claude_code_hooks import SHOWS_NOTICES as SHOWS_NOTICES
from obsmem.harnesses.claude_code_hooks import STATUS_SECONDS as STATUS_SECONDS
from obsmem.harnesses.claude_code_hooks import answer as answer
from obsmem.harnesses.claude_code_hooks import read_event as read_event
from obsmem.harnesses.claude_code_hooks import read_output as read_output
from obsmem.harnesses.claude_code_hooks import replace_output as replace_output
from obsmem.harnesses.claude_code_keys import IGNORED_KEYS as IGNORED_KEYS
from obsmem.harnesses.written import load_objects

if TYPE_CHECKING:
    from obsmem.core.turns import Draft, Written

ROWS = False

PARTS = 4
SHOWS_RECEIPTS = True
TAKES_SESSIONS = True
WINDOW = 200_000
LARGER_WINDOWS = (1_000_000,)
RESERVE = 20_000  # tokens that its program keeps for a summary
BEFORE_RESERVE = 13_000  # tokens before that at which it compacts
PROGRAMS = ("claude",)
RESUME, PROMPT = ("--resume",), ()
LOGIN_SHELL = False
SHORTENS = ""
NEXT_STEP = "Sessions that run already go on without memory: start a new one, or resume one with `claude --continue`."
PLUGIN = "observational-memory@"  # of a plugin's name in enabledPlugins; the marketplace's name follows

_PERSISTED = late.pattern(r"^(?:.*\b[Oo]utput saved to|persistedOutputPath): *(\S.*?) *$", re.MULTILINE)
_OWN_KEYS = ("parentUuid", "isSidechain", "leafUuid", "sessionId", "isSnapshotUpdate")
_OWN_TYPES = frozenset(
    [
        "user",
        "assistant",
        "system",
        "attachment",
        "summary",
        "progress",
        "file-history-snapshot",
        "file-history-delta",
        "queue-operation",
        "last-prompt",
        "ai-title",
        "custom-title",
        "mode",
        "permission-mode",
        "agent-name",
        "agent-setting",
        "pr-link",
    ]
)


def recognise(path: str, head: bytes) -> bool:
    """True if these first bytes of a file are Claude Code records: a known type beside a key of its envelope."""
    end = head.rfind(b"\n")
    for line in (head if end < 0 else head[:end]).split(b"\n")[:40]:
        for record in load_objects(line)[0]:
            kind = record.get("type")
            if isinstance(kind, str) and kind in _OWN_TYPES and any(key in record for key in _OWN_KEYS):
                return True
    # A first record longer than the head is whole nowhere; an unescaped key shows that it is none of a string's words.
    return end < 0 and any(b'"%s"' % key.encode() in head for key in _OWN_KEYS)


def find(home: str) -> Iterator[Source]:
    """Yield every session below ``home``/.claude and, where it is set, CLAUDE_CONFIG_DIR; sub-agents' files too."""
    seen: set[str] = set()
    for root in (os.path.join(home, ".claude"), os.environ.get("CLAUDE_CONFIG_DIR", "")):
        real = os.path.realpath(root) if root else ""
        if not root or real in seen:
            continue
        seen.add(real)
        for project in _folders(os.path.join(root, "projects")):
            yield from sources(project)


def sources(path: str) -> list[Source]:
    """One source for a file; for a folder (a project's) those of its sessions and of their sub-agents."""
    if not os.path.isdir(path):
        return [Source(path)]
    found = [Source(name) for name in _transcripts(path)]
    for session in _folders(path):
        for folder, _, _ in sorted(os.walk(os.path.join(session, "subagents"))):
            found.extend(Source(name) for name in _transcripts(folder) if os.path.basename(name).startswith("agent-"))
    return found


def _transcripts(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".jsonl")]


def _folders(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if _is_folder(folder, name)]
    except OSError:
        return []


def _is_folder(folder: str, name: str) -> bool:
    return os.path.isdir(os.path.join(folder, name))


records: Callable[[Source, int, int], Iterator[Raw]] = split_lines


def blocks(data: bytes) -> list[Entry]:
    """Yield everything that the objects on a line say, without context. Entry.block is the index in this list."""
    from obsmem.harnesses.claude_code_blocks import line_blocks

    return line_blocks(data)


def reader(
    source: Source, state: Mapping[str, Any] | None, history: Callable[[], Iterable[tuple[int, Link]]]
) -> Reader:
    """Make a reader; see ``Harness.reader``."""
    from obsmem.harnesses.claude_code_reader import TranscriptReader

    return TranscriptReader(source, state, history)


def side_files(text: str) -> list[str]:
    """The paths, named in a tool result's text, under which the harness keeps an output that was too long for it."""
    # Most results name none, and looking for two words costs a hundredth of matching every line.
    if "utput saved to" not in text and "persistedOutputPath" not in text:
        return []
    return list(dict.fromkeys(_PERSISTED.findall(text)))


def hook_config(command: Callable[[str], str]) -> dict[str, Any]:
    """What goes into ``settings.json``. Timeouts are in seconds; each SessionStart handler delivers one part."""

    def handlers(seconds: int, *arguments: str) -> list[dict[str, Any]]:
        calls = [{"type": "command", "command": command(words), "timeout": seconds} for words in arguments]
        return [{"hooks": calls}]

    parts = [f"hook {NAME} SessionStart --part {part}/{PARTS}" for part in range(1, PARTS + 1)]
    return {
        "hooks": {
            "SessionStart": handlers(20, *parts),
            "UserPromptSubmit": handlers(10, f"hook {NAME} UserPromptSubmit"),
            "Stop": handlers(10, f"hook {NAME} Stop"),
            "PreCompact": handlers(60, f"hook {NAME} PreCompact"),
            "SessionEnd": handlers(10, f"hook {NAME} SessionEnd"),
        }
    }


def reduce_config(command: Callable[[str], str]) -> dict[str, Any]:
    """What goes into ``settings.json`` beside the rest, so that long outputs of the shell may be shortened."""
    handler = {"type": "command", "command": command(f"hook {NAME} PostToolUse"), "timeout": 10}
    return {"hooks": {"PostToolUse": [{"matcher": SHELL, "hooks": [handler]}]}}


def config_file(home: str, project: str) -> str:
    """The user's ``settings.json``; in a project the file that is not shared, since our paths are this machine's."""
    if project:
        return os.path.join(project, ".claude", "settings.local.json")
    return os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "settings.json")


def recall_rule(home: str, project: str, command: str) -> tuple[str, dict[str, Any]]:
    """A rule for the shell tool: this command with any arguments, and nothing joined to it."""
    return config_file(home, project), {"permissions": {"allow": [f"Bash({command}:*)"]}}


def status_config(home: str, command: str) -> tuple[str, dict[str, Any]]:
    """Beside the hooks, in the user's ``settings.json``."""
    return config_file(home, ""), {"statusLine": {"type": "command", "command": command}}


rule_file = no_rule_file
model_window = no_model_window


def trust(home: str, project: str) -> list[tuple[str, str]]:
    """Claude Code trusts folders, not handlers."""
    return []


def other_ways(home: str, project: str) -> list[str]:
    """Our plugin, where settings enable it: its hooks run beside those of the settings."""
    from obsmem.core import jsonc

    found = []
    for path in {config_file(home, ""), config_file(home, project)}:
        try:
            with open(path, encoding="utf-8") as file:
                plugins = jsonc.load(file.read()).get("enabledPlugins")
        except (OSError, ValueError, AttributeError):
            continue
        names = plugins if isinstance(plugins, dict) else {}
        found += [f"the plugin {name}" for name, on in names.items() if on and name.startswith(PLUGIN)]
    return sorted(set(found))


def write_session(draft: Draft, home: str) -> Written:
    """Write a session to go on with; see ``claude_code_writer``."""
    from obsmem.harnesses import claude_code_writer

    return claude_code_writer.write_session(draft, home)


def limits(size: int, output: int) -> Limits:
    """It keeps room for a summary and compacts a fixed number of tokens before that (read in its program, 2.1.197, and seen
    in transcripts: 167,000 of 200,000)."""
    mark = size - RESERVE - BEFORE_RESERVE
    known = "kept by the harness for a summary"
    return Limits(RESERVE, known, mark, "where the harness compacts on its own") if mark > 0 else Limits()


def headless(arguments: list[str], session: str) -> list[str] | None:
    """The words behind the program that run one prompt from standard input, in a session where one is named."""
    return ["-p", *arguments, *(["--resume", session] if session else [])]
