"""Whether what a hook shortens comes back: over every shell result of real sessions, byte for byte, waiting and archived.

    python -m bench.raw_outputs [PATH…]

Each result goes through what the hook runs, as one of a session that is written for it; the whole is then asked for by its
id before the session is read, and after, and the entry's text is compared with it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from typing import Any

from bench.corpus import default_folders, gather
from bench.reduce import Result, results
from obsmem.core.ids import raw_id
from obsmem.harnesses import load_hooks
from obsmem.harnesses.base import Source
from obsmem.interfaces.hook_reduce import shorten_output
from obsmem.system import config
from obsmem.system.paths import session_folder
from obsmem.system.shortening import Settings, write_settings
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.fsck import check
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import open_store
from obsmem.tasks.whole_outputs import find_whole

HARNESS, SESSION = "claude-code", "5e551011-0000-4000-8000-0000000000e1"
MINIMUM = 500  # bytes: more results than by default


class Session:
    """A session in whose transcript the results stand as a hook left them."""

    def __init__(self, folder: str) -> None:
        self.home = os.path.join(folder, "home")
        self.path = os.path.join(folder, f"{SESSION}.jsonl")
        self.folder = session_folder(self.home, HARNESS, self.path, SESSION)
        self.lines: list[bytes] = []
        self.wholes: dict[str, bytes] = {}
        os.makedirs(self.home)
        write_settings(self.home, Settings(reduce=True, minimum=MINIMUM))

    def take(self, number: int, result: Result) -> str:
        """Give one result to the hook, and write down what came of it; returns the outcome."""
        module = load_hooks(HARNESS)
        call = f"toolu_{number:05d}"
        payload: dict[str, Any] = {
            "session_id": SESSION, "transcript_path": self.path, "cwd": "/w", "tool_name": "Bash", "tool_use_id": call,
            "tool_input": {"command": result.command}, "tool_response": {"stdout": result.output, "stderr": ""},
        }  # fmt: skip
        what = module.read_event("PostToolUse", payload)
        answer, outcome = shorten_output(self.home, "observational_memory.py", module, what, payload, self.folder)
        shown = result.output
        if answer:
            shown = json.loads(answer)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]
            self.wholes[raw_id(HARNESS, SESSION, call)] = result.output.encode("utf-8", "surrogatepass")
        block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": result.command}}
        self._add(number, "assistant", {"id": call, "role": "assistant", "content": [block]})
        self._add(
            number,
            "user",
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": shown}]},
        )
        return outcome.partition("-")[0] or "short"

    def _add(self, number: int, kind: str, message: Mapping[str, Any]) -> None:
        record = {"type": kind, "uuid": f"{kind}-{number}", "parentUuid": None, "sessionId": SESSION, "cwd": "/w", "isSidechain": False,
                  "timestamp": "2026-03-01T10:00:00.000Z", "message": message}  # fmt: skip
        self.lines.append(json.dumps(record).encode() + b"\n")


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.raw_outputs", description=__doc__)
    parser.add_argument("paths", nargs="*", default=default_folders(), metavar="PATH")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        session = Session(folder)
        outcomes = Counter(session.take(number, one) for number, one in enumerate(results(gather(options.paths))))
        wholes = session.wholes
        with open_store(session.home, config.defaults()) as store:
            waiting = sum(find_whole(store, id_).data == data for id_, data in wholes.items())
            with open(session.path, "wb") as file:
                file.writelines(session.lines)
            ingest(store, HARNESS, Source(session.path), final=True)
            archived = entries = 0
            for id_, data in wholes.items():
                whole = find_whole(store, id_)
                archived += whole.data == data and whole.entry != ""
                (entry,) = read_entries(store, *_one(store, whole.entry))
                entries += entry.text == data.decode("utf-8", "replace")
            left = len(os.listdir(os.path.join(session.folder, "raw")))
            wrong = check(store)
    size = sum(map(len, wholes.values()))
    print(
        f"results: {sum(outcomes.values())}; " + ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
    )
    print(f"shortened: {len(wholes)}, {size:,} bytes whole")
    print(f"whole and equal byte for byte: waiting {waiting}, archived {archived}, as the entry's text {entries}")
    print(f"still waiting after reading: {left}; findings of fsck: {len(wrong)}")
    return 0 if waiting == archived == entries == len(wholes) and not left and not wrong else 1


def _one(store: Any, name: str) -> tuple[Any, list[Any]]:
    stored, row = find_entry(store, name)
    return stored, [row]


if __name__ == "__main__":
    raise SystemExit(main())
