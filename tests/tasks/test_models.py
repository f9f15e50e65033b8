"""Models as observers: within the day's limits, within their window, mended once, and nothing lost whatever they do."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.errors import WorkerError
from obsmem.core.model import Request
from obsmem.core.tokens import estimate
from obsmem.store.archive import StoredSession
from obsmem.store.spending import Spending
from obsmem.tasks import ask as asking
from obsmem.tasks.ask import BUDGET, MOST_TRIES, midnight
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from tests.tasks.models import Model, first_entry, unreliable
from tests.tasks.talk import fresh, opened, session_of, turns, watch
from tests.tasks.test_observe import check_coverage, long_talk


@pytest.fixture
def hire(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make models what the configuration names: workers of kind ``scripted`` by name."""
    known: dict[str, Model] = {}

    def made(item: Any) -> Model:
        return known[item["path"]]

    monkeypatch.setattr(asking, "make_worker", made)

    def hire(*models: Model) -> list[dict[str, str]]:
        known.update({model.NAME: model for model in models})
        return [{"kind": "scripted", "path": model.NAME} for model in models]

    return hire


@contextmanager
def observed(
    tmp_path: Path, workers: list[Any], turns_: int = 6, **settings: Any
) -> Iterator[tuple[Store, StoredSession]]:
    """A session that was observed to its end."""
    with opened(workers=workers, **{"chunk_max_tokens": 600, **settings}) as store:
        stored = session_of(store, long_talk(turns_).write(tmp_path))
        watch(store, stored)
        yield store, fresh(store, stored)


def outcomes(store: Store, stored: StoredSession) -> list[tuple[str, str]]:
    return [(call.worker, call.outcome) for call in store.memory.calls(stored.session.handle, "observe")]


def known(store: Store, name: str = "model") -> Any:
    return Spending(store.memory.connection).known(name)


def test_a_model_observes_what_it_is_shown(tmp_path: Path, hire: Any) -> None:
    model = Model()
    with observed(tmp_path, hire(model)) as (store, stored):
        assert set(outcomes(store, stored)) == {("model", "ok")}
        assert all("Said: " in one.note.text for one in store.memory.notes(stored.session.handle))
        check_coverage(store, stored)


def test_a_days_limit_on_tokens_is_never_passed_and_all_is_covered(tmp_path: Path, hire: Any) -> None:
    model = Model()
    with observed(tmp_path, hire(model), 12, worker_tokens_per_day=9_000) as (store, stored):
        calls, tokens = Spending(store.memory.connection).spent(midnight(int(time.time() * 1000)))
        assert 0 < model.sent <= tokens <= 9_000 and calls == len(model.prompts)
        assert {worker for worker, _ in outcomes(store, stored)} == {"model", "extractive"}
        assert known(store, BUDGET).until == midnight(int(time.time() * 1000), days=1)
        check_coverage(store, stored)


@pytest.mark.parametrize("limit", [0, 2])
def test_a_days_limit_on_calls(limit: int, tmp_path: Path, hire: Any) -> None:
    model = Model()
    with observed(tmp_path, hire(model), worker_calls_per_day=limit) as (store, stored):
        assert len(model.prompts) == limit
        check_coverage(store, stored)


def test_one_that_cannot_be_reached_is_left_alone_by_every_process(tmp_path: Path, hire: Any) -> None:
    def refuse(model: Model, request: Request) -> str:
        raise WorkerError("not there", fault="unavailable", wait=7200.0)

    model, second = Model(answer=refuse), Model("second")
    workers = hire(model, second)
    with observed(tmp_path, workers) as (store, stored):
        assert len(model.prompts) == 1
        assert outcomes(store, stored)[0] == ("model", "failed: unavailable")
        assert {worker for worker, _ in outcomes(store, stored)[1:]} == {"second"}
        assert known(store).until - time.time() * 1000 > 7_000_000 and known(store).why == "not there"
    with opened(workers=workers, chunk_max_tokens=600) as store:
        conversation = long_talk(8)
        stored = session_of(store, conversation.write(tmp_path))
        watch(store, stored)
        assert len(model.prompts) == 1
        Spending(store.memory.connection).trust_again("model")
        model.answer = first_entry
        conversation.turn(9)
        watch(store, session_of(store, conversation.write(tmp_path)))
        assert len(model.prompts) > 1 and known(store).until == 0


