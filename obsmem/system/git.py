"""Running git on a clone of ours: with a deadline, asking nobody, running no hook and no program that a repository names.

Invariant: no call outlives its deadline, and none waits for a person.
"""

from __future__ import annotations

import os

from obsmem.core.errors import ObsmemError, UsageError
from obsmem.core.mask import mask
from obsmem.system.programs import run_program

SECONDS = 120.0  # for one call that may reach another machine
_SAFE = (
    "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "-c", "gc.auto=0",
    "-c", "core.autocrlf=false", "-c", "protocol.ext.allow=never", "-c", "core.symlinks=false", "-c", "submodule.recurse=false",
    "-c", "user.name=observational-memory", "-c", "user.email=observational-memory@localhost", "-c", "core.attributesFile=",
)  # fmt: skip


class GitFailed(ObsmemError):
    """Git did not do what it was asked; the message says what it said."""


def check_address(url: str) -> str:
    """An address that may be given to git. Raises UsageError for one that git would take for an option or a program."""
    url = url.strip()
    if not url or url.startswith("-") or "::" in url or any(ord(letter) < 32 for letter in url):
        raise UsageError(f"{url!r} is no address of a git repository: give a URL or the path of one.")
    return url


def git(folder: str, *words: str, seconds: float = SECONDS) -> str:
    """Run one git command in a folder; returns what it printed. Raises GitFailed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "LC_ALL": "C",
        "GCM_INTERACTIVE": "never",
    }
    environment.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    try:
        done = run_program(["git", *_SAFE, *words], folder, environment, seconds)
    except FileNotFoundError as error:
        raise GitFailed("git is not on this machine: install it, then run the command again.") from error
    if done.status is None:
        raise GitFailed(
            f"git {words[0]} did not end within {seconds:.0f} seconds: see whether the other side can be reached."
        )
    if done.status:
        said = mask(done.stderr.strip()).replace("\n", " ")[-300:]
        raise GitFailed(f"git {words[0]} failed ({said}). Mend that and run the command again.")
    return done.stdout
