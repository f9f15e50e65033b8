"""What finding something costs, beside the bare query that SQLite's full text would be asked.

    python -m bench.search [--entries 100000 | --megabytes 1000] [--queries 12] [--keep FOLDER] [--json FILE]

Entries are pieces of real ones (transcripts beside the project, else the demo's), each made different by a number, in sessions
of 5,000. They are archived and indexed in bulk, looked through before they are indexed and after, and deleted in the end
unless ``--keep`` names where they are to stay. A bare query is ``SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank
LIMIT 10`` on the same table; "with texts" it also fetches what it found from the archive, which is what an answer shows. The
whole commands are run as a launcher runs them, compiled modules in place, and compared with starts of the same interpreter.
Milliseconds are of processor time, which whatever else the machine does lengthens little: nothing here waits for a disk or
for anybody. Seconds, where nothing is indexed, are as they pass.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from bench import facts
from bench.corpus import PROJECT, default_folders, gather
from bench.facts import Goal
from obsmem.core.finds import Hits, Query
from obsmem.core.identifiers import read_terms, split, whole_names
from obsmem.core.model import Entry, EntryKind, Session
from obsmem.harnesses import load
from obsmem.store.archive_scan import rows_by_number
from obsmem.store.archive_schema import row_number, seq_of
from obsmem.store.archive_write import SourceWriter
from obsmem.store.search import WordRow, word_expression
from obsmem.system import config
from obsmem.system.paths import HOME_VARIABLE
from obsmem.tasks.entries import read_entries
from obsmem.tasks.search import search
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.word_rows import text_hash

HARNESS, SESSION_SIZE, PIECE = "claude-code", 5_000, 1_000  # entries, characters
START, STEP = 1_760_000_000_000, 1_000  # milliseconds
BYTES_FOR_EACH = 6_000  # of free disk that an entry needs at most, with room to spare
BYTES_FOR_BYTE = 3  # the same for a byte of its record
SMALLEST = 300  # bytes of a record
STARTS = 15  # of which the median counts
COLUMNS = {"user": "human", "assistant": "agent", "tool_call": "call", "tool_result": "output"}
BARE = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10"


class Piece(NamedTuple):
    """A piece of a real entry."""

    kind: EntryKind
    text: str


class Asked(NamedTuple):
    """One question: the whole answer, the bare query alone and with the texts of what it found, in milliseconds, and how many
    rows hold its words."""

    text: str
    rows: int
    whole: float
    bare: float
    with_texts: float


def pieces() -> list[Piece]:
    """Pieces of what humans, agents and tools really wrote."""
    found = []
    for harness, samples in gather(default_folders()).items():
        module = load(harness)
        for sample in samples:
            for raw in module.records(sample.source, 0, 0):
                for entry in module.blocks(raw.data):
                    if entry.kind in COLUMNS and entry.text.strip():
                        found.append(Piece(entry.kind, entry.text[:PIECE]))
    return found


def make_entries(real: Sequence[Piece], count: int) -> Iterator[list[Piece]]:
    """Sessions of entries: real pieces in a random order, mixed from two where they are long."""
    dice = random.Random(7)
    made: list[Piece] = []
    for number in range(count):
        one, other = dice.choice(real), dice.choice(real)
        half = len(one.text) // 2
        text = one.text if len(one.text) < 200 else one.text[:half] + other.text[: len(one.text) - half]
        made.append(Piece(one.kind, f"{text}\nentry number {number}"))
        if len(made) == SESSION_SIZE:
            yield made
            made = []
    if made:
        yield made


def _record(piece: Piece, number: int, at: int) -> bytes:
    block: dict[str, Any]
    if piece.kind == "tool_call":
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": piece.text}}
    elif piece.kind == "tool_result":
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number - 1}", "content": piece.text}
    else:
        block = {"type": "text", "text": piece.text}
    role = "assistant" if piece.kind in ("assistant", "tool_call") else "user"
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at / 1000))
    record = {
        "parentUuid": f"{number - 1:032x}", "isSidechain": False, "userType": "external", "cwd": "/srv/shop", "version": "2.1.197",
        "sessionId": "bench", "type": role, "uuid": f"{number:032x}", "timestamp": stamp, "message": {"role": role, "content": [block]},
    }  # fmt: skip
    return json.dumps(record).encode() + b"\n"


def fill_archive(store: Store, real: Sequence[Piece], count: int, enough: float = float("inf")) -> tuple[int, int]:
    """Archive so many entries, or whole sessions until their records have ``enough`` bytes; returns both numbers."""
    module, number, size = load(HARNESS), 0, 0
    for index, made in enumerate(make_entries(real, count)):
        stored = store.archive.register(Session(HARNESS, f"bench-{index}", transcript=f"/t/{index}"))
        writer = SourceWriter(store.archive, stored.no, f"/t/{index}", "file")
        offset = 0
        for line, piece in enumerate(made, 1):
            data = _record(piece, number, START + number * STEP)
            entries = tuple(module.blocks(data)) if line % 500 == 0 else (_entry(piece, START + number * STEP),)
            writer.add(data, line, offset, entries[:1])
            offset += len(data)
            number += 1
            if writer.full:
                writer.commit({}, stored.session)
        session = stored.session._replace(workspace="/srv/shop", cwd="/srv/shop", started_at=START)
        writer.commit({}, session)
        writer.close()
        size += offset
        if size >= enough:
            break
    return number, size


def _entry(piece: Piece, at: int) -> Entry:
    speaker = {"user": "human", "tool_result": "tool"}.get(piece.kind, "agent")
    return Entry(-1, "", piece.kind, speaker, piece.text, at=at)  # type: ignore[arg-type]


def fill_index(store: Store, real: Sequence[Piece], count: int) -> tuple[int, float]:
    """Index the same entries; returns the bytes of their texts, and seconds. Masking is left out: it is no part of search."""
    size, started = 0, time.perf_counter()
    sessions = sorted(store.archive.sessions(), key=lambda one: one.no)
    for number, (stored, made) in enumerate(zip(sessions, make_entries(real, count), strict=True)):
        rows = []
        for seq, piece in enumerate(made):
            size += len(piece.text.encode("utf-8", "replace"))
            at = START + (number * SESSION_SIZE + seq) * STEP
            names = " ".join(whole_names(piece.text))
            column = COLUMNS[piece.kind]
            rows.append(
                WordRow(
                    row_number(stored.no, seq),
                    column,
                    split(piece.text),
                    names,
                    at,
                    piece.kind,
                    "Bash",
                    0,
                    text_hash(piece.text),
                )
            )
        store.index.add_words(stored.no, rows, stored.last_seq, -1)
    return size, time.perf_counter() - started


def words_by_frequency(store: Store, most: int) -> dict[str, list[str]]:
    """Words to ask for: in up to 1,000 entries, in up to 20,000, in more."""
    run = store.index.connection.execute
    run("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row)")
    found: dict[str, list[str]] = {"rare": [], "medium": [], "common": []}
    dice = random.Random(3)
    rows = run("SELECT term, doc FROM vocabulary WHERE doc>=20").fetchall()
    run("DROP TABLE temp.vocabulary")
    dice.shuffle(rows)
    for term, count in sorted(rows, key=lambda row: row[1] < 100_000):
        name = "rare" if count <= 1_000 else "medium" if count <= 20_000 else "common"
        is_word = term.isascii() and term.isalpha() and 3 <= len(term) <= 12
        if is_word and len(found[name]) < most and _asks_for(store, term, count):
            found[name].append(term)
    return found


def _asks_for(store: Store, term: str, count: int) -> bool:
    """True for a term that is also a word which leads to it."""
    (rows,) = store.index.connection.execute(
        "SELECT count(*) FROM words WHERE words MATCH ?", (f'"{term}"',)
    ).fetchone()
    return bool(rows == count)


def _timed(work: Callable[[], Any], runs: int = 5) -> float:
    """The median of some runs, in milliseconds of processor time."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return median(times) * 1000


