"""OpenCode: its exports, its database, its folder of JSON files, its events; its plugin's calls and their answers.

Owns the names that a harness module has; what they mean for each format stands in the ``opencode_*`` modules beside it.
Invariants: nothing of OpenCode's is ever written to; a session kept in several places has the same session id, message
and part ids in each. A source whose path is a ``.db`` or a folder has rows (``ROWS``); an export or a stream of events
is a plain file, whose records joined are the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from obsmem.core.model import Entry
from obsmem.harnesses import opencode_database, opencode_document, opencode_rows, opencode_tree
from obsmem.harnesses.base import (
    SNIFF_SIZE,
    Link,
    Raw,
    Reader,
    Source,
    no_reduce_config,
    no_rule_file,
    no_status_line,
    split_lines,
)
from obsmem.harnesses.opencode_agent import folder_of_server as folder_of_server
from obsmem.harnesses.opencode_agent import mcp_config as mcp_config
from obsmem.harnesses.opencode_agent import mcp_rule as mcp_rule
from obsmem.harnesses.opencode_agent import session_of_call as session_of_call
from obsmem.harnesses.opencode_agent import skill_file as skill_file
from obsmem.harnesses.opencode_config import limits as limits
from obsmem.harnesses.opencode_config import model_window as model_window
from obsmem.harnesses.opencode_hooks import EVENTS as EVENTS
from obsmem.harnesses.opencode_hooks import KEEPS_BLOCK as KEEPS_BLOCK
from obsmem.harnesses.opencode_hooks import NAME as NAME
from obsmem.harnesses.opencode_hooks import SHOWS_NOTICES as SHOWS_NOTICES
from obsmem.harnesses.opencode_hooks import STATUS_SECONDS as STATUS_SECONDS
from obsmem.harnesses.opencode_hooks import answer as answer
from obsmem.harnesses.opencode_hooks import read_event as read_event
from obsmem.harnesses.opencode_hooks import read_output as read_output
from obsmem.harnesses.opencode_hooks import replace_output as replace_output
from obsmem.harnesses.opencode_reader import OpenCodeReader
from obsmem.harnesses.opencode_records import interpret

if TYPE_CHECKING:
    from obsmem.core.turns import Draft, Written

# True of sources whose path is a database or a folder; exports and event streams are plain files.
ROWS = True

# Our plugin puts the block into every request, and asks for it again when OpenCode was started anew.

# Keys, or dotted ends of key paths, whose strings stand in no entry.
IGNORED_KEYS: Mapping[str, str] = {
    "sessionID": "an id of the harness",
    "messageID": "an id of the harness",
    "partID": "an id of the harness",
    "parentID": "an id of the harness; a session's is the reader's parent_id",
    "projectID": "an id of the harness",
    "workspaceID": "an id of the harness",
    "callID": "the entry's call_id",
    "tail_start_id": "an id of the harness",
    "info.id": "the session's id, or the source id of the message's entries",
    "parts.id": "the source id of the part's entries",
    "part.id": "the source id of the part's entries",
    "properties.info": "session and message infos of an event: facts of the session, not words",
    "providerID": "who serves the model",
    "modelID": "the session's model",
    "info.title": "the session's name",
    "info.slug": "a made-up name of the session",
    "info.directory": "the session's working folder",
    "info.path": "the folders that a message ran in: facts of the session",
    "info.permission": "rules that the harness holds its tools to",
    "info.revert": "where the live path ends, with a diff of the files that the harness took back",
    "info.share": "where the harness published the session",
    "info.summary": "a title and diffs that the harness computed from the turn; edits stand in the tool calls",
    "info.format": "the schema that an answer had to have",
    "info.agent": "the harness's name for a set of instructions",
    "info.mode": "the harness's name for a set of instructions",
    "info.variant": "a setting of the model",
    "info.finish": "why a message ended",
    "info.version": "the harness's version",
    "info.model": "which model the human had chosen",
    "parts.snapshot": "a hash of the harness's copy of the files",
    "parts.hash": "a hash of the harness's copy of the files",
    "parts.files": "files that a step changed, computed by the harness; the calls that changed them name them",
    "parts.reason": "why a step ended",
    "parts.metadata": "what a provider wants back: ids, signatures, encrypted reasoning",
    "part.metadata": "what a provider wants back: ids, signatures, encrypted reasoning",
    "part.snapshot": "a hash of the harness's copy of the files",
    "state.metadata": "what the harness shows a person beside the output: previews and diffs of what output and input say",
    "state.title": "a label that the harness makes from the input",
    "url": "a file's address: in a notice where it names a file, nowhere where it is the data itself",
    "event.type": "what kind of event it is",
    "properties.delta": "a piece of a text that comes whole with the part's last event",
    "properties.diff": "diffs that the harness computed; edits stand in the tool calls",
    "projectDirectory": "written by the recorder of an event stream",
    "sdkDirectory": "written by the recorder of an event stream",
    "activeSessionId": "written by the recorder of an event stream",
    "eventSessionId": "written by the recorder of an event stream",
    "latestAssistantMessageId": "written by the recorder of an event stream",
    "timestamp": "the entry's time",
}

PLUGIN = "file:///ABSOLUTE/PATH/TO/opencode-plugin/observational-memory.js"
SHOWS_RECEIPTS = False
TAKES_SESSIONS = True
WINDOW = 128_000
LARGER_WINDOWS = (200_000, 400_000, 1_000_000)
PROGRAMS = ("opencode",)
RESUME, PROMPT = ("--session",), ("--prompt",)
LOGIN_SHELL = False
SHORTENS = ""
NEXT_STEP = "OpenCode loads plugins when it starts: start it again."


def recognise(path: str, head: bytes) -> bool:
    """True for OpenCode's database, an export, or a stream of its events."""
    if head.startswith(opencode_database.MAGIC):
        return opencode_database.is_database(head) or os.path.basename(path).startswith("opencode")
    return opencode_document.is_export(head) or opencode_document.is_event_stream(head)


