"""The picture of a session's window, as numbers for an SVG: tokens held, by the number of the entry; compactions; notes below.

Invariant: whatever a session's length, a picture has at most some hundreds of points, and of each column the fullest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.model import RELEVANCES
from obsmem.tasks.report_data import Point, Report

WIDTH, HEIGHT = 1000, 100  # of the drawing; it is stretched to the page
COLUMNS = 700
BINS = 120  # of notes
ROOM = 1.06  # above the highest
FAR = 3.0  # a window or mark that is more times higher than anything held is told, not drawn


class Epoch(NamedTuple):
    """What was held between two compactions: the paths of its line and of the area below."""

    line: str
    area: str


class Level(NamedTuple):
    """A line across: what it is, tokens, and where (percent from above)."""

    name: str
    tokens: int
    y: float


class Tick(NamedTuple):
    """A mark on the lower edge: where (percent from the left), and its words. ``anchor`` is start, middle or end."""

    x: float
    words: str
    anchor: str


class Flag(NamedTuple):
    """Something that happened at an entry: where (percent), its seq, and its words."""

    x: float
    seq: int
    words: str


class Bin(NamedTuple):
    """Notes on a stretch, one relevance: place and size in units of the drawing."""

    x: float
    y: float
    width: float
    height: float
    relevance: str


class Chart(NamedTuple):
    """All of it. ``top`` is the number of tokens at the upper edge, ``last`` the seq at the right one; ``most`` notes in a bin."""

    epochs: tuple[Epoch, ...]
    levels: tuple[Level, ...]
    grid: tuple[Level, ...]
    ticks: tuple[Tick, ...]
    compactions: tuple[Flag, ...]
    deliveries: tuple[Flag, ...]
    bins: tuple[Bin, ...]
    top: int
    last: int
    most: int
    words: str


def draw(report: Report, clock: Clock) -> Chart | None:
    """The picture of a report; None where nothing is known of what its window held."""
    if not report.points:
        return None
    last = max(1, report.stored.last_seq)
    highest = max(point.tokens for point in report.points)
    window = report.occupancy.window
    wanted = [("window", window.size), ("compacts at", window.mark)]
    shown = [(name, tokens) for name, tokens in wanted if 0 < tokens <= FAR * highest]
    top = int(max([highest, *(tokens for _, tokens in shown)]) * ROOM) or 1
    most, bins = _bins(report, last)
    return Chart(
        tuple(_epochs(report, last, top)),
        tuple(Level(name, tokens, _percent(top - tokens, top)) for name, tokens in shown),
        tuple(Level("", tokens, _percent(top - tokens, top)) for tokens in _grid(top)),
        tuple(_ticks(report, last, clock)),
        tuple(
            Flag(_percent(one.found.seq, last), one.found.seq,
                 f"compaction {one.number}: {one.found.before:,} tokens before it, {one.found.after:,} after it")
            for one in report.crossings
        ),
        tuple(
            Flag(_percent(seq, last), seq, f"part {part} of block {delivery}") for delivery, part, seq, _ in report.receipts
        ),
        bins, top, last, most, _words(report, highest),
    )  # fmt: skip


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 3)


def _epochs(report: Report, last: int, top: int) -> list[Epoch]:
    ends = [one.found.seq for one in report.crossings] + [1 << 62]
    groups: list[list[Point]] = [[] for _ in ends]
    for point in report.points:
        groups[next(place for place, end in enumerate(ends) if point.seq < end)].append(point)
    return [_epoch(_thinned(group, last), last, top) for group in groups if group]


def _thinned(points: Sequence[Point], last: int) -> list[Point]:
    fullest: dict[int, Point] = {}
    for point in points:
        column = point.seq * COLUMNS // (last + 1)
        if column not in fullest or fullest[column].tokens < point.tokens:
            fullest[column] = point
    return list(fullest.values())


def _epoch(points: Sequence[Point], last: int, top: int) -> Epoch:
    places = [(round(WIDTH * point.seq / last, 2), round(HEIGHT * (1 - point.tokens / top), 2)) for point in points]
    if len(places) == 1:  # a line of one point would not be seen
        places.append((places[0][0] + 2, places[0][1]))
    line = "M" + " L".join(f"{x:g} {y:g}" for x, y in places)
    return Epoch(line, f"{line} L{places[-1][0]:g} {HEIGHT} L{places[0][0]:g} {HEIGHT} Z")


def _grid(top: int) -> list[int]:
    """Two to five round numbers below the top."""
    step = next(
        size * 10**power for power in range(1, 9) for size in (1, 2, 5) if top / (size * 10**power) < 6
    )  # fmt: skip
    return list(range(step, top, step))


def _ticks(report: Report, last: int, clock: Clock) -> list[Tick]:
    moments = report.moments
    if not moments:
        return []
    places = sorted({round(number * (len(moments) - 1) / 3) for number in range(4)})
    anchors = {0: "start", len(places) - 1: "end"}
    return [
        Tick(_percent(moments[place][0], last), clock(moments[place][1])[5:], anchors.get(number, "middle"))
        for number, place in enumerate(places)
    ]


def _bins(report: Report, last: int) -> tuple[int, tuple[Bin, ...]]:
    counts = [dict.fromkeys(RELEVANCES, 0) for _ in range(BINS)]
    for one in report.notes:
        if one.seq >= 0 and one.state == "visible":
            counts[min(BINS - 1, one.seq * BINS // (last + 1))][one.note.relevance] += 1
    most = max(sum(count.values()) for count in counts)
    bins = []
    for number, count in enumerate(counts):
        y = float(HEIGHT)
        for relevance in reversed(RELEVANCES):
            if count[relevance]:
                height = HEIGHT * count[relevance] / most
                y -= height
                bins.append(Bin(round(number * WIDTH / BINS, 2), round(y, 2), round(WIDTH / BINS - 1.5, 2), round(height, 2),
                                relevance))  # fmt: skip
    return most, tuple(bins)


def _words(report: Report, highest: int) -> str:
    """What the picture shows, for who does not see it."""
    now, window = report.occupancy, report.occupancy.window
    counted = (
        "as the provider counted them" if report.points[0].counted else "as we estimate them, since nothing was counted"
    )
    of = f" of a window of {window.size:,}" if window.size else ""
    return (
        f"Tokens that the window held, {counted}: at most {highest:,}{of}, {now.tokens:,} at the end; "
        f"{len(report.crossings)} compactions."
    )
