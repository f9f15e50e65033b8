"""Asking the configured workers, in order, until one answers; the extractive one always stands last.

Invariant: every request leaves one row in ``worker_calls`` for each worker asked, without content; a failed answer is
counted as a failure whole, and never advances anything.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from obsmem import workers
from obsmem.core.errors import ConfigError, WorkerError
from obsmem.core.model import Reply, Request
from obsmem.store.memory import WorkerCall
from obsmem.tasks.store import Store
from obsmem.workers.base import Worker

MOST_TRIES = 3


def cascade(store: Store, *, fast: bool = False) -> list[Worker]:
    """The workers to ask, in order. ``fast`` leaves only the extractive one (before a compaction, in a replay)."""
    chosen: list[Worker] = []
    for item in [] if fast else store.config["workers"]:
        if item == "extractive":
            break
        chosen.append(_worker(item))
    extractive: Any = workers.load("extractive")
    return [*chosen[: MOST_TRIES - 1], extractive]


def has_workers(store: Store) -> bool:
    """True if anybody but the extractive worker is to be asked."""
    return len(cascade(store)) > 1


def _worker(item: Any) -> Worker:
    if isinstance(item, dict) and item.get("kind") == "scripted" and "path" in item:
        loaded: Worker = workers.load("scripted").load(item["path"])
        return loaded
    raise ConfigError(
        f"'workers' names {item!r}, which is no worker. Known are: extractive, {{kind: scripted, path: FILE}}."
    )


def ask(store: Store, team: list[Worker], request: Request, first: int, last: int) -> tuple[Reply, WorkerCall]:
    """Put a request to a team; the first answer counts. Returns it with the row that describes it, not yet written.

    Raises WorkerError when nobody answers; each failure has its row then.
    """
    failure: Exception = WorkerError("No worker is configured.")
    for worker in team:
        at, started = int(time.time() * 1000), time.monotonic()
        try:
            reply = worker.ask(request)
            if not all(isinstance(item, Mapping) for item in reply.items):
                raise WorkerError("The worker's proposals are no mappings: its answer cannot be used.")
        except Exception as error:  # a worker's own fault is a failure like any other; the next one is asked
            failure = error
            ms = int((time.monotonic() - started) * 1000)
            store.memory.record_call(
                WorkerCall(
                    request.session,
                    request.task,
                    worker.NAME,
                    at,
                    first,
                    last,
                    f"failed: {type(error).__name__}",
                    ms=ms,
                )
            )
            continue
        outcome = "ok" if reply.items else "empty"
        call = WorkerCall(request.session, request.task, reply.worker, at, first, last, outcome, len(reply.items), 0,
                          reply.tokens_in, reply.tokens_out, reply.ms)  # fmt: skip
        return reply, call
    raise WorkerError(f"No worker answered ({type(failure).__name__}: {failure}).") from failure