def test_a_stretch_that_is_too_long_is_halved_and_the_window_is_learned(tmp_path: Path, hire: Any) -> None:
    base = Model()
    with observed(tmp_path, hire(base), 2, chunk_max_tokens=256):
        least = max(map(estimate, base.prompts))
    model = Model("small", real_window=int(least * 1.5) + 100)
    with observed(tmp_path / "other", hire(model), 12, chunk_max_tokens=6_000) as (store, stored):
        assert known(store, "small").window == model.real_window
        assert {worker for worker, outcome in outcomes(store, stored) if outcome == "ok"} >= {"small"}
        assert len([one for one in outcomes(store, stored) if one == ("small", "failed: overflow")]) <= 3
        check_coverage(store, stored)


def test_one_whose_window_is_known_to_be_too_small_is_never_sent_it(tmp_path: Path, hire: Any) -> None:
    small, large = Model("small", window=1_500), Model("large")
    with observed(tmp_path, hire(small, large)) as (store, stored):
        assert small.prompts == [] and large.prompts
        check_coverage(store, stored)


def test_three_are_asked_at_most_then_the_extractive_one(tmp_path: Path, hire: Any) -> None:
    models = [Model(f"m{number}", lambda model, request: "no answer at all") for number in range(5)]
    with observed(tmp_path, hire(*models), 1, chunk_max_tokens=None) as (store, stored):
        asked = [worker for worker, _ in outcomes(store, stored)]
        assert list(dict.fromkeys(asked)) == [f"m{number}" for number in range(MOST_TRIES)] + ["extractive"]
        assert all(len(model.prompts) == 2 for model in models[:MOST_TRIES]), "each is asked to mend its answer once"


def answering(*answers: Any) -> Any:
    left = list(answers)
    return lambda model, request: left.pop(0) if isinstance(left[0], str) else json.dumps({"notes": left.pop(0)})


GOOD = {"text": "The user asked for number_0.", "entry_ids": [1]}
WRONG = {"text": "The user asked for /etc/passwd.", "entry_ids": [1]}


@pytest.mark.parametrize(
    ("answers", "kept", "rows"),
    [
        ([[GOOD]], ["verified"], ["ok"]),
        (["no JSON", [GOOD]], ["verified"], ["failed: answer", "ok"]),
        (["no JSON", "none either"], None, ["failed: answer", "failed: answer"]),
        ([[WRONG], [GOOD]], ["verified"], ["mended", "ok"]),
        ([[WRONG], [WRONG]], ["none"], ["no better", "ok"]),
        ([[WRONG], "no JSON"], ["none"], ["failed: answer", "ok"]),
        ([[{**GOOD, "entry_ids": [99]}], [GOOD]], ["verified"], ["mended", "ok"]),
        ([[GOOD, WRONG], [GOOD]], ["verified"], ["mended", "ok"]),
        ([[GOOD, WRONG], []], ["verified", "none"], ["no better", "ok"]),
        ([[]], [], ["empty"]),
    ],
    ids=str,
)
def test_an_answer_is_mended_once_and_the_better_one_kept(
    answers: list[Any], kept: list[str] | None, rows: list[str], tmp_path: Path, hire: Any
) -> None:
    model = Model(answer=answering(*answers))
    with opened(workers=hire(model)) as store:
        stored = session_of(store, turns(1).write(tmp_path))
        watch(store, stored)
        assert len(model.prompts) == len(answers)
        assert [outcome for worker, outcome in outcomes(store, stored) if worker == "model"] == rows
        if kept is not None:
            assert [one.note.grounding for one in store.memory.notes(stored.session.handle)] == kept
        if len(model.prompts) > 1:
            assert model.prompts[1].startswith(model.prompts[0]) and "Answer again, whole" in model.prompts[1]
        check_coverage(store, stored)


def test_notes_that_their_entries_do_not_bear_out_can_be_refused(tmp_path: Path, hire: Any) -> None:
    model = Model(answer=answering([GOOD, WRONG], [GOOD, WRONG]))
    with opened(workers=hire(model), ungrounded="reject") as store:
        stored = session_of(store, turns(1).write(tmp_path))
        done = watch(store, stored)
        assert (done.notes, done.rejected) == (1, 1)


