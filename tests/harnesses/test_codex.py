"""Codex rollouts become entries: every generation, each message once, forks, compactions, tools."""

from __future__ import annotations

import builtins
import json
from pathlib import Path

import pytest

from obsmem import harnesses
from obsmem.core.errors import UsageError
from obsmem.harnesses import codex
from obsmem.harnesses.base import Source
from tests.harnesses.cases import FIXTURES, SHARED, case_folders, case_source, check_case, read_file, read_source
from tests.harnesses.walker import missing_strings

CASES = [case for case in case_folders("codex") if (case / "about.txt").exists()]
TRANSCRIPTS = sorted((SHARED / "transcripts" / "codex").glob("*.jsonl"))
MESSY = sorted((SHARED / "cases").glob("*codex*"))
ID = "019cb8a0-1000-7000-8000-00000000a001"


def case(name: str) -> Path:
    return case_source(FIXTURES / "codex" / name)


def name_of(path: Path) -> str:
    return path.name


def spoken(reading, kind: str) -> list[str]:
    return [entry.text for entry in reading.entries() if entry.kind == kind]


# --- all cases, all shared transcripts ---


@pytest.mark.parametrize("folder", CASES, ids=name_of)
def test_a_case_yields_exactly_its_entries(folder):
    check_case("codex", folder)


def everything() -> list:
    files = [case_source(folder) for folder in CASES] + TRANSCRIPTS + [path for path in MESSY if path.suffix != ".zst"]
    return [pytest.param(path, id=f"{path.parent.name}-{path.name}") for path in files]


@pytest.mark.parametrize("path", everything())
def test_the_records_joined_are_the_file(path):
    assert b"".join(raw.data for raw in codex.records(Source(str(path)), 0, 0)) == path.read_bytes()


@pytest.mark.parametrize("path", everything())
def test_reading_in_pieces_with_the_state_through_json_equals_reading_in_one_go(path):
    whole, pieces = read_file("codex", path), read_file("codex", path, pieces=7)
    assert [line.parsed for line in pieces.lines] == [line.parsed for line in whole.lines]
    assert (pieces.session, pieces.parent_id) == (whole.session, whole.parent_id)


@pytest.mark.parametrize("path", everything())
def test_an_entry_is_the_block_of_its_record_and_every_record_says_something(path):
    for raw, parsed in read_file("codex", path).lines:
        assert parsed.entries or parsed.skipped
        found = codex.blocks(raw.data)
        assert [entry.block for entry in found] == list(range(len(found)))
        for entry in parsed.entries:
            assert found[entry.block].text == entry.text


@pytest.mark.parametrize("path", everything())
def test_records_continue_from_any_offset(path):
    raws = list(codex.records(Source(str(path)), 0, 0))
    middle = len(raws) // 2
    assert list(codex.records(Source(str(path)), raws[middle].offset, raws[middle].line - 1)) == raws[middle:]


def unescaped(path: Path, folder: Path) -> Path:
    """A copy of a rollout in which JSON in a string has become JSON."""
    lines = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        record = json.loads(line)
        for key in ("arguments", "output"):
            value = record["payload"].get(key)
            if isinstance(value, str) and value.startswith("{"):
                parsed = json.loads(value)
                if key == "arguments" or "output" in parsed:
                    record["payload"][key] = parsed
            for item in value if isinstance(value, list) else ():
                if is_object(item.get("text")):
                    item["text"] = json.loads(item["text"])
        lines.append(json.dumps(record))
    copy = folder / path.name
    copy.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return copy


