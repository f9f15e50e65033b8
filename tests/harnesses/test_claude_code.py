"""Claude Code: every case folder, every real transcript beside the project, hooks in and out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.model import HookAnswer, HookEvent
from obsmem.harnesses import base, claude_code, recognise, written
from obsmem.harnesses.claude_code_branches import Branches, Tree
from tests.harnesses.cases import FIXTURES, SHARED, Reading, case_folders, check_case, read_file
from tests.harnesses.walker import missing_strings

CASES = case_folders(claude_code.NAME)
REAL = sorted((SHARED / "transcripts" / "claude-code").glob("*.jsonl"))
COMPACTED = sorted((SHARED / "evals" / "compactions").glob("*.jsonl.gz"))
NEEDS_SHARED = pytest.mark.skipif(not REAL, reason="the folder of real transcripts is not beside the project")


def case(name: str, pieces: int = 1) -> Reading:
    return read_file(claude_code.NAME, FIXTURES / claude_code.NAME / name / "transcript.jsonl", pieces)


def real_files(tmp_path: Path) -> Iterator[Path]:
    """Every real transcript, with a newline at its end, so that a torn last line is a line too."""
    for path in REAL + COMPACTED:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        copy = tmp_path / path.name.removesuffix(".gz")
        copy.write_bytes(data if data.endswith(b"\n") else data + b"\n")
        yield copy
        copy.unlink()


def human_words(reading: Reading) -> list[str]:
    return [
        entry.text for entry in reading.entries() if entry.kind == "user" and entry.speaker == "human" and entry.active
    ]


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case_folder_yields_its_expected_entries(folder: Path) -> None:
    check_case(claude_code.NAME, folder)


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
@pytest.mark.parametrize("pieces", [3, 7, 1000])
def test_reading_in_pieces_gives_the_same_as_reading_whole(folder: Path, pieces: int) -> None:
    whole, parts = case(folder.name), case(folder.name, pieces)
    assert whole.lines == parts.lines
    assert (whole.session, whole.parent_id) == (parts.session, parts.parent_id)


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_blocks_without_context_have_the_texts_of_the_entries(folder: Path) -> None:
    for raw, parsed in case(folder.name).lines:
        blocks = claude_code.blocks(raw.data)
        assert [block.text for block in blocks] == [entry.text for entry in parsed.entries]
        assert [block.block for block in blocks] == list(range(len(blocks)))
        assert parsed.entries or parsed.skipped


def record_kinds(path: Path) -> set[str]:
    """The types of records, attachments, system records and blocks in a file, without the reader's help."""
    kinds: set[str] = set()
    for line in path.read_bytes().split(b"\n"):
        try:
            record: Any = json.loads(line)
        except ValueError:
            continue
        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
            continue
        kinds.add(record["type"])
        attachment, message = record.get("attachment"), record.get("message")
        if isinstance(attachment, dict):
            kinds.add(f"attachment:{attachment.get('type')}")
        if record["type"] == "system":
            kinds.add(f"system:{record.get('subtype')}")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and "type" in block:
                kinds.add(f"block:{block['type']}")
    return kinds


@NEEDS_SHARED
def test_case_folders_have_every_kind_of_record_met_in_real_transcripts(tmp_path: Path) -> None:
    met = set().union(*(record_kinds(path) for path in real_files(tmp_path)))
    covered = set().union(*(record_kinds(folder / "transcript.jsonl") for folder in CASES))
    assert not met - covered


@NEEDS_SHARED
def test_every_real_line_is_accounted_for_and_no_words_are_lost(tmp_path: Path) -> None:
    for path in real_files(tmp_path):
        assert claude_code.recognise(str(path), path.read_bytes()[: base.SNIFF_SIZE]), path.name
        reading = read_file(claude_code.NAME, path)
        assert all(parsed.entries or parsed.skipped for _, parsed in reading.lines), path.name
        assert b"".join(raw.data for raw, _ in reading.lines) == path.read_bytes()
        texts = (entry.text for _, parsed in reading.lines for entry in parsed.entries)
        assert missing_strings(path, set(claude_code.IGNORED_KEYS), texts) == [], path.name


