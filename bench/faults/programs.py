"""Sessions that a program keeps in a database: what it writes there step by step, in the tables of three formats.

The words are the demo's. Invariant: after the same steps the same rows stand in it, however often they were written.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bench.corpus import PROJECT
from bench.faults.place import Place

Statement = tuple[str, tuple[Any, ...]]
WHOLE = 80  # as many steps as a transcript of lines has, so that scenes fit both
CHAT = "3f2e7a10-0000-4000-8000-00000000000a"


class Format(NamedTuple):
    """One program's database: its tables, and where in them the words of a session stand."""

    name: str
    harness: str
    session: str
    file: str
    tables: str
    words: tuple[str, str, str]  # table, the column of its keys, the column of its words
    steps: list[list[Statement]]


class RowsPlace(Place):
    """A place whose session stands in such a database. ``wal``: how the program keeps its journal."""

    def __init__(self, form: Format, *, wal: bool = True) -> None:
        super().__init__(harness=form.harness)
        self.form, self.wal, self.session = form, wal, form.session
        self.transcript = os.path.join(os.path.dirname(self.transcript), "chat", form.file)
        os.makedirs(os.path.dirname(self.transcript))

    def open(self) -> sqlite3.Connection:
        """The program's own connection."""
        connection = sqlite3.connect(self.transcript, isolation_level=None, timeout=20)
        connection.execute(f"PRAGMA journal_mode={'WAL' if self.wal else 'DELETE'}")
        connection.executescript(self.form.tables)
        return connection

    def grow(self, lines: int) -> None:
        """Let so many eightieths of the session be written, over what stands there."""
        with closing(self.open()) as connection:
            for step in self.written(lines):
                connection.execute("BEGIN IMMEDIATE")
                for sql, values in step:
                    connection.execute(sql, values)
                connection.execute("COMMIT")

    def written(self, lines: int) -> list[list[Statement]]:
        """The steps of so many eightieths."""
        return self.form.steps[: -(-lines * len(self.form.steps) // WHOLE)]


def formats() -> list[Format]:
    """All of them."""
    demo = json.loads((PROJECT / "fixtures" / "demo" / "opencode" / "export.json").read_text(encoding="utf-8"))
    messages = demo["messages"]
    return [_messages(demo["info"], messages), _bubbles(messages), _blobs(messages)]


def _messages(info: dict[str, Any], messages: list[dict[str, Any]]) -> Format:
    tables = """
        CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, parent_id text, directory text, title text, version text,
          revert text, time_created integer, time_updated integer);
        CREATE TABLE IF NOT EXISTS message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer,
          data text);
        CREATE TABLE IF NOT EXISTS part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,
          time_updated integer, data text);"""
    id_, at = info["id"], info["time"]["created"]
    session = (id_, None, info["directory"], info["title"], info["version"], None, at, at)
    steps: list[list[Statement]] = [[("INSERT OR REPLACE INTO session VALUES(?,?,?,?,?,?,?,?)", session)]]
    for message in messages:
        own = message["info"]
        at = own["time"]["created"]
        steps.append(
            [("INSERT OR REPLACE INTO message VALUES(?,?,?,?,?)", (own["id"], id_, at, at, json.dumps(own)))]
            + [
                (
                    "INSERT OR REPLACE INTO part VALUES(?,?,?,?,?,?)",
                    (part["id"], own["id"], id_, at, at, json.dumps(part)),
                )
                for part in message["parts"]
            ]
        )
    return Format("messages and parts", "opencode", id_, "opencode.db", tables, ("part", "id", "data"), steps)


def _said(messages: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Who said what, or which tool was called, in order."""
    for message in messages:
        for part in message["parts"]:
            if part["type"] in ("text", "tool"):
                yield message["info"]["role"], part


def _bubbles(messages: list[dict[str, Any]]) -> Format:
    table = "CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);"
    steps: list[list[Statement]] = []
    headers: list[dict[str, str]] = []
    for number, (role, part) in enumerate(_said(messages)):
        bubble: dict[str, Any] = {"type": 1 if role == "user" else 2, "text": part.get("text", "")}
        if part["type"] == "tool":
            state = part["state"]
            bubble["toolFormerData"] = {
                "name": "run_terminal_cmd", "toolCallId": part["callID"], "status": "completed",
                "params": json.dumps(state["input"]), "result": json.dumps({"output": str(state.get("output", ""))}),
            }  # fmt: skip
        headers.append({"bubbleId": f"b{number}"})
        composer = {"composerId": CHAT, "name": "Webhooks", "fullConversationHeadersOnly": list(headers)}
        insert = "INSERT OR REPLACE INTO cursorDiskKV VALUES(?,?)"
        steps.append(
            [
                (insert, (f"bubbleId:{CHAT}:b{number}", json.dumps(bubble))),
                (insert, (f"composerData:{CHAT}", json.dumps(composer))),
            ]
        )
    return Format("bubbles of an editor", "cursor", CHAT, "state.vscdb", table, ("cursorDiskKV", "key", "value"), steps)


def _blobs(messages: list[dict[str, Any]]) -> Format:
    tables = (
        "CREATE TABLE IF NOT EXISTS blobs (id TEXT PRIMARY KEY, data BLOB);"
        "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);"
    )
    facts = json.dumps({"agentId": CHAT, "name": "Webhooks"}).encode().hex()
    steps: list[list[Statement]] = [[("INSERT OR REPLACE INTO meta VALUES('0', ?)", (facts,))]]
    for number, (role, part) in enumerate(_said(messages)):
        content: dict[str, Any] = {"type": "text", "text": part.get("text", "")}
        if part["type"] == "tool":
            content = {
                "type": "tool-call",
                "toolCallId": part["callID"],
                "toolName": "Shell",
                "args": part["state"]["input"],
            }
        blob = json.dumps({"role": role, "content": [content]}).encode()
        steps.append([("INSERT OR REPLACE INTO blobs VALUES(?,?)", (f"{number:064x}", blob))])
    return Format("blobs of a command line", "cursor", CHAT, "store.db", tables, ("blobs", "id", "data"), steps)


def database_of(form: Format, steps: int = 6) -> bytes:
    """A small database of this format, as bytes."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        path = os.path.join(folder, form.file)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA page_size=512")
            connection.executescript(form.tables)
            for sql, values in (statement for step in form.steps[:steps] for statement in step):
                connection.execute(sql, values)
        return Path(path).read_bytes()
