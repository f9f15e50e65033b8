"""A transcript as large as a session of weeks: what reading it costs in memory and time, and what reading on costs.

It is made of real records, again and again, with ids that are new each time; written to a temporary folder and deleted
afterwards. Each reading is a process of its own, since memory is counted by process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from bench.corpus import Sample
from bench.facts import peak_memory
from obsmem.harnesses import recognise
from obsmem.harnesses.base import Source
from obsmem.system import config
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import open_store

NAME = "00000000-0000-4000-8000-0000000000ff"
CONTINUATION = 100_000  # bytes
_ID = re.compile(rb"\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")
_SESSION = re.compile(rb'"sessionId": ?"[^"]*"')


def measure(corpus: dict[str, list[Sample]], size: int) -> dict[str, Any]:
    """Figures for the whole transcript, for 100 KB more, and for the same 100 KB after a short one; {} without samples."""
    samples = corpus.get("claude-code", [])
    if not samples:
        return {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        figures: dict[str, Any] = {}
        for name, first in (("short", min(size, 10 * CONTINUATION)), ("whole", size)):
            path = os.path.join(folder, name, f"{NAME}.jsonl")
            os.mkdir(os.path.dirname(path))
            home = os.path.join(folder, name, "home")
            pieces = records(samples)
            append(path, pieces, first)
            figures[name] = _read_in_child(path, home)
            # The same bytes for both, so that only what stands before them differs.
            append(path, records(samples, 1 << 30), CONTINUATION)
            figures[f"{name}_continued"] = _read_in_child(path, home)
        return figures


def show(figures: dict[str, Any]) -> None:
    """Print the figures."""
    for name, one in figures.items():
        print(
            f"huge: {name:16} {one['bytes'] / 1e6:8.2f} MB read, {one['entries']} entries: {one['seconds']:.2f} s, "
            f"peak memory {one['peak_mb']:.0f} MB ({one['base_mb']:.0f} MB before reading)"
        )


def records(samples: Sequence[Sample], first: int = 1) -> Iterator[bytes]:
    """Endless lines of one session: all samples in turn, ids changed in every round."""
    session = b'"sessionId":"' + NAME.encode() + b'"'
    number = first
    while True:
        for sample in samples:
            for line in sample.lines:
                if line:
                    yield _SESSION.sub(session, _ID.sub(partial(_renamed, number), line)) + b"\n"
        number += 1


def _renamed(number: int, match: re.Match[bytes]) -> bytes:
    return b"%08x" % (int(match[1], 16) ^ number) + match[2]


def append(path: str, pieces: Iterator[bytes], size: int) -> None:
    with open(path, "ab") as file:
        end = file.tell() + size
        while file.tell() < end:
            file.write(next(pieces))


def _read_in_child(path: str, home: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "bench.large", path, home], check=True, capture_output=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def child(path: str, home: str) -> None:
    """Read a transcript on from where it was left, and print what it cost."""
    with open(path, "rb") as file:
        harness = recognise(path, file.read(1 << 16))
    with open_store(home, config.defaults()) as store:
        base = peak_memory()
        start = time.perf_counter()
        done = ingest(store, harness, Source(path))
        seconds = time.perf_counter() - start
    print(json.dumps({
        "bytes": done.bytes, "entries": done.entries, "seconds": round(seconds, 3),
        "peak_mb": round(peak_memory() / 1e6, 1), "base_mb": round(base / 1e6, 1),
    }))  # fmt: skip


if __name__ == "__main__":
    child(*sys.argv[1:])