def seconds_of_children() -> float:
    """Seconds of processor time that ended child processes have taken."""
    if sys.platform == "win32":
        return sum(os.times()[2:4])
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ask(store: Store, text: str, runs: int = 5) -> Asked:
    """Ask for words, and the bare query for the same words, in turn."""
    run = store.index.connection.execute
    expression = " OR ".join(word_expression(term) for term in read_terms(text))
    (rows,) = run("SELECT count(*) FROM words WHERE words MATCH ?", (expression,)).fetchone()
    whole = _timed(lambda: search(store, Query(text), seconds=5), runs)
    bare = _timed(lambda: run(BARE, (expression,)).fetchall(), runs)
    with_texts = _timed(lambda: _fetch(store, [row[0] for row in run(BARE, (expression,))]), runs)
    return Asked(text, rows, whole, bare, with_texts)


def _fetch(store: Store, numbers: Sequence[int]) -> list[Entry]:
    """The entries of some rows with their texts."""
    found = []
    for row in rows_by_number(store.archive, numbers).values():
        found += read_entries(store, store.archive.by_number(seq_of(row.no)[0]), [row])
    return found


def starts(home: str, words: Sequence[str], name: str) -> dict[str, float]:
    """Starts of this interpreter, and whole commands with theirs, in milliseconds: what each adds to a bare start."""
    script = str(PROJECT / "observational_memory.py")
    calls = {
        "interpreter": ["-c", "pass"],
        "interpreter with sqlite3 and json": ["-c", "import sqlite3, json"],
        "search": [script, "search", "--everywhere", *words],
        "recall": [script, "recall", name],
    }
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment[HOME_VARIABLE] = home
    times: dict[str, list[float]] = {key: [] for key in calls}
    for turn in range(STARTS + 1):  # in turn, so that what else the machine does meets all of them
        for key, call in calls.items():
            started = seconds_of_children()
            subprocess.run([sys.executable, *call], env=environment, capture_output=True, check=True, timeout=120)
            if turn:  # the first one compiles
                times[key].append((seconds_of_children() - started) * 1000)
    return {key: median(found) for key, found in times.items()}


