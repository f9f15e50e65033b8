"""Any program as a model: what it sees, what becomes of its answer, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsmem import workers
from obsmem.core.errors import ConfigError, WorkerError
from obsmem.core.model import Memory, Request
from obsmem.workers import base, command, command_base, command_process

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "Take notes of SECRET-PROMPT."
ASK = Request("reflect", "abcd", Memory(), prompt=PROMPT)
GOOD = json.dumps({"reflections": [{"text": "one", "note_ids": ["a"]}]})
TELL = "import json, os, sys; tell = lambda x: print(json.dumps([{'text': json.dumps(x), 'note_ids': []}])); "


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the calls of one test make theirs."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def worker(code: str, *arguments: str, **options: Any) -> command.Command:
    return command.make({"kind": "command", "run": [sys.executable, "-c", code, *arguments], **options})


def told(code: str, **options: Any) -> Any:
    """What a program that calls ``tell`` told of itself."""
    return json.loads(worker(TELL + code, **options).ask(ASK).items[0]["text"])


def failing(code: str, **options: Any) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        worker(code, **options).ask(ASK)
    assert "SECRET" not in str(caught.value)
    return caught.value


def wait_until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """True for a process that runs; one that has ended and was not reaped by its new parent does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return bool(done.stdout.strip()) and not done.stdout.strip().startswith("Z")


def test_the_prompt_goes_in_and_the_answer_comes_out() -> None:
    code = "import sys; assert sys.stdin.read() == sys.argv[1]; print(sys.argv[2])"
    found = command.make(
        {"kind": "command", "run": [sys.executable, "-c", code, PROMPT, f"Here:\n```json\n{GOOD}\n```"]}
    )
    reply = found.ask(ASK)
    assert reply.items == ({"text": "one", "note_ids": ["a"]},)
    assert reply.worker == found.NAME == f"command:{os.path.basename(sys.executable)}"
    assert GOOD in reply.text


def test_the_prompt_is_never_an_argument() -> None:
    assert PROMPT not in told("tell(open(f'/proc/{os.getpid()}/cmdline').read() if os.path.exists('/proc') else '')")


def test_the_working_folder_is_empty_and_gone_afterwards(temporary: Path) -> None:
    first, second = (
        told("tell([os.getcwd(), os.listdir(), os.environ['TMPDIR']]); open('left', 'w'); open(os.environ['TMPDIR'] + '/x', 'w')")
        for _ in range(2)
    )  # fmt: skip
    assert first[1] == second[1] == []
    assert first[0] != second[0]
    assert Path(first[0]).is_relative_to(temporary) and Path(first[2]).is_relative_to(temporary)
    assert list(temporary.iterdir()) == []


def test_the_environment_is_scrubbed_and_names_let_more_through(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "MY_KEY",
        "OTHER",
    ):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    seen = told("tell(dict(os.environ))", environment=["MY_KEY"])
    assert seen["MY_KEY"] == "x"
    assert (seen["OBSERVATIONAL_MEMORY_WORKER"], seen["LC_ALL"], seen["HTTPS_PROXY"]) == (
        "1",
        "C.UTF-8",
        "http://127.0.0.1:1",
    )
    assert (seen["HOME"], seen["PATH"]) == (os.environ["HOME"], os.environ["PATH"])
    for name in ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "OTHER"):
        assert name not in seen
    assert "PYTEST_CURRENT_TEST" in os.environ and "PYTEST_CURRENT_TEST" not in seen


def test_a_program_that_misses_its_variable_is_a_matter_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "x")
    code = f"import os, sys; 'MY_KEY' in os.environ or sys.exit('API key is missing'); print({GOOD!r})"
    error = failing(code)
    assert (error.fault, error.retry) == ("settings", False)
    assert "'environment'" in str(error)
    assert worker(code, environment=["MY_KEY"]).ask(ASK).items


def test_a_program_that_hangs_and_ignores_the_polite_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_process, "TERM_SECONDS", 0.2)
    code = (
        "import os, signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: open(sys.argv[1] + '.term', 'w'))\n"
        "open(sys.argv[1], 'w').write(str(os.getpid()))\nwhile True: time.sleep(60)"
    )
    with pytest.raises(WorkerError, match="did not end within 2 s") as caught:
        worker(code, str(tmp_path / "pid"), timeout_seconds=2).ask(ASK)
    assert (caught.value.fault, caught.value.retry) == ("unavailable", True)
    assert (tmp_path / "pid.term").exists()
    assert not runs(int((tmp_path / "pid").read_text()))


