"""OpenCode's files and events: case folders, real exports, torn and growing files, the plugin's calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from obsmem import harnesses
from obsmem.core.model import HookAnswer, HookEvent
from obsmem.harnesses.base import Harness, Source
from tests.harnesses.cases import FIXTURES, SHARED, case_folders, case_source, check_case, read_file, read_source
from tests.harnesses.walker import missing_strings

CASES = case_folders("opencode")
REAL = sorted((SHARED / "transcripts" / "opencode").glob("oc-*.json"))
EVENTS = SHARED / "transcripts" / "opencode" / "oc-EVENTSTREAM-permission.jsonl"
NOISE = SHARED / "cases" / "39-opencode-export-noise.json"
FILES = [case_source(case) for case in CASES if case_source(case).is_file()]
EXPORTS = [path for path in FILES if path.suffix == ".json"]
SESSION = "ses_0aaa11112222ExampleSession1"


def name_of(path: Path) -> str:
    """A file's name, or its case's."""
    return path.parent.name if path.stem == "transcript" else path.name


@pytest.fixture
def opencode() -> Harness:
    return harnesses.load("opencode")


def real(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this project")
    return path


def strings(value: Any, path: str, ignored: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every string of a JSON value with its dotted key path, except below a path that ends in an ignored key."""
    if path.endswith(ignored):
        return
    if isinstance(value, str):
        yield path, value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(item, f"{path}.{key}", ignored)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, path, ignored)


def unsaid(path: Path, opencode: Harness) -> list[tuple[str, str]]:
    """The strings of a JSON document, 20 characters or longer, that stand in no entry and under no ignored key."""
    texts = "\x00".join(entry.text for entry in read_file("opencode", path).entries())
    found = strings(json.loads(path.read_bytes()), "", tuple("." + key for key in opencode.IGNORED_KEYS))
    return [(key, text[:80]) for key, text in found if len(text) >= 20 and text not in texts]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_yields_exactly_its_entries(case: Path) -> None:
    check_case("opencode", case)


def test_cases_cover_every_part_type_tool_state_and_error_that_real_exports_have() -> None:
    if not REAL:
        pytest.skip("no real exports beside this project")
    assert shapes(REAL) <= shapes(EXPORTS)


def shapes(paths: list[Path]) -> set[tuple[str, str]]:
    """What kinds of things stand in exports: (sort of thing, its name)."""
    found: set[tuple[str, str]] = set()
    for path in paths:
        try:
            messages = json.loads(path.read_bytes())["messages"]
        except ValueError:
            continue
        for message in messages:
            if not isinstance(message, dict) or not message.get("info"):
                continue
            info = message["info"]
            found.add(("role", info["role"]))
            if "error" in info:
                found.add(("error", info["error"]["name"]))
            for part in message["parts"]:
                found |= part_shapes(part) if isinstance(part, dict) else set()
    return found


def part_shapes(part: dict[str, Any]) -> set[tuple[str, str]]:
    found = {("part", str(part["type"]))}
    if part["type"] == "tool" and isinstance(part["state"], dict):
        found |= {("state", part["state"]["status"]), ("tool", part["tool"])}
    found |= {("flag", flag) for flag in ("synthetic", "ignored") if part.get(flag)}
    if part["type"] == "file":
        found.add(("mime", part["mime"]))
    return found


@pytest.mark.parametrize("path", [*REAL, *FILES], ids=name_of)
def test_the_records_of_a_file_joined_are_the_file(path: Path, opencode: Harness) -> None:
    raws = list(opencode.records(Source(str(path)), 0, 0))
    assert b"".join(raw.data for raw in raws) == path.read_bytes()
    assert [raw.line for raw in raws] == list(range(1, len(raws) + 1))
    assert [raw.offset for raw in raws] == [sum(len(before.data) for before in raws[:n]) for n in range(len(raws))]


@pytest.mark.parametrize("path", [*REAL, EVENTS, *FILES], ids=name_of)
def test_every_record_yields_entries_or_a_reason_and_the_same_words_alone(path: Path, opencode: Harness) -> None:
    for raw, parsed in read_file("opencode", real(path)).lines:
        assert parsed.entries or parsed.skipped
        alone = opencode.blocks(raw.data)
        assert [(entry.block, entry.text) for entry in alone] == [(e.block, e.text) for e in parsed.entries]


@pytest.mark.parametrize("path", [*REAL, EVENTS, *FILES], ids=name_of)
@pytest.mark.parametrize("pieces", [2, 3, 7])
def test_reading_in_pieces_equals_reading_in_one_go(path: Path, pieces: int) -> None:
    whole, parts = read_file("opencode", real(path)), read_file("opencode", path, pieces)
    assert parts.entries() == whole.entries()
    assert (parts.session, parts.parent_id) == (whole.session, whole.parent_id)
    assert parts.measures() == whole.measures()


@pytest.mark.parametrize(
    "path", [*REAL, *(path for path in EXPORTS if path.parent.name in ("every-part", "tools", "errors"))], ids=name_of
)
def test_no_string_of_an_export_is_lost(path: Path, opencode: Harness) -> None:
    assert unsaid(path, opencode) == []


