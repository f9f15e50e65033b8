"""The vector signal against a server on loopback that knows which words mean the same."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.errors import ConfigError, WorkerError
from obsmem.core.finds import Query
from obsmem.core.tokens import estimate
from obsmem.store.archive import StoredSession
from obsmem.tasks.forget import forget_session
from obsmem.tasks.search import search
from obsmem.tasks.store import Store
from obsmem.tasks.vectors import BATCH_TEXTS, BATCH_TOKENS, fill_vectors
from obsmem.workers.http_embeddings import Embedder
from tests.tasks.talk import FORK, Talk, opened, session_of, watch
from tests.tasks.test_look import KEY
from tests.workers.model_site import Handler, Played, Site, site

MEANINGS = (
    ("port", "socket", "listens"),
    ("car", "automobile", "vehicle"),
    ("slow", "sluggish", "lag"),
    ("tree", "oak"),
)


def vector(text: str) -> list[float]:
    """One number a meaning, and one that every text has."""
    words = text.lower().replace(".", " ").split()
    return [0.1, *(float(sum(word in meaning for word in words)) for meaning in MEANINGS)]


def answer(handler: Handler) -> None:
    texts = handler.server.seen[-1].body["input"]
    rows = [{"index": number, "embedding": vector(text)} for number, text in enumerate(texts)]
    handler.play(Played(body={"data": list(reversed(rows)), "usage": {"total_tokens": 7}}))


@pytest.fixture
def server() -> Iterator[Site]:
    with site(answer) as running:
        yield running


def set_up(server: Site, **more: Any) -> dict[str, Any]:
    return {"embeddings": {"url": server.url, "model": "small", **more}}


def talked(store: Store, folder: Path, session: str = FORK) -> StoredSession:
    talk = Talk(session)
    for text in ("The automobile must be painted red.", "Our backend is sluggish on Mondays.", "Plant an oak there."):
        talk.user(text)
        talk.agent("I have done as you said, and all of the tests passed.")
    stored = session_of(store, talk.write(folder, f"{session}.jsonl"))
    watch(store, stored)
    return stored


def fill(store: Store) -> int:
    return fill_vectors(store, time.monotonic() + 60)


def best(store: Store, text: str, **more: Any) -> list[str]:
    return [hit.snippet for hit in search(store, Query(text, **more)).hits]


def test_what_means_the_same_is_found_by_other_words(server: Site, tmp_path: Path) -> None:
    with opened() as store:
        talked(store, tmp_path)
        assert not any("automobile" in text for text in best(store, "which vehicle"))
        assert fill(store) == 0 and server.seen == [], "nothing is configured"
    with opened(**set_up(server)) as store:
        made = fill(store)
        assert made > 6 and fill(store) == 0, "notes too, and each once"
        assert "automobile" in best(store, "which vehicle")[0]
        (first, *_) = search(store, Query("which vehicle")).hits
        assert first.signals["ranking_1"] >= 1
        assert "sluggish" in best(store, "lag", kinds=("user",))[0]
        assert all(
            text.startswith(("Said", "User", "Our")) or "sluggish" in text
            for text in best(store, "lag", kinds=("note",))[:1]
        )
        assert best(store, "lag", until=1) == []
        assert {seen.path for seen in server.seen} == {"/v1/embeddings"}


def test_only_masked_words_are_sent(server: Site, tmp_path: Path) -> None:
    talk = Talk()
    talk.user(f"The token of the automobile is {KEY}, remember it.")
    with opened(**set_up(server)) as store:
        session_of(store, talk.write(tmp_path))
        assert fill(store) == 1
        best(store, f"what is {KEY} for")
        assert len(server.seen) == 2 and KEY not in str([seen.body for seen in server.seen])


def test_another_model_begins_anew(server: Site, tmp_path: Path) -> None:
    with opened(**set_up(server)) as store:
        talked(store, tmp_path)
        made = fill(store)
    with opened(**set_up(server, model="other")) as store:
        assert not any("automobile" in text for text in best(store, "vehicle")), "never compared with another model's"
        assert fill(store) == made
        models = store.index.connection.execute("SELECT DISTINCT model FROM vectors").fetchall()
        assert models == [("other",)]


def test_no_call_asks_for_more_than_a_slow_server_can_make_in_time(server: Site, tmp_path: Path) -> None:
    talk = Talk()
    for number in range(40):
        talk.user(f"Paint automobile {number} red. " + "It stands in the yard behind the house. " * 60)
    with opened(**set_up(server)) as store:
        session_of(store, talk.write(tmp_path))
        assert fill(store) == 40
        sizes = [[estimate(text) for text in seen.body["input"]] for seen in server.seen]
        assert len(sizes) > 2 and max(map(sum, sizes)) <= BATCH_TOKENS
        assert sum(map(len, sizes)) == 40 and max(map(len, sizes)) <= BATCH_TEXTS


def test_without_the_server_words_decide_and_it_is_said(tmp_path: Path) -> None:
    with site(answer) as running:
        options = set_up(running)
        with opened(**options) as store:
            talked(store, tmp_path)
            fill(store)
    with opened(**options) as store:
        found = search(store, Query("oak"))
        assert "oak" in found.hits[0].snippet and "By words alone" in found.message
        talked(store, tmp_path, FORK.replace("f2", "f3"))
        assert fill(store) == 0, "and it is left alone for a while"


def test_what_to_do_about_a_slow_server_or_a_wrong_request_names_settings_that_there_are() -> None:
    known = {"url", "model", "key_env"}
    for step in (lambda handler: time.sleep(0.5), Played(404), Played(400), Played(401)):
        with site(step) as running, pytest.raises(WorkerError) as raised:
            Embedder({"url": running.url, "model": "small"}).embed(["oak"], 0.2)
        named = set(re.findall(r"'(\w+)'", str(raised.value)))
        assert named and named <= known, str(raised.value)


def test_the_days_limit_holds(server: Site, tmp_path: Path) -> None:
    with opened(**set_up(server), worker_calls_per_day=0) as store:
        talked(store, tmp_path)
        assert fill(store) == 0 and server.seen == []


@pytest.mark.parametrize(
    "body", ["no JSON", {"data": []}, {"data": [{"embedding": []}]}, {"data": [{"embedding": ["x"]}]},
             {"data": [{"embedding": [0.0, 0.0]}]}, {"data": [{"embedding": [1e999]}]}, []]
)  # fmt: skip
def test_an_answer_that_is_none_is_kept_nowhere(body: Any, tmp_path: Path) -> None:
    with site(Played(body=body)) as running, opened(**set_up(running)) as store:
        talk = Talk()
        talk.user("The automobile must be painted red.")
        session_of(store, talk.write(tmp_path))
        assert fill(store) == 0
        assert store.index.connection.execute("SELECT count(*) FROM vectors").fetchone() == (0,)
        assert "automobile" in best(store, "automobile")[0]


def test_what_is_forgotten_has_no_vector(server: Site, tmp_path: Path) -> None:
    with opened(**set_up(server)) as store:
        stored = talked(store, tmp_path)
        fill(store)
        forget_session(store, stored)
        assert store.index.connection.execute("SELECT count(*) FROM vectors").fetchone() == (0,)


def test_a_key_is_never_sent_unencrypted_to_another_machine(tmp_path: Path) -> None:
    options = {"url": "http://models.example.com", "model": "small", "key_env": "A_KEY"}
    with opened(embeddings=options) as store, pytest.raises(ConfigError, match="embeddings"):
        fill(store)
