"""When a warning is decided, and that it is given once a window and mark, whatever happens in between."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.decisions import WARN
from obsmem.store.archive import StoredSession
from obsmem.system.state import WARNING_FILE, read_state
from obsmem.system.warningfile import given_warning, take_warning, waiting_warning
from obsmem.tasks import warn
from obsmem.tasks.here import Here
from obsmem.tasks.maintain import catch_up, maintain
from obsmem.tasks.pins import pin
from obsmem.tasks.store import Store
from obsmem.tasks.warn import FAR, leave_warning, until_warning
from obsmem.tasks.windows import learn_mark
from tests.tasks.talk import CLAUDE, SESSION, Talk, opened, session_of, turns

MARK = 100_000


def full(store: Store, talk: Talk, folder: Path, share: float) -> StoredSession:
    """The session after one more answer, to a request that filled so much of the way to the compaction."""
    talk.user("And on.")
    talk.agent("I go on.", context=int(share * MARK))
    stored = session_of(store, talk.write(folder))
    learn_mark(store, CLAUDE, "claude-opus-5", MARK, "seen in a test")
    return stored


def warned(store: Store, stored: StoredSession) -> list[str]:
    """What was decided, without what says that it was given."""
    decided = (one for one in store.memory.decisions(stored.session.handle) if one.what == WARN)
    return [one.why for one in decided if not one.why.startswith(warn.TOLD)]


def told(store: Store, stored: StoredSession) -> str:
    """The line for the user that the next prompt would give."""
    return take_warning(store.folder_of(stored))[0]


def test_each_mark_is_told_once_with_its_numbers(tmp_path: Path) -> None:
    talk = turns(2)
    with opened() as store:
        stored = full(store, talk, tmp_path, 0.5)
        leave_warning(store, stored)
        assert told(store, stored) == "" and warned(store, stored) == []
        stored = full(store, talk, tmp_path, 0.75)
        for _ in range(3):
            leave_warning(store, stored)
        assert "75 % of the way" in told(store, stored)
        stored = full(store, talk, tmp_path, 0.8)
        leave_warning(store, stored)
        assert told(store, stored) == ""
        stored = full(store, talk, tmp_path, 0.93)
        leave_warning(store, stored)
        assert "93 % of the way" in told(store, stored)
        stored = full(store, talk, tmp_path, 0.99)
        leave_warning(store, stored)
        assert told(store, stored) == ""
        assert warned(store, stored) == [f"past {mark} of the mark, after boundary -1" for mark in ("0.72", "0.9")]
        first = next(one for one in store.memory.decisions(stored.session.handle) if one.what == WARN)
        assert (first.numbers["mark"], first.numbers["counted"], first.numbers["warn_at"]) == (MARK, 75_005, 0.72)


def test_what_waits_when_the_next_mark_is_passed_gives_way_to_it(tmp_path: Path) -> None:
    talk = turns(1)
    with opened() as store:
        leave_warning(store, full(store, talk, tmp_path, 0.75))
        stored = full(store, talk, tmp_path, 0.95)
        leave_warning(store, stored)
        assert "95 %" in told(store, stored)
        leave_warning(store, stored)
        assert told(store, stored) == ""


def test_marks_passed_at_once_are_told_once(tmp_path: Path) -> None:
    talk = turns(1)
    with opened() as store:
        stored = full(store, talk, tmp_path, 0.95)
        leave_warning(store, stored)
        assert "95 %" in told(store, stored)
        assert warned(store, stored) == ["past 0.9 of the mark, after boundary -1"]


def test_a_compaction_begins_a_new_window_and_ends_what_waits(tmp_path: Path) -> None:
    talk = turns(1)
    with opened() as store:
        stored = full(store, talk, tmp_path, 0.75)
        leave_warning(store, stored)
        catch_up(store, CLAUDE, str(tmp_path / f"{SESSION}.jsonl"), SESSION, "")
        assert told(store, stored) == ""
        talk.compact()
        stored = full(store, talk, tmp_path, 0.3)
        leave_warning(store, stored)
        assert told(store, stored) == ""
        stored = full(store, talk, tmp_path, 0.74)
        leave_warning(store, stored)
        assert "74 %" in told(store, stored)
        assert len(warned(store, stored)) == 2


def test_a_compaction_that_was_refused_takes_no_warning_away(tmp_path: Path) -> None:
    talk = turns(1)
    with opened() as store:
        stored = full(store, talk, tmp_path, 0.75)
        leave_warning(store, stored)
        catch_up(store, CLAUDE, str(tmp_path / f"{SESSION}.jsonl"), SESSION, "")
        leave_warning(store, stored)
        assert "75 %" in told(store, stored)


def test_killed_between_deciding_and_leaving_it_is_still_given_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    talk = turns(1)
    with opened() as store:
        stored = full(store, talk, tmp_path, 0.75)
        with monkeypatch.context() as patched:
            patched.setattr(warn, "leave_warning_file", die)
            with pytest.raises(Killed):
                leave_warning(store, stored)
        assert waiting_warning(store.folder_of(stored)) == ""
        leave_warning(store, stored)
        assert "75 %" in told(store, stored)
        leave_warning(store, stored)
        assert told(store, stored) == ""
        assert len(warned(store, stored)) == 1


def test_after_a_rewind_nothing_is_told_again(tmp_path: Path) -> None:
    talk = turns(1)
    with opened() as store:
        stored = full(store, talk, tmp_path, 0.6)
        here = talk.head
        for share in (0.75, 0.95):
            stored = full(store, talk, tmp_path, share)
            leave_warning(store, stored)
            assert told(store, stored)
        talk.head = here
        stored = full(store, talk, tmp_path, 0.8)
        leave_warning(store, stored)
        assert told(store, stored) == ""
        os.unlink(Path(store.folder_of(stored)) / "warning.given")
        stored = full(store, talk, tmp_path, 0.97)
        leave_warning(store, stored)
        assert told(store, stored) == "", "that it was given is written down"


def test_a_warning_that_is_no_longer_so_is_taken_back_and_comes_again_when_it_is(tmp_path: Path) -> None:
    talk = turns(1)
    with opened() as store:
        full(store, talk, tmp_path, 0.6)
        here = talk.head
        stored = full(store, talk, tmp_path, 0.75)
        leave_warning(store, stored)
        talk.head = here
        stored = full(store, talk, tmp_path, 0.61)
        leave_warning(store, stored)
        assert told(store, stored) == ""
        stored = full(store, talk, tmp_path, 0.76)
        leave_warning(store, stored)
        assert "76 %" in told(store, stored)
        assert len(warned(store, stored)) == 1


def test_a_sub_agent_is_never_warned(tmp_path: Path) -> None:
    talk = turns(1)
    for record in talk.records:
        record |= {"isSidechain": True, "agentId": "a1"}
    folder = tmp_path / SESSION / "subagents"
    with opened() as store:
        talk.user("And on.")
        talk.agent("I go on.", context=MARK)
        for record in talk.records:
            record |= {"isSidechain": True, "agentId": "a1"}
        stored = session_of(store, talk.write(folder, "agent-a1.jsonl"))
        learn_mark(store, CLAUDE, "claude-opus-5", MARK, "seen in a test")
        assert stored.session.role != "main"
        leave_warning(store, stored)
        assert told(store, stored) == "" and warned(store, stored) == []
        assert until_warning(store, stored) == FAR


@pytest.mark.parametrize("marks", [[], [1]])
def test_without_a_mark_that_is_passed_nobody_is_warned(tmp_path: Path, marks: list[float]) -> None:
    with opened(warn_at=marks) as store:
        stored = full(store, turns(1), tmp_path, 0.95)
        leave_warning(store, stored)
        assert told(store, stored) == "" and warned(store, stored) == []
        assert (until_warning(store, stored) == FAR) is (not marks)


def test_the_pins_are_counted(tmp_path: Path) -> None:
    talk = turns(1)
    with opened() as store:
        stored = full(store, talk, tmp_path, 0.75)
        pin(store, "Never touch src/api.", "session", Here("", "", stored))
        leave_warning(store, stored)
        assert "1 pin (" in told(store, stored)


def test_near_a_mark_the_background_looks_again_sooner(tmp_path: Path) -> None:
    """What the hook at a turn's end reads: half of the way to the next mark, and not more than the observer waits for."""
    talk = turns(1)
    with opened() as store:
        far = full(store, talk, tmp_path, 0.2)
        assert until_warning(store, far) > 10_000
        near = full(store, talk, tmp_path, 0.70)
        assert 1 <= until_warning(store, near) <= 1_000
        path = str(tmp_path / f"{SESSION}.jsonl")
        maintain(store, CLAUDE, path, SESSION, "")
        assert read_state(store.folder_of(near)).after == until_warning(store, near)
        past = full(store, talk, tmp_path, 0.92)
        assert until_warning(store, past) == FAR


def test_the_maintainer_leaves_it_for_the_prompt(tmp_path: Path) -> None:
    talk = turns(1)
    with opened() as store:
        stored = full(store, talk, tmp_path, 0.8)
        maintain(store, CLAUDE, str(tmp_path / f"{SESSION}.jsonl"), SESSION, "")
        folder = store.folder_of(stored)
        assert (Path(folder) / WARNING_FILE).exists()
        assert told(store, stored)
        assert given_warning(folder) == "-1:0.72"
        maintain(store, CLAUDE, str(tmp_path / f"{SESSION}.jsonl"), SESSION, "")
        assert told(store, stored) == ""
