"""Cursor's databases: the editor's ``state.vscdb`` and the command line's ``store.db``, built here from plain SQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.model import Entry
from obsmem.harnesses import cursor
from obsmem.harnesses.base import Raw, Source
from obsmem.harnesses.cursor_rows import row_line
from tests.harnesses.cases import SHARED, Reading, read_file, read_source
from tests.harnesses.walker import missing_strings

SQLITE_FILES = sorted((SHARED / "transcripts" / "cursor").glob("*.db"))


def brief(entries: list[Entry]) -> list[tuple[str, str, str]]:
    return [(entry.kind, entry.speaker, entry.text) for entry in entries]


def with_odd_values(value: Any) -> Iterator[Any]:
    yield from (None, 7, True, "words", [], {}, [[]], {"text": {}}, -1e300)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: odd} for odd in with_odd_values(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], odd, *value[index + 1 :]] for odd in with_odd_values(item))


# The editor's database

BUBBLES: dict[str, Any] = {
    "b1": {"type": 1, "text": "make the build green", "createdAt": "2026-03-04T07:05:00.000Z", "richText": "{}"},
    "b2": {"type": 2, "thinking": {"text": "The log first.", "signature": "x"}, "text": ""},
    "b3": {
        "type": 2,
        "text": "Running it.",
        "tokenCount": {"inputTokens": 1234, "outputTokens": 5},
        "toolFormerData": {
            "name": "run_terminal_cmd",
            "toolCallId": "t1",
            "status": "completed",
            "rawArgs": json.dumps({"command": "npm run build", "explanation": "Build once"}),
            "params": json.dumps({"command": "npm run build", "cwd": "/home/u"}),
            "result": json.dumps({"output": 'src/a.ts:3 says "no default export"', "exitCodeV2": 1}),
        },
    },
    "b4": {
        "type": 2,
        "toolFormerData": {
            "name": "edit_file",
            "status": "cancelled",
            "userDecision": "rejected",
            "rawArgs": '{"target_file":"a.ts","code_edit":"export default a"}',
        },
    },
    "b6": {"type": 2, "text": "", "conversationSummary": {"summary": "The user wants a green build."}},
    "b7": {"type": 2, "text": "", "errorDetails": {"message": "Connection lost while streaming"}},
}
COMPOSER = {
    "composerId": "c1",
    "name": "Green build",
    "createdAt": 1772607900000,
    "contextTokensUsed": 24000,
    "contextTokenLimit": 200000,
    "modelConfig": {"modelName": "sonnet-x"},
    "fullConversationHeadersOnly": [{"bubbleId": name} for name in ("b3", "b1", "b2", "b4", "gone", "b5", "b6", "b7")],
}


def editor_database(path: Path) -> Path:
    """Two composers with bubbles, one without; a NULL, an empty, a broken and a missing value; a bubble left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for table in ("ItemTable", "cursorDiskKV"):
        connection.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    rows: list[tuple[str, Any]] = [("composerData:c1", json.dumps(COMPOSER))]
    rows += [(f"bubbleId:c1:{name}", json.dumps(bubble)) for name, bubble in BUBBLES.items()]
    rows += [
        ("bubbleId:c1:b5", None),
        ("bubbleId:c1:b8", json.dumps({"type": 1, "text": "a prompt that was taken back"})),
        ("bubbleId:c1:b9", ""),
        ("bubbleId:c2:w", ""),
        ("bubbleId:c2:x", b'{"type":1,"text":"bytes: \xff"}'),
        ("bubbleId:c2:y", b'{"type":2,"te'),
        ("composerData:c3", json.dumps({"composerId": "c3", "name": "empty"})),
    ]
    connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)
    connection.commit()
    connection.close()
    return path


def read_composer(path: Path, composer: str, pieces: int = 1) -> Reading:
    return read_source(cursor, Source(str(path), composer), pieces)


