"""The launchers: a few lines of shell in the data folder. One is what every hook config calls, one runs ``recall``, one
serves an agent's tools.

Invariant: the first one's path and the text of the hook configs never change, so that a harness which trusts a hook by the hash of
its command goes on trusting it after an upgrade; what an upgrade changes is the launcher's content. Where nothing can
be run it exits 0. The others run with no environment at all, so that an agent can call them from a sandbox.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

from obsmem.system.files import read_bytes, write_atomic
from obsmem.system.paths import HOME_VARIABLE
from obsmem.system.process import INTERPRETER_FILE

LAUNCHER = "launch"
RECALL = "recall"
SERVER = "mcp"
EXECUTABLE = 0o700


def launcher_path(home: str) -> str:
    """Where the launcher of a data folder lies on this platform."""
    return _path(home, LAUNCHER)


def recall_path(home: str) -> str:
    """Where the launcher of ``recall`` lies on this platform."""
    return _path(home, RECALL)


def server_path(home: str) -> str:
    """Where the launcher of the server of an agent's tools lies on this platform."""
    return _path(home, SERVER)


def _path(home: str, name: str) -> str:
    return os.path.join(home, name + (".cmd" if sys.platform == "win32" else ""))


def quoted(path: str) -> str:
    """A path as one word of a shell command. Its form never changes: harnesses know a command by its text."""
    if sys.platform == "win32":
        return f'"{path}"'
    if re.fullmatch(r"[\w@%+=:,./ -]+", path, re.ASCII):
        return f'"{path}"' if " " in path else path
    return shlex.quote(path)


def calls(text: str, path: str) -> bool:
    """True if a command, or a rule about commands, names this launcher."""
    forms = {path, path.replace("\\", "\\\\"), shlex.quote(path)}
    return any(re.search(re.escape(form) + r"(?![\w.-])", text) for form in forms)


def write_launcher(home: str, script: str) -> str:
    """Write the launcher for this interpreter and script, and record the interpreter that has the packages.

    Hooks run under the real interpreter behind a virtual environment or a version manager's shim, which starts up to
    200 ms faster; everything else runs under the recorded one. Returns the launcher's path.
    """
    record_interpreter(home)
    path = launcher_path(home)
    _write(path, launcher_text(home, script))
    return path


def launcher_text(home: str, script: str) -> str:
    """What the launcher holds if it is written now, by this interpreter."""
    python = os.path.realpath(sys.executable)
    return _for_windows(home, python, script) if sys.platform == "win32" else _for_shell(home, python, script)


def write_recall(home: str, script: str) -> str:
    """Write the launcher of ``recall``, which runs under the interpreter that is recorded when it is called."""
    return _write_command(home, script, RECALL)


def write_server(home: str, script: str) -> str:
    """Write the launcher of the server, which runs under the interpreter that is recorded when it is called."""
    return _write_command(home, script, SERVER)


def _write_command(home: str, script: str, name: str) -> str:
    path = _path(home, name)
    form = _command_for_windows if sys.platform == "win32" else _command_for_shell
    _write(path, form(home, script, name))
    return path


def _write(path: str, text: str) -> None:
    data = os.fsencode(text)
    if read_bytes(path) != data:
        write_atomic(path, data, EXECUTABLE)


def record_interpreter(home: str, python: str = "") -> None:
    """Note which interpreter has our packages: this one, or the one whose path is given."""
    path = os.path.join(home, INTERPRETER_FILE)
    data = os.fsencode(python or sys.executable)
    if read_bytes(path) != data:
        write_atomic(path, data)


# What is called python3 may be a stub that only says where to get one, a version manager's without a version, or too old.
_ANY_PYTHON = """for python in python3 python; do
    "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 10))' </dev/null >/dev/null 2>&1"""


def _for_shell(home: str, python: str, script: str) -> str:
    return f"""#!/bin/sh
# Written by observational-memory. Hook configs call this file; its path never changes, its content may.
{HOME_VARIABLE}={shlex.quote(home)}
export {HOME_VARIABLE}
script={shlex.quote(script)}
[ -f "$script" ] || exit 0
recorded={shlex.quote(python)}
command -v "$recorded" >/dev/null 2>&1 && exec "$recorded" -I -S "$script" "$@"
{_ANY_PYTHON} && exec "$python" -I -S "$script" "$@"
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


_PURPOSE = {RECALL: "prints the exact words behind an id", SERVER: "gives an agent its tools over the record"}


def _command_for_shell(home: str, script: str, command: str) -> str:
    return f"""#!/bin/sh
# Written by observational-memory: {_PURPOSE[command]}.
{HOME_VARIABLE}={shlex.quote(home)}
export {HOME_VARIABLE}
script={shlex.quote(script)}
if [ ! -f "$script" ]; then
    echo "The program that this runs is gone from $script. Install observational-memory again." >&2
    exit 1
fi
recorded=
[ -r "${HOME_VARIABLE}/{INTERPRETER_FILE}" ] && recorded=$(cat "${HOME_VARIABLE}/{INTERPRETER_FILE}")
for python in "$recorded" {shlex.quote(sys.executable)}; do
    [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 && exec "$python" "$script" {command} "$@"
done
{_ANY_PYTHON} && exec "$python" "$script" {command} "$@"
done
echo "No Python was found to run it with. Install Python 3.10 or newer." >&2
exit 1
"""


def _command_for_windows(home: str, script: str, command: str) -> str:
    return (
        "@echo off\r\n"
        f"rem Written by observational-memory: {_PURPOSE[command]}.\r\n"
        f'set "{HOME_VARIABLE}={home}"\r\n'
        f'"{sys.executable}" "{script}" {command} %*\r\n'
    )
