"""Running one program to its end: prompt from a file, answers into files, a hard deadline, nothing left behind.

Invariants: the program and what it started in its process group are gone, and its folder is deleted, when ``run`` has
returned or raised, and also shortly after this process was killed (a guard process sees to that); no stream of the
program can fill memory or disk.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from obsmem.system.files import read_bytes
from obsmem.workers.base import ANSWER_LIMIT

TERM_SECONDS = 2.0  # between the polite signal and the other one
POLL_SECONDS = (0.005, 0.05)  # first, and at most
FOLDER_PREFIX = "observational-memory-worker-"

# Its standard input ends when this process does, however that comes about. Where no "end" came before, it cleans up.
_GUARD = """
import os, sys
said = sys.stdin.buffer.read().split()
if said[-1:] != [b"end"]:
    try:
        os.killpg(int(said[0]), 9)
    except (OSError, IndexError):
        pass
    import shutil
    shutil.rmtree(sys.argv[1], True)
"""


class Folder(NamedTuple):
    """The private folder of one call. The program works in ``work``, which is empty, and knows of ``temporary``."""

    path: str

    @property
    def work(self) -> str:
        """The program's working folder."""
        return os.path.join(self.path, "work")

    @property
    def temporary(self) -> str:
        """Where the program's temporary files go, so that they are deleted with the rest."""
        return os.path.join(self.path, "temporary")

    def file(self, name: str) -> str:
        """The path of a file beside the working folder."""
        return os.path.join(self.path, name)

    def write(self, name: str, text: str) -> str:
        """Write such a file; its path."""
        with open(self.file(name), "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        return self.file(name)

    def read(self, name: str, limit: int = ANSWER_LIMIT) -> str:
        """The text of such a file, '' where there is none."""
        return read_bytes(self.file(name), limit).decode("utf-8", "replace")


class Ended(NamedTuple):
    """How a program ended: its status, None where it was killed because it was ``late`` or talked too ``long``."""

    status: int | None
    why: str = ""


@contextmanager
def open_folder() -> Iterator[Folder]:
    """Make the folder of one call, for the user alone, and delete it."""
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True) as path:
        folder = Folder(os.path.realpath(path))
        os.mkdir(folder.work)
        os.mkdir(folder.temporary)
        yield folder


def run(
    argv: Sequence[str], folder: Folder, environment: Mapping[str, str], seconds: float, limit: int = ANSWER_LIMIT
) -> Ended:
    """Run a program whose input is the folder's file ``prompt``; its streams go to ``stdout`` and ``stderr`` there.

    Raises OSError where it cannot be started.
    """
    with _guarded(folder) as guard, open(folder.file("prompt"), "rb") as prompt:
        with open(folder.file("stdout"), "wb") as stdout, open(folder.file("stderr"), "wb") as stderr:
            process = subprocess.Popen(
                list(argv),
                cwd=folder.work,
                env=dict(environment),
                stdin=prompt,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        why, grace = "", 0.0
        try:
            guard(process.pid)
            why = _wait(process, folder, time.monotonic() + seconds, limit)
            grace = TERM_SECONDS if why == "late" else 0.0
        finally:
            _end(process, grace)
    return Ended(None if why else process.returncode, why)


def _wait(process: subprocess.Popen[bytes], folder: Folder, end: float, limit: int) -> str:
    """Wait until the program ends, is late or has written too much: the reason to kill it, or ''."""
    pause, longest = POLL_SECONDS
    while True:
        ended = process.poll() is not None
        if any(os.stat(folder.file(name)).st_size > limit for name in ("stdout", "stderr")):
            return "long"
        if ended:
            return ""
        if time.monotonic() >= end:
            return "late"
        time.sleep(pause)
        pause = min(pause * 1.5, longest)


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End a program and all of its group; ``grace`` are the seconds in which it may do so itself."""
    if grace and process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            pass
    _signal(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    process.wait()


def _signal(pid: int, number: int) -> None:
    try:
        if hasattr(os, "killpg"):
            os.killpg(pid, number)
        else:
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True)
    except OSError:
        pass  # as a rule nobody is left


@contextmanager
def _guarded(folder: Folder) -> Iterator[_Guard]:
    """A process that outlives this one if need be: it then kills the program and deletes the folder.

    The maintainer itself may be killed at any instant, with a signal that nobody can catch.
    """
    if not hasattr(os, "killpg"):
        yield _Guard(None)
        return
    argv = [sys.executable, "-I", "-S", "-c", _GUARD, folder.path]
    null = subprocess.DEVNULL
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=null, stderr=null, env={}, cwd="/", start_new_session=True
    ) as process:
        guard = _Guard(process)
        try:
            yield guard
        finally:
            guard.say(b"end")


class _Guard:
    """The guard process, if there is one; called with the process group to kill."""

    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        self._process = process

    def __call__(self, pid: int) -> None:
        self.say(b"%d" % pid)

    def say(self, word: bytes) -> None:
        """Send one word. A guard that somebody killed is no reason to lose an answer."""
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(word + b"\n")
                self._process.stdin.flush()
            except OSError:
                pass