def test_a_composer_is_read_in_the_order_of_its_headers(tmp_path: Path) -> None:
    reading = read_composer(editor_database(tmp_path / "state.vscdb"), "c1")
    keys = [raw.key for raw, _ in reading.lines]
    order = ["b3", "b1", "b2", "b4", "gone", "b5", "b6", "b7", "b8", "b9"]
    assert keys == ["composerData:c1", *(f"bubbleId:c1:{name}" for name in order)]
    assert all(raw.data.endswith(b"\n") and raw.data.count(b"\n") == 1 for raw, _ in reading.lines)


def test_bubbles_become_entries_with_results_and_times(tmp_path: Path) -> None:
    reading = read_composer(editor_database(tmp_path / "state.vscdb"), "c1")
    entries = reading.entries()
    assert brief(entries) == [
        ("assistant", "agent", "Running it."),
        ("tool_call", "agent", "run_terminal_cmd\nexplanation: Build once\ncommand: npm run build\ncwd: /home/u"),
        ("tool_result", "tool", 'output: src/a.ts:3 says "no default export"\nexitCodeV2: 1'),
        ("user", "human", "make the build green"),
        ("thinking", "agent", "The log first."),
        ("tool_call", "agent", "edit_file\ntarget_file: a.ts\ncode_edit: export default a"),
        ("tool_result", "tool", "The user's decision: rejected"),
        ("boundary", "harness", "The conversation so far was summarised."),
        ("summary", "harness", "The user wants a green build."),
        ("notice", "harness", "Connection lost while streaming"),
        ("user", "human", "a prompt that was taken back"),
    ]
    failed = entries[2]
    assert (failed.ok, failed.exit_code, failed.call_id, failed.tool) == (False, 1, "t1", "run_terminal_cmd")
    assert entries[1].actions[0].command == "npm run build"
    assert entries[6].ok is False
    assert (entries[3].at, entries[3].source_id) == (1772607900000, "b1")
    place = entries[3].place
    assert place and (place.table, place.key, place.line) == ("cursorDiskKV", "bubbleId:c1:b1", 0)


def test_the_answer_to_a_question_is_the_humans(tmp_path: Path) -> None:
    tool = {"name": "ask_question", "params": '{"questions":[{"prompt":"Which port?"}]}', "result": '{"answer":"8091"}'}
    data = {"table": "cursorDiskKV", "key": "bubbleId:c:b", "raw": json.dumps({"type": 2, "toolFormerData": tool})}
    call, answer = cursor.blocks(json.dumps(data).encode())
    assert call.actions[0].new == "Which port?"
    assert (answer.kind, answer.speaker, answer.text) == ("tool_result", "human", "answer: 8091")


def test_empty_missing_and_broken_rows_cost_only_themselves(tmp_path: Path) -> None:
    path = editor_database(tmp_path / "state.vscdb")
    reasons = {raw.key: parsed.skipped for raw, parsed in read_composer(path, "c1").lines if not parsed.entries}
    assert reasons == {
        "composerData:c1": ("session metadata",),
        "bubbleId:c1:gone": ("empty value",),
        "bubbleId:c1:b5": ("empty value",),
        "bubbleId:c1:b9": ("empty value",),
    }
    other = read_composer(path, "c2")
    assert [parsed.skipped for _, parsed in other.lines] == [("empty value",), ("empty value",), (), ("not JSON",)]
    assert brief(other.entries()) == [("user", "human", "bytes: \ufffd")]


def test_what_a_composer_says_of_its_session(tmp_path: Path) -> None:
    path = editor_database(tmp_path / "state.vscdb")
    reading = read_composer(path, "c1")
    session = reading.session
    assert (session.id, session.name, session.model, session.window) == ("c1", "Green build", "sonnet-x", 200000)
    assert session.started_at == 1772607900000
    assert [(measure.context, measure.window) for measure in reading.measures()] == [(24000, 200000), (1234, 0)]
    assert read_composer(path, "c1", pieces=4) == reading


