"""Decisions are written down with their numbers, once, merged where nothing happens; blocks and notes say why they are as they are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.decisions import (
    BLOCK,
    DECISIONS,
    DELIVER,
    DROP,
    OBSERVE,
    REFLECT,
    ROTATE,
    SECOND_TRY,
    UPGRADE,
    WAIT,
    Decision,
)  # fmt: skip
from obsmem.core.errors import NotFound
from obsmem.core.model import Block
from obsmem.memory.render import CLOSE
from obsmem.store.archive import StoredSession
from obsmem.system import blockfile, log
from obsmem.system.handoff_file import handoff_path
from obsmem.tasks.decide import DECISION_DAYS, prune
from obsmem.tasks.deliver import leave_block
from obsmem.tasks.deliveries import open_delivery, settle
from obsmem.tasks.explain import LOGGED, find_note, history, last_block, lines_of, story_of
from obsmem.tasks.forget import apply_retention, forget_session
from obsmem.tasks.observe import run_passes
from obsmem.tasks.reasons import PREFIX
from obsmem.tasks.rotation import renew_rotation, rotate
from obsmem.tasks.store import Store
from obsmem.tasks.upgrade import upgrade
from tests.tasks.growing import grow
from tests.tasks.models import Model
from tests.tasks.talk import CLAUDE, Talk, opened, session_of, turns, utc
from tests.tasks.test_models import hire as hire

DAY = 86_400_000


def of_kind(store: Store, stored: StoredSession, what: str) -> list[Decision]:
    """The decisions of one kind about a session."""
    return [one for one in store.memory.decisions(stored.session.handle) if one.what == what]


def arrive(talk: Talk, block: Block) -> None:
    """The record of what hooks gave to the model."""
    attachment = {"type": "hook_additional_context", "content": list(block.parts), "hookName": "SessionStart"}
    talk._add("attachment", attachment={**attachment, "hookEvent": "SessionStart"})


def delivered(store: Store, folder: Path, number: int = 30) -> tuple[StoredSession, Block]:
    """A session whose block came back after a compaction."""
    talk = turns(number)
    stored = session_of(store, talk.write(folder))
    run_passes(store, stored, utc, drain=True)
    block = leave_block(store, stored, utc, fresh=True)
    open_delivery(store, stored)
    talk.compact()
    arrive(talk, block)
    talk.agent("I go on.")
    stored = session_of(store, talk.write(folder))
    settle(store, stored)
    return stored, block


def test_an_observer_call_says_what_it_turned_on(tmp_path: Path) -> None:
    with opened(observe_after_tokens=100, chunk_max_tokens=300) as store:
        stored = session_of(store, turns(12).write(tmp_path))
        run_passes(store, stored, utc)
        observed, (waits,) = of_kind(store, stored, OBSERVE), of_kind(store, stored, WAIT)
        stretches = store.memory.stretches(stored.session.handle)
    assert [(one.numbers["first"], one.numbers["last"]) for one in observed] == [
        (s.first_seq, s.last_seq) for s in stretches
    ]
    for one in observed:
        numbers = one.numbers
        assert numbers["clock"] >= numbers["threshold"] == 100
        assert numbers["tokens"] <= numbers["cap"] == 300
        assert numbers["worker"] == "extractive"
        assert numbers["outcome"] == "committed"
        assert numbers["seq"] == stored.last_seq
    assert waits.numbers["clock"] < waits.numbers["threshold"]
    assert waits.numbers["covered"] == observed[-1].numbers["last"]


def test_waiting_again_and_again_is_one_row(tmp_path: Path) -> None:
    talk = turns(1)
    with opened(observe_after_tokens=5_000) as store:
        for number in range(1, 8):
            talk.turn(number)
            stored = session_of(store, talk.write(tmp_path))
            run_passes(store, stored, utc)
            leave_block(store, stored, utc)
        waits, blocks = of_kind(store, stored, WAIT), of_kind(store, stored, BLOCK)
        assert len(waits) == len(blocks) == 1
        assert waits[0].numbers["times"] == blocks[0].numbers["times"] == 7
        assert waits[0].numbers["first_seq"] < waits[0].numbers["seq"] == stored.last_seq
        run_passes(store, stored, utc)  # nothing is new
        assert of_kind(store, stored, WAIT) == waits
        run_passes(store, stored, utc, drain=True)
        run_passes(store, stored, utc)
        assert len(of_kind(store, stored, WAIT)) == 3  # before; at the end of everything; since


def test_a_late_answer_says_so(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(3).write(tmp_path))

        def slow(model: Model, request: Any) -> str:
            with opened() as other:
                run_passes(other, stored, utc, drain=True)  # somebody else is faster
            return "[]"

        run_passes(store, stored, utc, drain=True, team=[Model(answer=slow)])
        outcomes = [one.numbers["outcome"] for one in of_kind(store, stored, OBSERVE)]
    assert sorted(outcomes) == ["committed", "late"]


def test_reflecting_and_dropping_say_what_they_turned_on(tmp_path: Path) -> None:
    with opened(chunk_max_tokens=600, reflect_after_tokens=500, pool_target_tokens=300) as store:
        stored = session_of(store, turns(60).write(tmp_path))
        run_passes(store, stored, utc, drain=True)
        reflected, dropped = of_kind(store, stored, REFLECT), of_kind(store, stored, DROP)
        drops = store.memory.drops(stored.session.handle)
    assert reflected and dropped
    assert all(one.numbers["observed"] >= one.numbers["threshold"] == 500 for one in reflected)
    assert sum(one.numbers["dropped"] for one in dropped) == len(
        [one for one in drops if one.drop.why == "retired by the dropper"]
    )
    for one in dropped:
        assert one.numbers["target"] == 300
        assert one.numbers["dropped"] <= one.numbers.get("most", 0) or one.numbers["dropped"] == 0


def test_a_block_says_what_entered_it(tmp_path: Path) -> None:
    with opened(budget_tokens=900) as store:
        stored = session_of(store, turns(40).write(tmp_path))
        run_passes(store, stored, utc, drain=True)
        block = leave_block(store, stored, utc, fresh=True)
        (made,) = of_kind(store, stored, BLOCK)
        (left,) = of_kind(store, stored, DELIVER)
    numbers = made.numbers
    assert numbers["delivery"] == block.nonce == left.numbers["delivery"]
    assert numbers["tokens"] == block.tokens <= numbers["budget"] == 900
    assert numbers["sections"] == dict(block.sections)
    assert numbers["part_bytes"] == [len(part.encode()) for part in block.parts]
    assert numbers["notes_shown"] == len(block.shown)
    assert numbers["left_out"]["no room"] == sum(one.why == "no room" for one in block.reasons) > 0


def test_what_was_delivered_is_what_the_transcript_shows_with_a_reason_for_each_line(tmp_path: Path) -> None:
    with opened() as store:
        stored, block = delivered(store, tmp_path)
        leave_block(store, stored, utc)  # what waits by now is another one
        given = last_block(store, stored)
        arrived = [one for one in of_kind(store, stored, DELIVER) if "arrived whole" in one.why]
    assert given.source == "transcript"
    assert given.delivery == block.nonce
    assert tuple(given.parts.values()) == block.parts
    body = [line for part in block.parts for line in part.split("\n")]
    lines = [one.text for one in lines_of(given)]
    assert [line for line in body if line in lines] == lines
    markup = [line for line in body if line not in lines]
    assert all(
        line.startswith(("<", "## ", "A record", "u/t/a", "Before you guess", "Continued: ", "(")) or line == CLOSE
        for line in markup
    )
    assert given.reasons is not None
    assert len(arrived) == 1 and arrived[0].numbers["found"] == arrived[0].numbers["of"] == len(block.parts)


def test_where_reasons_are_kept_no_longer_the_lines_are_told_all_the_same(tmp_path: Path) -> None:
    with opened() as store:
        stored, block = delivered(store, tmp_path)
        with_reasons = lines_of(last_block(store, stored))
        os.unlink(os.path.join(store.folder_of(stored), PREFIX + block.nonce))
        given = last_block(store, stored)
        assert given.reasons is None
        without = [one for one in lines_of(given) if not one.text.startswith("(")]  # what counts the rest is no reason
    assert [(one.section, one.text, one.tokens) for one in without] == [
        (one.section, one.text, one.tokens) for one in with_reasons
    ]


def test_a_handoff_is_told_with_the_reasons_of_whoever_left_it(tmp_path: Path) -> None:
    before, after = turns(9), Talk("5e551011-0000-4000-8000-0000000000e5")
    with opened() as store:
        stored = session_of(store, before.write(tmp_path))
        run_passes(store, stored, utc, drain=True)
        rotate(store, stored, "notes", utc)
        before.turn(9)
        stored = session_of(store, before.write(tmp_path))
        renew_rotation(store, stored, utc)
        delivery, parts = blockfile.read(handoff_path(store.home, CLAUDE, stored.session.workspace))
        arrive(after, Block(tuple(parts), 0, (), (), delivery))
        after.user("Go on.")
        taker = session_of(store, after.write(tmp_path))
        given = last_block(store, taker)
    assert (given.delivery, given.handed_by, given.source) == (delivery, stored.session.handle, "transcript")
    assert given.reasons is not None
    body = [line for part in parts for line in part.split("\n")]
    assert [line for line in body if line in {one.text for one in lines_of(given)}] == [
        one.text for one in lines_of(given)
    ]


def test_a_block_that_waits_is_told_as_one_and_none_as_none(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(3).write(tmp_path))
        with pytest.raises(NotFound, match="No block was made"):
            last_block(store, stored)
        block = leave_block(store, stored, utc)
        assert last_block(store, stored).source == "waiting"
        blockfile.make_due(store.folder_of(stored))
        assert blockfile.freeze(store.folder_of(stored), time.time()) == list(block.parts)
        given = last_block(store, stored)
        assert given.source == "file"
        assert given.reasons is not None


def test_there_are_reasons_for_the_blocks_that_are_there_and_no_others(tmp_path: Path) -> None:
    talk = turns(2)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        folder = store.folder_of(stored)
        first = leave_block(store, stored, utc, fresh=True)
        for number in range(2, 9):
            talk.turn(number)
            stored = session_of(store, talk.write(tmp_path))
            last = leave_block(store, stored, utc)
        kept = {name for name in os.listdir(folder) if name.startswith(PREFIX)}
    assert kept == {PREFIX + first.nonce, PREFIX + last.nonce}


def test_the_story_of_a_note_tells_where_it_came_from_and_what_became_of_it(tmp_path: Path) -> None:
    with opened(chunk_max_tokens=600, reflect_after_tokens=500, pool_target_tokens=300) as store:
        stored = session_of(store, turns(60).write(tmp_path))
        run_passes(store, stored, utc, drain=True)
        handle = stored.session.handle
        first, call = store.memory.notes(handle)[0].note.id, store.memory.calls(handle, "observe")[-1]
        store.memory.commit_drops(call, [first], "retired by the dropper", stored.last_seq)
        block = leave_block(store, stored, utc)
        told: dict[str, str] = {}
        for one in store.memory.notes(stored.session.handle):
            assert find_note(store, stored, one.note.id[:9]) == one
            story = story_of(store, stored, one)
            assert story.worker == "extractive"
            assert story.observed is not None
            assert story.observed.numbers["first"] == one.first_seq
            told[one.note.id] = story.in_block
            assert (story.hidden == "dropped") == bool(story.dropped)
            assert story.in_block.startswith("shown") == (
                one.note.id in [i for r in block.reasons if r.why == "shown" for i in r.ids]
            )
        assert any(why == "dropped" for why in told.values())
        assert any(why.startswith("shown in Notes") for why in told.values())
        assert find_note(store, stored, "yesterday") is None


def test_the_log_of_hooks_stands_among_decisions_in_order_of_time(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(2).write(tmp_path))
        folders = [store.folder_of(stored)]
        log.write(store.home, "hook", name="claude-code Stop", outcome="started", ms=3, **log.session_field(folders))
        log.write(store.home, "hook", name="claude-code Stop", outcome="started", ms=4, session="another")
        run_passes(store, stored, utc)
        found = history(store, stored)
        assert [one.what for one in found] == sorted([LOGGED, WAIT], key=lambda what: what == WAIT)
        assert found[0].numbers == {"outcome": "started", "ms": "3"}
        at = found[-1].at
        assert history(store, stored, at + 1) == []
        assert history(store, stored, 0, at) == [one for one in found if one.at < at]


def test_old_decisions_go_but_not_those_that_keep_something_from_being_done_twice(tmp_path: Path) -> None:
    with opened() as store:
        stored, _ = delivered(store, tmp_path)
        store.memory.record_decision(stored.session.handle, SECOND_TRY, "boundary 3")
        store.memory.record_decision(stored.session.handle, UPGRADE, "0-9")
        now = int(time.time() * 1000)
        assert prune(store, now) == 0
        apply_retention(store, now + (DECISION_DAYS + 1) * DAY)
        left = {one.what for one in store.memory.decisions(stored.session.handle)}
    assert left == {SECOND_TRY, UPGRADE}


def test_forgetting_a_session_takes_decisions_and_reasons_along(tmp_path: Path) -> None:
    with opened() as store:
        stored, _ = delivered(store, tmp_path)
        folder = store.folder_of(stored)
        forget_session(store, stored)
        assert store.memory.decisions(stored.session.handle) == []
        assert [name for name in os.listdir(folder) if name.startswith(PREFIX)] == []


def test_a_store_that_is_only_read_is_not_written_to(tmp_path: Path) -> None:
    with opened() as store:
        stored, _ = delivered(store, tmp_path)
        before = store.memory.decisions(stored.session.handle)
    with opened(readonly=True) as store:
        history(store, stored)
        last_block(store, stored)
        assert store.memory.decisions(stored.session.handle) == before


def test_an_upgrade_and_a_rotation_say_what_came_of_them(tmp_path: Path, hire: Any) -> None:
    with opened(chunk_max_tokens=600) as store:
        stored = session_of(store, turns(9).write(tmp_path))
        run_passes(store, stored, utc, drain=True)
        with pytest.raises(Exception, match="worth it"):
            rotate(
                store, session_of(store, turns(2, "5e551011-0000-4000-8000-0000000000b7").write(tmp_path)), "notes", utc
            )
        rotate(store, stored, "notes", utc)
        (marked,) = of_kind(store, stored, ROTATE)
    assert marked.numbers["turns"] == 9
    with opened(workers=hire(Model()), chunk_max_tokens=600, upgrade=True) as store:
        done = upgrade(store, stored, utc, time.monotonic() + 60)
        tried = of_kind(store, stored, UPGRADE)
    assert done.stretches == sum(one.numbers["outcome"] == "replaced" for one in tried) > 0


def test_what_is_written_down_is_known_by_name(tmp_path: Path) -> None:
    with opened(observe_after_tokens=100) as store:
        stored = grow(store, CLAUDE, turns(12).lines(), tmp_path / "s.jsonl")
        decisions = store.memory.decisions(stored.session.handle)
    assert {one.what for one in decisions} <= DECISIONS.keys()
    assert {OBSERVE, WAIT, BLOCK, DELIVER} <= {one.what for one in decisions}
    assert all("seq" in one.numbers for one in decisions if one.what in (OBSERVE, WAIT, REFLECT, DROP, BLOCK, DELIVER))
