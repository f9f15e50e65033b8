"""Where a key comes from, and that it goes nowhere else."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.workers.http_worker import ASK, KEY, PROMPT, FakeTime, failure, worker
from tests.workers.model_site import (
    Played,
    completion,
    message,
    refusal,
    site,
)


def test_a_key_comes_from_a_program_or_a_shell_line() -> None:
    program = [sys.executable, "-c", f"print({KEY!r})"]
    with site(completion()) as server:
        worker(server, key_command=program).ask(ASK)
        worker(server, key_command=f"echo {KEY}").ask(ASK)
    assert [seen.headers["authorization"] for seen in server.seen] == [f"Bearer {KEY}"] * 2


def test_a_header_may_have_the_key_in_it_which_then_stands_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with site(message()) as server:
        worker(server, api="anthropic", key_env="A_KEY", headers={"Authorization": "Bearer {key}"}).ask(ASK)
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in server.seen[0].headers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key_env": "NOT_SET"}, "NOT_SET is not set"),
        ({"key_env": "BROKEN"}, "is no key"),
        ({"key_command": ["no-such-program-here"]}, "cannot be started"),
        ({"key_command": f"echo {KEY}; exit 3"}, "exit code 3"),
        ({"key_command": "true"}, "printed nothing"),
        ({"key_command": f"echo {KEY}; echo more"}, "is no key"),
        ({"key_command": [sys.executable, "-c", "print('x' * 99999)"]}, "is no key"),
        ({"key_command": [sys.executable, "-c", "import time; time.sleep(30)"]}, "did not end in time"),
        ({"key_command": "sleep 30 & wait"}, "did not end in time"),
        ({"key_command": [sys.executable, "-c", "while True: print('x' * 9999)"]}, "is no key"),
    ],
)
def test_without_a_usable_key_nothing_is_sent(
    options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", f"{KEY}\nx: y")
    with site(completion()) as server:
        error = failure(worker(server, timeout_seconds=1 if words.endswith("in time") else 60, **options))
    assert (error.fault, server.seen) == ("settings", [])
    assert words in str(error)


def test_what_a_key_command_started_is_gone_after_its_deadline(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    mark.touch()
    line = f"(while [ -e {mark} ]; do sleep 0.05; touch {tmp_path / 'beat'}; done) & wait"
    with site(completion()) as server:
        failure(worker(server, timeout_seconds=1, key_command=line))
    beat = tmp_path / "beat"
    assert beat.exists()
    beat.unlink()
    assert not threading.Event().wait(0.3)
    assert not beat.exists()


def test_neither_key_nor_words_reach_a_log_or_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], time: FakeTime
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    echo = refusal(400, f"bad request: {PROMPT} {KEY}", type=KEY, code=PROMPT)
    with (
        caplog.at_level(logging.DEBUG),
        site(echo, Played(503, f"{KEY} {PROMPT}"), completion(f"{KEY} {PROMPT}")) as server,
    ):
        made = worker(server, time, key_env="A_KEY", structured="off")
        failure(made)
        failure(made)
    assert len(server.seen) == 3
    out, err = capfd.readouterr()
    for text in (caplog.text, out, err, repr(made), str(made)):
        assert KEY not in text
        assert PROMPT not in text