def test_a_slow_program_is_waited_for() -> None:
    assert worker(f"import time; time.sleep(0.5); print({GOOD!r})", timeout_seconds=60).ask(ASK).items


@pytest.mark.parametrize("ending", ["", "time.sleep(600)"])
def test_children_in_its_group_end_with_it(tmp_path: Path, ending: str) -> None:
    """Whether it ends by itself or is killed; what holds its standard output open is not waited for."""
    code = (
        "import subprocess, sys, time\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open(sys.argv[1], 'w').write(str(child.pid)); print({GOOD!r}, flush=True)\n{ending}"
    )
    found = worker(code, str(tmp_path / "pid"), timeout_seconds=3)
    if ending:
        with pytest.raises(WorkerError, match="did not end"):
            found.ask(ASK)
    else:
        assert found.ask(ASK).items
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not runs(pid))


def test_a_program_that_talks_much_on_standard_error_is_heard() -> None:
    assert worker(f"import sys; sys.stderr.write('SECRET' * 100_000); print({GOOD!r})").ask(ASK).items


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_never_stops_talking_is_killed(stream: str) -> None:
    error = failing(f"import sys\nwhile True: sys.{stream}.write('SECRET' * 10_000)")
    assert f"more than {base.ANSWER_LIMIT} bytes" in str(error)
    assert error.fault == "answer"


@pytest.mark.parametrize(
    ("code", "fault", "words"),
    [
        ("import os; os.abort()", "unavailable", "failed with status -6"),
        ("raise ValueError('SECRET')", "unavailable", "failed with status 1"),
        (f"print({GOOD!r}); raise SystemExit(3)", "unavailable", "failed with status 3"),
        ("pass", "answer", "printed nothing"),
        ("print(' \\n')", "answer", "printed nothing"),
        ("print('Done! SECRET notes were taken.')", "answer", "no list of notes"),
        (f"print({GOOD[:-3]!r})", "answer", "cut off"),
        ("print('[1, 2]')", "answer", "no list of notes"),
    ],
)
def test_what_is_no_whole_answer_is_a_failure(code: str, fault: str, words: str) -> None:
    error = failing(code)
    assert error.fault == fault
    assert words in str(error)


def test_an_empty_list_is_an_answer() -> None:
    assert worker("print('{\"reflections\": []}')").ask(ASK).items == ()


@pytest.mark.parametrize(
    ("said", "fault", "wait", "numbers"),
    [
        ("This model's maximum context length is 8192 tokens, however you requested 9000 tokens", "overflow", 0, (8192, 9000)),
        ("HTTP 429: rate limit reached, try again in 1m30s", "unavailable", 90, (0, 0)),
        ("Error: 401 Unauthorized", "settings", 0, (0, 0)),
        ("Unknown model: gpt-oh", "settings", 0, (0, 0)),
        ("connection refused", "unavailable", 0, (0, 0)),
        ("something else", "unavailable", 0, (0, 0)),
    ],
)  # fmt: skip
def test_a_failure_is_told_by_its_words(said: str, fault: str, wait: float, numbers: tuple[int, int]) -> None:
    error = failing(f"import sys; sys.exit({said!r})")
    assert (error.fault, error.wait, (error.window, error.counted)) == (fault, wait, numbers)


NOON = 1_790_000_000 // 86_400 * 86_400 + 43_200


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (f"limit reached|{NOON + 600}", 600),
        ('"retry-after": "17"', 17),
        ("Please try again in 1.5s.", 1.5),
        ("try again in 3 days 4 hours 12 minutes.", 3 * 86_400 + 4 * 3600 + 12 * 60),
        ("resets 3pm (Etc/UTC)", 3 * 3600),
        ("try again at 11:30 AM (Etc/UTC)", 23.5 * 3600),
        ("no time is named here, 2000 tokens", 0),
        ("it resets 99:99 pm (Etc/UTC)", 0),
    ],
)
def test_the_time_to_wait_is_read(text: str, seconds: float) -> None:
    assert command_base.wait_in(text, NOON) == seconds


