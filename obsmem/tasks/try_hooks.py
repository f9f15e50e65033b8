"""Running each handler of a harness's config once as the harness would, to see that it works on this machine.

Invariants: nothing of the user's is touched (the payload names a transcript that does not exist, in a folder of its
own); only what a harness gives is given: its shell, a bare environment, a payload on standard input.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from obsmem.harnesses import TURN_ENDS
from obsmem.harnesses.base import Harness
from obsmem.system.log import log_path

SECONDS = 60
_OUTCOME = re.compile(r" hook name=\S+ outcome=(\S+)")
_FAILED = re.compile(r"exit-[^0]|killed|[A-Z]\w*$")


class Trial(NamedTuple):
    """How one handler did. ``wrong`` is '' where it did well."""

    event: str
    ms: int
    wrong: str


def try_hooks(home: str, module: Harness, config: dict[str, Any]) -> list[Trial]:
    """Run every handler in a hook config, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        return [_try(home, module, event, command, folder) for event, command in handlers(config)]


def handlers(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(event, command) of every handler in a hook config."""
    for event, groups in config.get("hooks", {}).items():
        for group in groups:
            for handler in group.get("hooks", [group]):
                yield event, handler["command"]


def _try(home: str, module: Harness, event: str, command: str, folder: str) -> Trial:
    _, session_key, transcript_key, folder_key, *_ = TURN_ENDS[module.NAME]
    nowhere = os.path.join(home, "install-check", "none.jsonl")  # always the same: locks are named after it
    payload = {session_key: "install-check", transcript_key: nowhere, folder_key: folder}
    payload = {"source": "startup", "trigger": "manual", "hook_event_name": event, **payload}
    before = _log_size(home)
    started = time.monotonic()
    try:
        done = subprocess.run(
            _shell(module, command),
            input=json.dumps(payload).encode(),
            capture_output=True,
            env=_environment(),
            cwd=folder,
            timeout=SECONDS,
            check=False,
        )
        wrong = _verdict(done) or _logged(home, before)
    except subprocess.TimeoutExpired:
        wrong = f"took more than {SECONDS} s"
    except OSError as error:
        wrong = str(error)
    return Trial(event, int((time.monotonic() - started) * 1000), wrong)


def _shell(module: Harness, command: str) -> list[str] | str:
    if sys.platform == "win32":
        return command
    shell = os.environ.get("SHELL", "")
    return [shell, "-lc", command] if module.LOGIN_SHELL and os.path.isfile(shell) else ["/bin/sh", "-c", command]


def _environment() -> dict[str, str]:
    """What every process has; nothing of the terminal that installs."""
    names = ("HOME", "USER", "LANG", "SHELL", "SYSTEMROOT", "USERPROFILE", "LOCALAPPDATA", "XDG_DATA_HOME")
    path = os.environ.get("PATH", "") if sys.platform == "win32" else "/usr/bin:/bin"
    return {**{name: os.environ[name] for name in names if name in os.environ}, "PATH": path}


def _verdict(done: subprocess.CompletedProcess[bytes]) -> str:
    if done.returncode:
        return f"exit status {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[:200]}"
    if done.stdout.strip():
        try:
            json.loads(done.stdout)
        except ValueError:
            return f"printed what is no JSON: {done.stdout[:80].decode('utf-8', 'replace')!r}"
    return ""


def _log_size(home: str) -> int:
    try:
        return os.path.getsize(log_path(home))
    except OSError:
        return 0


def _logged(home: str, offset: int) -> str:
    """Hooks always end well; what went wrong stands in the log."""
    try:
        with open(log_path(home), "rb") as file:
            file.seek(offset)
            new = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    failed = [outcome for outcome in _OUTCOME.findall(new) if _FAILED.match(outcome)]
    return f"the log says {failed[0]}" if failed else ""
