"""A whole history: many sessions made of real records, archived with their cards and indexed, as a first run would do it.

Invariant: each part is a process of its own, which counts its own processor time and its own most memory. Records after the
real ones' end are the same again with ids of their own, so sizes on disk are those of real records, not of one text.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.compact import SESSION, Place, write_turns
from bench.corpus import Sample
from bench.facts import peak_memory
from bench.hook import HARNESS, SCRIPT
from bench.large import NAME, records
from bench.limit_rows import Case, command_bases
from bench.search import seconds_of_children
from obsmem.core.ids import entry_id
from obsmem.harnesses.base import Source
from obsmem.system import config
from obsmem.system.paths import HOME_VARIABLE
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import ARCHIVE, INDEX, MEMORY, open_store
from obsmem.tasks.words import index_words

SESSION_BYTES = 5_000_000  # of one session of a history
WORD = "nightjar4711"  # stands in every history's first session, and nowhere else
SECONDS = 3_600  # that a part of a history may take
MB = 1_000_000
STEP_TOKENS = 10_000


class History(NamedTuple):
    """A data folder that a history was read into, the name of one of its entries or notes, and a word that stands in it."""

    home: str
    entry: str
    word: str


def write_history(folder: str, samples: Sequence[Sample], size: int) -> list[str]:
    """Write sessions of ``size`` bytes together; returns their paths."""
    pieces, left = records(samples), size
    paths: list[str] = []
    while left > 0:
        session = f"{len(paths):08x}{NAME[8:]}".encode()
        path = os.path.join(folder, f"{session.decode()}.jsonl")
        with open(path, "wb") as file:
            if not paths:
                file.write(_planted(session))
            end = min(left, SESSION_BYTES)
            while file.tell() < end:
                file.write(next(pieces).replace(NAME.encode(), session))
            left -= file.tell()
        paths.append(path)
    return paths


def _planted(session: bytes) -> bytes:
    record = {
        "type": "user", "uuid": "f" * 32, "sessionId": session.decode(), "cwd": "/srv/shop", "timestamp": "2026-03-02T10:00:00.000Z",
        "message": {"role": "user", "content": f"The release is called {WORD}; say so wherever it is named."},
    }  # fmt: skip
    return json.dumps(record).encode() + b"\n"


def build(folder: str, samples: Sequence[Sample], size: int) -> tuple[History, dict[str, Any]]:
    """Make a history and read it; what it cost, in seconds, MB (10^6 bytes) and bytes on disk for each of transcript."""
    os.makedirs(folder)
    home = os.path.join(folder, "home")
    paths = write_history(folder, samples, size)
    read, indexed = _part("read", home, paths), _part("index", home, paths)
    whole = sum(map(os.path.getsize, paths))
    room = {name: os.path.getsize(os.path.join(home, name)) / whole for name in (ARCHIVE, INDEX, MEMORY)}
    for path in paths:
        os.unlink(path)
    figures = {
        "MB": round(whole / MB, 2), "sessions": len(paths), "entries": read["entries"],
        "archive and cards, processor s": read["cpu"], "archive and cards, s": read["seconds"], "index, processor s": indexed["cpu"],
        "index, s": indexed["seconds"], "archive and cards, MB/processor s": round(whole / MB / read["cpu"], 2),
        "index, MB/processor s": round(whole / MB / indexed["cpu"], 2), "peak MB": max(read["peak_mb"], indexed["peak_mb"]),
        "archive": round(room[ARCHIVE], 3), "with index": round(room[ARCHIVE] + room[INDEX], 3), "memory": round(room[MEMORY], 3),
    }  # fmt: skip
    return History(home, read["entry"], WORD), figures


def _part(what: str, home: str, paths: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.history", what, home, *paths]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=SECONDS)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def child(what: str, home: str, paths: Sequence[str]) -> None:
    """Archive sessions with their cards, or index them, and print what that cost."""
    entries, entry = 0, ""
    with open_store(home, config.defaults()) as store:
        cpu, started = time.process_time(), time.perf_counter()
        if what == "read":
            for path in paths:
                done = ingest(store, HARNESS, Source(path), final=True)
                entries += done.entries
                if not entry and done.stored is not None:
                    entry = entry_id(done.stored.session.handle, 0)
        else:
            for stored in store.archive.sessions():
                index_words(store, stored)
            store.index.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cpu, seconds = time.process_time() - cpu, time.perf_counter() - started
    print(json.dumps({"entries": entries, "entry": entry, "cpu": round(cpu, 3), "seconds": round(seconds, 3), "peak_mb": round(peak_memory() / 1e6, 1)}))  # fmt: skip


def commands(history: History, named: str) -> list[Case]:
    """``recall`` and ``search`` in a history, as a launcher runs them."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment[HOME_VARIABLE] = history.home
    calls = {"recall": ["recall", history.entry], "search": ["search", "--everywhere", history.word]}
    return [
        Case(f"{name}, {named}", [sys.executable, SCRIPT, *call], environment, os.devnull, command_bases())
        for name, call in calls.items()
    ]


def maintainer(folder: str, steps: int) -> list[dict[str, float]]:
    """What a maintainer costs for each 10,000 tokens that a session grew by, as it runs when hooks start it: processor seconds,
    most of them a start's where the session is short."""
    place = Place(folder)
    os.makedirs(folder)
    environment = {"PATH": os.environ.get("PATH", ""), HOME_VARIABLE: place.home, "HOME": folder}
    command = [sys.executable, SCRIPT, "maintain", HARNESS, "--transcript", place.transcript, "--session", SESSION, "--cwd", folder]  # fmt: skip
    figures, held, number = [], 0, 0
    for _ in range(steps):
        with open(place.transcript, "a", encoding="utf-8") as file:
            written, number = write_turns(file, STEP_TOKENS, number)
        held += written
        used, started = seconds_of_children(), time.perf_counter()
        subprocess.run(command, env=environment, capture_output=True, check=True, timeout=300)
        seconds, used = time.perf_counter() - started, seconds_of_children() - used
        share = STEP_TOKENS / written
        figures.append({"tokens": held, "processor s": round(used * share, 3), "s": round(seconds * share, 3)})
    return figures


if __name__ == "__main__":
    child(sys.argv[1], sys.argv[2], sys.argv[3:])