def test_no_string_of_an_event_stream_is_lost(opencode: Harness) -> None:
    texts = [entry.text for entry in read_file("opencode", real(EVENTS)).entries()]
    assert missing_strings(EVENTS, set(opencode.IGNORED_KEYS), texts) == []


@pytest.mark.parametrize("path", [*REAL, EVENTS, NOISE, *FILES], ids=name_of)
def test_exports_and_event_streams_are_recognised(path: Path, opencode: Harness) -> None:
    assert opencode.recognise(str(path), real(path).read_bytes()[:65536])
    assert harnesses.recognise(str(path), path.read_bytes()[:65536]) == "opencode"


def test_files_of_other_harnesses_are_not_recognised(opencode: Harness) -> None:
    others = [*FIXTURES.glob("*/*/transcript*"), *(SHARED / "transcripts").glob("*/*"), *(SHARED / "cases").glob("*")]
    for path in others:
        if path.is_file() and "opencode" not in str(path.relative_to(path.parents[2])):
            assert not opencode.recognise(str(path), path.read_bytes()[:65536]), path


def test_base64_stands_in_no_entry_but_the_file_name_does() -> None:
    texts = [entry.text for entry in read_file("opencode", FIXTURES / "opencode/every-part/transcript.json").entries()]
    assert not any("base64" in text or "iVBOR" in text for text in texts)
    assert any("board.png" in text for text in texts)


def test_a_tool_part_is_a_call_and_a_result_tied_by_the_call_id() -> None:
    entries = read_file("opencode", FIXTURES / "opencode/tools/transcript.json").entries()
    calls = {entry.call_id: entry for entry in entries if entry.kind == "tool_call"}
    results = {entry.call_id: entry for entry in entries if entry.kind == "tool_result"}
    assert len(calls) == 16 and calls.keys() == results.keys()
    assert all(
        calls[key].at + 50 == results[key].at and calls[key].source_id == results[key].source_id for key in calls
    )
    todo = next(entry for entry in entries if entry.tool == "todowrite")
    assert [item[1] for item in todo.actions[0].items] == ["done", "doing", "open", "done"]
    patch = next(entry for entry in entries if entry.tool == "apply_patch")
    assert [(action.kind, action.path) for action in patch.actions] == [
        ("write", "notes/new.md"),
        ("delete", "timetable/summer.py"),
        ("write", "timetable/warm.py"),
        ("delete", "timetable/old.py"),
        ("edit", "timetable/a.py"),
    ]


def test_session_facts_come_from_the_info_and_the_answers() -> None:
    session = read_file("opencode", FIXTURES / "opencode/every-part/transcript.json").session
    assert (session.id, session.cwd, session.name, session.role) == (SESSION, "/srv/ferry", "Fix the timetable", "main")
    assert (session.started_at, session.model, session.window) == (1790000000000, "m1", 0)


def test_a_measure_counts_what_the_model_had_before_it() -> None:
    """Input and both caches; neither what it wrote nor ``total``. A message that failed reports nothing."""
    measures = read_file("opencode", FIXTURES / "opencode/errors/transcript.json").measures()
    assert [(measure.context, measure.model) for measure in measures] == [(1200, "m1"), (1200, "m1")]


def test_a_subagent_names_its_parent_and_its_prompt_is_not_the_humans() -> None:
    reading = read_file("opencode", FIXTURES / "opencode/subagent/transcript.json")
    assert (reading.session.role, reading.parent_id) == ("subagent", "ses_0aaa99998888ExampleParent11")
    assert not [entry for entry in reading.entries() if entry.speaker == "human"]


def test_a_workers_session_is_known_by_its_first_prompt() -> None:
    assert read_file("opencode", FIXTURES / "opencode/worker/transcript.json").session.role == "worker"


def test_our_own_block_in_a_prompt_is_a_receipt_and_no_human_word(tmp_path: Path) -> None:
    block = '<observational-memory delivery="k3f9" part="1/2" session="abcd">\nnotes\n</observational-memory>'
    path = tmp_path / "export.json"
    message = {"info": {"id": "m", "role": "user"}, "parts": [{"id": "p", "type": "text", "text": block}]}
    path.write_text(json.dumps({"info": {"id": "ses_1"}, "messages": [message]}), encoding="utf-8")
    reading = read_file("opencode", path)
    assert reading.receipts() == ["k3f9 1/2"]
    assert [entry.kind for entry in reading.entries()] == ["notice"]


