"""The small files through which hooks and maintainer talk: one state file a session, and the off switches.

On the hook path: ``os`` and our own ``files`` only; not even ``typing``. Invariant: whatever stands in a state file,
reading it gives a valid State; a hook that finds none falls back to the defaults and looks at the whole transcript.
"""

from __future__ import annotations

import os
import time

from obsmem.system.files import read_bytes, write_atomic

STATE_FILE = "state"
OFF_FILE = "off"
OPEN_FILE = "block.open"  # a block was made for a compaction, and nobody knows yet whether it arrived
WARNING_FILE = "warning"  # the next prompt tells that a compaction comes near
SEEN_FILE = "reduce.seen"  # a line for each long output that stands in the session's context
PROJECT_OFF_FILE = ".observational-memory-off"
OFF_VARIABLE = "OBSERVATIONAL_MEMORY_OFF"
WORKER_VARIABLE = "OBSERVATIONAL_MEMORY_WORKER"
OFF_SECONDS = 600
DEFAULT_RATE = 0.12  # tokens per byte of transcript: most of a record is envelope, which no model reads
DEFAULT_AFTER = 10_000  # tokens


class State:
    """``read``: bytes of the transcript that are archived. ``rate``: tokens per byte of this session. ``after``:
    tokens after which the maintainer starts. ``off``: memory is off for this session."""

    __slots__ = ("after", "off", "rate", "read")

    def __init__(
        self, read: int = 0, rate: float = DEFAULT_RATE, after: int = DEFAULT_AFTER, off: bool = False
    ) -> None:
        self.read = read
        self.rate = rate
        self.after = after
        self.off = off


def read_state(folder: str) -> State:
    """Read a session's state file; defaults for what is missing or broken.

    ``off`` counts for OFF_SECONDS only: then the maintainer is started again to see whether memory is still off.
    """
    values = {}
    path = os.path.join(folder, STATE_FILE)
    for line in read_bytes(path, 4096).split(b"\n"):
        name, _, value = line.partition(b" ")
        values[name] = value
    try:
        return State(
            int(values.get(b"read", b"0")),
            float(values[b"rate"]) if b"rate" in values else DEFAULT_RATE,
            int(values[b"after"]) if b"after" in values else DEFAULT_AFTER,
            values.get(b"off") == b"1" and abs(time.time() - os.stat(path).st_mtime) < OFF_SECONDS,
        )
    except (ValueError, OSError):
        return State()


def write_state(folder: str, state: State) -> None:
    """Write a session's state file in one step."""
    text = f"read {state.read}\nrate {state.rate:.5f}\nafter {state.after}\noff {int(state.off)}\n"
    write_atomic(os.path.join(folder, STATE_FILE), text.encode(), durable=False)


def switched_off(home: str, cwd: str) -> str:
    """Why memory is off here: 'worker', 'environment', 'machine' or 'project'; '' where it is on.

    A worker's child carries WORKER_VARIABLE, and hooks inside it do nothing. The project's off file may stand in the
    working folder or in any folder above it.
    """
    if os.environ.get(WORKER_VARIABLE):
        return "worker"
    if os.environ.get(OFF_VARIABLE, "").strip().lower() not in ("", "0", "false", "no", "off"):
        return "environment"
    if os.path.exists(os.path.join(home, OFF_FILE)):
        return "machine"
    folder = cwd
    while folder:
        if os.path.exists(os.path.join(folder, PROJECT_OFF_FILE)):
            return "project"
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return ""
