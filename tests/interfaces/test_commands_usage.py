"""A configured model from the command line: asked over loopback, kept within its limits, and accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.conftest import Run
from tests.interfaces.place import DEMO
from tests.workers.model_site import Played, Site, site

SESSION = DEMO / "cursor" / "session.jsonl"
ANSWER = json.dumps(
    {"notes": [{"text": "Something was said.", "relevance": "low", "entry_ids": [1], "at": "", "refutes": []}]}
)


def played(content: str = ANSWER, status: int = 200) -> Played:
    message = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}],
               "usage": {"prompt_tokens": 1000, "completion_tokens": 50}, "model": "small"}  # fmt: skip
    return Played(status, message if status == 200 else {"error": {"message": "busy"}})


def hire(monkeypatch: pytest.MonkeyPatch, server: Site, **settings: Any) -> None:
    worker = {"kind": "http", "api": "openai", "url": server.url, "model": "small", "timeout_seconds": 5}
    for key, value in {"workers": [worker], "chunk_max_tokens": 3000, **settings}.items():
        monkeypatch.setenv(f"OBSERVATIONAL_MEMORY_SET_{key.upper()}", json.dumps(value))


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    path = tmp_path / "transcripts" / "session.jsonl"
    path.parent.mkdir()
    path.write_bytes(SESSION.read_bytes())
    return str(path)


def test_usage_counts_what_a_model_was_asked(run: Run, transcript: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with site(played()) as server:
        hire(monkeypatch, server)
        assert run("ingest", transcript).status == 0
        asked = len(server.seen)
    assert asked > 1
    value = json.loads(run("usage", "--json").out)
    assert value["today"]["calls"] == asked and value["today"]["tokens"] == 1050 * asked
    paid = [row for row in value["calls"] if row["worker"] == "http:small"]
    assert sum(row["calls"] for row in paid) == asked and sum(row["tokens_in"] for row in paid) == 1000 * asked
    told = run("usage").out
    assert f"{asked} of 300 calls, {1050 * asked} of 1000000 tokens today" in told
    for title in ("day", "worker", "session", "outcome"):
        assert f"\n{title} " in told
    assert "Something was said" not in told
    assert f"models: {asked} of 300 calls" in run("status").out


def test_a_day_without_models_says_so(stored: Path, run: Run) -> None:
    assert run("usage", "--days", "1").out.endswith("No model was asked in the last 1 day.\n")
    assert "models:" not in run("status").out


def test_when_the_days_limit_is_reached_extractive_notes_go_on(
    run: Run, transcript: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site(played()) as server:
        hire(monkeypatch, server, worker_calls_per_day=1)
        assert run("ingest", transcript).status == 0
        assert len(server.seen) == 1
    assert "paused: budget, extractive notes until midnight" in run("status").out
    value = json.loads(run("status", "--json").out)
    assert value["gaps"] == 0 and value["workers"]["today"]["paused"] and value["notes"] > 10


def test_one_that_cannot_be_reached_is_named_with_the_reason(
    run: Run, transcript: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site(played()) as server:
        hire(monkeypatch, server)
    assert run("ingest", transcript).status == 0
    told = run("status").out
    assert "http:small" in told and "left alone for now: " in told and "nothing listens" in told
    assert run("usage").out.count("left alone until") == 1
    assert "left alone" not in run("usage", "--ask-again").out, "it was mended"


def test_a_wrong_worker_is_one_sentence(run: Run, transcript: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_SET_WORKERS", '[{"kind": "http", "model": "m"}]')
    done = run("ingest", transcript)
    assert done.status != 0 and "Traceback" not in done.err and "api" in done.err
