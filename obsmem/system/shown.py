"""Running a program whose words its user sees as it says them, and keeping the last of them.

Invariants: what it says is passed on byte for byte, at once; at its deadline, and when we are interrupted, it is killed with all
of its group; what is kept of its words is bounded. Off the hook path.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, BinaryIO, NamedTuple

from obsmem.system.process import kill_group

KEPT = 64 << 10  # bytes of each stream
LAST_WORDS = 5.0  # seconds in which what a program left behind may still hold its streams open


class Shown(NamedTuple):
    """How a program ended: its status (None where it was killed at its deadline), and the end of what it said."""

    status: int | None
    tail: str


class Streams(NamedTuple):
    """Where a program's words go on to."""

    out: BinaryIO
    err: BinaryIO


class _Passing(threading.Thread):
    """Passes one stream on and keeps its end."""

    def __init__(self, stream: IO[bytes], to: BinaryIO) -> None:
        super().__init__(daemon=True)
        self.stream, self.to, self.tail = stream, to, b""
        self.start()

    def run(self) -> None:
        """Copy until the stream ends; a reader of ours that has gone stops nothing."""
        number = self.stream.fileno()
        while piece := os.read(number, 1 << 16):
            self.tail = (self.tail + piece)[-KEPT:]
            with suppress(OSError, ValueError):
                self.to.write(piece)
                self.to.flush()


def run_shown(
    argv: Sequence[str], folder: str, environment: Mapping[str, str], seconds: float, text: str, streams: Streams
) -> Shown:
    """Run a program in a folder with ``text`` on its standard input; its words go on to ``streams``. Raises OSError where it
    cannot be started."""
    with tempfile.TemporaryFile() as given:
        given.write(text.encode("utf-8", "replace"))
        given.seek(0)
        process = subprocess.Popen(
            list(argv),
            cwd=folder,
            env=dict(environment),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None and process.stderr is not None
        passing = [_Passing(process.stdout, streams.out), _Passing(process.stderr, streams.err)]
        late = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            if process.poll() is None:
                kill_group(process.pid)
                process.wait()
        for one in passing:
            one.join(LAST_WORDS)
    tail = b"\n".join(one.tail for one in passing).decode("utf-8", "replace")
    return Shown(None if late else process.returncode, tail)
