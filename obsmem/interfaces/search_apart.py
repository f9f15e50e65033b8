"""Searching by an expression from where a match that never ends could not be ended: in a process of its own.

Invariant: that process is killed at its deadline, and ends itself where nobody is left to do so: no expression keeps a
thread of a server, or a core of the machine, longer than an answer may take.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from obsmem.core.errors import NotFound, ObsmemError, StoreError, UsageError
from obsmem.core.finds import Hit, Hits, Query
from obsmem.system.paths import HOME_VARIABLE
from obsmem.tasks.called import installed_script
from obsmem.tasks.search import SECONDS, can_end, search
from obsmem.tasks.store import Store, open_store

START_SECONDS = 4.0  # for the other process to begin, beyond what the search itself may take
_FAILURES = {one.__name__: one for one in (UsageError, NotFound, StoreError)}
# Nothing of the folder that it runs in may stand in for a module of ours.
_CODE = (
    "import sys; sys.path[:] = [sys.argv[1], *filter(None, sys.path)]; "
    "from obsmem.interfaces.search_apart import answer; sys.exit(answer(sys.argv[2]))"
)


def find(store: Store, query: Query, *, seconds: float = SECONDS) -> Hits:
    """What a query asks for, as ``search`` finds it, in ``seconds`` at most and what a process needs to begin."""
    if query.mode != "regex" or can_end():
        return search(store, query, seconds=seconds)
    return _found_apart(store, query, seconds)


def _found_apart(store: Store, query: Query, seconds: float) -> Hits:
    import base64

    from obsmem.system.programs import run_program

    asked = json.dumps({"home": store.home, "seconds": seconds, "query": query._asdict()})
    words = base64.b64encode(asked.encode("ascii")).decode("ascii")
    argv = [sys.executable, "-c", _CODE, os.path.dirname(installed_script()), words]
    environment = {**os.environ, HOME_VARIABLE: store.home}
    try:
        ended = run_program(argv, os.getcwd(), environment, seconds + START_SECONDS)
    except OSError as error:
        raise ObsmemError(
            f"The process that an expression is looked for in could not be started ({error.strerror}): look for words."
        ) from error
    if ended.status is None:
        said = f"The expression takes too long: it was ended after {seconds + START_SECONDS:.0f} s, and nothing it found is known."
        return Hits((), False, f"{said} A simpler one, or an exact text, finds more.")
    try:
        value = json.loads(ended.stdout)
    except ValueError:
        raise ObsmemError(
            f"The process that an expression was looked for in ended with {ended.status}: try a simpler one, or an exact text."
        ) from None
    if "failed" in value:
        raise _FAILURES.get(value["failed"], ObsmemError)(value["why"])
    return Hits(tuple(Hit(**one) for one in value["hits"]), value["complete"], value["message"], value["more"])


def answer(words: str) -> int:
    """What the process of its own does: search, and print what was found as one JSON document."""
    import base64
    import faulthandler

    asked = json.loads(base64.b64decode(words))
    given: dict[str, Any] = {n: tuple(one) if isinstance(one, list) else one for n, one in asked["query"].items()}
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        # It needs neither this process's own leave nor whoever started it, who may be gone by then.
        faulthandler.dump_traceback_later(asked["seconds"] + START_SECONDS, exit=True, file=nowhere)
        value = _answered(asked, given)
        faulthandler.cancel_dump_traceback_later()
    sys.stdout.write(json.dumps(value))
    return 0


def _answered(asked: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    try:
        with open_store(asked["home"], readonly=True) as store:
            hits = search(store, Query(**given), seconds=asked["seconds"], is_watched=True)
    except ObsmemError as error:
        return {"failed": type(error).__name__, "why": str(error)}
    return {**hits._asdict(), "hits": [one._asdict() for one in hits.hits]}
