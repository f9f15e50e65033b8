"""What shortening tool output saves, rule by rule, and what it loses: over every shell result of real sessions.

    python -m bench.reduce [PATH…] [--minimum BYTES] [--losses] [--as-failed] [--json FILE]

Each session is archived as the program does it; each result is read back from there, and its record compared with the
transcript's bytes. What is lost is told by ``bench.reduce_check``, which shares nothing with the rules.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench import facts
from bench.corpus import Sample, default_folders, gather
from bench.reduce_check import Losses, losses
from obsmem.core.model import Entry
from obsmem.core.reduce import MINIMUM_BYTES, Rules, reduce
from obsmem.core.tokens import estimate
from obsmem.harnesses import load
from obsmem.system import config
from obsmem.tasks.entries import read_entries
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import Store, open_store

KINDS = ("errors", "surroundings", "tests", "paths", "exits")


class Result(NamedTuple):
    """What a shell command printed, without the words that a harness put around it. ``same`` is True where the archive gives
    back the very bytes of its record."""

    harness: str
    command: str
    output: str
    exit_code: int | None
    same: bool


class Row(NamedTuple):
    """Sums of one rule: results, bytes and tokens before and after."""

    results: int = 0
    whole: int = 0
    kept: int = 0
    whole_tokens: int = 0
    kept_tokens: int = 0

    def plus(self, other: Row) -> Row:
        """The sum, field by field."""
        return Row(*(a + b for a, b in zip(self, other, strict=True)))

    def line(self, name: str) -> str:
        """One line of the table."""
        return (
            f"{name:28} {self.results:5} {self.whole:10,} {self.kept:10,} {_share(self.whole, self.kept)} "
            f"{self.whole_tokens:10,} {self.kept_tokens:10,} {_share(self.whole_tokens, self.kept_tokens)}"
        )


def results(groups: dict[str, list[Sample]]) -> Iterator[Result]:
    """Every shell result, out of a fresh archive."""
    with tempfile.TemporaryDirectory(prefix="bench-") as home, open_store(home, config.defaults()) as store:
        originals: set[bytes] = set()
        for harness, samples in groups.items():
            for sample in samples:
                ingest(store, harness, sample.source, final=True)
                records = load(harness).records(sample.source, 0, 0)
                originals.update(hashlib.sha256(raw.data).digest() for raw in records)
        yield from _archived(store, originals)


def _archived(store: Store, originals: set[bytes]) -> Iterator[Result]:
    for stored in store.archive.sessions():
        calls: dict[str, str] = {}
        rows = list(store.archive.entries(stored.no))
        for row, entry in zip(rows, read_entries(store, stored, rows), strict=True):
            if entry.kind == "tool_call":
                lines = [action.command for action in entry.actions if action.kind == "run"]
                if lines:
                    calls[entry.call_id] = "\n".join(lines)
            elif entry.kind == "tool_result" and entry.call_id in calls:
                same = hashlib.sha256(store.archive.record(row)).digest() in originals
                yield Result(
                    stored.session.harness, calls[entry.call_id], entry.text[entry.preface :], _code(entry), same
                )


def _code(entry: Entry) -> int | None:
    """The exit code as a hook knows it: a tool that says of itself that it went well ended with 0."""
    if entry.exit_code is None and entry.ok:
        return 0
    return 1 if entry.exit_code is None and entry.ok is False else entry.exit_code


def measure(found: Iterator[Result], rules: Rules) -> tuple[dict[str, Row], Counter[str], list[tuple[Result, Losses]]]:
    """Sums by rule (and ``all``, ``left alone``), counts of what was lost, and the results that lost something."""
    table: dict[str, Row] = {"all": Row()}
    counted: Counter[str] = Counter()
    losers = []
    for result in found:
        start = time.perf_counter()
        reduced = reduce(result.command, result.output, result.exit_code, rules)
        counted["microseconds"] += int(1e6 * (time.perf_counter() - start))
        text = reduced.text if reduced else result.output
        row = Row(1, _size(result.output), _size(text), estimate(result.output), estimate(text))
        name = reduced.rule if reduced else "left alone"
        table[name] = table.get(name, Row()).plus(row)
        table["all"] = table["all"].plus(row)
        counted["recalled equal"] += result.same
        if reduced:
            lost = losses(result.output, reduced.text, result.exit_code)
            _count(counted, lost)
            losers.append((result, lost))
    return table, counted, losers


def _count(counted: Counter[str], lost: Losses) -> None:
    where = "failed" if lost.failed else "went well"
    counted[f"{where}: results"] += 1
    for kind in KINDS:
        counted[f"{where}: {kind}"] += len(getattr(lost, kind))
    counted["invented"] += len(lost.invented)


def show(table: dict[str, Row], counted: Counter[str]) -> None:
    """Print the table and what was lost."""
    print(f"{'rule':28} {'n':>5} {'bytes':>10} {'after':>10}        {'tokens':>10} {'after':>10}")
    for name, row in sorted(table.items(), key=lambda pair: pair[1].kept - pair[1].whole):
        print(row.line(name))
    every = table["all"]
    reduced = [row for name, row in table.items() if name not in ("all", "left alone")]
    print(_sum(reduced).line("shortened"))
    print(f"  {counted['microseconds'] / 1e6 / max(1, every.whole / 1e6):.2f} s for each MB")
    for where in ("failed", "went well"):
        lost = ", ".join(f"{counted[f'{where}: {kind}']} {kind}" for kind in KINDS)
        print(f"  {where}: {counted[f'{where}: results']} shortened; lost: {lost}")
    print(f"  lines invented or out of order: {counted['invented']}")
    print(f"  records recalled byte for byte: {counted['recalled equal']} of {every.results}")


def _sum(rows: list[Row]) -> Row:
    whole = Row()
    for row in rows:
        whole = whole.plus(row)
    return whole


def _share(whole: int, kept: int) -> str:
    return f"{-100 * (1 - kept / whole):5.0f} %" if whole else "      -"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.reduce", description=__doc__)
    parser.add_argument("paths", nargs="*", default=default_folders(), metavar="PATH")
    parser.add_argument(
        "--minimum", type=int, default=MINIMUM_BYTES, metavar="BYTES", help="shorter outputs are left alone"
    )
    parser.add_argument("--losses", action="store_true", help="print what failed commands lost")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--as-failed", action="store_true", help="take every result for that of a failed command")
    options = parser.parse_args()
    found = results(gather(options.paths))
    if options.as_failed:
        found = (result._replace(exit_code=result.exit_code or 1) for result in found)
    table, counted, losers = measure(found, Rules(minimum=options.minimum))
    show(table, counted)
    if options.losses:
        _show_losses(losers)
    if options.json:
        figures: dict[str, Any] = {name: row._asdict() for name, row in table.items()}
        facts.write(options.json, {"rules": figures, "fidelity": dict(counted)})
    return 0


def _show_losses(losers: list[tuple[Result, Losses]]) -> None:
    for result, lost in losers:
        if (lost.failed and any(lost[1:])) or lost.invented:
            print(f"{result.harness}, exit {result.exit_code}: {result.command[:160]!r}")
            for kind in (*KINDS, "invented"):
                for item in getattr(lost, kind)[:5]:
                    print(f"  {kind}: {item[:160]!r}")


if __name__ == "__main__":
    raise SystemExit(main())
