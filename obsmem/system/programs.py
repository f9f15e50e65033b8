"""Running somebody else's program to its end, and no longer than it may take.

Invariants: at its deadline it is killed with all of its group; it asks nobody anything, since nothing is on its standard
input; what it says goes into files, so that whoever it leaves behind cannot hold us up. Off the hook path.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from obsmem.system.process import kill_group

MOST_SAID = 64 << 20  # bytes of what a program says that are read


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
