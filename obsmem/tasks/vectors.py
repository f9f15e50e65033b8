"""The vector signal of a search, off until ``embeddings`` is configured: filled in the background, asked beside the words.

Invariants: only masked texts are sent, and only where the configuration says; the day's limits of models hold for what is
filled; a search whose vector does not come in time goes by words alone, and says so.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from obsmem.core.errors import WorkerError
from obsmem.core.finds import Query
from obsmem.core.ids import entry_id
from obsmem.core.model import Entry
from obsmem.core.tokens import clip, estimate
from obsmem.core.tuples import NamedTuple
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import row_number
from obsmem.store.vectors import VectorRow
from obsmem.tasks.candidates import usable_index
from obsmem.tasks.entries import read_entries
from obsmem.tasks.search_scope import NOTE, Scope
from obsmem.tasks.store import Store

if TYPE_CHECKING:
    from obsmem.store.spending import Spending
    from obsmem.workers.http_embeddings import Embedder

TEXT_TOKENS = 400  # of an entry that its vector stands for
LEAST_CHARACTERS = 12  # of a text that is worth a vector
BATCH_TEXTS = 32  # in one call
BATCH_TOKENS = (
    1_000  # in one call: a small model on two cores that are busy with something else makes them in FILL_SECONDS
)
BATCH_ENTRIES = 500
FILL_SECONDS = 30.0  # of one call in the background
QUERY_SECONDS = 2.0  # that a search waits for the vector of its question
COMPARED = 20_000  # vectors, the newest ones: half a second in plain Python at 384 numbers each
NEAREST = 50


class Text(NamedTuple):
    """What a vector is to be made of."""

    id: str
    seq: int
    kind: str
    at: int
    words: str


def embedder_of(store: Store) -> Embedder | None:
    """What makes vectors here; None where nothing is configured. Raises ConfigError."""
    options = store.config["embeddings"]
    if not options:
        return None
    from obsmem.workers.http_embeddings import Embedder  # what speaks HTTP is slow to load, and few have configured it

    return Embedder(options)


def fill_vectors(store: Store, deadline: float) -> int:
    """Make the vectors that are missing, the last grown session first, until ``deadline`` (monotonic), a failure, or the
    day's limit. Returns how many were made."""
    embedder = embedder_of(store)
    if embedder is None:
        return 0
    from obsmem.store.spending import Spending

    made = 0
    spending = Spending(store.memory.connection)
    try:
        for stored in store.archive.sessions():
            if stored.session.role == "worker":
                continue
            what = f"vectors {embedder.model}"
            noted = store.memory.count_notes([stored.session.handle])
            while time.monotonic() < deadline:
                reach, known = store.index.reach(stored.no, what)
                if reach >= stored.last_seq and known.get("notes") == noted:
                    break
                texts, reach = _missing(store, stored, embedder.model, reach)
                for batch in _batches(texts):
                    if time.monotonic() >= deadline or not _make(store, stored, embedder, spending, batch):
                        return made
                    made += len(batch)
                store.index.move_reach(stored.no, what, reach, {"notes": noted})
    except WorkerError as error:
        seconds = store.config["worker_retry_minutes"] * 60
        spending.leave_alone(embedder.NAME, int((time.time() + seconds) * 1000), str(error))
    return made