def test_the_sessions_own_model_comes_first_where_that_is_wished(tmp_path: Path, hire: Any) -> None:
    workers = hire(Model("other"), Model("claude-opus-5"))
    for wished, expected in ((False, "other"), (True, "claude-opus-5")):
        conversation = turns(1)
        conversation.session = f"5e551011-0000-4000-8000-00000000000{int(wished)}"
        conversation.agent("Done.", context=5_000)
        for record in conversation.records:
            record["sessionId"] = conversation.session
        with opened(workers=workers, prefer_session_model=wished) as store:
            stored = session_of(store, conversation.write(tmp_path / str(wished)))
            watch(store, stored)
            assert {worker for worker, _ in outcomes(store, stored)} == {expected}


def test_the_users_own_secrets_never_reach_a_model(tmp_path: Path, hire: Any) -> None:
    model = Model()
    conversation = turns(1)
    conversation.user("The vault opens with MELON-4711, keep it.")
    with opened(workers=hire(model), mask=["MELON-[0-9]+"]) as store:
        stored = session_of(store, conversation.write(tmp_path))
        watch(store, stored)
    assert model.prompts and not any("MELON-4711" in prompt for prompt in model.prompts)


def test_calls_of_one_that_must_be_alone_never_overlap(tmp_path: Path, hire: Any) -> None:
    inside = threading.Semaphore(1)
    overlaps: list[str] = []

    def slow(model: Model, request: Request) -> str:
        if not inside.acquire(blocking=False):
            overlaps.append(model.NAME)
            return "[]"
        time.sleep(0.02)
        inside.release()
        return first_entry(model, request)

    models = [Model(f"m{number}", slow) for number in range(2)]
    for model in models:
        model.alone = True
    settings = hire(*models)

    def work(number: int) -> None:
        folder = tmp_path / str(number)
        with opened(workers=[settings[number]], chunk_max_tokens=600) as store:
            conversation = long_talk(4)
            conversation.session = f"5e551011-0000-4000-8000-00000000000{number}"
            for record in conversation.records:
                record["sessionId"] = conversation.session
            watch(store, session_of(store, conversation.write(folder)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == [] and all(model.prompts for model in models)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_models_do_everything_is_covered_once(seed: int, tmp_path: Path, hire: Any) -> None:
    workers = hire(Model("a", unreliable(seed)), Model("b", unreliable(seed + 1000)))
    with observed(tmp_path, workers, 8) as (store, stored):
        check_coverage(store, stored)
        ids = [one.note.id for one in store.memory.notes(stored.session.handle)]
        assert ids and len(ids) == len(set(ids))


def test_what_turns_out_to_be_wrong_is_shown_no_more_and_says_what_refuted_it(tmp_path: Path, hire: Any) -> None:
    def answer(model: Model, request: Request) -> str:
        if request.task != "observe":
            return "[]"
        assert request.chunk is not None
        if "not the cache" not in request.chunk.text:
            number = 1 + [*request.chunk.shown.values()].index("It must be the stale cache.")
            return json.dumps({"notes": [{"text": "The stale cache is the cause.", "entry_ids": [number]}]})
        (claim,) = [note.id for note in request.memory.notes if "stale cache" in note.text]
        number = 1 + [*request.chunk.shown.values()].index("It is not the cache, it is the clock.")
        return json.dumps(
            {"notes": [{"text": "User: not the cache, the clock.", "entry_ids": [number], "refutes": [claim[:7]]}]}
        )

    conversation = turns(1)
    conversation.agent("It must be the stale cache.")
    with opened(workers=hire(Model(answer=answer))) as store:
        stored = session_of(store, conversation.write(tmp_path))
        watch(store, stored)
        conversation.user("It is not the cache, it is the clock.")
        stored = session_of(store, conversation.write(tmp_path))
        watch(store, stored)
        assert [note.text for note in remember(store, stored).notes] == ["User: not the cache, the clock."]
        (drop,) = store.memory.drops(stored.session.handle)
        assert drop.drop.why == f"refuted by {remember(store, stored).notes[0].id}"
