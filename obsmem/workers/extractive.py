"""The embedded default worker: notes by rule from cards, no model, the same answer every time.

It can always answer, so it stands last in every cascade. Invariant: each proposal cites only entries of its chunk, is
one line, and says nothing that the cited entries do not show.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from obsmem.core.errors import WorkerError
from obsmem.core.model import Reply, Request
from obsmem.workers.extractive_drop import drop
from obsmem.workers.extractive_observe import observe
from obsmem.workers.extractive_reflect import reflect

NAME = "extractive"

_TASKS: dict[str, Callable[[Request], list[dict[str, Any]]]] = {"observe": observe, "reflect": reflect, "drop": drop}


def ask(request: Request) -> Reply:
    """Answer one request. Raises WorkerError only for a task that is none of observe, reflect, drop."""
    task = _TASKS.get(request.task)
    if task is None:
        raise WorkerError(f"The extractive worker knows no task {request.task!r}: ask observe, reflect or drop.")
    started = time.monotonic()
    items = task(request)
    return Reply(tuple(items), NAME, ms=int((time.monotonic() - started) * 1000))