def is_object(text: object) -> bool:
    """True for what a script prints of a tool's result: an object in JSON."""
    try:
        return isinstance(text, str) and text.startswith("{") and isinstance(json.loads(text), dict)
    except ValueError:
        return False


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=name_of)
def test_every_string_of_a_real_rollout_is_in_an_entry_or_under_an_ignored_key(path, tmp_path):
    texts = [entry.text for entry in read_file("codex", path).entries()]
    escaped = {"payload.arguments", "payload.output"}
    rows = missing_strings(path, set(codex.IGNORED_KEYS), texts)
    missing = [
        row for row in rows if not (row[1].endswith(".text") and row[2].startswith('{"'))
    ]  # those come unescaped
    missing += missing_strings(unescaped(path, tmp_path), set(codex.IGNORED_KEYS) - escaped, texts)
    # One published file has every setting replaced by such a word.
    assert [row for row in missing if not row[2].startswith("txt_")] == []


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=name_of)
def test_a_real_rollout_has_each_message_once_and_a_small_state(path):
    reader = codex.reader(Source(str(path)), None, list)
    prompts = events = 0
    for raw in codex.records(Source(str(path)), 0, 0):
        prompts += sum(entry.speaker == "human" for entry in reader.read(raw).entries)
        events += b'"type":"user_message"' in raw.data[:120] and b"<heartbeat>" not in raw.data[:200]
    # Fragments that were made unreadable for publication cannot be told from prompts.
    assert prompts == events + (2 if "sanitized" in path.name else 0)
    assert len(json.dumps(reader.state())) < 16_000


def test_the_cases_hold_every_record_type_that_real_rollouts_hold():
    if not TRANSCRIPTS:
        pytest.skip("no collected transcripts beside the project")

    def types(paths) -> set[tuple[str, str]]:
        found = set()
        for path in paths:
            for line in path.read_bytes().split(b"\n"):
                try:
                    record = json.loads(line)
                    found.add((record["type"], str(record["payload"].get("type"))))
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue
        return found

    ours = types(case_source(folder) for folder in CASES if folder.name != "damaged")
    assert types(TRANSCRIPTS) - ours == set()


# --- who spoke, and when ---


def test_both_forms_of_a_message_are_one_entry_and_equal_words_of_two_turns_are_two():
    reading = read_file("codex", case("messages-twice"))
    assert spoken(reading, "user") == ["yes", "yes", "an event that no item repeats"]
    assert spoken(reading, "assistant")[:2] == ["The totals agree.", "The totals agree."]
    assert spoken(reading, "thinking") == ["**Checking the totals**", "**Writing them down**"] * 2


def test_an_item_first_and_an_event_first_pair_up_the_same_way(tmp_path):
    item = '{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}'
    event = '{"type":"event_msg","payload":{"type":"user_message","message":"go"}}'
    for order in ([item, event], [event, item]):
        path = tmp_path / "rollout-a.jsonl"
        path.write_text("".join(line + "\n" for line in order), encoding="utf-8")
        assert spoken(read_file("codex", path), "user") == ["go"]


def test_equal_words_far_apart_are_never_taken_for_a_copy(tmp_path):
    item = '{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}'
    event = '{"type":"event_msg","payload":{"type":"user_message","message":"go"}}'
    path = tmp_path / "rollout-a.jsonl"
    path.write_text("".join(line + "\n" for line in [item, *["{}"] * 40, event]), encoding="utf-8")
    assert spoken(read_file("codex", path), "user") == ["go", "go"]


def test_what_the_harness_put_in_is_a_notice_unless_an_event_says_it_was_typed():
    reading = read_file("codex", case("injected"))
    assert spoken(reading, "user") == [
        "<my_data>12, 13</my_data>",
        "first of two",
        "second of two",
        "[image]",
        "What is wrong here?",
    ]
    assert not any(entry.observable for entry in reading.entries() if entry.kind == "notice")


def test_our_own_block_is_a_receipt_and_never_observed():
    reading = read_file("codex", case("own-block"))
    assert reading.receipts() == ["k3f9 2/3"]
    assert [entry.text for entry in reading.entries() if entry.observable] == ["Go on.", "Going on."]


def test_a_session_that_our_worker_ran_has_that_role():
    assert read_file("codex", case("worker")).session.role == "worker"
    assert read_file("codex", case("own-block")).session.role == "main"


def test_a_rollback_takes_the_last_turns_off_the_live_path():
    entries = read_file("codex", case("rollback")).entries()
    assert [entry.text for entry in entries if entry.active and entry.kind == "user"] == ["one", "two, but better"]