@NEEDS_SHARED
def test_real_transcripts_read_in_seven_pieces_give_the_same(tmp_path: Path) -> None:
    for path in real_files(tmp_path):
        whole, parts = read_file(claude_code.NAME, path), read_file(claude_code.NAME, path, 7)
        assert whole.lines == parts.lines, path.name
        assert (whole.session, whole.parent_id) == (parts.session, parts.parent_id)


@NEEDS_SHARED
def test_known_broken_inputs_are_read() -> None:
    for path in sorted((SHARED / "cases").glob("*.jsonl")):
        reading = read_file(claude_code.NAME, path)
        assert all(parsed.entries or parsed.skipped for _, parsed in reading.lines), path.name


@NEEDS_SHARED
def test_state_stays_small_whatever_was_read() -> None:
    path = max(REAL, key=lambda found: found.stat().st_size)
    reader = claude_code.reader(base.Source(str(path)), None, lambda: ())
    for raw in claude_code.records(base.Source(str(path)), 0, 0):
        reader.read(raw)
    assert len(json.dumps(reader.state())) < 20_000


def test_every_ignored_key_has_a_reason() -> None:
    assert all(reason.strip() for reason in claude_code.IGNORED_KEYS.values())


def test_a_file_is_recognised_by_its_first_bytes_even_inside_a_huge_record() -> None:
    huge = json.dumps({"type": "queue-operation", "sessionId": "s", "content": "x" * 100_000}).encode()
    assert recognise("a.jsonl", huge[: base.SNIFF_SIZE]) == claude_code.NAME
    assert not claude_code.recognise("a.jsonl", b'{"type":"session_meta","payload":{"id":"x"}}\n')
    assert not claude_code.recognise("a.jsonl", b'{"role":"user","message":{"content":[]}}\n')
    quoted = json.dumps({"type": "response_item", "payload": '{"parentUuid":null,"sessionId":"s"}' * 9}).encode()
    assert not claude_code.recognise("a.jsonl", quoted)


def test_a_prompt_typed_while_the_agent_is_busy_counts_once() -> None:
    words = human_words(case("queued-prompts"))
    for text in (
        "also update the docs",
        "delivered between two steps, and written nowhere else",
        "waits for the end of the turn",
    ):
        assert words.count(text) == 1
    assert "this one is taken back into the editor" not in words
    assert words.count("yes") == 2, "the second one was typed anew"


def test_a_rewound_turn_is_inactive_and_parallel_results_are_not() -> None:
    reading = case("rewind")
    state = {entry.text: entry.active for entry in reading.entries()}
    assert not state["paint it red"] and not state["Painted red."] and not state["and shiny"]
    assert not state["undone at once"] and state["typed again instead"]
    assert state["make a cart"] and state["beside the path, and live"] and state["Painted blue."]


def test_the_branch_with_the_newer_record_is_live() -> None:
    state = {entry.text: entry.active for entry in case("two-terminals").entries()}
    assert state["main line goes on"] and not state["from another terminal"]


def test_an_explicit_leaf_moves_the_live_path_and_an_unknown_one_does_not() -> None:
    links = [base.Link("a", ""), base.Link("p", "a", True), base.Link("q", "p"), base.Link("z", "q", True)]
    keyed = [
        (line, base.Link(written.link_key(link.id), written.link_key(link.parent), link.prompt))
        for line, link in enumerate(links, 1)
    ]
    branches = Branches({}, lambda: keyed)
    for line, link in enumerate(links, 1):
        assert branches.add(line, link, link.prompt) == ()
    assert branches.move_to("nowhere") == ()
    assert branches.move_to("q") == (base.Activity(4, 4, False),)
    assert branches.add(5, base.Link("r", "q", True), True) == (), "the next prompt goes on from there"


def test_a_circle_of_parents_ends_the_walk() -> None:
    tree = Tree([(1, base.Link("a", "b", True)), (2, base.Link("b", "a", True)), (3, base.Link("c", "gone", True))])
    assert tree.inactive("b") == {3} and tree.inactive("c") == set()


def test_history_is_asked_for_only_when_a_record_branches_off() -> None:
    asked: list[int] = []
    for name, expected in (("turn", 0), ("compactions", 0), ("tool-results", 0), ("rewind", 1)):
        source = base.Source(str(FIXTURES / claude_code.NAME / name / "transcript.jsonl"))
        asked.clear()

        def history() -> list[tuple[int, base.Link]]:
            asked.append(1)
            return []

        reader = claude_code.reader(source, None, history)
        for raw in claude_code.records(source, 0, 0):
            reader.read(raw)
        assert len(asked) == expected, name