def test_a_cut_off_export_gives_its_whole_messages_and_an_incomplete_rest(opencode: Harness) -> None:
    path = FIXTURES / "opencode/noise-before-and-cut-off/transcript.json"
    raws = list(opencode.records(Source(str(path)), 0, 0))
    assert [raw.complete for raw in raws] == [True, True, True, False]
    reader = opencode.reader(Source(str(path)), None, lambda: ())
    parsed = [reader.read(raw) for raw in raws]
    assert [len(record.entries) for record in parsed] == [0, 1, 1, 0]
    assert parsed[-1].skipped == ("not JSON",)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_export_cut_anywhere_continues_where_it_stopped_once_it_is_whole(
    tmp_path: Path, opencode: Harness, indent: int | None
) -> None:
    document = json.loads((FIXTURES / "opencode/errors/transcript.json").read_bytes())
    data = json.dumps(document, indent=indent).encode()
    path = tmp_path / "export.json"
    path.write_bytes(data)
    whole = [entry.text for entry in read_file("opencode", path).entries()]
    for cut in range(1, len(data), 7):
        path.write_bytes(data[:cut])
        source = Source(str(path))
        reader = opencode.reader(source, None, lambda: ())
        first = [raw for raw in opencode.records(source, 0, 0) if raw.complete]
        texts = [entry.text for raw in first for entry in reader.read(raw).entries]
        read = sum(len(raw.data) for raw in first)
        path.write_bytes(data)
        reader = opencode.reader(source, json.loads(json.dumps(reader.state())), lambda: ())
        rest = list(opencode.records(source, read, len(first)))
        texts += [entry.text for raw in rest for entry in reader.read(raw).entries]
        assert (texts, b"".join(raw.data for raw in [*first, *rest])) == (whole, data), f"cut at {cut}"
        assert reader.session.id == SESSION


def test_the_shared_noisy_export_yields_its_whole_message() -> None:
    reading = read_file("opencode", real(NOISE))
    assert [(entry.speaker, entry.text) for entry in reading.entries()] == [("human", "hi")]
    assert reading.session.id == "ses_1"


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\x00", b"[]", b"42\n", b"null", b"\xff\xfe{", b'{"table":1,"raw":2}', b'{"info":{"id":7},"parts":3}',
     b'{"table":"part","key":"k","raw":"[1]"}', b'{"event":{"type":"x","properties":{"info":4,"part":5,"error":[]}}}',
     b'{"info":' * 3000, b'{"info":{"role":["user"],"time":4,"tokens":[1],"error":{}},"parts":[[],{"type":["text"]}]}',
     b'{"a":' * 400 + b"1" + b"}" * 400],
)  # fmt: skip
def test_bad_input_gives_a_reason_and_never_an_exception(data: bytes, opencode: Harness, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(data)
    opencode.recognise(str(path), data)
    assert opencode.blocks(data) == []
    reading = read_source(opencode, Source(str(path)))
    assert all(line.parsed.skipped for line in reading.lines)


def test_events_have_our_words(opencode: Harness) -> None:
    payload = {"sessionID": SESSION, "directory": "/srv/ferry", "db": "/data/opencode.db"}
    kinds = {event: opencode.read_event(event, payload).kind for event in opencode.EVENTS}
    assert kinds == {
        "session.created": "session_start",
        "session.resumed": "session_start",
        "session.idle": "turn_end",
        "experimental.session.compacting": "before_compact",
        "session.deleted": "session_end",
        "session.compacted": "other",
        "chat.message": "prompt",
        "tool.execute.after": "tool_result",
    }
    event = opencode.read_event("session.idle", payload)
    assert (event.session_id, event.cwd, event.transcript) == (SESSION, "/srv/ferry", "/data/opencode.db")
    assert opencode.read_event("file.edited", {"sessionID": 5, "directory": None}).kind == "other"


def test_the_transcript_of_an_event_without_a_database_is_the_one_that_opencode_uses(
    opencode: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("OPENCODE_DB", raising=False)
    assert opencode.read_event("session.idle", {"sessionID": SESSION}).transcript == ""
    (tmp_path / "opencode").mkdir()
    (tmp_path / "opencode" / "opencode.db").touch()
    assert opencode.read_event("session.idle", {"sessionID": SESSION}).transcript.endswith("opencode/opencode.db")


def test_an_answer_is_plain_json_or_nothing_at_all(opencode: Harness) -> None:
    event = HookEvent("before_compact", "experimental.session.compacting")
    assert json.loads(opencode.answer(event, HookAnswer("notes – ✓"))) == {"context": "notes – ✓"}
    assert opencode.answer(event, HookAnswer()) == ""


def test_the_config_fragment_names_the_plugin_and_the_command(opencode: Harness) -> None:
    config = opencode.hook_config(lambda arguments: f"/run {arguments}")
    ((plugin, options),) = config["plugin"]
    assert plugin.startswith("file:///") and options == {"command": "/run hook opencode"}


@pytest.mark.parametrize(
    "path", sorted((FIXTURES / "opencode" / "payloads").glob("*.json")), ids=lambda path: path.stem
)
def test_recorded_payloads_are_understood(path: Path, opencode: Harness) -> None:
    payload = json.loads(path.read_text(encoding="utf-8"))
    event = opencode.read_event(path.stem, payload)
    assert event.kind == opencode.EVENTS[path.stem]
    assert event.session_id == payload["sessionID"] and event.transcript.endswith(".db") and event.cwd
