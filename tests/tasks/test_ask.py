"""Asking the workers: in order, each failure counted, the extractive one last, and an answer that is none is a failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from obsmem.core.errors import ConfigError, WorkerError
from obsmem.core.model import Memory, Reply, Request
from obsmem.tasks.ask import ask, cascade
from tests.tasks.talk import opened, session_of, turns, watch
from tests.tasks.test_observe import Broken, check_coverage, raising


def test_the_cascade_keeps_the_order_and_ends_with_the_extractive_worker(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text("[]", encoding="utf-8")
    item = {"kind": "scripted", "path": str(path)}
    with opened(workers=[item, item, item, "extractive"]) as store:
        team = cascade(store)
        assert [worker.NAME for worker in team] == ["scripted"] * 3 + ["extractive"]
        assert [worker.NAME for worker in cascade(store, fast=True)] == ["extractive"]
    with opened(workers=["extractive", item]) as store:
        assert [worker.NAME for worker in cascade(store)] == ["extractive"]
    with opened(workers=[]) as store:
        assert [worker.NAME for worker in cascade(store)] == ["extractive"]
    with opened(workers=[{"kind": "unheard-of"}]) as store, pytest.raises(ConfigError, match="unheard-of"):
        cascade(store, strict=True)


def test_a_worker_that_is_set_up_wrongly_costs_no_memory(tmp_path: Path) -> None:
    with opened(workers=[{"kind": "unheard-of"}, "extractive"]) as store:
        stored = session_of(store, turns(2).write(tmp_path))
        assert watch(store, stored).notes > 0
        check_coverage(store, stored)
        assert "workers outcome=ConfigError" in (Path(store.home) / "log.txt").read_text(encoding="utf-8")


def test_the_first_answer_counts_and_each_failure_before_it_has_its_row(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(1).write(tmp_path))
        handle = stored.session.handle
        asked: list[str] = []

        class Named(Broken):
            def __init__(self, name: str, fail: Callable[[], Reply]) -> None:
                super().__init__(fail)
                self.NAME = name

            def ask(self, request: Request) -> Reply:
                asked.append(self.NAME)
                return self.fail()

        team = [
            Named("a", raising(WorkerError("x"))),
            Named("b", raising(OSError("y"))),
            Named("c", lambda: Reply((), "c", 3, 4)),
            Named("d", lambda: Reply((), "d")),
        ]
        reply, call = ask(store, list(team), Request("observe", handle, Memory()), 0, 3)
        assert asked == ["a", "b", "c"]
        assert (reply.worker, call.outcome, call.tokens_in) == ("c", "empty", 3)
        rows = store.memory.calls(handle)
        assert [(row.worker, row.outcome) for row in rows] == [("a", "failed: answer"), ("b", "failed: OSError")]
        assert store.memory.covered_to(handle) == -1
        assert "x" not in str(rows[0].outcome)


@pytest.mark.parametrize(
    "answers", [[], [{"error": "rate limit", "retry": True}], ["no list"], {"reflect": []}], ids=str
)
def test_a_configured_worker_that_fails_costs_no_stretch(answers: object, tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(answers), encoding="utf-8")
    with opened(workers=[{"kind": "scripted", "path": str(path)}]) as store:
        stored = session_of(store, turns(2).write(tmp_path))
        handle = stored.session.handle
        done = watch(store, stored)
        assert (done.stretches, done.gaps) == (1, 0)
        assert done.notes == 6
        rows = [(call.worker, call.outcome) for call in store.memory.calls(handle, "observe")]
        assert rows == [("scripted", "failed: answer"), ("extractive", "ok")]
        check_coverage(store, stored)


def test_a_configured_worker_that_answers_is_believed_only_about_what_it_was_shown(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(2).write(tmp_path))
    handle = stored.session.handle
    path = tmp_path / "answers.json"
    good = {"text": "The user asked for number_1.", "entry_ids": [f"{handle}.4"], "relevance": "high"}
    invented = {"text": "The user asked for the moon.", "entry_ids": [f"{handle}.99"]}
    path.write_text(json.dumps([[good, invented, {"text": ""}, {}]]), encoding="utf-8")
    with opened(workers=[{"kind": "scripted", "path": str(path)}]) as store:
        done = watch(store, stored)
        assert (done.stretches, done.notes, done.rejected) == (1, 1, 3)
        (call,) = store.memory.calls(handle, "observe")
        assert (call.worker, call.outcome, call.items, call.rejected) == ("scripted", "ok", 1, 3)
        assert [one.note.text for one in store.memory.notes(handle)] == [good["text"]]


@pytest.mark.parametrize("items", [("words",), (None,), (["a", "list"],)])
def test_proposals_that_are_none_are_a_failure(items: tuple[object, ...], tmp_path: Path) -> None:
    with opened() as store:
        handle = session_of(store, turns(1).write(tmp_path)).session.handle
        team = [Broken(lambda: Reply(items, "odd"))]  # type: ignore[arg-type]
        with pytest.raises(WorkerError, match="No worker answered"):
            ask(store, list(team), Request("observe", handle, Memory()), 0, 3)
        assert [row.outcome for row in store.memory.calls(handle)] == ["failed: answer"]
