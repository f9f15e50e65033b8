"""An expression is looked for where it can be ended, with the same answer, and holds no thread of a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.finds import Query
from obsmem.interfaces import search_apart
from obsmem.interfaces.mcp_scope import Asker
from obsmem.interfaces.mcp_tools import call_tool
from obsmem.interfaces.search_apart import find
from obsmem.tasks.search import can_end, search
from obsmem.tasks.store import Store
from tests.tasks.talk import Talk, opened, session_of

T = TypeVar("T")
ENDLESS = "((a|a)*)*$"  # matched by trying, for longer than the world is old


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    talk = Talk()
    talk.user("Port 8091, not 8080, \udc80 please.")
    talk.agent("Before it (port 8092).")
    talk.agent("a" * 80 + "!")
    talk.run("make serve", "listening on port 8091")
    with opened() as store:
        session_of(store, talk.write(tmp_path))
        yield store


def elsewhere(work: Callable[[], T]) -> T:
    """What some work gives in a thread that is not the main one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=60)


def from_thread(query: Query, seconds: float = 6.0) -> search_apart.Hits:
    def work() -> search_apart.Hits:
        with opened(readonly=True) as store:
            assert not can_end()
            return find(store, query, seconds=seconds)

    return elsewhere(work)


def test_the_answer_is_the_same_in_any_thread(store: Store) -> None:
    handle = store.archive.sessions()[0].session.handle
    for query in (
        Query(r"port (80)+9\d", "regex"),
        Query(r"port (80)+9\d", "regex", kinds=("user", "tool_result"), sessions=(handle,), limit=1),
        Query(r"port", "regex", live=(handle, 2)),
        Query(r"(port", "regex"),
        Query("port", "exact"),
        Query("port"),
    ):
        here = search(store, query)
        assert from_thread(query) == here and here.hits, query
    with pytest.raises(NotFound, match="nosuch"):
        from_thread(Query("x", "regex", sessions=("nosuch",)))
    with pytest.raises(UsageError, match="names no page"):
        from_thread(Query("x", "regex", after="nonsense"))


def test_one_that_never_ends_is_ended_in_a_thread_too(store: Store) -> None:
    hits = from_thread(Query(ENDLESS, "regex"), 0.5)
    assert not hits.complete and "takes too long" in hits.message and hits.more
    below = from_thread(Query(ENDLESS, "regex", after=hits.more), 5)
    assert below.complete and below.hits, "the page behind it goes on below the entry where it took too long"


def test_the_process_is_killed_where_it_does_not_end_itself(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_apart, "START_SECONDS", -0.5)
    started = time.monotonic()
    hits = from_thread(Query("port", "regex"), 0.5)
    assert time.monotonic() - started < 30
    assert (hits.hits, hits.complete, hits.more) == ((), False, "") and "was ended after" in hits.message


def test_without_anybody_to_end_it_an_expression_is_looked_for_as_it_stands(store: Store) -> None:
    def work() -> search_apart.Hits:
        with opened(readonly=True) as reading:
            return search(reading, Query("a*!", "regex"))

    hits = elsewhere(work)
    assert hits.hits == () and "as it stands" in hits.message


def test_an_agent_gets_an_answer_from_an_expression_with_nested_repeats(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(find.__kwdefaults__, "seconds", 1.0)

    def ask(words: str) -> str:
        said = elsewhere(lambda: call_tool("search", {"query": words, "mode": "regex"}, Asker("/w/shop")))
        assert not said.failed
        return said.text

    assert "port 8091" in ask(r"(port (8)+)+091$")
    assert "takes too long" in ask(ENDLESS)


def test_nothing_of_the_folder_it_runs_in_is_loaded(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base64.py").write_text("raise SystemExit(9)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert from_thread(Query("port", "regex")).hits
