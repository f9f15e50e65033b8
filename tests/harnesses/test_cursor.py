"""Cursor's formats: transcripts (JSONL and labelled text), the editor's database, the command line's store, hooks."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from obsmem import harnesses
from obsmem.core.model import Entry, HookAnswer
from obsmem.harnesses import cursor
from obsmem.harnesses.base import WORKER_MARK, Source
from tests.harnesses.cases import SHARED, Reading, case_folders, check_case, compact, read_file, read_source
from tests.harnesses.walker import missing_strings

CASES = case_folders("cursor")
DEMO = Path(__file__).resolve().parents[2] / "fixtures" / "demo" / "cursor" / "session.jsonl"
SQLITE_FILES = sorted((SHARED / "transcripts" / "cursor").glob("*.db"))
SHARED_FILES = [
    *sorted((SHARED / "transcripts" / "cursor").glob("*.jsonl")),
    *sorted((SHARED / "cases").glob("*cursor*.jsonl")),
]
GENERIC_CASES = ["01", "02", "03", "04", "05", "41", "42"]
TRANSCRIPTS = [next(case.glob("transcript.*")) for case in CASES]


def write_lines(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records))
    return path


def said(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "message": {"content": [{"type": "text", "text": text} for text in texts]}}


def brief(entries: list[Entry]) -> list[tuple[str, str, str]]:
    return [(entry.kind, entry.speaker, entry.text) for entry in entries]


def cut_at_wrappers(line: bytes) -> bytes:
    """A line with its strings cut into lists where a wrapper of Cursor's begins or ends; a bad line as it is."""

    def cut(value: Any) -> Any:
        if isinstance(value, str):
            pieces = re.split(
                r"</?user_query>|(?<=</timestamp>)|(?<=</user_info>)|(?<=</system_reminder>)|(?<=</observational-memory>)",
                value,
            )
            return value if len(pieces) == 1 else [piece.strip() for piece in pieces]
        if isinstance(value, list):
            return [cut(item) for item in value]
        return {key: cut(item) for key, item in value.items()} if isinstance(value, dict) else value

    try:
        return json.dumps(cut(json.loads(line))).encode() + b"\n"
    except ValueError:
        return line + b"\n"


# Transcripts


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_yields_its_entries(case: Path) -> None:
    check_case("cursor", case)


@pytest.mark.parametrize("path", [*TRANSCRIPTS, DEMO], ids=lambda path: path.parent.name)
def test_records_joined_are_the_file(path: Path) -> None:
    raws = list(cursor.records(Source(str(path)), 0, 0))
    assert b"".join(raw.data for raw in raws) == path.read_bytes()
    lines = 1
    for raw in raws:
        assert raw.line == lines
        lines += raw.data.count(b"\n")


@pytest.mark.parametrize("path", [*TRANSCRIPTS, DEMO], ids=lambda path: path.parent.name)
def test_records_can_be_read_from_any_record_on(path: Path) -> None:
    raws = list(cursor.records(Source(str(path)), 0, 0))
    for index, raw in enumerate(raws):
        assert list(cursor.records(Source(str(path)), raw.offset, raw.line - 1)) == raws[index:]


@pytest.mark.parametrize("path", [*TRANSCRIPTS, DEMO], ids=lambda path: path.parent.name)
def test_reading_in_pieces_gives_the_same(path: Path) -> None:
    whole = read_file("cursor", path)
    for pieces in (2, 3, 7):
        assert read_file("cursor", path, pieces) == whole


@pytest.mark.parametrize("path", [*TRANSCRIPTS, DEMO], ids=lambda path: path.parent.name)
def test_entries_can_be_had_again_from_a_records_bytes(path: Path) -> None:
    for raw, parsed in read_file("cursor", path).lines:
        again = cursor.blocks(raw.data)
        assert [entry.text for entry in parsed.entries] == [again[entry.block].text for entry in parsed.entries]


