"""One talk with a program: find it, put a prompt to it, and tell how it ended.

Invariant: a program that was killed, could not be started, or said nothing at all is a WorkerError, never an answer.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from obsmem.core.errors import WorkerError
from obsmem.workers.base import ANSWER_LIMIT
from obsmem.workers.command_base import Output
from obsmem.workers.command_process import Ended, Folder, run


def found(program: str, environment: Mapping[str, str], name: str) -> str:
    """The absolute path of a program. Raises WorkerError (fault ``settings``) where there is none."""
    path = shutil.which(os.path.expanduser(program), path=environment.get("PATH", os.defpath))
    if path is None:
        raise WorkerError(
            f"The program {program!r} of the worker {name} is not found, or may not be run. Install it, or correct its "
            "path in 'workers'.",
            fault="settings",
        )
    return os.path.abspath(path)


def talk(
    name: str, argv: list[str], folder: Folder, environment: Mapping[str, str], prompt: str, seconds: float
) -> Output:
    """Run a program on a prompt. Raises WorkerError where it did not end by itself or said nothing."""
    folder.write("prompt", prompt)
    try:
        ended = run(argv, folder, environment, seconds)
    except OSError as error:
        raise WorkerError(
            f"The program of the worker {name} cannot be started ({type(error).__name__}). Install it again, or correct "
            "its path in 'workers'.",
            fault="settings",
        ) from error
    if ended.status is None:
        raise _killed(name, ended, seconds)
    output = Output(ended.status, folder.read("stdout"), folder.read("stderr"), folder)
    if not ended.status and not output.stdout.strip():
        raise WorkerError(
            f"The program of the worker {name} ended well and printed nothing. Nothing was read as covered; it will be "
            "asked again.",
            retry=True,
        )
    return output


def _killed(name: str, ended: Ended, seconds: float) -> WorkerError:
    if ended.why == "long":
        return WorkerError(
            f"The program of the worker {name} printed more than {ANSWER_LIMIT} bytes and was killed. Nothing was kept.",
            retry=True,
        )
    return WorkerError(
        f"The program of the worker {name} did not end within {seconds:g} s and was killed. Raise 'timeout_seconds', or "
        "choose a faster model.",
        retry=True,
        fault="unavailable",
    )
