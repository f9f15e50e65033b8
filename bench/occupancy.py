"""How well the occupancy that we give agrees with what the provider then counts.

    python -m bench.occupancy [FILE-OR-FOLDER ...] [--json FILE]

For every request of a session's own but its first: what the window holds by our account right before it (the count of the
request before, and the estimate of what came after, calibrated by earlier requests of that session, or of the same model in
sessions that began before) against what the provider counted at it. Errors are shares of the provider's count. Requests right
after a compaction, where nothing was counted yet, are told apart.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from bench import facts
from bench.corpus import default_folders, gather
from obsmem.store.archive import StoredSession
from obsmem.store.measures import OWN_REQUESTS, Measured, measures_of
from obsmem.store.windows import save_ratio
from obsmem.system import config
from obsmem.tasks.ingest import ingest
from obsmem.tasks.occupancy import measured_ratio, occupancy_after
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.windows import model_of

LEAST = 1_000  # tokens of a request that tells anything: smaller ones are made up


class Guess(NamedTuple):
    """What we said before a request, of that what was counted before, and what the provider counted at it."""

    said: int
    counted: int
    held: int

    @property
    def error(self) -> float:
        """Of the provider's count; above 0 where we said too much."""
        return (self.said - self.held) / self.held


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.occupancy", description=__doc__)
    parser.add_argument("paths", nargs="*", help="transcripts or folders of them")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    machine = facts.machine()
    facts.show_machine(machine)
    figures = measure(options.paths or default_folders())
    for name, figure in figures.items():
        print(
            f"{name:32} {figure['requests']:5} requests | error: median {figure['median']:.2%}, p95 {figure['p95']:.2%}, "
            f"most {figure['most']:.0%}, bias {figure['bias']:+.2%}"
        )
    if options.json:
        facts.write(options.json, {"machine": machine, "occupancy": figures})
    return 0


def measure(paths: Sequence[str]) -> dict[str, Any]:
    """Figures by harness, with and without our estimate of what came after the last count."""
    guesses: dict[str, list[Guess]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="bench-") as home, open_store(home, config.defaults()) as store:
        for harness, samples in gather(paths).items():
            for sample in samples:
                ingest(store, harness, sample.source, final=True)
        for stored in sorted(store.archive.sessions(), key=lambda one: one.session.started_at):
            for guess in _guesses(store, stored):
                guesses[f"{stored.session.harness}{'' if guess.counted else ', after a compaction'}"].append(guess)
    found: dict[str, Any] = {}
    for name, rows in sorted(guesses.items()):
        found[name] = _figure([row.error for row in rows])
        if all(row.counted for row in rows):
            found[f"{name}, count alone"] = _figure([(row.counted - row.held) / row.held for row in rows])
    return found


def _guesses(store: Store, stored: StoredSession) -> list[Guess]:
    """A session's requests in order, each with what we would have said before it; then its model's ratio is learned."""
    measures = [one for one in measures_of(store.archive.connection, stored.no) if not one.copied]
    found = []
    for number, one in enumerate(measures):
        earlier = measures[:number]
        if (
            one.kind not in OWN_REQUESTS
            or one.context < LEAST
            or not any(each.kind in OWN_REQUESTS for each in earlier)
        ):
            continue
        now = occupancy_after(store, stored, earlier, _last_before(store, stored, one, earlier))
        found.append(Guess(now.tokens, now.counted, one.context))
    ratio = measured_ratio(store, stored, measures)
    if ratio:
        save_ratio(store.memory.connection, stored.session.harness, model_of(stored, measures), ratio)
    return found


def _last_before(store: Store, stored: StoredSession, one: Measured, earlier: Sequence[Measured]) -> int:
    """The last entry that stood there before a request was made: the one before the words that answer it."""
    row = store.archive.entry(stored.no, one.seq)
    spoke = row is not None and row.speaker == "agent" and one.seq > earlier[-1].seq
    return one.seq - 1 if spoke else one.seq


def _figure(errors: Sequence[float]) -> dict[str, Any]:
    sizes = sorted(abs(error) for error in errors)
    return {
        "requests": len(sizes),
        "median": round(median(sizes), 5),
        "p95": round(sizes[min(len(sizes) - 1, int(len(sizes) * 0.95))], 5),
        "most": round(sizes[-1], 4),
        "bias": round(sum(errors) / len(errors), 5),
    }


if __name__ == "__main__":
    raise SystemExit(main())