def test_everything_before_a_compaction_stays_live() -> None:
    assert all(entry.active for entry in case("compactions").entries())


def test_receipts_come_from_the_context_record_only() -> None:
    assert case("compactions").receipts() == ["k3f9 1/2", "k3f9 2/2"]
    ours = [entry for entry in case("compactions").entries() if written.OWN_BLOCK in entry.text]
    assert ours and not any(entry.observable for entry in ours)


def test_each_record_of_a_reply_tells_what_the_provider_counted_under_the_replys_name() -> None:
    measures = case("turn").measures()
    assert list(dict.fromkeys((one.request, one.context) for one in measures)) == [
        ("m1", 3210),
        ("m1", 3710),
        ("msg_7", 4005),
        ("msg_9", 4105),
    ]
    assert {(one.cached, one.written, one.output) for one in measures if one.context == 3210} == {(3000, 200, 9)}
    assert all(one.at and one.model and one.kind == "request" for one in measures)


def test_a_compaction_tells_how_it_came_about_and_what_it_kept() -> None:
    kept = [one for one in case("compactions").measures() if one.kind == "kept"]
    assert [(one.trigger, one.context) for one in kept] == [("auto", 9000), ("manual", 0)]
    recorded = [one for one in case("recorded-two-compactions").measures() if one.kind == "kept"]
    assert [(one.trigger, one.context) for one in recorded] == [("manual", 955), ("manual", 1013)]


def test_sub_agents_words_inside_a_main_file_are_not_observed() -> None:
    entries = case("sidechain-inline").entries()
    assert not any(entry.observable for entry in entries if entry.source_id.startswith("s"))
    measures = [(measure.context, measure.kind) for measure in case("sidechain-inline").measures()]
    assert [context for context, kind in measures if kind == "request"] == [3210, 3210]
    assert any(kind == "side" for _, kind in measures)
    assert case("sidechain-inline").session.role == "main"


def test_a_sub_agents_file_is_a_session_of_its_own(tmp_path: Path) -> None:
    reading = case("sub-agent")
    assert (reading.session.role, reading.session.id) == ("subagent", "a1b2c3d")
    assert reading.parent_id == "5e551011-0000-4000-8000-00000000000a"
    assert [entry.speaker for entry in reading.entries()] == ["agent", "subagent", "tool", "subagent"]
    nested = tmp_path / "0d15ea5e" / "subagents" / "workflows" / "agent-acompact-1.jsonl"
    reader = claude_code.reader(base.Source(str(nested)), None, lambda: ())
    assert (reader.session.role, reader.session.id, reader.parent_id) == ("worker", "acompact-1", "0d15ea5e")


def test_a_session_that_begins_with_our_mark_is_a_workers() -> None:
    assert case("worker").session.role == "worker"


def test_session_facts_and_name() -> None:
    session = case("bare-records").session
    assert session.name == "The title that the human gave"
    assert (session.cwd, session.started_at) == ("/w/shop", 1772359201000)
    assert case("turn").session.model == "claude-opus-5"
    assert case("sidechain-inline").session.name == "Searching the shop", "a summary counts if its leaf is here"
    path = "/h/.claude/projects/-w/0a1b2c3d-0000-4000-8000-000000000009.jsonl"
    assert claude_code.reader(base.Source(path), None, lambda: ()).session.id == "0a1b2c3d-0000-4000-8000-000000000009"


def test_a_fork_names_its_parent() -> None:
    reader = claude_code.reader(base.Source("x.jsonl"), None, lambda: ())
    record = {"type": "user", "sessionId": "new", "forkedFrom": {"sessionId": "old"}, "message": {"content": "hi"}}
    reader.read(base.Raw(json.dumps(record).encode()))
    assert (reader.session.id, reader.parent_id) == ("new", "old")


def test_side_files_are_named_by_the_results_text() -> None:
    texts = [entry.text for entry in case("tool-results").entries()]
    found = [path for text in texts for path in claude_code.side_files(text)]
    assert found == ["/h/.claude/projects/-w-shop/s/tool-results/b1.txt"]


