"""Canned answers in order and by key, and errors raised as a real worker's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from obsmem import workers
from obsmem.core.errors import ConfigError, UsageError, WorkerError
from obsmem.core.model import Memory, Request
from obsmem.workers import scripted

ASK = Request("reflect", "abcd", Memory())


def test_answers_come_in_order_and_the_requests_are_kept() -> None:
    worker = scripted.Scripted([[{"text": "one", "note_ids": ["a"]}], [], {"items": [{"text": "x"}], "tokens_in": 7}])
    assert worker.ask(ASK).items == ({"text": "one", "note_ids": ["a"]},)
    assert worker.ask(ASK).items == ()
    assert worker.ask(ASK).tokens_in == 7
    assert worker.asked == [ASK, ASK, ASK]


def test_a_script_that_is_too_short_is_an_error_not_an_empty_answer() -> None:
    with pytest.raises(WorkerError, match="no answer left"):
        scripted.Scripted([]).ask(ASK)


@pytest.mark.parametrize("retry", [True, False])
def test_an_error_is_raised_with_its_retry_mark(retry: bool) -> None:
    with pytest.raises(WorkerError, match="rate limit") as caught:
        scripted.Scripted([{"error": "rate limit", "retry": retry}]).ask(ASK)
    assert caught.value.retry is retry


def test_an_answer_is_found_by_key_then_task_then_star() -> None:
    key = scripted.request_key(ASK)
    worker = scripted.Scripted({key: [{"text": "key"}], "drop": [{"note_id": "task"}], "*": []})
    assert worker.ask(ASK).items == ({"text": "key"},)
    assert worker.ask(ASK).items == ({"text": "key"},)
    assert worker.ask(Request("drop", "abcd", Memory())).items == ({"note_id": "task"},)
    assert worker.ask(Request("observe", "abcd", Memory())).items == ()
    with pytest.raises(WorkerError, match="has no answer for reflect"):
        scripted.Scripted({"drop": []}).ask(ASK)


def test_an_answer_that_is_no_list_is_an_error() -> None:
    with pytest.raises(WorkerError, match="no list"):
        scripted.Scripted(["words"]).ask(ASK)


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps([[{"text": "ä"}]]), encoding="utf-8")
    assert scripted.load(path).ask(ASK).items == ({"text": "ä"},)
    path.write_text("3", encoding="utf-8")
    with pytest.raises(ConfigError, match="neither a list"):
        scripted.load(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        scripted.load(tmp_path / "none.json")


def test_the_registry_names_its_kinds() -> None:
    assert workers.load("scripted") is scripted
    with pytest.raises(UsageError, match="Known are: extractive"):
        workers.load("oracle")


def run(code: str) -> scripted.Scripted:
    return scripted.Scripted([{"run": [sys.executable, "-c", code]}])


def test_an_answer_may_be_what_a_program_prints_and_the_program_knows_that_it_is_a_worker() -> None:
    code = "import json, os; print(json.dumps([{'text': os.environ['OBSERVATIONAL_MEMORY_WORKER']}]))"
    assert run(code).ask(ASK).items == ({"text": "1"},)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('not json')", "no JSON"),
        ("print('{}')", "no list"),
        ("print('[1]')", "no list"),
        ("print('[]'); raise SystemExit(3)", "failed"),
        ("while True: print('x' * 100_000)", "more than"),
    ],
)
def test_a_program_that_gives_no_usable_answer_is_an_error(code: str, words: str) -> None:
    with pytest.raises(WorkerError, match=words):
        run(code).ask(ASK)