def unindexed(store: Store, real: Sequence[Piece]) -> dict[str, Any]:
    """Answers before anything is indexed."""
    oldest = next(make_entries(real, 200))
    long = max((piece.text for piece in oldest), key=len)[100:140]
    asked = {"a word": Query("parser"), "three words": Query("failing config test"), "exact": Query(long, "exact"),
             "exact, nowhere": Query("no such words anywhere 4711", "exact"), "regex": Query(r"pars\w+ error", "regex")}  # fmt: skip
    figures = {}
    for name, query in asked.items():
        started = time.perf_counter()
        hits: Hits = search(store, query)
        seconds = time.perf_counter() - started
        figures[name] = {
            "seconds": round(seconds, 2),
            "hits": len(hits.hits),
            "complete": hits.complete,
            "message": hits.message,
        }
        print(
            f"  not indexed, {name}: {len(hits.hits)} hits in {seconds:.2f} s{'' if hits.complete else ' (more to look at)'}"
        )
    return figures


def indexed(store: Store, count: int) -> dict[str, list[Asked]]:
    """Answers from the index, by how frequent the words are."""
    words = words_by_frequency(store, count)
    words["three words"] = [
        " ".join(three) for three in zip(words["rare"], words["medium"], words["common"], strict=False)
    ]
    answers = {}
    for name, texts in words.items():
        asked = [ask(store, text) for text in texts]
        if not asked:
            continue
        answers[name] = asked
        ratios = [one.whole / one.bare for one in asked]
        print(
            f"  {name:12} {len(asked)} questions, {min(a.rows for a in asked)}–{max(a.rows for a in asked)} rows: answer "
            f"{median(a.whole for a in asked):.1f} ms (worst {max(a.whole for a in asked):.1f}), bare query "
            f"{median(a.bare for a in asked):.1f} ms (worst {max(a.bare for a in asked):.1f}), ratio {median(ratios):.2f}; bare "
            f"query with texts {median(a.with_texts for a in asked):.1f} ms, ratio {median(a.whole / a.with_texts for a in asked):.2f}"
        )
    return answers