def test_sessions_are_found_with_their_sub_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "home" / ".claude" / "projects" / "-w-shop"
    agent = project / "s1" / "subagents" / "deep" / "agent-a.jsonl"
    agent.parent.mkdir(parents=True)
    (project / "s1" / "subagents" / "journal.jsonl").write_text("{}\n", encoding="utf-8")
    elsewhere = tmp_path / "config" / "projects" / "p" / "s2.jsonl"
    elsewhere.parent.mkdir(parents=True)
    for path in (project / "s1.jsonl", agent, elsewhere):
        path.write_text("{}\n", encoding="utf-8")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert [source.path for source in claude_code.find(str(tmp_path / "home"))] == [
        str(project / "s1.jsonl"),
        str(agent),
    ]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    assert str(elsewhere) in [source.path for source in claude_code.find(str(tmp_path / "home"))]
    assert list(claude_code.find(str(tmp_path / "nowhere"))) == [base.Source(str(elsewhere))]


def test_events_become_our_words() -> None:
    payload = {"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/w", "source": "compact", "model": 3}
    event = claude_code.read_event("SessionStart", payload)
    assert event == HookEvent("session_start", "SessionStart", "s", "/t.jsonl", "/w", "compact")
    assert claude_code.read_event("PreCompact", {"trigger": "auto", "session_id": 5}).source == "auto"
    assert claude_code.read_event("SubagentStop", {}).kind == "other"
    assert claude_code.read_event("Stop", {"cursor_version": "3.1"}).kind == "other"
    assert claude_code.read_event("Invented", {}).kind == "other"


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit"])
def test_context_is_given_where_it_reaches_the_model(name: str) -> None:
    event = claude_code.read_event(name, {})
    printed = json.loads(claude_code.answer(event, HookAnswer('notes "with" quotes\n')))
    assert printed == {"hookSpecificOutput": {"hookEventName": name, "additionalContext": 'notes "with" quotes\n'}}
    assert claude_code.answer(event, HookAnswer()) == ""


@pytest.mark.parametrize("name", ["Stop", "PreCompact", "PostCompact", "SessionEnd", "SubagentStop", "Invented"])
def test_nothing_at_all_is_printed_elsewhere(name: str) -> None:
    assert claude_code.answer(claude_code.read_event(name, {}), HookAnswer("notes")) == ""


def test_hook_config_registers_four_parts_and_the_limits() -> None:
    hooks = claude_code.hook_config(lambda arguments: f"run {arguments}")["hooks"]
    parts = [handler["command"] for handler in hooks["SessionStart"][0]["hooks"]]
    assert parts == [f"run hook claude-code SessionStart --part {part}/4" for part in (1, 2, 3, 4)]
    assert {name: hooks[name][0]["hooks"][0]["timeout"] for name in ("Stop", "PreCompact", "SessionStart")} == {
        "Stop": 10,
        "PreCompact": 60,
        "SessionStart": 20,
    }
    assert "PostCompact" not in hooks


@pytest.mark.parametrize(
    "path", sorted((FIXTURES / claude_code.NAME / "payloads").glob("*.json")), ids=lambda p: p.stem
)
def test_recorded_payloads_are_understood(path: Path) -> None:
    payload = json.loads(path.read_text(encoding="utf-8"))
    name, _, source = path.stem.partition("-")
    event = claude_code.read_event(name, payload)
    assert event.kind == claude_code.EVENTS.get(name, "other")
    assert event.session_id and event.transcript.endswith(".jsonl") and event.cwd
    assert not source or event.source == source


def test_what_the_program_sends_with_every_request_is_nobodys_words() -> None:
    """2.1.332 writes down its instructions and tools once a session: they stand in each request's own count."""
    record = {
        "type": "attachment",
        "uuid": "u1",
        "attachment": {
            "type": "prompt_snapshot",
            "systemPrompt": ["You are an agent."],
            "contextRendering": "announced",
        },
    }
    reader = claude_code.reader(base.Source("/x/a.jsonl"), None, lambda: ())
    parsed = reader.read(base.Raw(json.dumps(record).encode() + b"\n", 1))
    assert parsed.entries == ()
    assert parsed.skipped == ("attachment:prompt_snapshot",)
