"""Asking the configured workers, in order, until one answers; the extractive one always stands last.

Invariants: nobody is asked who is not on the list; no model is asked without a reservation within the day's limits, nor
one that is marked as unavailable, nor with more than fits into its window; every call leaves one row in
``worker_calls``, without content; a failed answer is counted as a failure whole, and never advances anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from obsmem import workers
from obsmem.core.errors import ConfigError, WorkerError
from obsmem.core.model import Reply, Request
from obsmem.core.tokens import estimate
from obsmem.memory import repair
from obsmem.memory.chunk import SMALLEST_CAP
from obsmem.memory.repair import Verdict
from obsmem.store.memory import WorkerCall
from obsmem.store.spending import Spending
from obsmem.system import log
from obsmem.system.lock import hold
from obsmem.tasks.store import Store
from obsmem.workers.base import ModelWorker, Worker, as_model

MOST_TRIES = 3
WINDOW_FACTOR = 1.3  # an estimate may be off: a prompt has to fit this many times; seed-features B3
ALONE_SECONDS = 30.0  # how long one waits for another process's call to end
BUDGET = "budget"  # what is left alone until midnight when the day's limit is reached

Judge = Callable[[Reply], Verdict]


def cascade(store: Store, *, fast: bool = False, model: str = "", strict: bool = False) -> list[Worker]:
    """The workers to ask, in order. ``fast`` leaves only the extractive one (before a compaction, in a replay).

    With ``prefer_session_model`` a worker that is set to the session's own ``model`` comes first. One that is set up
    wrongly is left out, so that a slip in the configuration costs no memory, and the log says so; where somebody
    watches (``strict``) ConfigError is raised.
    """
    chosen: list[Worker] = []
    for item in [] if fast else store.config["workers"]:
        if item == "extractive":
            break
        try:
            chosen.append(make_worker(item))
        except ConfigError as error:
            if strict:
                raise
            log.write(store.home, "workers", outcome=type(error).__name__)
    if model and store.config["prefer_session_model"]:
        chosen.sort(key=lambda worker: getattr(as_model(worker), "model", "") != model)
    extractive: Any = workers.load("extractive")
    return [*chosen, extractive]


def has_workers(store: Store) -> bool:
    """True if anybody but the extractive worker is to be asked."""
    return len(cascade(store)) > 1


def make_worker(item: Any) -> Worker:
    """The worker of an entry of ``workers``. Raises ConfigError."""
    kind = item.get("kind") if isinstance(item, dict) else None
    kinds = [one for one in workers.REGISTRY if one != "extractive"]
    if kind not in kinds:
        known = ", ".join(("extractive", *(f"{{kind: {one}, …}}" for one in kinds)))
        raise ConfigError(f"'workers' names {item!r}, which is no worker. Known are: {known}.")
    made: Worker = workers.load(kind).make(item)
    return made


def window_of(store: Store, team: Sequence[Worker]) -> int | None:
    """The window (tokens) of the first model that may be asked now; None where none is, or its window is not known."""
    spending, now = Spending(store.memory.connection), int(time.time() * 1000)
    for worker in team:
        model = as_model(worker)
        if model is not None and spending.known(model.NAME).until <= now:
            return spending.known(model.NAME).window or model.window or None
    return None


def ask(
    store: Store, team: Sequence[Worker], request: Request, first: int, last: int, judge: Judge | None = None
) -> tuple[Reply, WorkerCall]:
    """Put a request to a team; the first answer counts. Returns it with the row that describes it, not yet written.

    An answer that cannot be read, or in which ``judge`` finds fault, is put to the same model once more with what is
    wrong. Raises WorkerError when nobody answers, and with fault ``overflow`` where a model was sent too much and less
    can be sent; ``counted`` is then the size of the chunk.
    """
    failure = WorkerError("No worker is configured.")
    tries, overflow = 0, None
    for worker in team:
        if as_model(worker) is None and overflow is not None and _can_shrink(request):
            raise WorkerError(str(overflow), fault="overflow", counted=request.chunk.tokens if request.chunk else 0)
        if tries == MOST_TRIES and worker is not team[-1]:
            continue
        try:
            answered = _ask_one(store, worker, request, first, last, judge)
        except WorkerError as error:
            failure = error
            overflow = error if error.fault == "overflow" else overflow  # another one's window may be larger
            tries += 1
            continue
        if answered is not None:
            return answered
    raise WorkerError(f"No worker answered ({type(failure).__name__}: {failure}).") from failure


def _can_shrink(request: Request) -> bool:
    return request.chunk is not None and request.chunk.tokens > SMALLEST_CAP and len(request.chunk.entries) > 1


def _ask_one(
    store: Store, worker: Worker, request: Request, first: int, last: int, judge: Judge | None
) -> tuple[Reply, WorkerCall] | None:
    """One worker's answer, mended once if need be; None where it may not be asked now."""
    model = as_model(worker)
    if model is None:
        return _call(store, worker, request, first, last)
    request = request._replace(prompt=store.mask(request.prompt))
    try:
        answered = _call_model(store, model, request, first, last)
        verdict = judge(answered[0]) if answered and judge else Verdict()
        answer = answered[0].text if answered else ""
    except WorkerError as error:
        if not error.answer:
            raise
        answered, verdict, answer = None, Verdict(0, (str(error),)), error.answer
        failure: WorkerError | None = error
    else:
        failure = None
    if not verdict.problems:
        return answered
    try:
        second = _call_model(store, model, repair.build(request, answer, verdict.problems), first, last)
    except WorkerError:
        second = None
    if second and (answered is None or (judge is not None and judge(second[0]).better_than(verdict))):
        if answered:
            store.memory.record_call(answered[1]._replace(outcome="mended", items=0))
        return second
    if second:
        store.memory.record_call(second[1]._replace(outcome="no better", items=0))
    if failure:
        raise failure
    return answered