@pytest.mark.parametrize("missing", ["no-such-program-at-all", "/no/such/program"])
def test_a_program_that_is_not_there_is_a_matter_of_settings(missing: str) -> None:
    with pytest.raises(WorkerError, match="is not found") as caught:
        command.make({"kind": "command", "run": [missing]}).ask(ASK)
    assert caught.value.fault == "settings"


def test_a_program_that_cannot_be_started_is_a_matter_of_settings(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(WorkerError, match="cannot be started") as caught:
        command.make({"kind": "command", "run": [str(broken)]}).ask(ASK)
    assert caught.value.fault == "settings"


def test_the_model_stands_where_it_is_marked() -> None:
    code = f"import sys; sys.argv[1] == sys.argv[2] or sys.exit(3); print({GOOD!r})"
    with pytest.raises(WorkerError, match="status 3"):
        worker(code, "b", "{model}", model="a").ask(ASK)
    assert worker(code, "b", "{model}", model="b").ask(ASK).model == "b"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either 'preset' or 'run'"),
        ({"run": ["x"], "preset": "claude"}, "either 'preset' or 'run'"),
        ({"run": ["x"], "program": "y"}, "without 'preset'"),
        ({"preset": "cursor"}, "'preset' of a command worker"),
        ({"run": []}, "'run' of a command worker"),
        ({"run": ["x"], "modle": "y"}, "modle"),
        ({"run": ["x"], "window": -1}, "'window' of a command worker"),
        ({"run": ["x"], "model": "y"}, "without {model}"),
        ({"run": ["x", "-m={model}"]}, "without {model}"),
        ({"run": ["./x"]}, "absolute path"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        command.make({"kind": "command", **options})
    assert words in str(caught.value)


def test_every_option_is_described_and_taken() -> None:
    assert workers.load("command") is command
    assert all(rule["description"] for rule in command.OPTIONS["properties"].values())
    found = worker("pass", "{model}", name="n", model="m", window=5, answer_tokens=6, timeout_seconds=7, alone=True)
    assert (found.NAME, found.model, found.window, found.answer_tokens, found.alone) == ("n", "m", 5, 6, True)
    plain = worker("pass")
    assert (plain.model, plain.window, plain.answer_tokens, plain.alone) == ("", 0, base.ANSWER_TOKENS, False)
    assert base.as_model(plain) is not None


HOLD = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()} '); time.sleep(600)"


def test_an_exception_in_this_process_ends_the_program(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "pid"

    def wait(*_: object) -> str:
        wait_until(lambda: mark.exists() and mark.read_text().endswith(" "))
        raise KeyboardInterrupt

    monkeypatch.setattr(command_process, "_wait", wait)
    with pytest.raises(KeyboardInterrupt):
        worker(HOLD, str(mark)).ask(ASK)
    assert not runs(int(mark.read_text()))
    assert list(temporary.iterdir()) == []


def test_the_program_ends_and_its_folder_goes_when_this_process_is_killed(tmp_path: Path, temporary: Path) -> None:
    """No signal handler sees a kill; the guard does."""
    mark = tmp_path / "pid"
    code = (
        "import sys, tempfile; from obsmem.core.model import Memory, Request; from obsmem.workers import command\n"
        "tempfile.tempdir = sys.argv[3]\n"
        "command.make({'kind': 'command', 'run': [sys.executable, '-c', sys.argv[1], sys.argv[2]]})"
        ".ask(Request('drop', 'abcd', Memory()))"
    )
    maintainer = subprocess.Popen([sys.executable, "-c", code, HOLD, str(mark), str(temporary)], cwd=ROOT)
    try:
        wait_until(lambda: mark.exists() and mark.read_text().endswith(" "))
        assert len(list(temporary.iterdir())) == 1
    finally:
        maintainer.send_signal(signal.SIGKILL)
        maintainer.wait()
    wait_until(lambda: not runs(int(mark.read_text())) and list(temporary.iterdir()) == [])


def test_no_guard_is_left_after_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def remember(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(command_process.subprocess, "Popen", remember)
    assert worker(f"print({GOOD!r})").ask(ASK).items
    assert len(started) == 2
    assert [process.returncode for process in started] == [0, 0]
