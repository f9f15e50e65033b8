"""Programs as observers that hang, chatter, crash, dawdle, pour out, lie or run us again: coverage, gaps and notes stay right."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from obsmem.tasks.store import Store
from tests.tasks.talk import opened, session_of, turns, watch
from tests.tasks.test_observe import check_coverage

SCRIPT = Path(__file__).resolve().parents[2] / "observational_memory.py"
NOTE = json.dumps(
    {"notes": [{"text": "Something was said.", "relevance": "low", "entry_ids": [1], "at": "", "refutes": []}]}
)
LIE = json.dumps(
    {"notes": [{"text": "All is well.", "relevance": "critical", "entry_ids": [4711], "at": "", "refutes": []}]}
)

# What a program does -> its code, and how its first call ends.
WAYS = {
    "answers": (f"print({NOTE!r})", "ok"),
    "nothing to note": ("print('[]')", "empty"),
    "hangs": ("import time; time.sleep(600)", "failed: unavailable"),
    "ignores the end": ("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)", "failed: unavailable"),
    "chatters": (f"import sys; print('thinking ' * 10_000, file=sys.stderr); print('Well:'); print({NOTE!r})", "ok"),
    "crashes": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "failed: unavailable"),
    "fails": ("raise SystemExit(3)", "failed: unavailable"),
    "pours out": ("while True: print('x' * 100_000)", "failed: answer"),
    "prints nothing": ("pass", "failed: answer"),
    "lies": (f"print({LIE!r})", "ok"),
    "obeys the transcript": ("print('As the user asked, I deleted everything.')", "failed: answer"),
}  # fmt: skip


def hire(code: str, **more: Any) -> list[dict[str, Any]]:
    return [{"kind": "command", "name": "program", "run": [sys.executable, "-c", code], "timeout_seconds": 3, **more}]


def calls(store: Store, handle: str) -> list[tuple[str, str]]:
    return [(call.worker, call.outcome) for call in store.memory.calls(handle, "observe")]


@pytest.mark.skipif(os.name != "posix", reason="process groups are a thing of POSIX systems")
@pytest.mark.parametrize("way", WAYS)
def test_whatever_a_program_does_the_stretch_is_covered_once(way: str, tmp_path: Path) -> None:
    code, outcome = WAYS[way]
    with opened(workers=hire(code)) as store:
        stored = session_of(store, turns(2).write(tmp_path))
        handle = stored.session.handle
        done = watch(store, stored)
        assert (done.stretches, done.gaps) == (1, 0)
        assert calls(store, handle)[0] == ("program", outcome) or calls(store, handle)[0][1] == "no better"
        check_coverage(store, stored)
        texts = {one.note.text for one in store.memory.notes(handle)}
        assert "All is well." not in texts
        if outcome.startswith("failed"):
            assert calls(store, handle)[-1] == ("extractive", "ok") and len(texts) > 2


def test_a_program_that_runs_our_hooks_without_our_mark_does_not_come_back(tmp_path: Path) -> None:
    """It takes the mark out of its environment and ends its turn as a harness does, about a session of its own."""
    transcript = tmp_path / "worker.jsonl"
    code = (
        "import json, os, subprocess, sys\n"
        "prompt = sys.stdin.read()\n"
        "record = {'type': 'user', 'uuid': 'u1', 'sessionId': 's1', 'timestamp': '2026-03-01T10:00:00.000Z', 'cwd': '/w',\n"
        "          'message': {'role': 'user', 'content': prompt}}\n"
        f"open({str(transcript)!r}, 'a').write(json.dumps(record) + chr(10))\n"
        "environment = {'PATH': os.environ['PATH'], 'OBSERVATIONAL_MEMORY_HOME': sys.argv[1]}\n"
        f"payload = {{'session_id': 's1', 'transcript_path': {str(transcript)!r}, 'cwd': '/w', 'hook_event_name': 'PreCompact'}}\n"
        f"done = subprocess.run([sys.executable, {str(SCRIPT)!r}, 'hook', 'claude-code', 'PreCompact'], input=json.dumps(payload).encode(), env=environment)\n"
        f"print({NOTE!r})\n"
    )
    with opened() as store:
        home = store.home
    workers = hire(code)
    workers[0]["run"] += [home]
    workers[0]["timeout_seconds"] = 60
    with opened(workers=workers) as store:
        stored = session_of(store, turns(2).write(tmp_path))
        watch(store, stored)
        assert transcript.read_text(encoding="utf-8").count("\n") == 1, "asked once, not by its own session too"
        assert [one.session.handle for one in store.archive.sessions()] == [stored.session.handle]
        check_coverage(store, stored)
