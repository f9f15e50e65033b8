"""The launcher: a few lines of shell in the data folder that every hook config calls.

Invariant: its path and the text of the hook configs never change, so that a harness which trusts a hook by the hash of
its command goes on trusting it after an upgrade; what an upgrade changes is the launcher's content. Where nothing can
be run it exits 0.
"""

from __future__ import annotations

import os
import shlex
import sys

from obsmem.system.files import read_bytes, write_atomic
from obsmem.system.paths import HOME_VARIABLE
from obsmem.system.process import INTERPRETER_FILE

LAUNCHER = "launch"
EXECUTABLE = 0o700


def launcher_path(home: str) -> str:
    """Where the launcher of a data folder lies on this platform."""
    return os.path.join(home, LAUNCHER + (".cmd" if sys.platform == "win32" else ""))


def write_launcher(home: str, script: str) -> str:
    """Write the launcher for this interpreter and script, and record the interpreter that has the packages.

    Hooks run under the real interpreter behind a virtual environment or a version manager's shim, which starts up to
    200 ms faster; everything else runs under the recorded one. Returns the launcher's path.
    """
    record_interpreter(home)
    path = launcher_path(home)
    python = os.path.realpath(sys.executable)
    text = _for_windows(home, python, script) if sys.platform == "win32" else _for_shell(home, python, script)
    if read_bytes(path) != text.encode():
        write_atomic(path, text.encode(), EXECUTABLE)
    return path


def record_interpreter(home: str) -> None:
    """Note which interpreter has our packages: this one."""
    path = os.path.join(home, INTERPRETER_FILE)
    if read_bytes(path) != sys.executable.encode():
        write_atomic(path, sys.executable.encode())


def _for_shell(home: str, python: str, script: str) -> str:
    return f"""#!/bin/sh
# Written by observational-memory. Hook configs call this file; its path never changes, its content may.
{HOME_VARIABLE}={shlex.quote(home)}
export {HOME_VARIABLE}
script={shlex.quote(script)}
[ -f "$script" ] || exit 0
for python in {shlex.quote(python)} python3 python; do
    command -v "$python" >/dev/null 2>&1 && exec "$python" -I -S "$script" "$@"
done
exit 0
"""


def _for_windows(home: str, python: str, script: str) -> str:
    return (
        "@echo off\r\n"
        "rem Written by observational-memory. Hook configs call this file; its path never changes, its content may.\r\n"
        f'set "{HOME_VARIABLE}={home}"\r\n'
        f'if not exist "{script}" exit /b 0\r\n'
        f'if exist "{python}" ("{python}" -I -S "{script}" %* & exit /b 0)\r\n'
        f'where py >nul 2>&1 && (py -3 -I -S "{script}" %* & exit /b 0)\r\n'
        "exit /b 0\r\n"
    )
