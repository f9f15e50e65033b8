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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from obsmem.system.process import kill_group

MOST_SAID = 64 << 20  # bytes of what a program says that are read
LOOK_SECONDS = 0.05  # between two looks at what a program has said so far
LEAVE_SECONDS = 5.0  # for a program to end by itself when it has said enough


class Ended(NamedTuple):
    """How a program ended: its status (None where it was killed at its deadline), and what it said."""

    status: int | None
    stdout: str
    stderr: str


@contextmanager
def _running(
    argv: Sequence[str], folder: str, environment: Mapping[str, str], streams: tuple[Any, Any, Any]
) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a group of its own, which is gone afterwards whatever happens. ``streams`` are its standard ones."""
    stdin, stdout, stderr = streams
    process = subprocess.Popen(
        list(argv), cwd=folder, env=dict(environment), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
    )
    try:
        yield process
    finally:
        kill_group(process.pid)
        process.wait()
        with suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()


def run_program(
    argv: Sequence[str], folder: str, environment: Mapping[str, str], seconds: float, *, joined: bool = False
) -> Ended:
    """Run a program in a folder with this environment alone. ``joined`` puts both of its streams into ``stdout``. Raises
    OSError where it cannot be started."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        streams = (subprocess.DEVNULL, stdout, subprocess.STDOUT if joined else stderr)
        with _running(argv, folder, environment, streams) as process:
            status: int | None = None
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(seconds)
        said = []
        for file in (stdout, stderr):
            file.seek(0)
            said.append(file.read(MOST_SAID).decode("utf-8", "replace"))
    return Ended(status, said[0], said[1])


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
        status: int | None = None
        with (
            open(said, "wb") as stdout,
            open(aside, "wb") as stderr,
            _running(argv, folder, environment, (subprocess.PIPE, stdout, stderr)) as process,
        ):
            assert process.stdin is not None
            with suppress(OSError):  # it has ended already
                process.stdin.write("".join(line + "\n" for line in lines).encode("utf-8"))
                process.stdin.flush()
            if _waited(process, seconds, lambda: enough(_read(said))):
                with suppress(OSError):
                    process.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LEAVE_SECONDS)
                status = process.returncode or 0
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
