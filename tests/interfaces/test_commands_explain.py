"""explain and replay --policy: what they print, as text and as JSON, over sessions that real hooks accompanied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.decisions import BLOCK, DELIVER, OBSERVE, WAIT
from obsmem.interfaces.cli import build_parser
from obsmem.system import config
from obsmem.tasks.replay_stored import POLICY
from tests.interfaces.conftest import Run
from tests.interfaces.test_hook_delivery import Life, all_is_well


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Life:
    """A session that was compacted, whose block arrived; commands of this process look into its data folder."""
    life = Life(tmp_path / "life")
    all_is_well(life)
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(life.home))
    return life


def value(run: Run, *arguments: str) -> Any:
    """What a command gives to a program."""
    output = run(*arguments, "--json")
    assert output.status == 0, output.err
    return json.loads(output.out)


def test_decisions_and_hooks_stand_in_order_with_their_numbers(life: Life, run: Run) -> None:
    happened = value(run, "explain")
    assert [one["at"] for one in happened] == sorted(one["at"] for one in happened)
    kinds = {one["what"] for one in happened}
    assert {OBSERVE, WAIT, BLOCK, DELIVER, "log"} <= kinds
    hooks = [one["why"] for one in happened if one["what"] == "log" and one["why"].startswith("hook")]
    assert {"hook claude-code PreCompact", "hook claude-code SessionStart", "hook claude-code Stop"} <= set(hooks)
    arrived = [one for one in happened if one["what"] == DELIVER and "arrived" in one["why"]]
    assert arrived[0]["numbers"]["found"] == arrived[0]["numbers"]["of"]
    text = run("explain").out
    assert len(text.strip().split("\n")) == len(happened)
    assert "a compaction comes" in text


def test_the_last_block_is_told_byte_for_byte_with_a_reason_for_each_line(life: Life, run: Run) -> None:
    given = value(run, "explain", "--last-block")
    assert given["source"] == "transcript"
    assert [given["parts"][number] for number in sorted(given["parts"])] == life.given
    assert given["reasons_kept"]
    body = "\n".join(life.given).split("\n")
    for line in given["lines"]:
        assert line["text"] in body
        assert line["rank"] and line["tokens"] > 0
    assert [line["text"] for line in given["lines"]] == [
        line for line in body if line in {one["text"] for one in given["lines"]}
    ]
    out = run("explain", "--last-block").out
    for part in life.given:
        assert part in out
    assert "why each of its" in out and "left out: " in out
    session = value(run, "sessions")[0]["handle"]
    assert value(run, "explain", session, "last", "block") == given


def test_what_recall_takes_stands_beside_each_line(life: Life, run: Run) -> None:
    given = value(run, "explain", "--last-block")
    for one in [*given["lines"], *given["left_out"]]:
        for name in [*one["ids"], *one["entries"]]:
            assert run("recall", name).status == 0


def test_a_note_is_told_from_end_to_end(life: Life, run: Run) -> None:
    session = value(run, "sessions")[0]["handle"]
    for note in value(run, "notes")["notes"]:
        story = value(run, "explain", session, note["id"])
        assert story["note"][0][0] == note["id"]
        assert story["worker"] == "extractive"
        assert story["in_block"]
        out = run("explain", session, note["id"]).out
        assert "in the last block" in out and "visible now" in out


def test_a_time_bounds_what_is_told(life: Life, run: Run) -> None:
    session = value(run, "sessions")[0]["handle"]
    everything = value(run, "explain", session)
    assert value(run, "explain", session, "today") == everything
    assert value(run, "explain", session, "2", "hours", "ago") == everything
    assert value(run, "explain", session, "2001-02-03") == []
    assert "Nothing was decided" in run("explain", session, "2001-02-03").out
    refused = run("explain", session, "some", "day")
    assert refused.status != 0 and "'some day' is none of them" in refused.err


def test_replaying_under_the_same_policy_finds_nothing_different(life: Life, run: Run) -> None:
    session = value(run, "sessions")[0]["handle"]
    (compared,) = value(run, "replay", session, "--policy")
    assert compared["different"] == 0 < compared["equal"]
    assert compared["recorded"] == compared["replayed"]
    assert compared["not_replayed"][DELIVER] > 0
    out = run("replay", "--policy", session).out
    assert f"{compared['equal']} equal, 0 different" in out
    assert "no model was asked" in out


def test_both_columns_stand_side_by_side(life: Life, run: Run) -> None:
    session = value(run, "sessions")[0]["handle"]
    output = run("replay", "--policy", "budget_tokens=400", "observe_after_tokens=20", session)
    assert output.status == 0
    assert "under budget_tokens 400, observe_after_tokens 20" in output.out
    (compared,) = value(run, "replay", session, "--policy", "budget_tokens=400", "observe_after_tokens=20")
    assert compared["policy"] == {"budget_tokens": 400, "observe_after_tokens": 20}
    assert compared["replayed"]["block"] <= 400 < compared["recorded"]["block"]
    assert "≠" in output.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policy", "retention_days=3"), "has no part"),
        (("--policy", "budget_tokens=many"), "budget_tokens"),
        (("--policy", "budget_tokens=400"), "Name a session"),
        (("--policy", "--keep", "x"), "--policy runs whole sessions"),
        (("--policy", "workers=[extractive]", "x"), "--workers"),
        (("--workers", "x"), "--policy"),
        ((), "Give the path"),
    ],
)
def test_what_cannot_be_replayed_is_said_in_one_sentence(
    words: tuple[str, ...], said: str, life: Life, run: Run
) -> None:
    session = value(run, "sessions")[0]["handle"]
    output = run(
        "replay", *(session if word == "x" else word for word in words), *([session] if "many" in str(words) else [])
    )
    assert output.status != 0
    assert said in output.err
    assert output.out == ""


def test_the_settings_of_a_policy_are_settings() -> None:
    assert set(POLICY) <= set(config.KEYS)


def test_the_words_of_a_policy_may_stand_on_either_side_of_the_session() -> None:
    for words in (["--policy", "a=1", "b=2", "7c2e"], ["7c2e", "--policy", "a=1", "b=2"]):
        options = build_parser().parse_args(["replay", *words])
        assert sorted([*options.policy, *options.paths]) == ["7c2e", "a=1", "b=2"]