def find(home: str) -> Iterator[Source]:
    """Yield every session on this machine: first those in databases, then those that only the older files have."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    yield from _in_data_folder(Path(data) / "opencode", os.environ.get("OPENCODE_DB", ""))


def sources(path: str) -> list[Source]:
    """List the sessions in an export or event stream (one), a database, a ``storage`` folder, or the folder that holds
    both. A database that cannot be read has none."""
    if path.endswith(".db"):
        return _in_database(path)
    if opencode_tree.is_tree(path):
        return [Source(path, session_id) for session_id in opencode_tree.session_ids(path)]
    if os.path.isdir(path):
        return list(_in_data_folder(Path(path), ""))
    return [Source(path)]


def _in_data_folder(folder: Path, database: str) -> Iterator[Source]:
    """The sessions of a data folder, each once. ``database`` names the one database to use, '' for all that are there."""
    databases = [folder / database] if database else sorted(folder.glob("opencode*.db"))
    known: set[str] = set()
    for path in databases:
        for source in _in_database(str(path)) if path.is_file() else ():
            if source.session_id not in known:
                known.add(source.session_id)
                yield source
    storage = str(folder / "storage")
    if opencode_tree.is_tree(storage):
        for session_id in opencode_tree.session_ids(storage):
            if session_id not in known:
                yield Source(storage, session_id)


def _in_database(path: str) -> list[Source]:
    try:
        return [Source(path, session_id) for session_id in opencode_database.session_ids(path)]
    except OSError:
        return []


def records(source: Source, offset: int, line: int) -> Iterator[Raw]:
    """Yield the records of a source. Raises OSError where it cannot be read.

    Rows: all of them, each time, in order of time and id; the caller compares (table, key, sha256) with what it has.
    Exports: ``Raw.line`` is the number of the record, from 1; ``offset`` is in bytes. Events: physical lines.
    """
    if opencode_rows.is_rows(source.path):
        yield from (opencode_rows.as_record(row) for row in _rows(source))
        return
    with open(source.path, "rb") as file:
        head = file.read(SNIFF_SIZE)
        if opencode_document.is_event_stream(head):
            yield from split_lines(source, offset, line)
            return
        data = head + file.read()
    for number, span in enumerate(opencode_document.spans(data), 1):
        if span.end > offset:
            start = max(span.start, offset)
            yield Raw(data[start : span.end], number, start, complete=span.complete)


def _rows(source: Source) -> Iterator[opencode_rows.Row]:
    if os.path.isdir(source.path):
        return opencode_tree.rows(source.path, source.session_id)
    return opencode_database.rows(source.path, source.session_id)


def blocks(data: bytes) -> list[Entry]:
    """Yield everything that a record's bytes say, without context."""
    return list(interpret(data).entries)