def _call_model(
    store: Store, worker: ModelWorker, request: Request, first: int, last: int
) -> tuple[Reply, WorkerCall] | None:
    """One call of a model within what is allowed; None where it is not."""
    spending, now = Spending(store.memory.connection), int(time.time() * 1000)
    known = spending.known(worker.NAME)
    if known.until > now:
        return None
    tokens = int(estimate(request.prompt) * known.ratio)
    window = known.window or worker.window
    if window and tokens * WINDOW_FACTOR + worker.answer_tokens > window:
        raise WorkerError(f"{worker.NAME} has a window of {window} tokens, too few for {tokens}.", fault="overflow")
    today = midnight(now)
    calls, most = store.config["worker_calls_per_day"], store.config["worker_tokens_per_day"]
    reservation = spending.reserve(worker.NAME, now, tokens + worker.answer_tokens, today, calls, most)
    if not reservation:
        spending.leave_alone(BUDGET, midnight(now, days=1), "the day's limit is reached")
        return None
    try:
        reply, call = _call_alone(store, worker, request, first, last)
    except WorkerError as error:
        _learn(store, spending, worker, request, error)
        if error.fault in ("overflow", "settings"):
            spending.settle(reservation, 0)  # refused before anything was done
        raise
    spending.trust_again(worker.NAME)
    spending.measure(worker.NAME, estimate(request.prompt), reply.tokens_in)
    if reply.tokens_in:
        spending.settle(reservation, reply.tokens_in + reply.tokens_out)
    return reply, call


def _call_alone(store: Store, worker: ModelWorker, request: Request, first: int, last: int) -> tuple[Reply, WorkerCall]:
    """Call a model; one that must not be called twice at a time waits for whoever does."""
    if not worker.alone:
        return _call(store, worker, request, first, last)
    try:
        with hold(store.home, "model-alone", ALONE_SECONDS):
            return _call(store, worker, request, first, last)
    except TimeoutError:
        raise WorkerError("Another process asks a model right now, and this one may not be asked beside it.") from None


def _call(store: Store, worker: Worker, request: Request, first: int, last: int) -> tuple[Reply, WorkerCall]:
    """Call a worker. Raises WorkerError, after a row about it, for whatever goes wrong."""
    at, started = int(time.time() * 1000), time.monotonic()
    try:
        reply = worker.ask(request)
        if not all(isinstance(item, Mapping) for item in reply.items):
            raise WorkerError("The worker's proposals are no mappings: its answer cannot be used.")
    except Exception as error:  # a worker's own fault is a failure like any other; the next one is asked
        ms = int((time.monotonic() - started) * 1000)
        fault = error.fault if isinstance(error, WorkerError) else type(error).__name__
        row = WorkerCall(
            request.session,
            request.task,
            worker.NAME,
            at,
            first,
            last,
            f"failed: {fault}",
            ms=ms,
            prompt=request.version,
        )
        store.memory.record_call(row)
        if isinstance(error, WorkerError):
            raise
        raise WorkerError(f"The worker {worker.NAME} failed ({type(error).__name__}: {error}).") from error
    outcome = "ok" if reply.items else "empty"
    call = WorkerCall(request.session, request.task, reply.worker, at, first, last, outcome, len(reply.items), 0,
                      reply.tokens_in, reply.tokens_out, reply.ms, request.version)  # fmt: skip
    return reply, call


def _learn(store: Store, spending: Spending, worker: ModelWorker, request: Request, error: WorkerError) -> None:
    """Remember what a failure says of a worker, for all processes."""
    if error.fault == "overflow":
        spending.measure(worker.NAME, estimate(request.prompt), error.counted)
        if error.window:
            spending.learn_window(worker.NAME, error.window)
    elif error.fault in ("unavailable", "settings"):
        seconds = max(error.wait, store.config["worker_retry_minutes"] * 60)
        spending.leave_alone(worker.NAME, int((time.time() + seconds) * 1000), str(error))


def midnight(now: int, days: int = 0) -> int:
    """The beginning of the day that ``now`` (milliseconds) falls on in the local zone, or of one ``days`` later."""
    day = time.localtime(now / 1000)
    return int(time.mktime((day.tm_year, day.tm_mon, day.tm_mday + days, 0, 0, 0, 0, 0, -1)) * 1000)
