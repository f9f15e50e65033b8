"""Starting our own commands from a hook: detached, or waited for under a deadline.

Invariants: a child has its own session and closed stdio, so that it survives the harness and never speaks into it; a
child that is waited for is killed with its whole process group at the deadline. On the hook path: ``os`` and ``time``.
"""

from __future__ import annotations

import os
import sys
import time

from obsmem.system.files import read_bytes
from obsmem.system.paths import HOME_VARIABLE

INTERPRETER_FILE = "interpreter"
POLL_SECONDS = 0.01
KILL = 9


def recorded_interpreter(home: str) -> str:
    """The interpreter that has our packages, as recorded in the data folder; '' where none is, or it is gone."""
    recorded = read_bytes(os.path.join(home, INTERPRETER_FILE), 4096).decode("utf-8", "replace").strip()
    return recorded if recorded and os.path.exists(recorded) else ""


def interpreter(home: str) -> str:
    """The recorded interpreter, else the one that runs this."""
    return recorded_interpreter(home) or sys.executable


def start(home: str, script: str, arguments: list[str]) -> int:
    """Start one of our commands detached; returns its pid, 0 where it could not be started."""
    argv = [interpreter(home), script, *arguments]
    environment = {**os.environ, HOME_VARIABLE: home}
    if not hasattr(os, "posix_spawn"):
        return _start_elsewhere(argv, environment)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        return os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True)
    except NotImplementedError:
        return os.posix_spawn(argv[0], argv, environment, file_actions=actions, setpgroup=0)


def _start_elsewhere(argv: list[str], environment: dict[str, str]) -> int:
    import subprocess  # 20 ms, only where there is no posix_spawn (Windows)

    flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    null = subprocess.DEVNULL
    return subprocess.Popen(argv, env=environment, stdin=null, stdout=null, stderr=null, creationflags=flags).pid


def run(home: str, script: str, arguments: list[str], seconds: float) -> int | None:
    """Run one of our commands and wait at most ``seconds``; its exit status, None if it had to be killed. Nothing that it
    started in its group outlives it."""
    pid = start(home, script, arguments)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, getattr(os, "WNOHANG", 0))
        if done:
            _kill_rest(pid)
            return os.waitstatus_to_exitcode(status)
        time.sleep(POLL_SECONDS)
    kill_group(pid)
    return None


def _kill_rest(pid: int) -> None:
    """Kill what a process that has ended left behind in its group."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(pid, KILL)
    except OSError:
        pass  # as a rule nobody is left


def kill_group(pid: int) -> None:
    """Kill a process with everything in its group, and take its exit status."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(pid, KILL)
        else:
            os.kill(pid, KILL)
        os.waitpid(pid, 0)
    except OSError:
        pass
