"""A model observes again what was observed by rule: its notes take the others' place, or nothing changes."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.errors import WorkerError
from obsmem.core.model import Request
from obsmem.store.archive import StoredSession
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from obsmem.tasks.upgrade import upgrade
from tests.tasks.models import Model, first_entry
from tests.tasks.talk import opened, session_of, utc, watch
from tests.tasks.test_models import hire as hire
from tests.tasks.test_observe import check_coverage, long_talk


def covered_by_rule(tmp_path: Path) -> StoredSession:
    with opened(chunk_max_tokens=600) as store:
        stored = session_of(store, long_talk(4).write(tmp_path))
        watch(store, stored)
    return stored


def again(store: Store, stored: StoredSession) -> tuple[int, int]:
    done = upgrade(store, stored, utc, time.monotonic() + 600)
    return done.stretches, done.notes


def texts(store: Store, stored: StoredSession) -> set[str]:
    return {note.text for note in remember(store, stored).notes}


def test_its_notes_take_the_place_of_the_others(tmp_path: Path, hire: Any) -> None:
    stored = covered_by_rule(tmp_path)
    model = Model()
    with opened(workers=hire(model), chunk_max_tokens=600, upgrade=True) as store:
        before = texts(store, stored)
        stretches = store.memory.stretches(stored.session.handle)
        newest = store.memory.notes_by_id(store.memory.notes_of(stretches[-1].call))
        assert newest
        assert again(store, stored) == (len(stretches), len(stretches))
        assert texts(store, stored).isdisjoint(before)
        assert all(text.startswith("Said: ") for text in texts(store, stored))
        transcript = model.prompts[0].partition("What is new:")[0]
        assert not any(one.note.text in transcript for one in newest), "it is not told what they said"
        reasons = {one.drop.why for one in store.memory.drops(stored.session.handle)}
        assert "observed again by model" in reasons
        check_coverage(store, stored)
        assert again(store, stored) == (0, 0), "once is enough"


@pytest.mark.parametrize("pace", [-5.0, 0.0, 5.0])
def test_a_note_that_both_make_is_shown_once_more(
    pace: float, tmp_path: Path, hire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = covered_by_rule(tmp_path)
    began = time.time()
    looks = itertools.count(1)
    monkeypatch.setattr(time, "time", lambda: began + pace * next(looks))  # the clock runs, stands, goes back
    with opened() as store:
        (first, *_) = store.memory.notes(stored.session.handle)

    def same(model: Model, request: Request) -> str:
        if request.chunk is None or first.note.entry_ids[0] not in request.chunk.shown:
            return first_entry(model, request)
        return json.dumps({"notes": [{"text": first.note.text, "entry_ids": list(first.note.entry_ids)}]})

    with opened(workers=hire(Model(answer=same)), chunk_max_tokens=600, upgrade=True) as store:
        again(store, stored)
        assert first.note.text in texts(store, stored)


@pytest.mark.parametrize("answer", ["[]", '{"notes": [{"text": "In /no/such.py:7", "entry_ids": [1]}]}'])
def test_an_answer_that_is_no_better_changes_nothing_and_is_not_asked_for_again(
    answer: str, tmp_path: Path, hire: Any
) -> None:
    stored = covered_by_rule(tmp_path)
    model = Model(answer=lambda model, request: answer)
    with opened(workers=hire(model), chunk_max_tokens=600, upgrade=True) as store:
        before = texts(store, stored)
        assert again(store, stored) == (0, 0)
        asked = len(model.prompts)
        assert asked and texts(store, stored) == before
        assert again(store, stored) == (0, 0) and len(model.prompts) == asked
        check_coverage(store, stored)


def test_where_nobody_answers_it_is_tried_again_later(tmp_path: Path, hire: Any) -> None:
    def gone(model: Model, request: Request) -> str:
        raise WorkerError("not there")

    stored = covered_by_rule(tmp_path)
    model = Model(answer=gone)
    with opened(workers=hire(model), chunk_max_tokens=600, upgrade=True) as store:
        before = texts(store, stored)
        assert again(store, stored) == (0, 0) and texts(store, stored) == before
        model.answer = first_entry
        assert again(store, stored)[0] > 0


def test_it_is_off_unless_it_is_wished(tmp_path: Path, hire: Any) -> None:
    stored = covered_by_rule(tmp_path)
    model = Model()
    with opened(workers=hire(model), chunk_max_tokens=600) as store:
        assert again(store, stored) == (0, 0) and model.prompts == []


def test_of_two_that_replace_the_same_stretch_one_does(tmp_path: Path, hire: Any) -> None:
    stored = covered_by_rule(tmp_path)
    with opened(workers=hire(Model()), chunk_max_tokens=600, upgrade=True) as store:
        (first, *_) = store.memory.stretches(stored.session.handle)
        again(store, stored)
        (call, *_) = store.memory.calls(stored.session.handle, "observe")
        before = texts(store, stored)
        assert not store.memory.replace_stretch(call._replace(worker="late one"), first, [])
        assert texts(store, stored) == before
        assert store.memory.calls(stored.session.handle)[-1].outcome == "late"
