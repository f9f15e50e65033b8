"""How full a window is: what was counted, what is estimated, and what takes no room in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from obsmem.core.tokens import estimate
from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.store.measures import measures_of
from obsmem.tasks.ingest import ingest
from obsmem.tasks.occupancy import occupancy, own_spend, ratio, spend
from obsmem.tasks.store import Store
from obsmem.tasks.windows import learn_window, window_of
from tests.harnesses.cases import FIXTURES
from tests.tasks.talk import Talk, opened, session_of

WORDS = "The quick parser reads each of the records in its order, and says why it left one out.\n"


def reply(talk: Talk, message: str, content: dict[str, Any], context: int, output: int, **more: Any) -> None:
    """One record of a reply: a reply of several blocks is several records with one message id."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": context - 210, "cache_creation_input_tokens": 200}
    talk._add(
        "assistant",
        message={"id": message, "role": "assistant", "model": "claude-opus-5", "content": [content],
                 "usage": {**usage, "output_tokens": output}},
        **more,
    )  # fmt: skip


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": "ls"}}


def result(talk: Talk, id_: str, output: str) -> None:
    talk._add("user", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": output}]})  # fmt: skip


def read(store: Store, harness: str, path: Path) -> StoredSession:
    found = ingest(store, harness, Source(str(path)), final=True).stored
    assert found is not None
    return found


def test_the_next_request_holds_the_last_one_its_answer_and_what_came_after(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("List the files.")
    reply(talk, "msg_1", text("I will list them."), 50_000, 2)
    reply(talk, "msg_1", call("t1"), 50_000, 120)
    result(talk, "t1", WORDS * 50)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        now = occupancy(store, stored)
        assert (now.counted, now.seq, now.model) == (50_120, 1, "claude-opus-5")
        assert now.estimated == estimate(WORDS * 50)
        assert now.at > 0
        assert now.window.size == 200_000
        assert round(now.of_mark, 3) == round((50_120 + now.estimated) / 167_000, 3)


def test_what_tools_gave_between_the_records_of_one_reply_was_not_counted_in_it(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("List the files twice.")
    reply(talk, "msg_1", call("t1"), 50_000, 2)
    result(talk, "t1", WORDS * 40)
    reply(talk, "msg_1", call("t2"), 50_000, 90)
    result(talk, "t2", WORDS * 10)
    with opened() as store:
        now = occupancy(store, session_of(store, talk.write(tmp_path)))
    assert now.counted == 50_090
    assert now.estimated == estimate(WORDS * 40) + estimate(WORDS * 10)


def test_a_reply_whose_output_was_written_down_too_early_is_estimated(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Explain it.")
    reply(talk, "msg_1", text(WORDS * 30), 50_000, 1)
    with opened() as store:
        now = occupancy(store, session_of(store, talk.write(tmp_path)))
    assert now.counted == 50_001
    assert now.tokens == 50_000 + estimate(WORDS * 30)


def test_a_sub_agent_inside_the_transcript_fills_no_window_but_was_paid(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Ask somebody.")
    reply(talk, "msg_1", text("I will."), 50_000, 20)
    reply(talk, "msg_side", text(WORDS * 30), 9_000, 700, isSidechain=True)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        now, paid = occupancy(store, stored), spend(store, stored)
    assert (now.counted, now.estimated) == (50_020, 0)
    assert paid == (2, 20, 49_790 + 8_790, 400, 720)


def test_a_reply_of_several_records_is_paid_once_also_when_it_is_read_in_two_goes(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Go.")
    reply(talk, "msg_1", text("I begin."), 50_000, 3)
    with opened() as store:
        session_of(store, talk.write(tmp_path))
        reply(talk, "msg_1", call("t1"), 50_000, 80)
        stored = session_of(store, talk.write(tmp_path))
        assert own_spend(store, stored) == (1, 10, 49_790, 200, 80)
        assert [(one.seq, one.output) for one in measures_of(store.archive.connection, stored.no)] == [(1, 80)]


def test_after_a_compaction_what_it_kept_and_what_stands_in_every_request_are_estimated(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Begin.")
    reply(talk, "msg_1", text("Yes."), 20_000, 5)
    reply(talk, "msg_2", text("More."), 160_000, 5)
    talk.compact()
    with opened() as store:
        now = occupancy(store, session_of(store, talk.write(tmp_path)))
    assert (now.counted, now.at, now.seq) == (0, 0, -1)
    assert 19_000 < now.estimated < 21_000


def test_a_rewound_request_no_longer_counts(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Begin.")
    reply(talk, "msg_1", text("Yes."), 20_000, 5)
    back = talk.head
    talk.user("A wrong turn.")
    reply(talk, "msg_2", text("Wrong."), 90_000, 5)
    talk.head = back
    talk.user("Another turn.")
    with opened() as store:
        now = occupancy(store, session_of(store, talk.write(tmp_path)))
    assert now.counted == 20_005


def test_a_session_of_which_nothing_was_counted_is_estimated_whole(tmp_path: Path) -> None:
    talk = Talk()
    talk.user(WORDS * 20)
    with opened() as store:
        now = occupancy(store, session_of(store, talk.write(tmp_path)))
    assert (now.counted, now.seq) == (0, -1)
    assert now.estimated == estimate(WORDS * 20)


def test_the_estimate_is_scaled_by_what_the_provider_counted_before(tmp_path: Path) -> None:
    talk = Talk()
    context = 20_000
    step = estimate(WORDS * 60)
    for number in range(6):
        talk.user(WORDS * 60)
        context += 2 * step + 50
        reply(talk, f"msg_{number}", text("Yes, I do that now."), context, 50)
    talk.user(WORDS * 60)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        assert abs(ratio(store, stored, measures_of(store.archive.connection, stored.no)) - 2) < 0.01
        assert abs(occupancy(store, stored).estimated - 2 * step) < 50


def test_cached_input_is_part_of_what_codex_reports_and_its_window_is_its_own(tmp_path: Path) -> None:
    usage = {"input_tokens": 41_000, "cached_input_tokens": 30_000, "output_tokens": 500, "reasoning_output_tokens": 90}
    rows: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "019f0000-0000-7000-8000-000000000001", "cwd": "/w"}},
        {"type": "turn_context", "payload": {"model": "gpt-test", "cwd": "/w"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}},
        {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1", "output": WORDS * 20}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": {
            "total_token_usage": {**usage, "total_tokens": 41_500}, "last_token_usage": {**usage, "total_tokens": 41_500},
            "model_context_window": 258_400}}},
    ]  # fmt: skip
    rows.append(rows[-1])  # it comes again with each change of the rate limits
    path = tmp_path / "rollout-2026-03-04T10-00-00-019f0000-0000-7000-8000-000000000001.jsonl"
    lines = [json.dumps({"timestamp": "2026-03-04T10:00:00.000Z", **row}, separators=(",", ":")) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with opened() as store:
        stored = read(store, "codex", path)
        now = occupancy(store, stored)
        assert (now.counted, now.estimated) == (41_500, estimate(WORDS * 20))
        assert own_spend(store, stored) == (1, 11_000, 30_000, 0, 500)
        assert (now.window.size, now.window.size_source) == (258_400, "reported by the harness")


def test_opencodes_cached_input_is_added_and_a_tools_result_comes_after_the_count() -> None:
    with opened() as store:
        stored = read(store, "opencode", FIXTURES / "opencode" / "tools" / "transcript.json")
        measures = [one for one in measures_of(store.archive.connection, stored.no) if one.kind == "request"]
        paid = own_spend(store, stored)
        assert paid.requests == len(measures)
        assert sum(one.context for one in measures) == paid.fresh + paid.cached + paid.written


def test_a_session_that_held_more_than_the_usual_window_has_a_larger_one(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Go.")
    reply(talk, "msg_1", text("Yes."), 334_000, 5)
    with opened() as store:
        window = window_of(store, session_of(store, talk.write(tmp_path)))
    assert (window.size, window.mark) == (1_000_000, 967_000)
    assert "334000 tokens were counted" in window.size_source


def test_what_was_learned_of_a_model_is_used_and_a_refusal_only_makes_it_smaller(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("Go.")
    reply(talk, "msg_1", text("Yes."), 34_000, 5)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        learn_window(store, "claude-code", "claude-opus-5[1m]", 1_000_000, "reported by the harness")
        assert window_of(store, stored).size == 1_000_000
        learn_window(store, "claude-code", "claude-opus-5", 180_000, "learned from a refusal")
        assert window_of(store, stored)[:2] == (180_000, "learned from a refusal")
        learn_window(store, "claude-code", "claude-opus-5", 190_000, "learned from a refusal")
        learn_window(store, "claude-code", "claude-opus-5", 3, "reported by the harness")
        assert window_of(store, stored).size == 180_000