@pytest.mark.parametrize(
    "path", [*TRANSCRIPTS, DEMO, *SHARED_FILES], ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_every_record_has_entries_or_a_reason(path: Path) -> None:
    for _, parsed in read_file("cursor", path).lines:
        assert parsed.entries or parsed.skipped


@pytest.mark.parametrize(
    "path",
    [path for path in [*TRANSCRIPTS, DEMO, *SHARED_FILES] if path.suffix == ".jsonl"],
    ids=lambda path: str(path)[-40:],
)
def test_no_string_is_lost(path: Path, tmp_path: Path) -> None:
    """Invariant 2. Only the wrapper of the human's words goes: strings are cut at it before they are looked for."""
    prepared = tmp_path / "cut.jsonl"
    prepared.write_bytes(b"".join(cut_at_wrappers(line) for line in path.read_bytes().split(b"\n")))
    texts = [entry.text for entry in read_file("cursor", path).entries()]
    assert missing_strings(prepared, set(cursor.IGNORED_KEYS), texts) == []


@pytest.mark.parametrize("number", GENERIC_CASES)
def test_damage_made_for_other_harnesses_does_no_harm(number: str) -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared cases are not here")
    path = next((SHARED / "cases").glob(f"{number}-*.jsonl"))
    raws = list(cursor.records(Source(str(path)), 0, 0))
    assert b"".join(raw.data for raw in raws) == path.read_bytes()
    reading = read_source(cursor, Source(str(path)))
    assert all(parsed.entries or parsed.skipped for _, parsed in reading.lines)


def test_no_time_is_made_up() -> None:
    entries = read_file("cursor", next(p for p in TRANSCRIPTS if p.parent.name == "wrappers")).entries()
    times = {entry.at for entry in entries}
    assert times == {0, 1772607900000}  # 2026-03-04 07:05 UTC, from the only timestamp tag
    human = next(entry for entry in entries if entry.speaker == "human")
    assert human.at == 1772607900000
    assert human.text == "Keep the carrier table sorted, never by hand."


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Tuesday, Jan 6, 2026, 1:15 PM (UTC+1)", 1767701700000),
        ("Tuesday, January 6, 2026 at 12:15:30 AM (UTC-05:30)", 1767678330000),
        ("Jan 6, 2026, 13:15 UTC", 1767705300000),
        ("2026-01-06T12:15:00Z", 1767701700000),
        ("Tuesday, Jan 6, 2026, 1:15 PM", 0),
        ("Tue, Foo 6, 2026, 1:15 PM (UTC+1)", 0),
        ("this morning", 0),
    ],
)
def test_a_timestamp_tag_gives_a_time_where_it_names_a_zone(words: str, expected: int) -> None:
    data = json.dumps(said("user", f"<timestamp>{words}</timestamp>\n<user_query>\nhi\n</user_query>")).encode()
    assert [entry.at for entry in cursor.blocks(data)] == [expected, expected]


def test_the_workspace_and_start_come_from_the_records(tmp_path: Path) -> None:
    reading = read_file("cursor", next(p for p in TRANSCRIPTS if p.parent.name == "wrappers"))
    assert reading.session.cwd == reading.session.workspace == "/home/dev/lantern"
    assert reading.session.started_at == 1772607900000
    assert reading.session.id == "transcript"


def test_a_sub_agents_transcript_names_its_parent_and_its_speakers(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "p1" / "subagents" / "s1.jsonl",
        said("user", "List the callers."),
        {
            "role": "assistant",
            "message": {
                "content": [
                    {"type": "text", "text": "Two."},
                    {"type": "tool_use", "name": "LS", "input": {"path": "src"}},
                ]
            },
        },
    )
    reading = read_file("cursor", path)
    assert (reading.session.id, reading.parent_id, reading.session.role) == ("s1", "p1", "subagent")
    assert [(entry.kind, entry.speaker) for entry in reading.entries()] == [
        ("user", "agent"),
        ("assistant", "subagent"),
        ("tool_call", "subagent"),
    ]


