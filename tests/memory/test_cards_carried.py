"""What goes on beside the words: skills, the plan, what runs in the background, the focus of a compaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from obsmem.core.clock import utc_minute
from obsmem.core.fold import State, fold
from obsmem.core.model import Action, Card
from obsmem.harnesses import load
from obsmem.harnesses.base import Source
from obsmem.memory.cards import CardBuilder
from obsmem.memory.sections_carried import carried_lines
from obsmem.memory.wording import View
from tests.memory.card_entries import Script

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "transcripts"
VIEW = View("abcd", utc_minute, "recall", "1970-01-01")


def state_of(script: Script, pieces: int = 1) -> State:
    """The state after a script, its entries fed by builders that go on from one another's state."""
    kept: dict[str, object] = {}
    cards: list[Card] = []
    size = max(1, len(script.entries) // pieces)
    for start in range(0, len(script.entries), size):
        builder = CardBuilder("abcd", kept)
        for entry in script.entries[start : start + size]:
            builder.feed(entry)
        cards += builder.take()
        kept = builder.state()
    return fold(cards)


def lines_of(state: State) -> list[str]:
    return [line.text for line in carried_lines(state, VIEW)]


@pytest.mark.parametrize("pieces", [1, 4])
def test_what_runs_in_the_background_is_told_until_its_end_is(pieces: int) -> None:
    script = Script()
    script.user("Start the server and the build.")
    for command, name in (("npm run dev", "b1"), ("make all", "b2")):
        call = script.call(Action("run", command=command))
        script.result(call, f"Command running in background with ID: {name}", actions=(Action("start", path=name),))
    script.told("<task-notification>b2</task-notification>", Action("end", path="b2", new="completed"))
    assert lines_of(state_of(script, pieces)) == [
        "Started in the background, no end seen (00:03, abcd.2): `npm run dev` (id b1)"
    ]
    stop = script.call(Action("end", path="b1", new="stopped"))
    assert len(state_of(script, pieces).tasks) == 1  # asked, not yet answered
    script.result(stop)
    assert lines_of(state_of(script, pieces)) == []


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_command_that_went_on_ends_where_a_later_look_shows_it(pieces: int) -> None:
    script = Script()
    call = script.call(Action("run", command="cargo test"))
    script.result(call, "Process running with session ID 7", ok=None, actions=(Action("start", path="7"),))
    script.result(script.call(Action("wait", path="7")), "still", ok=None, actions=(Action("start", path="7"),))
    assert state_of(script, pieces).tasks[0].subject == "cargo test"
    script.result(script.call(Action("wait", path="7")), "error: broken\n", ok=False, exit_code=101)
    state = state_of(script, pieces)
    assert state.tasks == ()
    assert state.commands["cargo test"].last.detail["exit"] == 101
    assert state.commands["cargo test"].last.ok is False


def test_an_end_that_belongs_to_no_call_is_bound_to_what_was_left_running() -> None:
    script = Script()
    call = script.call(Action("run", command="go test ./..."))
    script.result(call, "running", ok=None, actions=(Action("start", path="33"),))
    script.result(call, "ok  all", exit_code=0, actions=(Action("end", path="33", new="exit 0"),))
    state = state_of(script)
    assert state.tasks == ()
    assert state.commands["go test ./..."].last.ok is True


def test_a_plan_counts_once_it_is_accepted() -> None:
    script = Script()
    refused = script.call(Action("plan", new="# Rewrite it all"))
    script.result(refused, "The user doesn't want to proceed with this tool use.", ok=False)
    assert state_of(script).plan is None
    call = script.call(Action("plan", new="# Inline it\n\n1. Move the call"))
    script.result(call, "User has approved your plan.", actions=(Action("plan", path="/p/plan.md"),))
    plan = state_of(script).plan
    assert plan is not None
    assert (plan.subject, plan.detail["path"]) == ("Inline it", "/p/plan.md")
    assert lines_of(state_of(script)) == [
        'Plan that the user accepted (00:04, abcd.2, abcd.3) [in /p/plan.md]: "# Inline it 1. Move the call"'
    ]


@pytest.mark.parametrize("pieces", [1, 2])
def test_a_plan_in_the_agents_words_counts_when_the_human_accepts_it(pieces: int) -> None:
    script = Script()
    script.agent("<proposed_plan># First\nDo it</proposed_plan>")
    script.entries[-1] = script.entries[-1]._replace(actions=(Action("plan", new="# First\nDo it"),))
    assert state_of(script).plan is None
    script.user("Implement the plan.")
    script.entries[-1] = script.entries[-1]._replace(actions=(Action("plan"),))
    state = state_of(script, pieces)
    assert state.plan is not None
    assert (state.plan.subject, state.plan.seqs) == ("First", (0, 1))
    assert state.instructions[-1].words == "Implement the plan."


def test_words_for_a_summariser_are_a_focus_and_no_order() -> None:
    script = Script()
    script.user("Rename the field to total.")
    script.boundary()
    script.user("keep what we decided about the API")
    script.entries[-1] = script.entries[-1]._replace(
        actions=(Action("focus", new="keep what we decided about the API"),)
    )
    state = state_of(script)
    assert [said.words for said in state.instructions] == ["Rename the field to total."]
    assert lines_of(state) == [
        'The user asked the compaction to attend to (00:03, abcd.2): "keep what we decided about the API"'
    ]


def test_a_skill_is_told_once_however_it_was_called_and_the_newest_come_first() -> None:
    script = Script()
    script.told("<command-name>/review</command-name>", Action("skill", command="/review", new="323"))
    script.result(script.call(Action("skill", command="review")))
    for name in ("a", "b", "c"):
        script.result(script.call(Action("skill", command=name)))
    skills = [line for line in lines_of(state_of(script)) if line.startswith("Skill")]
    assert [line.rpartition(": ")[2] for line in skills] == ["c", "b", "a", "review"]


def real_states() -> Iterator[tuple[str, State]]:
    for harness in ("claude-code", "codex"):
        module = load(harness)
        for path in sorted((SHARED / harness).glob("*.jsonl")):
            if path.stat().st_size > 3_000_000:
                continue
            builder = CardBuilder("abcd")
            reader = module.reader(Source(str(path)), None, lambda: ())
            for seq, entry in enumerate(
                entry for raw in module.records(Source(str(path)), 0, 0) for entry in reader.read(raw).entries
            ):
                builder.feed(entry._replace(seq=seq))
            yield path.name, fold(builder.take())


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared transcripts are not here")
def test_real_sessions_have_their_plans_skills_and_no_task_that_a_notice_ended() -> None:
    states = dict(real_states())
    plan = states["cc-general-tool-calls.jsonl"].plan
    assert plan is not None
    assert plan.subject == "Plan: Claude Code Session Share Plugin"
    assert "silly-wishing-narwhal.md" in plan.detail["path"]
    assert "/publish-session" in [fact.subject for fact in states["cc-general-tool-calls.jsonl"].skills]
    assert states["codex-0.120.0.jsonl"].tasks == ()
    assert states["cc-2.1.220-frame-link.jsonl"].tasks == ()
