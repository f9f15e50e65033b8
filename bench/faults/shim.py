"""The shim that ends a process at its n-th commit, fsync, rename or spawn, or fills its disk at the n-th write.

It is C, preloaded, so that it stands between SQLite and the system too: SQLite's commit is the truncation of a journal
between two fsyncs, and none of these calls comes by Python. Linux with a C compiler only; elsewhere parts that need it
say so. Invariant: only the process that arms itself is touched.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SYNC, MOVE, SPAWN, CUT, WRITE = 1, 2, 4, 8, 16
STEPS = SYNC | MOVE | SPAWN | CUT  # what the issue of a commit, an fsync, a rename and a spawn are to the system
COUNT, DIE, FULL_FROM, FULL_ONCE, STOP = range(5)
SOURCE = Path(__file__).with_name("shim.c")
PRELOAD = "LD_PRELOAD"
BUILD_SECONDS = 60


def available() -> bool:
    """True in a process that the shim is preloaded into."""
    return _library() is not None


def build() -> str:
    """The compiled shim's path, compiled once for one source; '' where that cannot be done."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        return ""
    name = f"faults-shim-{os.getuid()}-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}.so"
    target = os.path.join(tempfile.gettempdir(), name)
    if not os.path.exists(target):
        beside = f"{target}.{os.getpid()}"
        command = [compiler, "-O1", "-shared", "-fPIC", "-w", "-o", beside, str(SOURCE), "-ldl"]
        if subprocess.run(command, capture_output=True, timeout=BUILD_SECONDS).returncode:
            return ""
        os.replace(beside, target)
    return target


def preloaded(command: list[str]) -> None:
    """Run this program again with the shim in it, in place of this process; returns where it is there, or cannot be."""
    if available():
        return
    path = build()
    if path and path not in os.environ.get(PRELOAD, ""):
        os.execve(command[0], command, {**os.environ, PRELOAD: path})


def arm(kinds: int, mode: int, number: int) -> None:
    """From here on this process counts, and at the ``number``-th call of these kinds it dies, is stopped, or is told that
    the disk is full."""
    library = _library()
    assert library is not None, "the shim is not preloaded"
    library.faults_arm(kinds, mode, ctypes.c_long(number))


def seen() -> int:
    """How many calls were counted since the arming."""
    library = _library()
    return int(library.faults_seen()) if library is not None else 0


def _library() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    if not hasattr(library, "faults_seen"):
        return None
    library.faults_seen.restype = ctypes.c_long
    return library
