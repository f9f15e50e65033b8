"""OpenCode's database and its folder of JSON files: rows, their order and versions, reverts, what is found where."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from obsmem import harnesses
from obsmem.harnesses.base import Harness, Source
from tests.harnesses.cases import FIXTURES, SHARED, read_source

TREE = FIXTURES / "opencode" / "storage-tree" / "transcript"
SESSION = "ses_0aaa11112222ExampleSession1"

SCHEMA = """
CREATE TABLE `project` (`id` text PRIMARY KEY, `worktree` text NOT NULL);
CREATE TABLE `session` (`id` text PRIMARY KEY, `project_id` text NOT NULL, `workspace_id` text, `parent_id` text,
  `slug` text NOT NULL, `directory` text NOT NULL, `path` text, `title` text NOT NULL, `version` text NOT NULL,
  `summary_diffs` text, `revert` text, `permission` text, `agent` text, `model` text,
  `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `time_compacting` integer, `time_archived` integer);
CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE INDEX `message_session_time_created_id_idx` ON `message` (`session_id`, `time_created`, `id`);
CREATE TABLE `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL,
  `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE INDEX `part_message_id_id_idx` ON `part` (`message_id`, `id`);
CREATE TABLE `todo` (`session_id` text NOT NULL, `content` text NOT NULL, `status` text NOT NULL,
  `priority` text NOT NULL, `position` integer NOT NULL, PRIMARY KEY (`session_id`, `position`));
"""


@pytest.fixture
def opencode() -> Harness:
    return harnesses.load("opencode")


class Database:
    """A database with OpenCode's schema, to be filled row by row."""

    def __init__(self, path: Path, *, wal: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        if wal:
            self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.executescript(SCHEMA)

    def session(self, session_id: str, *, created: int = 1790000000000, parent: str | None = None) -> None:
        self.connection.execute(
            "INSERT INTO session(id, project_id, parent_id, slug, directory, title, version, time_created, time_updated)"
            " VALUES(?, 'global', ?, 'quiet-harbor', '/srv/ferry', 'Fix the timetable', '1.18.12', ?, ?)",
            (session_id, parent, created, created),
        )

    def message(self, message_id: str, role: str, at: int, session: str = SESSION, **more: Any) -> None:
        data = {"role": role, "time": {"created": 1790000000000 + at}, **more}
        self.connection.execute(
            "INSERT INTO message VALUES(?, ?, ?, ?, ?)", (message_id, session, at, at, json.dumps(data))
        )

    def part(self, part_id: str, message_id: str, at: int, data: Any, session: str = SESSION) -> None:
        text = data if isinstance(data, (str, bytes)) else json.dumps(data)
        self.connection.execute(
            "INSERT INTO part VALUES(?, ?, ?, ?, ?, ?)", (part_id, message_id, session, at, at, text)
        )

    def talk(self) -> None:
        """A session of two turns. Rows are inserted out of order, and all parts at one time, as a migration does."""
        self.session(SESSION)
        self.message("msg_2", "assistant", 2000, modelID="m1", tokens={"input": 5, "cache": {"read": 3, "write": 2}})
        self.message("msg_1", "user", 1000)
        self.message("msg_3", "user", 3000)
        self.part("prt_3", "msg_3", 9000, {"type": "text", "text": "second wish"})
        self.part("prt_2b", "msg_2", 9000, {"type": "text", "text": "first answer"})
        state = {"status": "running", "input": {"command": "make"}, "time": {"start": 1790000002500}}
        self.part("prt_2a", "msg_2", 9000, {"type": "tool", "tool": "bash", "callID": "c1", "state": state})
        self.part("prt_1", "msg_1", 9000, {"type": "text", "text": "first wish"})

    def revert(self, **to: str) -> None:
        self.connection.execute("UPDATE session SET revert=? WHERE id=?", (json.dumps(to) if to else None, SESSION))


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(tmp_path / "opencode.db")
    database.talk()
    return database


def test_rows_come_in_order_each_message_followed_by_its_parts(database: Database, opencode: Harness) -> None:
    raws = list(opencode.records(Source(str(database.path), SESSION), 0, 0))
    assert [(raw.table, raw.key) for raw in raws] == [
        ("session", SESSION), ("message", "msg_1"), ("part", "prt_1"), ("message", "msg_2"), ("part", "prt_2a"),
        ("part", "prt_2b"), ("message", "msg_3"), ("part", "prt_3"),
    ]  # fmt: skip
    assert all(raw.complete and raw.line == 0 for raw in raws)


def test_a_row_is_one_json_line_that_keeps_the_rows_own_text_exactly(database: Database, opencode: Harness) -> None:
    spaced = '{ "type" : "text",\n "text": "caf\\u00e9 \\ud83a" }'
    database.part("prt_4", "msg_3", 9001, spaced)
    raw = list(opencode.records(Source(str(database.path), SESSION), 0, 0))[-1]
    assert raw.data.endswith(b"\n") and raw.data.count(b"\n") == 1
    row = json.loads(raw.data)
    assert row["raw"] == spaced
    assert (row["table"], row["key"], row["session_id"], row["message_id"]) == ("part", "prt_4", SESSION, "msg_3")
    assert (row["role"], row["time_created"], row["time_updated"]) == ("user", 9001, 9001)
    assert [entry.text for entry in opencode.blocks(raw.data)] == ["café \ufffd"]


def test_a_database_says_who_spoke_when_and_with_which_model(database: Database, opencode: Harness) -> None:
    reading = read_source(opencode, Source(str(database.path), SESSION))
    assert [(entry.kind, entry.speaker, entry.text, entry.at) for entry in reading.entries()] == [
        ("user", "human", "first wish", 1790000001000),
        ("tool_call", "agent", "bash\ncommand: make", 1790000002500),
        ("assistant", "agent", "first answer", 1790000002000),
        ("user", "human", "second wish", 1790000003000),
    ]
    assert reading.session.model == "m1" and reading.session.cwd == "/srv/ferry"
    assert reading.session.started_at == 1790000000000 and reading.session.name == "Fix the timetable"
    assert [measure.context for measure in reading.measures()] == [10]
    assert read_source(opencode, Source(str(database.path), SESSION), 3).entries() == reading.entries()


def test_a_row_that_changed_has_other_bytes_and_the_others_have_the_same(database: Database, opencode: Harness) -> None:
    source = Source(str(database.path), SESSION)
    before = {raw.key: raw.data for raw in opencode.records(source, 0, 0)}
    state = {"status": "completed", "input": {"command": "make"}, "output": "done\n", "metadata": {"exit": 0}}
    data = json.dumps({"type": "tool", "tool": "bash", "callID": "c1", "state": state})
    database.connection.execute("UPDATE part SET data=? WHERE id='prt_2a'", (data,))
    after = {raw.key: raw.data for raw in opencode.records(source, 0, 0)}
    assert {key for key in after if after[key] != before[key]} == {"prt_2a"}
    call, result = opencode.blocks(after["prt_2a"])
    assert (call.call_id, result.call_id, result.text, result.ok, result.exit_code) == ("c1", "c1", "done\n", True, 0)


def test_a_summary_in_the_database_is_the_harnesss(database: Database, opencode: Harness) -> None:
    database.message("msg_4", "assistant", 4000, summary=True, mode="compaction")
    database.part("prt_4", "msg_4", 4001, {"type": "text", "text": "## Goal"})
    last = read_source(opencode, Source(str(database.path), SESSION)).entries()[-1]
    assert (last.kind, last.speaker) == ("summary", "harness")


@pytest.mark.parametrize(
    ("to", "gone"),
    [
        ({}, set()),
        ({"messageID": "msg_3"}, {"msg_3", "prt_3"}),
        ({"messageID": "msg_2"}, {"msg_2", "prt_2a", "prt_2b", "msg_3", "prt_3"}),
        ({"messageID": "msg_2", "partID": "prt_2b"}, {"prt_2b", "msg_3", "prt_3"}),
        ({"messageID": "msg_2", "partID": "prt_gone"}, {"msg_3", "prt_3"}),
    ],
)
def test_a_revert_takes_what_follows_it_off_the_live_path(
    database: Database, opencode: Harness, to: dict[str, str], gone: set[str]
) -> None:
    database.revert(**to)
    source = Source(str(database.path), SESSION)
    assert opencode.reader(source, None, lambda: ()).inactive_keys() == gone
    reading = read_source(opencode, source)
    assert {raw.key for raw, parsed in reading.lines for entry in parsed.entries if not entry.active} == {
        key for key in gone if key.startswith("prt")
    }


def test_a_file_says_nothing_of_inactive_keys(opencode: Harness) -> None:
    source = Source(str(FIXTURES / "opencode" / "reverted-message" / "transcript.json"))
    assert opencode.reader(source, None, lambda: ()).inactive_keys() is None


def test_the_folder_of_files_has_a_revert_too(opencode: Harness) -> None:
    assert opencode.reader(Source(str(TREE), SESSION), None, lambda: ()).inactive_keys() == {"msg_3", "prt_3"}


def test_a_live_wal_database_is_read_with_what_was_just_written(tmp_path: Path, opencode: Harness) -> None:
    database = Database(tmp_path / "opencode.db", wal=True)
    database.talk()
    before = sorted(path.name for path in tmp_path.iterdir())
    texts = [entry.text for entry in read_source(opencode, Source(str(database.path), SESSION)).entries()]
    assert texts[-1] == "second wish"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    database.connection.close()


def test_a_closed_wal_database_in_a_read_only_folder_is_read(tmp_path: Path, opencode: Harness) -> None:
    folder = tmp_path / "closed"
    database = Database(folder / "opencode.db", wal=True)
    database.talk()
    database.connection.close()
    if os.geteuid() == 0:
        pytest.skip("the superuser can write everywhere")
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert len(read_source(opencode, Source(str(database.path), SESSION)).entries()) == 4
    finally:
        folder.chmod(stat.S_IRWXU)


def test_reading_never_changes_the_database(database: Database, opencode: Harness) -> None:
    database.connection.close()
    before = database.path.read_bytes()
    read_source(opencode, Source(str(database.path), SESSION))
    assert database.path.read_bytes() == before


def test_a_file_that_is_no_database_has_no_sessions_and_cannot_be_read(tmp_path: Path, opencode: Harness) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(b"SQLite format 3\x00 but not really" * 100)
    assert opencode.sources(str(path)) == []
    with pytest.raises(OSError, match=r"opencode\.db"):
        list(opencode.records(Source(str(path), SESSION), 0, 0))
    with pytest.raises(OSError):
        list(opencode.records(Source(str(tmp_path / "missing.db"), SESSION), 0, 0))
    assert not (tmp_path / "missing.db").exists()


def test_rows_that_are_no_json_and_parts_without_a_message_cost_only_themselves(
    database: Database, opencode: Harness
) -> None:
    database.part("prt_0", "msg_1", 1, "{torn")
    database.part("prt_5", "msg_1", 2, b'{"type":"text","text":"bad \xff byte"}')
    database.part("prt_9", "msg_gone", 3, {"type": "text", "text": "whose words"})
    reading = read_source(opencode, Source(str(database.path), SESSION))
    found = {raw.key: parsed for raw, parsed in reading.lines}
    assert found["prt_0"].skipped == ("part is no JSON object",)
    assert found["prt_5"].entries[0].text == "bad \ufffd byte"
    assert (found["prt_9"].entries[0].kind, found["prt_9"].entries[0].text) == ("notice", "whose words")
    assert len(reading.lines) == 11


def test_a_database_is_recognised_by_its_tables_or_its_name(
    database: Database, opencode: Harness, tmp_path: Path
) -> None:
    head = database.path.read_bytes()[:65536]
    assert opencode.recognise("somewhere.db", head)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE blobs(id TEXT)")
    other.close()
    assert not opencode.recognise("other.db", (tmp_path / "other.db").read_bytes())


def test_sources_lists_each_session_of_a_database_oldest_first(tmp_path: Path, opencode: Harness) -> None:
    database = Database(tmp_path / "opencode.db")
    database.session("ses_b", created=1)
    database.session("ses_a", created=2)
    assert opencode.sources(str(database.path)) == [
        Source(str(database.path), "ses_b"),
        Source(str(database.path), "ses_a"),
    ]


def test_a_child_session_names_its_parent(tmp_path: Path, opencode: Harness) -> None:
    database = Database(tmp_path / "opencode.db")
    database.session("ses_child", parent="ses_parent")
    reading = read_source(opencode, Source(str(database.path), "ses_child"))
    assert (reading.session.role, reading.parent_id) == ("subagent", "ses_parent")


def data_folder(home: Path) -> Path:
    return home / ".local" / "share" / "opencode"


def test_find_gives_the_databases_sessions_then_those_that_only_the_files_have(
    tmp_path: Path, opencode: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("OPENCODE_DB", raising=False)
    folder = data_folder(tmp_path)
    shutil.copytree(TREE, folder / "storage")
    assert list(opencode.find(str(tmp_path))) == [Source(str(folder / "storage"), SESSION)]
    main, beta = Database(folder / "opencode.db"), Database(folder / "opencode-beta.db")
    main.session("ses_main")
    beta.session("ses_beta")
    assert list(opencode.find(str(tmp_path))) == [
        Source(str(beta.path), "ses_beta"),
        Source(str(main.path), "ses_main"),
        Source(str(folder / "storage"), SESSION),
    ]
    assert opencode.sources(str(folder)) == list(opencode.find(str(tmp_path)))
    main.session(SESSION)
    assert [source.path for source in opencode.find(str(tmp_path)) if source.session_id == SESSION] == [str(main.path)]


def test_find_follows_the_environment(tmp_path: Path, opencode: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("OPENCODE_DB", "mine.db")
    Database(tmp_path / "data" / "opencode" / "mine.db").session("ses_mine")
    Database(tmp_path / "data" / "opencode" / "opencode.db").session("ses_other")
    assert [source.session_id for source in opencode.find(str(tmp_path))] == ["ses_mine"]
    monkeypatch.setenv("OPENCODE_DB", ":memory:")
    assert list(opencode.find(str(tmp_path))) == []


def test_the_same_session_in_every_form_has_the_same_ids_and_words(tmp_path: Path, opencode: Harness) -> None:
    """An export, the database and the folder of files give equal entries for the same messages and parts."""
    database = Database(tmp_path / "opencode.db")
    messages: list[dict[str, Any]] = []
    info = json.loads((TREE / "session" / "global" / f"{SESSION}.json").read_bytes())
    for number, role in ((1, "user"), (2, "assistant"), (3, "user")):
        message = json.loads((TREE / "message" / SESSION / f"msg_{number}.json").read_bytes())
        part = json.loads((TREE / "part" / f"msg_{number}" / f"prt_{number}.json").read_bytes())
        database.message(f"msg_{number}", role, number * 1000)
        database.part(f"prt_{number}", f"msg_{number}", number, {"type": "text", "text": part["text"]})
        messages.append({"info": message, "parts": [part]})
    database.session(SESSION)
    database.revert(messageID="msg_3")
    export = tmp_path / "export.json"
    export.write_text(json.dumps({"info": info, "messages": messages}, indent=2), encoding="utf-8")
    sources = [Source(str(export)), Source(str(database.path), SESSION), Source(str(TREE), SESSION)]
    by_file, by_row, by_tree = (read_source(opencode, source).entries() for source in sources)
    assert by_file == by_row == by_tree
    assert [entry.active for entry in by_file] == [True, True, False]


def test_the_shared_storage_case_is_read_as_a_folder(tmp_path: Path, opencode: Harness) -> None:
    case = SHARED / "cases" / "38-opencode-sqlite.json"
    if not case.exists():
        pytest.skip("the shared cases are not beside this project")
    for name, value in json.loads(case.read_bytes()).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    (source,) = opencode.sources(str(tmp_path))
    assert [(entry.speaker, entry.text) for entry in read_source(opencode, source).entries()] == [("human", "hi")]


def test_the_shared_database_and_folders_are_read_whole(opencode: Harness) -> None:
    shared = SHARED / "transcripts" / "opencode"
    if not shared.exists():
        pytest.skip("the shared transcripts are not beside this project")
    places = [shared / "oc-FIXTURE-sqlite-opencode.db", *(shared / "FIXTURE-storage-tree").iterdir()]
    counts = {}
    for place in places:
        for source in opencode.sources(str(place)):
            reading = read_source(opencode, source)
            assert all(parsed.entries or parsed.skipped for _, parsed in reading.lines)
            counts[source.session_id] = (len(reading.lines), len(reading.entries()))
    assert counts == {
        "ses_7v2md9kx3c1p": (13, 7),
        "s_stage0_drift": (5, 3),
        "s_stage0_small": (6, 4),
        "s_stage0_large": (16, 10),
    }
