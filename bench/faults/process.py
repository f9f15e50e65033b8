"""Running the product's own entry points in forked children: real processes that die, without an interpreter's start each.

Invariants: whatever the product does, it does in a child, so this process holds no state of it; every child has a
deadline; the shim is armed in the child only.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

from bench.corpus import PROJECT
from bench.faults import shim

SCRIPT = str(PROJECT / "observational_memory.py")
T = TypeVar("T")
DEADLINE = 90.0  # seconds
HUNG = "hung"


class Ended(NamedTuple):
    """How a child ended: its status (negative for a signal), what it printed, and how many calls the shim counted."""

    status: int
    out: bytes
    err: bytes
    seen: int = 0
    hung: bool = False

    @property
    def killed(self) -> bool:
        """True where it died at the point that it was armed for."""
        return self.status == -signal.SIGKILL


class Arm(NamedTuple):
    """What the shim shall do in a child."""

    kinds: int = shim.STEPS
    mode: int = shim.COUNT
    number: int = 0


def run(
    work: Callable[[], int | None],
    environment: Mapping[str, str],
    *,
    given: bytes = b"",
    arm: Arm | None = None,
    deadline: float = DEADLINE,
    kill_after: float = 0.0,
    meanwhile: Callable[[], None] | None = None,
) -> Ended:
    """Run ``work`` in a child with this environment and standard input. ``kill_after``: seconds until SIGKILL.
    ``meanwhile`` is done while it is stopped; then it goes on."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as stdin:  # fmt: skip
        stdin.write(given)
        stdin.seek(0)
        sys.stdout.flush()  # what waits to be printed is not the child's
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            _be_child(work, environment, arm, (stdin.fileno(), out.fileno(), err.fileno()), told.fileno())
        if meanwhile:
            state = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if state and state.si_code == os.CLD_STOPPED:
                meanwhile()
                os.kill(pid, signal.SIGCONT)
        status, hung = _wait(pid, kill_after or deadline)
        if kill_after:
            hung = False
        told.seek(0)
        counted = told.read()
        out.seek(0)
        err.seek(0)
        return Ended(status, out.read(), err.read(), int(counted) if counted else 0, hung)


def ask(work: Callable[[], T], environment: Mapping[str, str], deadline: float = DEADLINE) -> T:
    """What ``work`` gives back in a child with this environment. Raises RuntimeError with the child's traceback."""
    with tempfile.TemporaryFile() as answer:

        def answered() -> int:
            data = pickle.dumps(work())
            os.pwrite(answer.fileno(), data, 0)
            return 0

        ended = run(answered, environment, deadline=deadline)
        if ended.status:
            raise RuntimeError(ended.err.decode("utf-8", "replace")[-2000:] or f"the child ended with {ended.status}")
        answer.seek(0)
        result: T = pickle.loads(answer.read())
        return result


def _be_child(
    work: Callable[[], int | None],
    environment: Mapping[str, str],
    arm: Arm | None,
    files: tuple[int, int, int],
    told: int,
) -> None:
    status = 70
    try:
        os.setsid()
        for number, descriptor in enumerate(files):
            os.dup2(descriptor, number)
        os.environ.clear()
        os.environ.update(environment)
        if arm:
            leave = os._exit

            def tell_and_leave(code: int) -> None:
                counted = shim.seen()
                shim.arm(0, 0, 0)
                os.pwrite(told, str(counted).encode(), 0)
                leave(code)

            os._exit = tell_and_leave  # type: ignore[assignment]
            subprocess._USE_VFORK = False  # type: ignore[attr-defined]  # which no library can stand before
            shim.arm(*arm)
        try:
            status = int(work() or 0)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        if arm:
            shim.arm(0, 0, 0)
        traceback.print_exc()
    finally:
        os._exit(status)


def _wait(pid: int, seconds: float) -> tuple[int, bool]:
    """(exit status, whether it had to be ended) of a child."""
    end = time.monotonic() + seconds
    pause = 0.0005
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), False
        time.sleep(pause)
        pause = min(pause * 2, 0.01)
    for end_it in (os.killpg, os.kill):
        try:
            end_it(pid, signal.SIGKILL)
        except OSError:
            pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), True


def command(*words: str) -> Callable[[], int | None]:
    """The work of one command of the product."""

    def work() -> int | None:
        from obsmem.interfaces import cli

        sys.argv = [SCRIPT, *words]
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        return cli.main(list(words))

    return work


def hook(*words: str) -> Callable[[], int | None]:
    """The work of one hook of the product."""

    def work() -> int | None:
        from obsmem.interfaces.hook import run as run_hook

        return run_hook(list(words), SCRIPT)

    return work


def warm() -> None:
    """Load what commands load, so that children need not."""
    import importlib

    names = (
        "interfaces.cli", "interfaces.commands_maintain", "interfaces.commands_show", "interfaces.commands_recall",
        "interfaces.commands_search", "interfaces.commands_look", "interfaces.commands_care", "interfaces.hook",
        "interfaces.hook_delivery", "tasks.remember", "tasks.maintain", "tasks.fsck", "workers.extractive", "workers.scripted",
        "harnesses.claude_code", "harnesses.claude_code_hooks", "harnesses.codex", "tasks.forget",
    )  # fmt: skip
    for name in names:
        importlib.import_module(f"obsmem.{name}")
    for name in ("sqlite3", "json", "filelock", "yaml", "jsonschema", "subprocess"):
        importlib.import_module(name)


def leftovers(home: str, word: bytes = SCRIPT.encode()) -> list[int]:
    """Living processes that were started for this data folder, with this word in their command."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[0]
                environment = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if word in words and state != b"Z" and f"={home}".encode() in environment:
                found.append(int(name))
    return found


def until_quiet(home: str, seconds: float = 60.0) -> list[int]:
    """Wait until no process of a data folder lives; who is left."""
    end = time.monotonic() + seconds
    while (left := leftovers(home)) and time.monotonic() < end:
        time.sleep(0.02)
    return left


class Holder:
    """Another program that has a database open, has run this SQL there and does no more, until it is ended."""

    living: ClassVar[list[Holder]] = []
    CODE = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); [c.execute(s).fetchall() for s in sys.argv[2].split('; ')]; print(flush=True); sys.stdin.read()"  # fmt: skip

    def __init__(self, path: str, sql: str) -> None:
        command = [sys.executable, "-I", "-S", "-c", self.CODE, path, sql]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        if self.process.stdout.readline() != b"\n":
            raise RuntimeError(f"{path} could not be held by {sql}")
        self.living.append(self)

    def end(self) -> None:
        """Let it end: what it has not committed is rolled back."""
        self.process.communicate(timeout=DEADLINE)
        self.living.remove(self)

    def kill(self) -> None:
        """End it by SIGKILL: its journal stays."""
        self.process.kill()
        self.end()

    @classmethod
    def end_all(cls) -> None:
        """End all that live."""
        for one in tuple(cls.living):
            one.end()
