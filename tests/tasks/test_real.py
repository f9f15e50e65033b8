"""The invariants over saved transcripts of real sessions, from the folder ``shared`` beside the project.

The small files and a few of the big ones always; every file with ``-m slow``.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsmem.harnesses import load
from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.tasks.discover import Found, find_below
from obsmem.tasks.ingest import ingest
from obsmem.tasks.observe import run_passes
from obsmem.tasks.resolve import find
from obsmem.tasks.store import Store, open_store
from tests.harnesses.cases import SHARED
from tests.tasks.talk import entries, plain, utc
from tests.tasks.test_observe import check_coverage

SMALL = 700_000
BIG = 6


def _all() -> list[Path]:
    files = [path for folder in ("transcripts", "cases") for path in (SHARED / folder).rglob("*") if path.is_file()]
    return sorted(files) + sorted((SHARED / "evals" / "compactions").glob("*.gz"))


def _size(path: Path) -> int:
    return path.stat().st_size * (5 if path.suffix == ".gz" else 1)


FILES = [path for path in _all() if path.suffix != ".md"]
_BIG = sorted((path for path in FILES if _size(path) >= SMALL), key=_size)
CHOSEN = [path for path in FILES if _size(path) < SMALL] + _BIG[:BIG]

needs_shared = pytest.mark.skipif(not FILES, reason="the folder of real transcripts is not beside the project")


def sources(paths: list[Path], folder: Path) -> Iterator[Found]:
    """Every file, one at a time, copied (and unpacked) into a folder of its own."""
    for number, path in enumerate(paths):
        place = folder / str(number)
        place.mkdir()
        copy = place / path.name.removesuffix(".gz")
        copy.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        yield from (found for found in find_below(str(copy)) if found.harness)
        shutil.rmtree(place)


def digest(pieces: Iterator[bytes]) -> str:
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.hexdigest()


def archived(store: Store, stored: StoredSession) -> str:
    return digest(store.archive.bytes_of(store.archive.sources(stored.no)[-1].no))


def is_plain(found: Found) -> bool:
    return os.path.isfile(found.source.path) and not found.source.path.endswith((".zst", ".db", ".vscdb"))


def record_bytes(found: Found) -> str:
    """The hash of what the harness module reads: the file itself, but for a compressed one or a database's rows."""
    if not is_plain(found):
        return digest(raw.data for raw in load(found.harness).records(found.source, 0, 0))
    return digest(iter([Path(found.source.path).read_bytes()]))


def check_bytes(found: Found, home: str) -> int:
    """Read with and without the torn end, then grown: what is archived is the file. Returns its entries."""
    with open_store(home) as store:
        whole = ingest(store, found.harness, found.source, final=True)
        if whole.stored is None:
            assert whole.reason in ("worker", "empty")
            return 0
        assert archived(store, whole.stored) == record_bytes(found), found.source.path
        wanted = plain(entries(store, whole.stored))
        if not is_plain(found) or found.source.path.endswith(".json"):
            return len(wanted)
    path = Path(found.source.path)
    data = path.read_bytes()
    try:
        path.write_bytes(data[: len(data) * 2 // 3])
        with open_store(home + "-grown") as store:
            for size in (len(data) * 2 // 3, len(data) - 1, len(data)):
                path.write_bytes(data[:size])
                ingest(store, found.harness, found.source, final=size == len(data) - 1)
            stored = ingest(store, found.harness, found.source, final=True).stored
            assert stored is not None
            assert archived(store, stored) == hashlib.sha256(data).hexdigest(), path
            assert plain(entries(store, stored)) == wanted, path
    finally:
        path.write_bytes(data)
        shutil.rmtree(home + "-grown", ignore_errors=True)
    return len(wanted)


def check_notes(store: Store, found: Found) -> int:
    """Observe all; coverage is whole, and every cited entry resolves to its bytes without the file. Returns notes."""
    result = ingest(store, found.harness, found.source, final=True)
    if result.stored is None:
        return 0
    stored = result.stored
    run_passes(store, stored, utc, drain=True)
    check_coverage(store, stored)
    texts = {one.seq: one.text for one in entries(store, stored)}
    path = Path(found.source.path)
    aside = path.with_name("aside")
    os.rename(path, aside)
    notes = store.memory.notes(stored.session.handle)
    for one in notes:
        answer = find(store, one.note.id)
        assert answer.status == "ok"
        for source in answer.sources:
            assert source.entry is not None
            assert source.entry.text == texts[source.entry.seq]
    os.rename(aside, path)
    return len(notes)


def sweep(paths: list[Path], tmp_path: Path) -> tuple[int, int, int]:
    """(sources, entries, notes) of everything that was read."""
    count = total = notes = 0
    for found in sources(paths, tmp_path):
        home = str(tmp_path / "store")
        total += check_bytes(found, home)
        with open_store(home) as store:
            notes += check_notes(store, found)
        shutil.rmtree(home)
        count += 1
    return count, total, notes


@needs_shared
def test_archived_bytes_are_the_files_and_notes_resolve_without_them(tmp_path: Path) -> None:
    count, total, notes = sweep(CHOSEN, tmp_path)
    assert count > 70
    assert total > 3000
    assert notes > 300


@needs_shared
@pytest.mark.slow
def test_the_same_over_every_file(tmp_path: Path) -> None:
    count, total, notes = sweep(FILES, tmp_path)
    print(f"\n{count} sources, {total} entries, {notes} notes")
    assert count >= len(CHOSEN) - 10


@needs_shared
def test_all_small_files_together_in_one_store_share_nothing(tmp_path: Path) -> None:
    """One store for all: handles are unique, and each session has the entries of its own file alone."""
    seen: dict[str, str] = {}
    with open_store(str(tmp_path / "store")) as store:
        for found in sources([path for path in CHOSEN if _size(path) < 200_000], tmp_path):
            result = ingest(store, found.harness, Source(*found.source), final=True)
            if result.stored is None or result.stored.session.parent is not None:
                continue
            before = seen.setdefault(result.stored.session.handle, found.source.path)
            same_name = os.path.basename(before) == os.path.basename(found.source.path)
            assert same_name or result.stored.session.id in Path(found.source.path).read_text("utf-8", "replace")
    assert len(seen) > 40
