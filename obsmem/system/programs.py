"""Running somebody else's program to its end, and no longer than it may take.

Invariants: at its deadline it is killed with all of its group; it asks nobody anything, since on its standard input is
nothing but what it was given; what it says goes into files, so that whoever it leaves behind cannot hold us up. Off the
hook path.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from obsmem.system.process import kill_group

MOST_SAID = 64 << 20  # bytes of what a program says that are read
LOOK_SECONDS = 0.05  # between two looks at what a program has said so far
LEAVE_SECONDS = 5.0  # for a program to end by itself when it has said enough


class Ended(NamedTuple):
    """How a program ended: its status (None where it was killed at its deadline), and what it said."""

    status: int | None
    stdout: str
    stderr: str


def run_program(
    argv: Sequence[str], folder: str, environment: Mapping[str, str], seconds: float, *, joined: bool = False
) -> Ended:
    """Run a program in a folder with this environment alone. ``joined`` puts both of its streams into ``stdout``. Raises
    OSError where it cannot be started."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            list(argv),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT if joined else stderr,
            start_new_session=True,
        )
        late = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            kill_group(process.pid)
            process.wait()
        said = []
        for file in (stdout, stderr):
            file.seek(0)
            said.append(file.read(MOST_SAID).decode("utf-8", "replace"))
    return Ended(None if late else process.returncode, said[0], said[1])


def ask_program(
    argv: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    seconds: float,
    lines: Sequence[str],
    enough: Callable[[str], bool],
) -> Ended:
    """Run a program that answers on its standard output to lines on its standard input, until ``enough`` is said there: then
    its input ends, and it does too (status 0 where it must be killed for that). Raises OSError where it cannot be started."""
    with tempfile.TemporaryDirectory() as place:
        said, aside = os.path.join(place, "out"), os.path.join(place, "err")
        with open(said, "wb") as stdout, open(aside, "wb") as stderr:
            process = subprocess.Popen(
                list(argv),
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        assert process.stdin is not None
        status: int | None = None
        try:
            with suppress(OSError):  # it has ended already
                process.stdin.write("".join(line + "\n" for line in lines).encode("utf-8"))
                process.stdin.flush()
            if _waited(process, seconds, lambda: enough(_read(said))):
                with suppress(OSError):
                    process.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LEAVE_SECONDS)
                status = process.returncode or 0
        finally:
            kill_group(process.pid)
            process.wait()
            with suppress(OSError):
                process.stdin.close()
        return Ended(status, _read(said), _read(aside))


def _waited(process: subprocess.Popen[bytes], seconds: float, enough: Callable[[], bool]) -> bool:
    """Wait until a program has ended or said enough; False where it did neither in time."""
    limit = time.monotonic() + seconds
    while not enough():
        if process.poll() is not None:
            return True
        if time.monotonic() > limit:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(MOST_SAID).decode("utf-8", "replace")
