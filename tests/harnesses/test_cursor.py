"""Cursor's transcripts (JSONL and labelled text), how its files are recognised and found, and its hooks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from obsmem import harnesses
from obsmem.core.model import HookAnswer, HookEvent
from obsmem.harnesses import cursor
from obsmem.harnesses.base import Raw, Source
from obsmem.harnesses.cursor_rows import row_line
from obsmem.harnesses.written import WORKER_MARK
from tests.harnesses.cases import SHARED, case_folders, check_case, compact, read_file, read_source
from tests.harnesses.test_cursor_database import SQLITE_FILES, editor_database, store_database, with_odd_values
from tests.harnesses.walker import missing_strings

CASES = case_folders("cursor")
DEMO = Path(__file__).resolve().parents[2] / "fixtures" / "demo" / "cursor" / "session.jsonl"
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


def test_records_of_any_shape_are_read() -> None:
    """Every value of real records is replaced, one at a time, by values that do not belong there."""
    records = [json.loads(line) for path in TRANSCRIPTS for line in path.read_bytes().split(b"\n")[:9] if is_json(line)]
    for record in records:
        for changed in with_odd_values(record):
            for data in (
                json.dumps(changed).encode(),
                row_line("cursorDiskKV", "bubbleId:c:b", json.dumps(changed).encode()),
            ):
                assert all(isinstance(entry.text, str) for entry in cursor.blocks(data))
    deep = b'{"type":"x","a":' + b"[" * 400 + b'"w"' + b"]" * 400 + b"}"
    assert cursor.reader(Source("x.jsonl"), None, list).read(Raw(deep)).skipped


def is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


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
    assert found == HookEvent(kind, event, "c1", "/t/c1.jsonl", "/home/u/lantern", source)


@pytest.mark.parametrize("payload", [{}, {"conversation_id": 7, "workspace_roots": {}, "transcript_path": None}])
def test_an_odd_payload_is_an_event_without_values(payload: dict[str, Any]) -> None:
    assert cursor.read_event("stop", payload) == HookEvent("turn_end", "stop")


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
