"""What compactions and refusals teach, and how one that did not help is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.decisions import COMPACT
from obsmem.harnesses import load_hooks
from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.store.measures import measures_of
from obsmem.store.windows import known_mark, known_window
from obsmem.tasks.compactions import hear, learn_from, trouble
from obsmem.tasks.deliver import make_block
from obsmem.tasks.ingest import ingest
from obsmem.tasks.occupancy import occupancy
from obsmem.tasks.store import Store
from obsmem.tasks.windows import learn_mark, window_of
from tests.harnesses.cases import SHARED
from tests.interfaces.conftest import Run
from tests.interfaces.conftest import run as run
from tests.interfaces.place import DEMO
from tests.tasks.talk import Talk, fresh, opened, session_of, utc
from tests.tasks.test_occupancy import reply, text

MODEL = "claude-opus-5"


def compacted(*steps: tuple[int, str, int]) -> Talk:
    """A talk whose window held so much before each compaction, of that trigger, and so much after it."""
    talk = Talk()
    for number, (before, trigger, after) in enumerate(steps):
        talk.user(f"Step {number}.")
        reply(talk, f"msg_{number}", text("Yes."), before, 5)
        talk.compact()
        talk.records[-2]["compactMetadata"]["trigger"] = trigger
        if after:
            talk.user("Go on.")
            reply(talk, f"msg_after_{number}", text("Going on."), after, 5)
    return talk


def learnt(store: Store, stored: StoredSession) -> tuple[int, str]:
    learn_from(store, stored)
    return known_mark(store.memory.connection, stored.session.harness, MODEL, 200_000)


def outcomes(store: Store, stored: StoredSession) -> list[tuple[str, int, int]]:
    found = [one for one in store.memory.decisions(stored.session.handle) if one.what == COMPACT]
    return [(one.why, one.numbers["before"], one.numbers["after"]) for one in found]


def test_the_lowest_automatic_compaction_sets_the_mark_and_a_manual_one_none(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, compacted((90_000, "manual", 20_000), (120_000, "auto", 20_000)).write(tmp_path))
        mark, source = learnt(store, stored)
        assert 120_000 <= mark < 120_100
        assert source == "learned from compactions"
        assert window_of(store, stored).mark == mark
        learn_mark(store, "claude-code", MODEL, 100_000, "seen")
        assert known_mark(store.memory.connection, "claude-code", MODEL, 200_000) == (100_000, "seen")
        learn_mark(store, "claude-code", MODEL, 150_000, "seen")
        assert known_mark(store.memory.connection, "claude-code", MODEL, 200_000)[0] == 110_000


def test_a_compaction_around_the_harnesss_own_figure_confirms_it(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Go.")
    reply(talk, "msg_1", text("Yes."), 166_000, 1_500)
    talk.compact()
    talk.user("Go on.")
    reply(talk, "msg_2", text("Going on."), 30_000, 5)
    with opened() as store:
        assert learnt(store, session_of(store, talk.write(tmp_path)))[0] == 167_000


def test_each_compaction_is_written_down_once_and_one_that_cleared_nothing_is_trouble(tmp_path: Path) -> None:
    with opened() as store:
        talk = compacted((166_000, "auto", 30_000), (166_500, "auto", 160_000))
        stored = session_of(store, talk.write(tmp_path))
        learn_from(store, stored)
        learn_from(store, stored)
        found = outcomes(store, stored)
        assert [why for why, _, _ in found] == ["cleared the mark", "did not clear the mark"]
        assert [after for _, _, after in found] == [30_000, 160_000]
        last = trouble(store, stored)
        assert last is not None and last.why == "did not clear the mark"


def test_nothing_is_said_of_a_compaction_before_the_request_after_it(tmp_path: Path) -> None:
    with opened() as store:
        talk = compacted((166_000, "auto", 0))
        stored = session_of(store, talk.write(tmp_path))
        learn_from(store, stored)
        assert outcomes(store, stored) == []
        talk.user("Go on.")
        reply(talk, "msg_late", text("Going on."), 30_000, 5)
        stored = session_of(store, talk.write(tmp_path))
        learn_from(store, stored)
        assert [why for why, _, _ in outcomes(store, stored)] == ["cleared the mark"]
        assert trouble(store, stored) is None


def rollout(tmp_path: Path, history: list[dict[str, Any]] | None, message: str = "") -> Path:
    """A rollout with one compaction and the request after it."""

    def count(context: int, total: int) -> dict[str, Any]:
        usage = {"input_tokens": context, "cached_input_tokens": 0, "output_tokens": 10, "total_tokens": context + 10}
        info = {
            "total_token_usage": {**usage, "total_tokens": total},
            "last_token_usage": usage,
            "model_context_window": 258_400,
        }
        return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

    def said(role: str, words: str) -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        return {
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": words}]},
        }

    rows = [
        {"type": "session_meta", "payload": {"id": "019f0000-0000-7000-8000-000000000002", "cwd": "/w"}},
        {"type": "turn_context", "payload": {"model": "gpt-test", "cwd": "/w"}},
        said("user", "Go."), said("assistant", "Yes."), count(231_000, 231_010), said("user", "More. " * 1500),
        {"type": "compacted", "payload": {"message": message, "replacement_history": history}},
        said("assistant", "Going on."), count(21_000, 252_020),
    ]  # fmt: skip
    path = tmp_path / "rollout-2026-03-04T10-00-00-019f0000-0000-7000-8000-000000000002.jsonl"
    lines = [json.dumps({"timestamp": "2026-03-04T10:00:00.000Z", **row}, separators=(",", ":")) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("history", "message", "outcome"),
    [
        ([{"type": "compaction", "encrypted_content": "x"}], "", "cleared the mark"),
        ([], "", "came without a summary"),
        (None, "The summary.", "cleared the mark"),
    ],
)
def test_a_codex_window_that_begins_without_a_summary_is_told_from_one_whose_summary_is_hidden(
    tmp_path: Path, history: list[dict[str, Any]] | None, message: str, outcome: str
) -> None:
    with opened() as store:
        stored = ingest(store, "codex", Source(str(rollout(tmp_path, history, message))), final=True).stored
        assert stored is not None
        learn_from(store, stored)
        assert [why for why, _, _ in outcomes(store, stored)] == [outcome]


def test_where_nobody_says_who_compacted_only_the_harnesss_own_figure_is_believed(tmp_path: Path) -> None:
    with opened() as store:
        stored = ingest(store, "codex", Source(str(rollout(tmp_path, None, "Sum."))), final=True).stored
        assert stored is not None
        learn_from(store, stored)
        assert known_mark(store.memory.connection, "codex", "gpt-test", 258_400)[0] == int(258_400 * 0.9)


def test_a_refusal_of_the_harness_teaches_the_window_and_words_that_quote_one_do_not(tmp_path: Path) -> None:
    words = "API Error: 400 prompt is too long: 195000 tokens > 190000 maximum"
    for speaker, expected in (("human", 0), ("harness", 190_000)):
        talk = Talk(session=f"5e551011-0000-4000-8000-0000000000{'d1' if expected else 'd2'}")
        talk.user("Go.")
        reply(talk, "msg_1", text("Yes."), 180_000, 5)
        if speaker == "harness":
            talk._add("assistant", isApiErrorMessage=True, message={
                "id": "e", "role": "assistant", "model": "<synthetic>", "content": [text(words)]})  # fmt: skip
        else:
            talk.user(words)
        with opened() as store:
            stored = session_of(store, talk.write(tmp_path))
            learn_from(store, stored)
            assert known_window(store.memory.connection, "claude-code", MODEL).size == expected


def test_what_a_hook_counts_before_a_compaction_is_the_occupancy(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Go.")
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        hear(store, stored, "auto:24000/128000")
        now = occupancy(store, fresh(store, stored))
        assert (now.counted, now.window.size) == (24_000, 128_000)
        hear(store, stored, "nothing:that/is one")
        assert occupancy(store, fresh(store, stored)).counted == 24_000


def test_the_block_says_that_work_is_in_progress_where_a_compaction_brought_no_summary(tmp_path: Path) -> None:
    with opened() as store:
        stored = ingest(store, "codex", Source(str(rollout(tmp_path, []))), final=True).stored
        assert stored is not None
        assert "WORK IS IN PROGRESS" not in "".join(make_block(store, stored, utc).parts)
        learn_from(store, stored)
        block = make_block(store, stored, utc)
        assert "WORK IS IN PROGRESS" in block.parts[0]
        assert block.tokens <= store.config["budget_tokens"]


def test_what_the_real_program_compacted_on_its_own_teaches_its_mark() -> None:
    path = SHARED / "transcripts" / "claude-code" / "cc-2.1.36to2.1.37-2-compactions-mcp.jsonl"
    if not path.exists():
        pytest.skip("the shared transcripts are not on this machine")
    with opened() as store:
        stored = ingest(store, "claude-code", Source(str(path)), final=True).stored
        assert stored is not None
        learn_from(store, stored)
        assert [why for why, _, _ in outcomes(store, stored)] == ["cleared the mark"] * 2
        mark, source = known_mark(store.memory.connection, "claude-code", "claude-opus-4-6", 200_000)
        assert 165_000 <= mark <= 167_500
        assert source == "learned from compactions"


def test_a_hook_of_cursors_brings_its_count_to_the_maintainer(tmp_path: Path, run: Run) -> None:
    payload = {"conversation_id": "c1", "trigger": "auto", "context_tokens": 24_000, "context_window_size": 128_000}
    assert load_hooks("cursor").read_event("preCompact", payload).held == "24000/128000"
    assert load_hooks("cursor").read_event("preCompact", {"conversation_id": "c1", "context_tokens": "many"}).held == ""
    path = tmp_path / "session.jsonl"
    path.write_bytes((DEMO / "cursor" / "session.jsonl").read_bytes())
    words = ["maintain", "cursor", "--transcript", str(path), "--before-compact", "--announced", "auto:24000/128000"]
    assert run(*words).status == 0
    value = json.loads(run("context", "--json").out)
    assert (value["counted"], value["window"]["size"]) == (24_000, 128_000)
    assert value["window"]["size_source"] == "reported by the harness"


def test_a_summarisers_own_request_in_a_rollout_fills_no_window() -> None:
    (path,) = (DEMO / "codex").glob("*.jsonl")
    with opened() as store:
        stored = ingest(store, "codex", Source(str(path)), final=True).stored
        assert stored is not None
        measures = measures_of(store.archive.connection, stored.no)
        (boundary,) = store.archive.boundaries(stored.no)
        (side,) = [one for one in measures if one.kind == "side"]
        assert side.seq < boundary
        assert side.seq > max(one.seq for one in measures if one.kind == "request" and one.seq < boundary)