def _batches(texts: list[Text]) -> Iterator[list[Text]]:
    """The texts in order, as many at a time as one call takes."""
    batch: list[Text] = []
    tokens = 0
    for text in texts:
        size = estimate(text.words)
        if batch and (len(batch) == BATCH_TEXTS or tokens + size > BATCH_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += size
    if batch:
        yield batch


def _make(store: Store, stored: StoredSession, embedder: Embedder, spending: Spending, batch: list[Text]) -> bool:
    """Make and keep the vectors of a batch; False where the server is to be left alone, or the day's limit is reached."""
    from obsmem.tasks.ask import midnight

    now = int(time.time() * 1000)
    if spending.known(embedder.NAME).until > now:
        return False
    calls, most = store.config["worker_calls_per_day"], store.config["worker_tokens_per_day"]
    tokens = sum(estimate(text.words) for text in batch)
    reservation = spending.reserve(embedder.NAME, now, tokens, midnight(now), calls, most)
    if not reservation:
        return False
    done = embedder.embed([text.words for text in batch], FILL_SECONDS)
    spending.settle(reservation, done.tokens or tokens)
    spending.trust_again(embedder.NAME)
    rows = [
        VectorRow(text.id, stored.no, text.seq, text.kind, text.at, data)
        for text, data in zip(batch, done.vectors, strict=True)
    ]
    store.index.add_vectors(embedder.model, rows)
    return True


def _missing(store: Store, stored: StoredSession, model: str, reach: int) -> tuple[list[Text], int]:
    """The texts of the entries of a session behind ``reach``, so many of them, its notes without vectors too, and the seq up
    to which they reach."""
    last = min(reach + BATCH_ENTRIES, stored.last_seq)
    rows = store.archive.entries(stored.no, reach + 1, last, "copied=0 AND replaced_by IS NULL")
    entries = read_entries(store, stored, [row for row in rows if _says_something(row.kind, row.speaker)], lost=True)
    texts = [_text(store, stored, entry) for entry in entries]
    notes = {one.note.id: one.note for one in store.memory.notes(stored.session.handle)}
    texts += [
        Text(id_, -1, NOTE, notes[id_].at, clip(store.mask(notes[id_].text), TEXT_TOKENS))
        for id_ in store.index.without_vectors(model, list(notes))
    ]
    return [text for text in texts if len(text.words) >= LEAST_CHARACTERS], last


def _says_something(kind: str, speaker: str) -> bool:
    """Words of people and agents; what tools print is found by its words."""
    return (kind, speaker) in (("user", "human"), ("assistant", "agent"))


def _text(store: Store, stored: StoredSession, entry: Entry) -> Text:
    words = clip(store.mask(entry.text).strip(), TEXT_TOKENS)
    return Text(entry_id(stored.session.handle, entry.seq), entry.seq, entry.kind, entry.at, words)


def nearest(store: Store, query: Query, scope: Scope) -> tuple[list[str], str]:
    """Ids of entries and notes whose vectors are nearest to the question's, best first, within its filters; and a sentence
    where that could not be asked. Nothing where no embeddings are configured, or words do not decide."""
    embedder = embedder_of(store)
    text = store.mask(query.text).strip()
    if embedder is None or query.mode != "words" or not text or query.after or query.tools or query.path:
        return [], ""
    from obsmem.workers.http_embeddings import unpack

    try:
        (wanted,) = embedder.embed([clip(text, TEXT_TOKENS)], QUERY_SECONDS).vectors
    except WorkerError as error:
        return [], f"By words alone: {error}"
    question, index = unpack(wanted), usable_index(store)
    scored = []
    for row in _allowed(index.vectors(embedder.model, COMPARED, scope.filter.sessions) if index else (), scope):
        if len(row.data) == len(wanted):
            scored.append((sum(map(operator.mul, question, unpack(row.data))), row.id))
    scored.sort(key=lambda one: (-one[0], one[1]))
    return [id_ for score, id_ in scored[:NEAREST] if score > 0], ""


def _allowed(rows: Iterable[VectorRow], scope: Scope) -> Iterable[VectorRow]:
    """The vectors that pass a search's filters."""
    filter_ = scope.filter
    for row in rows:
        is_note = row.kind == NOTE
        if not (scope.notes if is_note else scope.entries and (not filter_.kinds or row.kind in filter_.kinds)):
            continue
        if (filter_.since and row.at < filter_.since) or (filter_.until and row.at >= filter_.until):
            continue
        hidden = filter_.hidden
        if hidden is not None and not is_note and hidden[0] <= row_number(row.session, row.seq) <= hidden[1]:
            continue
        yield row