def test_a_workers_own_session_is_known_by_its_first_prompt(tmp_path: Path) -> None:
    worker = write_lines(tmp_path / "w.jsonl", said("user", f"<user_query>\n{WORKER_MARK} observe\n</user_query>"))
    person = write_lines(tmp_path / "p.jsonl", said("user", "hello"), said("user", f"what is {WORKER_MARK}?"))
    assert read_file("cursor", worker).session.role == "worker"
    assert read_file("cursor", person, pieces=2).session.role == "main"


def test_our_own_block_is_a_receipt_and_never_observed() -> None:
    reading = read_file("cursor", next(p for p in TRANSCRIPTS if p.parent.name == "own-block"))
    assert reading.receipts() == ["k3f9 1/2"]
    assert [entry.text for entry in reading.entries() if entry.observable] == ["go on", "Going on."]


def test_a_line_written_in_two_pieces_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    whole = json.dumps(said("assistant", "done")).encode() + b"\n"
    path.write_bytes(whole[:20])
    assert [raw.complete for raw in cursor.records(Source(str(path)), 0, 0)] == [False]
    path.write_bytes(whole)
    assert [raw.complete for raw in cursor.records(Source(str(path)), 0, 0)] == [True]


# Recognition and finding


def test_only_cursors_files_are_recognised() -> None:
    for path in TRANSCRIPTS:
        assert cursor.recognise(str(path), path.read_bytes()), path
    for head in (
        b'{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hi"}}\n',
        b'{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x"}}\n',
        b'{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}\n',
        b'{"info":{"id":"ses_1"},"messages":[]}',
        b"plain words\nuser:\n",
        b"",
    ):
        assert not cursor.recognise("x.jsonl", head), head


@pytest.mark.parametrize("harness", ["claude-code", "codex", "opencode"])
def test_transcripts_of_other_harnesses_are_not_recognised(harness: str) -> None:
    folder = SHARED / "transcripts" / harness
    if not folder.is_dir():
        pytest.skip("the shared transcripts are not here")
    for path in sorted(folder.rglob("*.*")):
        if path.is_file():
            with path.open("rb") as file:
                assert not cursor.recognise(str(path), file.read(1 << 16)), path


def test_shared_transcripts_are_recognised() -> None:
    if not SHARED_FILES:
        pytest.skip("the shared transcripts are not here")
    for path in [*SHARED_FILES, *SQLITE_FILES]:
        assert cursor.recognise(str(path), path.read_bytes()[: 1 << 16]), path


def test_find_yields_a_session_once_and_prefers_the_database(tmp_path: Path) -> None:
    transcripts = tmp_path / ".cursor" / "projects" / "home-u-lantern" / "agent-transcripts"
    write_lines(transcripts / "c1" / "c1.jsonl", said("user", "hi"))
    write_lines(transcripts / "c9" / "c9.jsonl", said("user", "hi"))
    write_lines(transcripts / "c9" / "subagents" / "s1.jsonl", said("user", "hi"))
    (transcripts / "c9.txt").write_text("user:\nhi\n", encoding="utf-8")
    (transcripts / "old.txt").write_text("user:\nhi\n", encoding="utf-8")
    state = editor_database(tmp_path / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb")
    store = store_database(tmp_path / ".config" / "cursor" / "chats" / "0f" / "chat-1" / "store.db")
    assert [(Path(source.path), source.session_id) for source in cursor.find(str(tmp_path))] == [
        (state, "c1"),
        (state, "c2"),
        (store, "agent-7"),
        (transcripts / "c9" / "c9.jsonl", ""),
        (transcripts / "c9" / "subagents" / "s1.jsonl", ""),
        (transcripts / "old.txt", ""),
    ]


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
        ("bubbleId:c10:zz", b'{"type":1,"text":"bytes: \xff"}'),
        ("bubbleId:c2:x", b'{"type":2,"te'),
        ("composerData:c3", json.dumps({"composerId": "c3", "name": "empty"})),
    ]
    rows[-3] = ("bubbleId:c2:y", b'{"type":1,"text":"bytes: \xff"}')
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
    assert [parsed.skipped for _, parsed in other.lines] == [("empty value",), (), ("not JSON",)]
    assert brief(other.entries()) == [("user", "human", "bytes: \ufffd")]


