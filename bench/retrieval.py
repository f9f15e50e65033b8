"""How well ``search`` finds what a question is about, and what each of its signals is worth.

``python -m bench.retrieval FOLDER [--count 200]``. FOLDER holds transcripts. A question is made by rule from one entry: of
the sentence with the rarest words, its rarest word (the answer) is withheld, a third of the others dropped, endings cut
from some, and the rest put in another order. Near-duplicates of the entry stand in the same store; an equal text counts as
the entry itself. Sessions are split into a development and a held-out half by a hash of their id.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from obsmem.core.finds import Query
from obsmem.memory import ranking
from obsmem.system import config
from obsmem.tasks.discover import find_below
from obsmem.tasks.entries import read_entries
from obsmem.tasks.ingest import ingest
from obsmem.tasks.search import search, text_of
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.words import index_words

WORD = re.compile(r"[^\W_][\w.-]{2,30}")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
ENDINGS = ("ing", "ed", "es", "s")
FEWEST = 5  # words of a sentence that a question is made of
DEPTH = 10  # hits that are looked at
SIGNALS = ("coverage", "words", "recency", "path", "kind")


class Question(NamedTuple):
    """Words to search for, and the hash of the text that they are about."""

    words: str
    text: bytes
    half: str


def digest(text: str) -> bytes:
    """What equal texts have in common."""
    return hashlib.sha256(text.strip().encode("utf-8", "replace")).digest()


def questions(store: Store, count: int) -> list[Question]:
    """As many questions as can be made, up to ``count``, spread over all sessions."""
    texts: list[tuple[str, str]] = []
    frequency: Counter[str] = Counter()
    for stored in store.archive.sessions():
        for row in store.archive.entries(stored.no, where="copied=0 AND replaced_by IS NULL"):
            if row.kind in ("user", "assistant") and row.speaker in ("human", "agent") and row.tokens < 4000:
                for entry in read_entries(store, stored, [row], lost=True):
                    texts.append((stored.session.id, entry.text))
                    frequency.update({word.lower() for word in WORD.findall(entry.text)})
    chance = random.Random(7)
    chance.shuffle(texts)
    found = []
    for session, text in texts:
        words = _ask(text, frequency, chance)
        if words:
            half = "development" if hashlib.sha256(session.encode()).digest()[0] % 2 else "held-out"
            found.append(Question(words, digest(text), half))
        if len(found) == count:
            break
    return found


def _ask(text: str, frequency: Counter[str], chance: random.Random) -> str:
    sentences = [list(dict.fromkeys(WORD.findall(one))) for one in SENTENCE.split(text)]
    long = [words for words in sentences if FEWEST <= len(words) <= 40]
    if not long:
        return ""
    words = min(long, key=lambda one: sum(frequency[word.lower()] for word in one) / len(one))
    answer = min(words, key=lambda word: frequency[word.lower()])
    rest = sorted((word for word in words if word != answer), key=lambda word: frequency[word.lower()])[:12]
    kept = [word for word in rest if chance.random() > 0.33] or rest
    kept = [_cut(word) if chance.random() < 0.3 else word for word in kept]
    chance.shuffle(kept)
    return " ".join(kept) if len(kept) >= 3 else ""


def _cut(word: str) -> str:
    ending = next((one for one in ENDINGS if word.endswith(one) and len(word) - len(one) >= 4), "")
    return word[: len(word) - len(ending)] if ending else word


def place(store: Store, question: Question) -> int:
    """At which place the text stands in the answer; 0 for none."""
    hits = search(store, Query(question.words, limit=DEPTH)).hits
    for number, hit in enumerate(hits, 1):
        found = text_of(store, hit.id)
        if found is not None and digest(found[1].text) == question.text:
            return number
    return 0


def figures(places: list[int]) -> str:
    """hit@1, hit@5 and MRR of some places."""
    count = max(1, len(places))
    one, five = (sum(0 < at <= most for at in places) / count for most in (1, 5))
    return (
        f"hit@1 {one:6.1%}  hit@5 {five:6.1%}  MRR {sum(1 / at for at in places if at) / count:.3f}  (n={len(places)})"
    )


def fill(store: Store, folder: Path) -> int:
    """Read every transcript below a folder; returns how many there were."""
    count = 0
    for found in find_below(str(folder)):
        stored = ingest(store, found.harness, found.source).stored if found.harness else None
        if stored is not None:
            index_words(store, stored)
            count += 1
    return count


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200, help="questions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, open_store(home, config.defaults()) as store:
        started = time.perf_counter()
        print(f"{fill(store, options.folder)} sessions in {time.perf_counter() - started:.0f} s", flush=True)
        asked = questions(store, options.count)
        whole = dict(ranking.WEIGHTS)
        for off in ("", *SIGNALS):
            ranking.WEIGHTS = {**whole, off: 0.0} if off else whole
            found = [(one.half, place(store, one)) for one in asked]
            for half in ("development", "held-out"):
                print(
                    f"{'without ' + off if off else 'all signals':18} {half:12} {figures([at for h, at in found if h == half])}",
                    flush=True,
                )
        ranking.WEIGHTS = whole


if __name__ == "__main__":
    main()