def reader(
    source: Source, state: Mapping[str, Any] | None, history: Callable[[], Iterable[tuple[int, Link]]]
) -> Reader:
    """Make a reader. ``history`` is not used: a revert names where the live path ends."""
    reverted = None
    if opencode_rows.is_rows(source.path):

        def reverted() -> frozenset[str]:
            return opencode_rows.reverted_keys(_rows(source))

    return OpenCodeReader(NAME, source, state, reverted)


def hook_config(command: Callable[[str], str]) -> dict[str, Any]:
    """The fragment of ``opencode.json`` that loads our plugin.

    OpenCode has no file of hooks: a plugin, JavaScript in its own process, calls the command with the event's name. The
    path is where ``opencode-plugin/`` lies beside the package, else a placeholder; a copy in ``.opencode/plugin/`` needs
    no config at all.
    """
    plugin = Path(path).as_uri() if (path := _plugin_file()) else PLUGIN
    return {"$schema": "https://opencode.ai/config.json", "plugin": [[plugin, {"command": command("hook opencode")}]]}


def _plugin_file() -> str:
    """The plugin in this checkout; '' where it is not part of this copy."""
    path = Path(__file__).resolve().parents[2] / "opencode-plugin" / "observational-memory.js"
    return str(path) if path.is_file() else ""


def config_file(home: str, project: str) -> str:
    """The user's or a project's ``opencode.json``, or the ``.jsonc`` that is there already; '' without our plugin."""
    folder = project or os.environ.get("OPENCODE_CONFIG_DIR")
    if not folder:
        folder = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode")
    path = os.path.join(folder, "opencode.json")
    return (path + "c" if os.path.exists(path + "c") else path) if _plugin_file() else ""


def recall_rule(home: str, project: str, command: str) -> tuple[str, dict[str, Any]]:
    """A pattern for the shell tool; the last pattern that fits decides."""
    return config_file(home, project), {"permission": {"bash": {f"{command} *": "allow"}}}


reduce_config = no_reduce_config
rule_file = no_rule_file
status_config = no_status_line


def trust(home: str, project: str) -> list[tuple[str, str]]:
    """OpenCode runs every plugin that its config names."""
    return []


def other_ways(home: str, project: str) -> list[str]:
    """Copies of the plugin in the folders that OpenCode looks into by itself."""
    config = os.path.dirname(config_file(home, "")) or os.path.join(home, ".config", "opencode")
    folders = [config, os.path.join(project, ".opencode")] if project else [config]
    places = [
        os.path.join(folder, name, "observational-memory.js") for folder in folders for name in ("plugin", "plugins")
    ]
    return [f"the plugin {place}" for place in places if os.path.exists(place)]


def write_session(draft: Draft, home: str) -> Written:
    """Write a session to go on with; see ``opencode_writer``."""
    from obsmem.harnesses import opencode_writer

    return opencode_writer.write_session(draft, home)


def headless(arguments: list[str], session: str) -> list[str] | None:
    """The words behind the program that run one prompt from standard input, in a session where one is named."""
    return ["run", *arguments, *(["--session", session] if session else [])]