def test_times_are_milliseconds_since_the_epoch():
    entry = read_file("codex", case("envelope-first")).entries()[0]
    assert entry.at == 1772618402074  # 2026-03-04T10:00:02.074Z


# --- identity ---


def test_the_first_header_is_the_identity_and_later_ones_move_the_folder_only():
    reading = read_file("codex", case("quiet-records"))
    session = reading.session
    assert (session.id, session.cwd, session.name) == (ID, "/home/ada/ledger/moved", "Tax work")
    assert (session.model, session.window, session.started_at) == ("gpt-test", 258400, 1772618400000)
    assert [measure.context for measure in reading.measures()] == [3000]


def test_a_torn_header_leaves_the_id_of_the_file_name_and_the_folder_of_the_turn(tmp_path):
    path = tmp_path / f"rollout-2026-03-04T10-00-00-{ID}.jsonl"
    path.write_bytes(b"\n".join(case("damaged").read_bytes().split(b"\n")[:3]) + b"\n")
    session = read_file("codex", path).session
    assert (session.id, session.cwd) == (ID, "/home/ada/ledger")


def test_a_sub_agent_names_its_parent_and_its_own_turn_is_not_a_copy():
    reading = read_file("codex", case("sub-agent"))
    assert (reading.session.role, reading.parent_id) == ("subagent", "019cb89c-0000-7000-8000-00000000b001")
    assert reading.session.cwd == "/home/ada/ledger"
    assert not any(line.parsed.copied for line in reading.lines if line.parsed.entries)
    assert read_file("codex", case("review")).session.role == "subagent"


@pytest.mark.parametrize("name", ["fork-copied", "fork-copied-no-turns"])
def test_the_history_that_a_fork_copied_is_marked_and_its_own_is_not(name):
    reading = read_file("codex", case(name))
    copied = [entry.text for line in reading.lines if line.parsed.copied for entry in line.parsed.entries]
    assert copied == ["the parent's prompt", "the parent's answer"]
    assert reading.parent_id and reading.session.role == "main"


def test_nothing_is_a_copy_in_a_fork_that_refers_to_its_parent():
    assert not any(line.parsed.copied for line in read_file("codex", case("fork-referred")).lines)


def test_the_real_fork_begins_with_a_copy_and_goes_on_with_its_own():
    path = SHARED / "transcripts" / "codex" / "codex-0.142.5-6-session_meta-2-distinct-ids.jsonl"
    if not path.exists():
        pytest.skip("no collected transcripts beside the project")
    copied = [line.raw.line for line in read_file("codex", path).lines if line.parsed.copied]
    assert copied == list(range(3, 165))


def test_no_text_holds_an_unpaired_surrogate_however_deep_its_escape_stands():
    reading = read_file("codex", case("damaged"))
    words = [str(entry) for entry in reading.entries()] + [str(reading.session)]
    assert sum("\ufffd" in word for word in words) == 4
    for word in words:
        word.encode("utf-8")


# --- containers ---