@pytest.mark.parametrize(
    ("table", "key"), [("cursorDiskKV", "bubbleId:c:b"), ("cursorDiskKV", "composerData:c"), ("blobs", "1")]
)
def test_rows_of_any_shape_are_read(table: str, key: str) -> None:
    """Every value of rows is replaced, one at a time, by values that do not belong there."""
    reader = cursor.reader(Source("state.vscdb", "c"), None, list)
    composer = {**COMPOSER, "conversation": [BUBBLES["b3"]], "latestConversationSummary": {"summary": {"summary": "s"}}}
    for row in [*BUBBLES.values(), composer]:
        for changed in with_odd_values(row):
            raw = Raw(row_line(table, key, json.dumps(changed).encode()), table=table, key=key)
            parsed = reader.read(raw)
            assert parsed.entries or parsed.skipped
            assert all(isinstance(entry.text, str) for entry in parsed.entries)
            json.dumps(reader.state())


def test_a_bubble_that_the_composer_no_longer_names_is_off_the_live_path(tmp_path: Path) -> None:
    source = Source(str(editor_database(tmp_path / "state.vscdb")), "c1")
    off = cursor.reader(source, None, list).inactive_keys()
    assert off == {"bubbleId:c1:b8", "bubbleId:c1:b9"}
    assert cursor.reader(Source(source.path, "c2"), None, list).inactive_keys() is None


def test_composers_without_bubbles_are_no_sessions(tmp_path: Path) -> None:
    path = editor_database(tmp_path / "state.vscdb")
    assert cursor.sources(str(path)) == [Source(str(path), "c1"), Source(str(path), "c2")]


def test_bubbles_kept_inside_an_old_composer_are_read(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    composer = {"conversation": [{"bubbleId": "q", "type": 1, "text": "old words"}, {"type": 2, "text": "old answer"}]}
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE ItemTable (key TEXT, value BLOB)")
        connection.execute(
            "INSERT INTO ItemTable VALUES ('composerData:o', ?)", [json.dumps(composer, separators=(",", ":"))]
        )
    connection.close()
    assert cursor.sources(str(path)) == [Source(str(path), "o")]
    entries = read_composer(path, "o").entries()
    assert brief(entries) == [("user", "human", "old words"), ("assistant", "agent", "old answer")]
    assert [(entry.source_id, entry.block) for entry in entries] == [("q", 0), ("", 1)]


def test_every_string_of_a_bubble_stands_in_an_entry_or_under_an_ignored_key(tmp_path: Path) -> None:
    path = editor_database(tmp_path / "state.vscdb")
    texts = [entry.text for entry in read_composer(path, "c1").entries()]
    lines = tmp_path / "rows.jsonl"
    opened = []
    for bubble in BUBBLES.values():
        tool = dict(bubble.get("toolFormerData", {}))
        for key in ("rawArgs", "params", "result"):
            tool[key] = json.loads(tool.get(key) or "null")
        opened.append({**bubble, "toolFormerData": tool, "createdAt": ""})
    lines.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in opened))
    assert missing_strings(lines, set(cursor.IGNORED_KEYS), texts) == []


def test_a_database_is_read_beside_a_writer_and_left_as_it_is(tmp_path: Path) -> None:
    """The newest rows stand only in the write-ahead log while the editor is open."""
    path = editor_database(tmp_path / "state.vscdb")
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute(
        "INSERT INTO cursorDiskKV VALUES ('bubbleId:c2:z', ?)", [json.dumps({"type": 1, "text": "not yet folded in"})]
    )
    writer.commit()
    before = path.read_bytes()
    assert "not yet folded in" in [entry.text for entry in read_composer(path, "c2").entries()]
    assert path.read_bytes() == before
    writer.close()


