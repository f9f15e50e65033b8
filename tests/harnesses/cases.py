"""Runs the case folders of a harness: ``fixtures/harnesses/<harness>/<case>/``.

A case holds a source (``transcript.jsonl``, or whatever one file the harness keeps), ``entries.json`` with what it must
yield, and ``about.txt`` with one line that says why the case exists. ``UPDATE_FIXTURES=1 pytest`` rewrites
``entries.json`` from what is read now; read the difference before committing it. Tests import this as
``from tests.harnesses.cases import …``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from obsmem import harnesses
from obsmem.core.model import Entry, Session
from obsmem.harnesses.base import Harness, Link, Measure, Parsed, Raw, Source
from obsmem.harnesses.written import link_key

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / ".." / "shared"
FIXTURES = ROOT / "fixtures" / "harnesses"
BESIDE = {"entries.json", "about.txt"}
PAYLOADS = "payloads"  # beside the cases: what the real program gave to hooks


class Line(NamedTuple):
    """One record with what it yielded."""

    raw: Raw
    parsed: Parsed


class Reading(NamedTuple):
    """A whole source: its lines in order, the session as known at the end, and the parent's id."""

    lines: list[Line]
    session: Session
    parent_id: str

    def entries(self) -> list[Entry]:
        """All entries in order, ``active`` as it is after the last record."""
        active = activity(line.parsed for line in self.lines)
        found: list[Entry] = []
        for raw, parsed in self.lines:
            for entry in parsed.entries:
                found.append(entry._replace(active=active.get(raw.line, entry.active)))
        return found

    def measures(self) -> list[Measure]:
        """Every reported measure, in order."""
        return [line.parsed.measure for line in self.lines if line.parsed.measure]

    def receipts(self) -> list[str]:
        """Every delivery mark, in order."""
        return [receipt for line in self.lines for receipt in line.parsed.receipts]


def activity(parsed: Iterable[Parsed]) -> dict[int, bool]:
    """Fold the activity ranges of a source: line -> on the live path (absent: as the entry says)."""
    active: dict[int, bool] = {}
    for record in parsed:
        for span in record.activity:
            active.update((line, span.active) for line in range(span.first, span.last + 1))
    return active


def read_source(harness: Harness, source: Source, pieces: int = 1) -> Reading:
    """Read a source whole, or in pieces whose state goes through JSON in between."""
    raws = [raw for raw in harness.records(source, 0, 0) if raw.complete]
    lines: list[Line] = []
    seen: list[tuple[int, Link]] = []
    state: dict[str, Any] | None = None
    size = max(1, -(-len(raws) // pieces))
    reader = harness.reader(source, None, lambda: iter(seen))
    for start in range(0, len(raws), size):
        if start:
            reader = harness.reader(source, state, lambda: iter(seen))
        for raw in raws[start : start + size]:
            parsed = reader.read(raw)
            lines.append(Line(raw, parsed))
            if parsed.link:
                link = parsed.link
                seen.append((raw.line, Link(link_key(link.id), link_key(link.parent), link.prompt)))
        state = json.loads(json.dumps(reader.state()))
    return Reading(lines, reader.session, reader.parent_id)


def read_file(name: str, path: Path, pieces: int = 1) -> Reading:
    """Read the first source of a file with the named harness."""
    harness = harnesses.load(name)
    return read_source(harness, harness.sources(str(path))[0], pieces)


def case_folders(name: str) -> list[Path]:
    """Every case folder of a harness, in order."""
    folder = FIXTURES / name
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name != PAYLOADS)


def case_source(case: Path) -> Path:
    """The one file or folder of a case that the harness reads."""
    found = [path for path in sorted(case.iterdir()) if path.name not in BESIDE and not path.name.startswith(".")]
    return next((path for path in found if path.stem == "transcript"), found[0])


def compact(reading: Reading) -> list[dict[str, Any]]:
    """What ``entries.json`` holds: one object per entry, unset fields left out."""
    rows: list[dict[str, Any]] = []
    active = activity(line.parsed for line in reading.lines)
    for raw, parsed in reading.lines:
        rows.extend(_row(raw, entry, active) for entry in parsed.entries)
        if parsed.skipped:
            rows.append({"line": raw.line, "key": raw.key, "skipped": list(parsed.skipped)})
    return [{key: value for key, value in row.items() if value not in ("", None)} for row in rows]


def _row(raw: Raw, entry: Entry, active: Mapping[int, bool]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "line": raw.line,
        "key": raw.key,
        "block": entry.block,
        "kind": entry.kind,
        "speaker": entry.speaker,
        "active": active.get(raw.line, entry.active),
        "text": entry.text,
        "tool": entry.tool,
        "ok": entry.ok,
        "exit_code": entry.exit_code,
    }
    if entry.actions:
        row["actions"] = [{key: value for key, value in action._asdict().items() if value} for action in entry.actions]
    return row


def check_case(name: str, case: Path) -> None:
    """Compare a case with its expected entries; with UPDATE_FIXTURES=1 write them instead."""
    found = json.loads(json.dumps(compact(read_file(name, case_source(case)))))
    expected_path = case / "entries.json"
    if os.environ.get("UPDATE_FIXTURES") == "1":
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found)
        expected_path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    assert (case / "about.txt").read_text(encoding="utf-8").strip(), f"{case.name} does not say what it is for"
    assert found == json.loads(expected_path.read_text(encoding="utf-8"))
