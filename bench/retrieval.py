"""How well ``search`` finds what a question is about, and what each of its signals is worth.

    python -m bench.retrieval FOLDER [--count 200] [--embeddings URL --model NAME] [--keep FOLDER]

FOLDER holds transcripts. A question is made by rule from one entry: of the sentence with the rarest words, its rarest word
(the answer) is withheld, a third of the others dropped, endings cut from some, and the rest put in another order. A
paraphrased one says of a sentence only what other words can say: words of ``SAME`` are replaced by another of their line,
the rare ones that have none are left out. Near-duplicates of the entry stand in the same store; an equal text counts as the
entry itself. Sessions are split into a development and a held-out half by a hash of their id.

With ``--embeddings`` vectors are made by a server (OpenAI-compatible) and their signal is measured, too; ``--keep`` names
the folder of the store, so that what a slow server made is there the next time.
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
from obsmem.store.spending import Spending
from obsmem.system import config
from obsmem.tasks import vectors
from obsmem.tasks.discover import find_below
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.ingest import ingest
from obsmem.tasks.search import search
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.vectors import fill_vectors
from obsmem.tasks.words import index_words

WORD = re.compile(r"[^\W_][\w.-]{2,30}")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
ENDINGS = ("ing", "ed", "es", "s")
FEWEST = 5  # words of a sentence that a question is made of
DEPTH = 10  # hits that are looked at
SIGNALS = ("coverage", "words", "recency", "path", "kind")
PATIENCE = 60.0  # seconds that a search waits for the vector of its question here
KNOWN = 20  # entries that hold a word from which on it tells little, and may stay in a paraphrase
LEAST_REPLACED = 3  # words of a paraphrase
# Words that say the same, a line each: what one of them asks for, another may stand in the record for.
SAME = """
fix repair mend correct
bug defect fault
error failure exception
crash abort
fails breaks
failed broke
failing broken
test check verify
tests checks specs
config settings configuration options
delete remove erase drop
add insert append introduce
create make build
change modify alter edit
changes modifications edits
update refresh renew
function method routine procedure
file document
files documents
folder directory
find locate discover search
show display print
start launch begin run
stop halt end terminate
fast quick rapid
slow sluggish
big large huge
small tiny little
wrong incorrect bad
right correct proper
use employ apply
using employing applying
implement realise write
implementation realisation
ensure guarantee
avoid prevent
allow permit enable
disable forbid
support handle
missing absent lacking
extra additional surplus
keep retain preserve
need require
needs requires
simple easy plain
duplicate redundant repeated
replace substitute swap
rename relabel
move relocate shift
copy clone
save store persist
load read fetch
request call query
response answer reply
list enumerate
version release
release publication
default standard preset
user customer person
users customers people
output result
input argument parameter
value setting
docs documentation manual
documentation docs manual
explain describe clarify
review inspect examine
looks seems appears
issue problem ticket
problem issue trouble
task job
work labour
compile build
dependency package library
dependencies packages libraries
warning notice alert
log journal
logs journals
cache buffer
string text
number integer count
image picture
button control
page screen view
color colour
header heading title
network connection
password secret credential
login sign-in authentication
permission access right
database storage
table grid
column field
row line record
branch fork
commit revision
merge combine join
parse interpret analyse
parser reader
validate verify check
deploy ship publish roll
server backend host
client frontend
timeout deadline
retry repeat
empty blank
null none nothing
clean tidy
refactor restructure reorganise
improve enhance better
performance speed
memory ram
also too
instead rather
current present existing
previous earlier former
next following
first initial
last final
whole entire complete
every each all
only just solely
"""


class Question(NamedTuple):
    """Words to search for, and the hash of the text that they are about."""

    words: str
    text: bytes
    half: str
    kind: str = "reordered"


def digest(text: str) -> bytes:
    """What equal texts have in common."""
    return hashlib.sha256(text.strip().encode("utf-8", "replace")).digest()


def questions(store: Store, count: int) -> list[Question]:
    """As many questions of each kind as can be made, up to ``count``, spread over all sessions."""
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
    for kind, make in (("reordered", _ask), ("paraphrased", _say_otherwise)):
        made: list[Question] = []
        for session, text in texts:
            words = make(text, frequency, chance)
            if words:
                half = "development" if hashlib.sha256(session.encode()).digest()[0] % 2 else "held-out"
                made.append(Question(words, digest(text), half, kind))
            if len(made) == count:
                break
        found += made
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


def _others() -> dict[str, list[str]]:
    """Word -> words that say the same."""
    found: dict[str, list[str]] = {}
    for line in SAME.strip().split("\n"):
        words = line.split(" ")
        for word in words:
            found.setdefault(word, []).extend(other for other in words if other != word)
    return found


OTHERS = _others()


def _say_otherwise(text: str, frequency: Counter[str], chance: random.Random) -> str:
    """The sentence of which other words can say most, said so; '' where they can say too little."""
    best: list[str] = []
    most = LEAST_REPLACED - 1
    for sentence in SENTENCE.split(text):
        words = WORD.findall(sentence)
        if not FEWEST <= len(words) <= 40:
            continue
        replaced = [word for word in words if word.lower() in OTHERS]
        if len(set(replaced)) > most:
            most, best = len(set(replaced)), words
    said = [
        chance.choice(OTHERS[word.lower()]) if word.lower() in OTHERS else word
        for word in best
        if word.lower() in OTHERS or frequency[word.lower()] >= KNOWN
    ]
    return " ".join(said)


def _cut(word: str) -> str:
    ending = next((one for one in ENDINGS if word.endswith(one) and len(word) - len(one) >= 4), "")
    return word[: len(word) - len(ending)] if ending else word


def place(store: Store, question: Question) -> int:
    """At which place the text stands in the answer; 0 for none."""
    hits = search(store, Query(question.words, limit=DEPTH)).hits
    for number, hit in enumerate(hits, 1):
        stored, row = find_entry(store, hit.id)
        if any(digest(entry.text) == question.text for entry in read_entries(store, stored, [row], lost=True)):
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


def _table(store: Store, asked: list[Question], label: str) -> None:
    """Print the figures of all questions, by kind and half."""
    found = [(one, place(store, one)) for one in asked]
    for kind in dict.fromkeys(one.kind for one in asked):
        for half in ("development", "held-out"):
            places = [at for one, at in found if (one.kind, one.half) == (kind, half)]
            print(f"{label:18} {kind:11} {half:12} {figures(places)}", flush=True)


def _fill(store: Store, worker: str) -> int:
    """Make all vectors, whatever fails in between; returns how many were missing."""
    made = 0
    while True:
        Spending(store.memory.connection).trust_again(worker)
        more = fill_vectors(store, float("inf"))
        if not more:
            return made
        made += more


def _with_vectors(home: str, asked: list[Question], url: str, model: str) -> None:
    """Make the vectors that are missing, and print the figures with their signal."""
    vectors.QUERY_SECONDS = PATIENCE  # what is measured is the signal, and not whether the machine had time for it
    changes = {
        "embeddings": {"url": url, "model": model},
        "worker_calls_per_day": None,
        "worker_tokens_per_day": None,
    }
    with open_store(home, config.override(config.defaults(), changes, "the bench")) as store:
        started = time.perf_counter()
        made = _fill(store, f"embeddings:{model}")
        print(f"{made} vectors of {model} in {time.perf_counter() - started:.0f} s", flush=True)
        _table(store, asked, "with vectors")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200, help="questions of each kind")
    parser.add_argument("--embeddings", metavar="URL", default="", help="a server that makes vectors")
    parser.add_argument("--model", default="embeddings", help="the name of its model")
    parser.add_argument("--keep", metavar="FOLDER", default="", help="a folder for the store, which stays there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = options.keep or folder
        with open_store(home, config.defaults()) as store:
            started = time.perf_counter()
            print(f"{fill(store, options.folder)} sessions in {time.perf_counter() - started:.0f} s", flush=True)
            asked = questions(store, options.count)
            whole = dict(ranking.WEIGHTS)
            for off in ("", *SIGNALS):
                ranking.WEIGHTS = {**whole, off: 0.0} if off else whole
                _table(store, asked, f"without {off}" if off else "all signals")
            ranking.WEIGHTS = whole
        if options.embeddings:
            _with_vectors(home, asked, options.embeddings, options.model)


if __name__ == "__main__":
    main()