def test_a_file_that_only_begins_like_a_database_has_no_sessions(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    path.write_bytes(b"SQLite format 3\x00" + b"\x07" * 200)
    assert cursor.sources(str(path)) == []


# The command line's store


def store_database(path: Path, with_meta: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
    connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
    facts = {"agentId": "agent-7", "name": "Queue", "createdAt": 1772607900000, "lastUsedModel": "sonnet-x"}
    if with_meta:
        connection.execute("INSERT INTO meta VALUES ('0', ?)", [json.dumps(facts).encode().hex()])
    call = {"type": "tool-call", "toolCallId": "k1", "toolName": "Shell", "args": {"command": "make test"}}
    result = {"type": "tool-result", "toolCallId": "k1", "toolName": "Shell", "result": "2 passed\nExit code: 0"}
    messages = [
        {"role": "system", "content": "You are an agent in a terminal."},
        {"role": "user", "content": [{"type": "text", "text": "<user_query>\nrun them\n</user_query>"}]},
        {"id": "1", "role": "assistant", "content": [{"type": "reasoning", "text": "Quick."}, call]},
        {"role": "tool", "id": "k1", "content": [result], "providerOptions": {"cursor": {}}},
        {"role": "user", "content": "[Previous conversation summary]: tests were run"},
    ]
    blobs: list[tuple[str, bytes]] = [
        (f"f{9 - index}", json.dumps(item).encode()) for index, item in enumerate(messages)
    ]
    blobs.insert(1, ("e1", b"\x0a\x20" + bytes(range(200, 232))))
    blobs.append(("e2", b'{"kind":"checkpoint"}'))
    connection.executemany("INSERT INTO blobs VALUES (?, ?)", blobs)
    connection.commit()
    connection.close()
    return path


def test_a_stores_messages_are_read_and_its_other_blobs_counted(tmp_path: Path) -> None:
    path = store_database(tmp_path / "chat-1" / "store.db")
    reading = read_file("cursor", path)
    entries = reading.entries()
    assert brief(entries) == [
        ("notice", "harness", "You are an agent in a terminal."),
        ("user", "human", "run them"),
        ("thinking", "agent", "Quick."),
        ("tool_call", "agent", "Shell\ncommand: make test"),
        ("tool_result", "tool", "2 passed\nExit code: 0"),
        ("boundary", "harness", "The conversation so far was summarised."),
        ("summary", "harness", "[Previous conversation summary]: tests were run"),
    ]
    assert (entries[4].ok, entries[4].exit_code, entries[4].call_id) == (True, 0, "k1")
    reasons = [parsed.skipped for _, parsed in reading.lines if not parsed.entries]
    assert reasons == [("session metadata",), ("binary value",), ("blob without a role",)]
    session = reading.session
    assert (session.id, session.name, session.model) == ("agent-7", "Queue", "sonnet-x")
    assert read_file("cursor", path, pieces=3) == reading


def test_a_binary_blob_is_kept_exactly(tmp_path: Path) -> None:
    path = store_database(tmp_path / "store.db")
    row = next(json.loads(raw.data) for raw in cursor.records(cursor.sources(str(path))[0], 0, 0) if raw.key == "e1")
    assert bytes.fromhex(row["hex"]) == b"\x0a\x20" + bytes(range(200, 232))


def test_a_store_without_facts_has_its_folders_name(tmp_path: Path) -> None:
    path = store_database(tmp_path / "chat-1" / "store.db", with_meta=False)
    assert cursor.sources(str(path)) == [Source(str(path), "chat-1")]


@pytest.mark.parametrize("path", SQLITE_FILES, ids=lambda path: path.name)
def test_shared_stores_are_read(path: Path) -> None:
    reading = read_file("cursor", path)
    assert reading.session.started_at and reading.session.id == cursor.sources(str(path))[0].session_id
    assert all(parsed.entries or parsed.skipped for _, parsed in reading.lines)


def test_the_shared_composer_with_holes_is_read(tmp_path: Path) -> None:
    case = SHARED / "cases" / "37-cursor-vscdb.json"
    if not case.is_file():
        pytest.skip("the shared cases are not here")
    path = tmp_path / "state.vscdb"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
        for row in json.loads(case.read_bytes())["cursorDiskKV"]:
            value = None if row["value"] is None else json.dumps(row["value"])
            connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", [row["key"], value])
    connection.close()
    assert brief(read_file("cursor", path).entries()) == [("user", "human", "hi")]
