"""The key of a server: from an environment variable, or printed by a program that keeps secrets.

Invariant: no message and no exception of this module holds the key or anything that the program printed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from obsmem.core.errors import WorkerError
from obsmem.system.state import WORKER_VARIABLE
from obsmem.workers.http_wire import WireError, within

KEY_SECONDS = 20.0  # a program that keeps secrets may ask a server of its own
KEY_LIMIT = 1 << 14  # characters


def from_environment(name: str, worker: str) -> str:
    """The key in a variable. Raises WorkerError where it is not set."""
    key = os.environ.get(name, "").strip()
    if not key:
        raise _mistake(worker, f"the environment variable {name} is not set", f"Set {name}, or remove 'key_env'")
    return _usable(key, worker, "'key_env'")


def from_command(command: str | Sequence[str], seconds: float, worker: str) -> str:
    """What a program prints, which is a shell line if it is a text. Raises WorkerError where it fails or is slow. It gets
    no input, and is killed with its group when its time is over."""
    import subprocess

    try:
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            env={**os.environ, WORKER_VARIABLE: "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _mistake(worker, f"its key command cannot be started ({type(error).__name__})") from None

    def printed() -> bytes:
        assert process.stdout is not None
        with process.stdout as pipe:  # closed where it is read: closing it elsewhere would wait for the reader
            data = pipe.read(KEY_LIMIT + 1)
        process.wait()
        return data

    try:
        output = within(min(seconds, KEY_SECONDS), printed)
    except WireError:
        _end(process.pid)
        process.wait()
        raise _mistake(worker, "its key command did not end in time") from None
    if process.returncode and len(output) <= KEY_LIMIT:
        raise _mistake(worker, f"its key command failed with exit code {process.returncode}")
    key = output.decode("utf-8", "replace").strip()
    if not key:
        raise _mistake(worker, "its key command printed nothing")
    return _usable(key, worker, "'key_command'")


def _end(pid: int) -> None:
    """Kill a program's group; on Windows the program only."""
    import signal

    try:
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)
    except OSError:
        pass  # all of it has ended


def _usable(key: str, worker: str, option: str) -> str:
    """A key that can stand in a header. The library would put one that cannot into its own message."""
    if len(key) > KEY_LIMIT or not key.isascii() or not key.isprintable() or " " in key:
        raise _mistake(
            worker,
            f"what {option} gives is no key: it is too long, or has spaces, line ends or other letters than ASCII",
        )
    return key


def _mistake(worker: str, what: str, remedy: str = "Correct 'key_command': run it in a shell and look") -> WorkerError:
    return WorkerError(f"The worker {worker} has no key: {what}. {remedy}.", fault="settings")