def test_what_a_composer_says_of_its_session(tmp_path: Path) -> None:
    path = editor_database(tmp_path / "state.vscdb")
    reading = read_composer(path, "c1")
    session = reading.session
    assert (session.id, session.name, session.model, session.window) == ("c1", "Green build", "sonnet-x", 200000)
    assert session.started_at == 1772607900000
    assert [(measure.context, measure.window) for measure in reading.measures()] == [(24000, 200000), (1234, 0)]
    assert read_composer(path, "c1", pieces=4) == reading


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
    write_lines(lines, *opened)
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


# Hooks


@pytest.mark.parametrize(
    ("event", "kind", "source"),
    [
        ("sessionStart", "session_start", "startup"),
        ("preCompact", "before_compact", "auto"),
        ("stop", "turn_end", "auto"),
        ("sessionEnd", "session_end", "auto"),
        ("postToolUse", "prompt", "auto"),
        ("beforeSubmitPrompt", "other", "auto"),
        ("afterFileEdit", "other", "auto"),
    ],
)
def test_a_payload_becomes_an_event(event: str, kind: str, source: str) -> None:
    payload = {
        "conversation_id": "c1",
        "transcript_path": "/t/c1.jsonl",
        "workspace_roots": ["/home/u/lantern", "/x"],
        "trigger": "auto",
    }
    found = cursor.read_event(event, payload)
    assert found == (kind, event, "c1", "/t/c1.jsonl", "/home/u/lantern", source, "")


@pytest.mark.parametrize("payload", [{}, {"conversation_id": 7, "workspace_roots": {}, "transcript_path": None}])
def test_an_odd_payload_is_an_event_without_values(payload: dict[str, Any]) -> None:
    assert cursor.read_event("stop", payload) == ("turn_end", "stop", "", "", "", "", "")


def test_context_goes_only_where_cursor_takes_it() -> None:
    text = 'two\nlines "quoted"'
    for event in ("sessionStart", "postToolUse"):
        assert json.loads(cursor.answer(cursor.read_event(event, {}), HookAnswer(text))) == {"additional_context": text}
        assert cursor.answer(cursor.read_event(event, {}), HookAnswer()) == "{}"
    for event in ("preCompact", "stop", "sessionEnd", "beforeSubmitPrompt", "later"):
        assert cursor.answer(cursor.read_event(event, {}), HookAnswer(text)) == "{}"


def test_the_hook_config_has_cursors_shape() -> None:
    config = cursor.hook_config(lambda arguments: f"run {arguments}")
    assert config["version"] == 1
    assert list(config["hooks"]) == ["sessionStart", "preCompact", "stop", "sessionEnd", "postToolUse"]
    for event, handlers in config["hooks"].items():
        assert [handler["command"] for handler in handlers] == [f"run hook cursor {event}"]
        assert all(handler["timeout"] > 0 for handler in handlers)


def test_the_module_is_a_harness() -> None:
    harness = harnesses.load("cursor")
    assert (harness.NAME, harness.ROWS) == ("cursor", True)
    assert all(harness.IGNORED_KEYS.values())


def test_the_demo_ends_in_a_compaction_and_goes_on() -> None:
    kinds = [row.get("kind") for row in compact(read_file("cursor", DEMO))]
    after = kinds[kinds.index("boundary") :]
    assert after[1] == "summary"
    assert 1 <= after.count("user") <= 3