def measure(folder: str, count: int, questions: int, enough: float = float("inf")) -> tuple[dict[str, Any], list[Goal]]:
    """Everything for one number of entries, or of bytes."""
    real = pieces()
    with open_store(folder, config.defaults()) as store:
        count, size = fill_archive(store, real, count, enough)
        print(f"{count} entries, {size / 1e6:.0f} MB of records")
        before = unindexed(store, real)
        text, seconds = fill_index(store, real, count)
        store.index.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        room = os.path.getsize(store.index.path)
        print(
            f"  index {room / 1e6:.0f} MB for {text / 1e6:.0f} MB of text ({room / text:.2f}), filled in {seconds:.0f} s"
        )
        answers = indexed(store, questions)
        rare = answers["rare"][0].text
        name = search(store, Query(rare)).hits[0].id
    commands = starts(folder, [rare], name)
    start, loaded = commands["interpreter"], commands["interpreter with sqlite3 and json"]
    print(
        "  "
        + ", ".join(f"{key} {value:.1f} ms" for key, value in commands.items())
        + " (each from its start to its end)"
    )
    every = [one for asked in answers.values() for one in asked]
    heavy = [one for one in every if one.bare >= 20] or every
    goals = [
        Goal("answer / bare query, where the bare one takes 20 ms or more", median(one.whole / one.bare for one in heavy), 1.5, True),
        Goal("a word in up to 1,000 entries / interpreter start", median(one.whole for one in answers["rare"]) / start, 4, True),
        Goal("the whole command search, such a word / interpreter start", commands["search"] / start, 4, True),
        Goal("the whole command recall / interpreter start with sqlite3 and json", commands["recall"] / loaded, 3, True),
        Goal("any word, worst, ms", max(one.whole for name in answers for one in answers[name]), 300, True),
        Goal("first answer where nothing is indexed, worst, s", max(one["seconds"] for one in before.values()), 10, True),
    ]  # fmt: skip
    for goal in goals:
        print("  " + goal.line())
    figures = {
        "entries": count, "bytes": size, "text": text, "index": room, "index_seconds": round(seconds, 1), "not_indexed": before,
        "answers": {name: [one._asdict() for one in asked] for name, asked in answers.items()},
        "commands_ms": commands, "goals": [{**goal._asdict(), "met": goal.met} for goal in goals],
    }  # fmt: skip
    return figures, goals


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--megabytes", type=int, default=0, help="as many entries as have so many megabytes of records")
    parser.add_argument(
        "--keep", metavar="FOLDER", default="", help="an empty or new folder for the store, which stays there"
    )
    parser.add_argument("--queries", type=int, default=12, help="questions of each frequency")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    if options.keep and os.path.isdir(options.keep) and os.listdir(options.keep):
        print(
            f"{options.keep} is not empty: what is measured must be alone in its store. Name a new folder, or empty it."
        )
        return 1
    machine = facts.machine()
    facts.show_machine(machine)
    count, enough = options.entries, float("inf")
    if options.megabytes:
        enough = options.megabytes * 1e6
        count = int(enough / SMALLEST) + 1
    needed = min(count * BYTES_FOR_EACH, enough * BYTES_FOR_BYTE)
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < needed:
        print(f"Only {free / 1e9:.1f} GB of disk are free; this may need {needed / 1e9:.1f}.")
        return 1
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        figures, _ = measure(options.keep or folder, count, options.queries, enough)
    if options.json:
        facts.write(options.json, {"machine": machine, **figures})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
