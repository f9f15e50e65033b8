"""A stored session that runs again takes the decisions that were taken; under other settings it takes others; nothing is written."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.decisions import BLOCK, OBSERVE, REFLECT, WAIT
from obsmem.core.errors import NotFound
from obsmem.store.archive import StoredSession
from obsmem.store.spending import Spending
from obsmem.system import config
from obsmem.system.local_time import local_clock
from obsmem.tasks.ask import cascade
from obsmem.tasks.decide import DUE, FAST
from obsmem.tasks.drain import skip_oldest
from obsmem.tasks.here import Here
from obsmem.tasks.maintain import maintain
from obsmem.tasks.observe import run_passes
from obsmem.tasks.pins import pin
from obsmem.tasks.replay_steps import GAP, PARENT, PASSES, RENDER, recorded_steps
from obsmem.tasks.replay_stored import Compared, replay_stored
from obsmem.tasks.store import Store
from tests.harnesses.cases import SHARED
from tests.harnesses.test_opencode_rows import SESSION as OPENCODE_SESSION
from tests.harnesses.test_opencode_rows import Database
from tests.tasks.growing import grow, lines_of
from tests.tasks.models import Model
from tests.tasks.talk import CLAUDE, Talk, opened, session_of, turns, utc
from tests.tasks.test_models import hire as hire
from tests.tasks.test_rows import finish_tool

# Real sessions of two harnesses: small ones, with compactions, rewinds and prompts that waited.
TEN = (
    "claude-code/cc-2.1.131to2.1.137-resumed.jsonl", "claude-code/cc-2.1.7to2.1.12-GLUED-small.jsonl",
    "claude-code/cc-2.1.231-server_tool_use-advisor_tool_result.jsonl", "claude-code/cc-1.0.71-task-sidechain.jsonl",
    "claude-code/cc-parent-of-subagent__0ccf1a04.jsonl", "claude-code/cc-2.0.76-GLUED-summary-after-assistant.jsonl",
    "codex/codex-0.139.0-review-subagent.jsonl", "codex/codex-0.47.0-b.jsonl", "codex/codex-0.58.0-ghost_snapshot-b.jsonl",
    "codex/codex-0.144.5-compacted.jsonl",
)  # fmt: skip
needs_shared = pytest.mark.skipif(
    not (SHARED / "transcripts").is_dir(), reason="the folder of real transcripts is not beside the project"
)


def again(store: Store, stored: StoredSession, **policy: object) -> Compared:
    """Run a session again under its own settings, but for these."""
    return replay_stored(store, stored, config.load(), policy, local_clock)


def unequal(compared: Compared) -> list[str]:
    """The pairs that are not equal, for reading."""
    return [f"{pair.recorded}\n  {pair.replayed}" for pair in compared.pairs if not pair.equal]


@needs_shared
@pytest.mark.parametrize("name", TEN)
def test_a_real_session_takes_the_same_decisions_again(name: str, tmp_path: Path) -> None:
    path = SHARED / "transcripts" / name
    with opened() as store:
        stored = grow(store, name.partition("/")[0], lines_of(path), tmp_path / path.name)
        compared = again(store, stored)
        assert compared.was_recorded
        assert compared.pairs
        assert unequal(compared) == []
        assert compared.recorded == compared.replayed
        blocks = [pair for pair in compared.pairs if pair.recorded is not None and pair.recorded.what == BLOCK]
        for pair in blocks:  # the mark is a function of the text: the blocks are equal byte for byte
            assert pair.replayed is not None
            assert pair.recorded is not None
            assert pair.replayed.numbers["delivery"] == pair.recorded.numbers["delivery"]
        assert blocks


def test_nothing_is_written_to_the_store_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    with opened() as store:
        stored = grow(store, CLAUDE, turns(12).lines(), tmp_path / "t" / "s.jsonl")
        home = Path(store.home)
    before = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in home.rglob("*") if path.is_file()}
    with opened(readonly=True) as store:
        assert again(store, stored, budget_tokens=600).different > 0
    assert {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in home.rglob("*") if path.is_file()} == before
    assert os.listdir(scratch) == []


def test_a_replay_makes_no_key_for_a_store_that_has_none(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(3).write(tmp_path))
        run_passes(store, stored, utc)
    with opened(readonly=True) as store:
        assert again(store, stored).different == 0
        assert not os.path.exists(os.path.join(store.home, "key"))


def test_under_a_lower_threshold_it_is_observed_more_often(tmp_path: Path) -> None:
    with opened(observe_after_tokens=400) as store:
        stored = grow(store, CLAUDE, turns(30).lines(), tmp_path / "s.jsonl")
        same, often = again(store, stored), again(store, stored, observe_after_tokens=60)
    assert unequal(same) == []
    assert often.replayed.calls > same.replayed.calls == same.recorded.calls
    assert often.recorded == same.recorded


def test_a_smaller_budget_makes_a_smaller_block_and_leaves_all_else(tmp_path: Path) -> None:
    with opened() as store:
        stored = grow(store, CLAUDE, turns(40).lines(), tmp_path / "s.jsonl")
        compared = again(store, stored, budget_tokens=700)
    assert compared.replayed.block <= 700 < compared.recorded.block
    assert compared.replayed._replace(block=0) == compared.recorded._replace(block=0)
    kinds = {pair.recorded.what for pair in compared.pairs if pair.recorded is not None and not pair.equal}
    assert kinds == {BLOCK}


def test_the_settings_of_that_time_count_not_those_of_now(tmp_path: Path) -> None:
    with opened(observe_after_tokens=150, budget_tokens=900) as store:
        stored = grow(store, CLAUDE, turns(20).lines(), tmp_path / "s.jsonl")
    with opened() as store:  # the configuration has changed since
        compared = again(store, stored)
    assert unequal(compared) == []
    assert compared.recorded.calls > 1


def test_a_rewind_that_came_later_is_not_there_yet(tmp_path: Path) -> None:
    conversation = turns(6)
    path = tmp_path / "s.jsonl"
    with opened(observe_after_tokens=50) as store:
        grow(store, CLAUDE, conversation.lines(), path)
        conversation.head = conversation.records[8]["uuid"]  # back to an earlier turn, and on from there
        for number in range(20, 24):
            conversation.turn(number)
        stored = grow(store, CLAUDE, conversation.lines(), path, 1)
        assert stored.rewinds > 0
        compared = again(store, stored)
    assert unequal(compared) == []
    assert any(pair.recorded is not None and pair.recorded.numbers.get("rewinds") for pair in compared.pairs)


def test_a_fork_stands_on_its_parents_notes_as_they_are(tmp_path: Path) -> None:
    parent = turns(5)
    with opened(observe_after_tokens=50) as store:
        owner = grow(store, CLAUDE, parent.lines(), tmp_path / "p.jsonl")
        child = parent.fork()
        copied = len(child.records)
        for number in range(30, 34):
            child.turn(number)
        stored = grow(store, CLAUDE, child.lines(), tmp_path / "c.jsonl", begun=copied + 1)
        assert stored.session.parent is not None
        compared = again(store, stored)
        assert unequal(compared) == []
        assert compared.replayed.visible == compared.recorded.visible
        assert again(store, owner).different == 0


def test_pins_count_from_when_they_were_made(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with opened(observe_after_tokens=50) as store:
        stored = grow(store, CLAUDE, turns(4).lines(), path)
        pin(store, "the port is 8472", "session", Here("", stored.session.workspace, stored))
        stored = grow(store, CLAUDE, turns(8).lines(), path, 1)
        compared = again(store, stored)
    assert unequal(compared) == []
    pins = [pair.recorded.numbers["pins"] for pair in compared.pairs if pair.recorded and pair.recorded.what == BLOCK]
    assert pins[0] == 0
    assert pins[-1] == 1


def test_answers_of_models_are_used_again_and_no_model_is_asked(tmp_path: Path) -> None:
    conversation = turns(6)
    with opened(observe_after_tokens=50) as store:
        stored = session_of(store, conversation.write(tmp_path))
        model = Model("m")
        run_passes(store, stored, utc, drain=True, team=[model, *cascade(store)])
        asked = len(model.prompts)
        assert asked
        compared = replay_stored(store, stored, config.load(), {}, utc)
    assert len(model.prompts) == asked
    assert compared.reused == asked
    assert unequal(compared) == []
    assert compared.replayed.notes == compared.recorded.notes


def test_what_nobody_wrote_down_is_replayed_as_hooks_would_have_done(tmp_path: Path) -> None:
    conversation = Talk()
    for number in range(6):
        conversation.turn(number)
        if number == 3:
            conversation.compact()
    with opened(observe_after_tokens=100) as store:
        stored = session_of(store, conversation.write(tmp_path))
        compared = replay_stored(store, stored, store.config, {}, utc)
    assert not compared.was_recorded
    assert compared.recorded.calls == 0 < compared.replayed.calls
    modes = {pair.replayed.numbers.get("mode") for pair in compared.pairs if pair.replayed is not None}
    assert {DUE, FAST} <= modes


def test_steps_name_what_was_done_at_each_place_in_order(tmp_path: Path) -> None:
    with opened(observe_after_tokens=60, reflect_after_tokens=120) as store:
        stored = grow(store, CLAUDE, turns(12).lines(), tmp_path / "s.jsonl")
        decisions = store.memory.decisions(stored.session.handle)
    steps = recorded_steps(decisions)
    assert [step.seq for step in steps] == sorted(step.seq for step in steps)
    assert {step.kind for step in steps} == {PASSES, RENDER}
    assert steps[-1].seq == stored.last_seq
    assert {one.what for one in decisions} >= {OBSERVE, WAIT, REFLECT, BLOCK}
    assert steps[-1].settings["observe_after_tokens"] == 60
    assert steps[-1].settings["reflect_after_tokens"] == 120
    assert GAP not in {step.kind for step in steps} and PARENT not in {step.kind for step in steps}


def test_a_session_without_entries_cannot_be_replayed(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(1).write(tmp_path))
        with pytest.raises(NotFound, match="no entries"):
            again(store, stored._replace(last_seq=-1))


def test_rows_that_change_later_are_as_they_were(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.talk()
    with opened(observe_after_tokens=5) as store:
        for output in ("made it", "made it at the second try", "12 passed in 3s"):
            maintain(store, "opencode", str(database.path), OPENCODE_SESSION, "")
            finish_tool(database, output)
        maintain(store, "opencode", str(database.path), OPENCODE_SESSION, "", before_compact=True)
        stored = store.archive.by_id("opencode", OPENCODE_SESSION)
        assert stored is not None
        assert any(row.replaced_by is not None for row in store.archive.entries(stored.no))
        compared = again(store, stored)
    assert unequal(compared) == []
    assert len([pair for pair in compared.pairs if pair.recorded and pair.recorded.what == OBSERVE]) > 1


def test_a_stretch_for_which_there_was_no_time_stays_a_gap_there(tmp_path: Path) -> None:
    with opened(chunk_max_tokens=300) as store:
        stored = session_of(store, turns(20).write(tmp_path))
        assert skip_oldest(store, stored, 300)
        run_passes(store, stored, utc, drain=True, fast=True, gaps=False)
        compared = replay_stored(store, stored, config.load(), {}, utc)
        gaps = store.memory.gaps(stored.session.handle)
    assert len(gaps) == compared.recorded.gaps == compared.replayed.gaps == 1
    assert unequal(compared) == []


def test_with_leave_the_configured_models_are_asked_and_the_store_pays_nothing(tmp_path: Path, hire: Any) -> None:
    model = Model("m")
    with opened(observe_after_tokens=50) as store:
        stored = grow(store, CLAUDE, turns(6).lines(), tmp_path / "s.jsonl")
    with opened(workers=hire(model), observe_after_tokens=50) as store:
        spent = Spending(store.memory.connection).spent(0)
        compared = replay_stored(store, stored, store.config, {}, utc, workers=True)
        assert Spending(store.memory.connection).spent(0) == spent
    assert model.prompts
    assert compared.reused == 0
    assert compared.recorded.tokens_in == 0 < compared.replayed.tokens_in
    workers = {pair.replayed.numbers.get("worker") for pair in compared.pairs if pair.replayed is not None}
    assert "m" in workers
