"""Two stores that went on apart, merged both ways: whether they end alike, and how long that takes.

``python -m bench.merge [--notes 1000]``. Each store holds the same session with a history of its own behind the shared
part, and a session that the other does not have; so many notes each, made by the extractive observer's own records.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from obsmem.core.ids import content_id, entry_id
from obsmem.core.model import Note
from obsmem.harnesses.base import Source
from obsmem.store.memory import WorkerCall
from obsmem.system import config
from obsmem.tasks.bundle import export_bundle
from obsmem.tasks.bundle_import import import_path
from obsmem.tasks.fingerprint import fingerprint
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import Store, open_store
from tests.tasks.talk import CLAUDE, Talk, turns

SHARED = 50  # turns that both have
OWN = {"a": "5e551011-0000-4000-8000-0000000000aa", "b": "5e551011-0000-4000-8000-0000000000bb"}


def take(store: Store, folder: Path, talk: Talk, notes: int) -> None:
    """Read a session, and note something about so many of its last entries."""
    stored = ingest(store, CLAUDE, Source(str(talk.write(folder)))).stored
    assert stored is not None
    handle, last = stored.session.handle, stored.last_seq
    for number in range(notes):
        seq = last - number
        names = (entry_id(handle, seq),)
        text = f"{folder.name} note {number} of {talk.session[-4:]} on entry {seq}"
        note = Note(content_id(text, names), text, 0, "medium", names, "agent", "verified", 12)
        store.memory.add_note(WorkerCall(handle, "observe", "bench", 0, seq, seq, "ok", 1), note)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=1000, help="notes that each store has and the other has not")
    half = parser.parse_args().notes // 2
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OBSERVATIONAL_MEMORY_CONFIG"] = os.path.join(folder, "config.yaml")
        root, stores = Path(folder), {}
        paths = {name: root / f"{name}.omb" for name in OWN}
        for name, session in OWN.items():
            with open_store(str(root / f"store-{name}"), config.load()) as store:
                shared = turns(SHARED)
                for number in range(half // 4 + 1):
                    shared.user(f"{name} goes on with step {number}: keep src/{name}_{number}.py small.")
                    shared.run(f"pytest {name}/{number}", f"{number} passed")
                    shared.agent(f"{name} did step {number}.")
                take(store, root / name, shared, half)
                take(store, root / name, turns(half // 4 + 1, session), half)
                started = time.perf_counter()
                paths[name].write_bytes(export_bundle(store, store.archive.sessions()))
                took = time.perf_counter() - started
                print(
                    f"store {name}: bundle of {paths[name].stat().st_size:,} bytes in {took:.2f} s; {fingerprint(store)[:16]}"
                )
        for name, other in (("a", "b"), ("b", "a")):
            with open_store(str(root / f"store-{name}"), config.load()) as store:
                started = time.perf_counter()
                done = import_path(store, str(paths[other]))
                took = time.perf_counter() - started
                again = import_path(store, str(paths[other]))
                stores[name] = fingerprint(store)
                print(
                    f"store {name} took in {other}: {done.sessions} new sessions, {done.entries} new entries, {done.memory} rows of"
                    f" memory in {took:.2f} s; again: {again.entries + again.memory} new; {stores[name][:16]}"
                )
        print("identical" if stores["a"] == stores["b"] else "DIFFERENT")


if __name__ == "__main__":
    main()