def test_a_compressed_rollout_reads_like_the_plain_one(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    plain = case("messages-twice")
    path = tmp_path / f"rollout-2026-03-04T10-00-00-{ID}.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    assert list(codex.records(Source(str(path)), 0, 0)) == list(codex.records(Source(str(plain)), 0, 0))
    offset = list(codex.records(Source(str(plain)), 0, 0))[5].offset
    assert [raw.line for raw in codex.records(Source(str(path)), offset, 5)][:2] == [6, 7]
    assert harnesses.recognise(str(path), path.read_bytes()[:100]) == "codex"


def test_a_compressed_rollout_that_is_torn_ends_early(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    whole = zstandard.ZstdCompressor().compress(case("messages-twice").read_bytes())
    for size in (4, len(whole) // 2):
        path = tmp_path / "rollout-x.jsonl.zst"
        path.write_bytes(whole[:size])
        assert len(list(codex.records(Source(str(path)), 0, 0))) < 24


def test_without_a_decoder_a_compressed_rollout_is_refused_in_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "rollout-x.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith(("zstandard", "compression")):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match="pip install zstandard"):
        list(codex.records(Source(str(path)), 0, 0))


def test_a_document_that_is_not_whole_yet_is_one_incomplete_record(tmp_path):
    path = tmp_path / "rollout-x.json"
    path.write_bytes(case("one-document").read_bytes()[:300])
    assert [raw.complete for raw in codex.records(Source(str(path)), 0, 0)] == [False]


@pytest.mark.parametrize("layout", [None, 2])
def test_a_document_is_read_in_any_layout(tmp_path, layout):
    value = json.loads(case("one-document").read_text(encoding="utf-8"))
    path = tmp_path / "rollout-x.json"
    path.write_text(json.dumps(value, indent=layout) + "\n", encoding="utf-8")
    reading = read_file("codex", path)
    assert [entry.kind for entry in reading.entries()] == ["user", "tool_call", "tool_result", "assistant"]
    assert reading.session.id == "legacy-7"


def test_find_lists_rollouts_of_both_folders_and_of_a_pair_only_the_plain_file(tmp_path, monkeypatch):
    monkeypatch.delenv("CODEX_HOME", raising=False)
    names = [
        "sessions/2026/03/04/rollout-a.jsonl",
        "sessions/2026/03/04/rollout-a.jsonl.zst",
        "sessions/2026/03/05/rollout-b.jsonl.zst",
        "sessions/2025/05/19/rollout-c.json",
        "archived_sessions/rollout-d.jsonl",
        "sessions/2026/03/04/notes.jsonl",
    ]
    for name in names:
        path = tmp_path / ".codex" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = [Path(source.path).name for source in codex.find(str(tmp_path))]
    assert found == ["rollout-c.json", "rollout-a.jsonl", "rollout-b.jsonl.zst", "rollout-d.jsonl"]
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / ".codex"))
    assert [Path(source.path).name for source in codex.find(str(tmp_path / "elsewhere"))] == found


@pytest.mark.parametrize("path", everything())
def test_every_rollout_is_recognised(path):
    assert codex.recognise(str(path), path.read_bytes()[: 1 << 16])


@pytest.mark.parametrize(
    "head", [b"", b"{}", b'{"type":"user","message":{"role":"user","content":"x"},"uuid":"u"}\n', b"\x00\x01"]
)
def test_what_is_no_rollout_is_not_recognised(head):
    assert not codex.recognise("/x/a.jsonl", head)


# --- shared small inputs ---


def messy(number: str):
    found = [path for path in MESSY if path.name.startswith(number)]
    if not found:
        pytest.skip("no collected cases beside the project")
    return read_file("codex", found[0])


def test_case_24_the_envelope_is_opened():
    assert [(entry.kind, entry.text) for entry in messy("24").entries()] == [("user", "hello"), ("assistant", "hi")]


def test_case_25_mirrored_messages_are_single():
    assert [entry.text for entry in messy("25").entries()] == ["yes", "done", "yes"]


def test_case_26_a_prompt_without_an_event_is_found():
    assert spoken(messy("26"), "user") == ["real prompt"]


def test_case_28_the_first_header_wins_and_the_childs_work_is_its_own():
    reading = messy("28")
    assert (reading.session.id, reading.parent_id) == ("child", "parent")
    assert [line.parsed.copied for line in reading.lines if line.parsed.entries] == [False]


def test_case_30_the_only_copy_of_a_prompt_is_kept():
    reading = messy("30")
    assert spoken(reading, "user") == ["only copy of an old prompt", "later"]
    assert len(spoken(reading, "boundary")) == 1


def test_case_31_bare_items_and_the_single_document():
    assert spoken(messy("31-"), "user") == ["old style"]
    assert spoken(messy("31b"), "user") == ["hello"]


def test_case_34_a_damaged_header_hides_nothing():
    reading = messy("34")
    assert (reading.session.cwd, spoken(reading, "user")) == ("/w/p", ["still here"])


def test_a_line_that_is_not_finished_is_marked(tmp_path):
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(b'{"type":"turn_context","payload":{}}\n{"type":"event_m')
    assert [raw.complete for raw in codex.records(Source(str(path)), 0, 0)] == [True, False]
    assert len(read_source(codex, Source(str(path))).lines) == 1
