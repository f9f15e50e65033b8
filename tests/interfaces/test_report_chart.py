"""The picture of a window: whatever a session's length it has few points, and the fullest are among them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from obsmem.core.pressure import Occupancy, Window
from obsmem.interfaces.report_chart import BINS, COLUMNS, FAR, HEIGHT, WIDTH, Chart, draw
from obsmem.tasks.report_data import Point, Report, gather
from tests.tasks.talk import opened, session_of, turns, utc
from tests.tasks.test_explain import delivered


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """The report of a session that was compacted once, and whose block arrived."""
    with opened() as store:
        stored, _ = delivered(store, tmp_path)
        return gather(store, stored, utc)


def drawn(report: Report) -> Chart:
    found = draw(report, utc)
    assert found is not None
    return found


def places(path: str) -> list[tuple[float, float]]:
    """The points of a path."""
    numbers = [float(one) for one in re.findall(r"-?[\d.]+", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_a_compaction_parts_the_line(report: Report) -> None:
    chart = drawn(report)
    (cut,) = chart.compactions
    before, after = (places(epoch.line) for epoch in chart.epochs)
    assert before[-1][0] < cut.x * WIDTH / 100 < after[0][0] + 1
    assert cut.seq == report.crossings[0].found.seq and "compaction 1" in cut.words
    assert {flag.words.split(" of ")[1] for flag in chart.deliveries} == {f"block {report.crossings[0].delivery}"}


def test_everything_stands_within_the_picture(report: Report) -> None:
    chart = drawn(report)
    for epoch in chart.epochs:
        assert all(0 <= x <= WIDTH + 2 and 0 <= y <= HEIGHT for x, y in places(epoch.line))
    assert all(0 <= one.x <= 100 for one in (*chart.compactions, *chart.deliveries, *chart.ticks))
    assert all(0 <= one.y <= 100 for one in (*chart.levels, *chart.grid))
    assert all(one.y >= -0.01 and one.y + one.height <= HEIGHT + 0.01 for one in chart.bins)
    assert 2 <= len(chart.grid) <= 6
    assert len({one.x for one in chart.bins}) <= BINS and chart.most >= 1


def test_a_long_session_is_thinned_and_keeps_its_peaks(report: Report) -> None:
    last = 100_000
    points = tuple(Point(seq, 0, 900_000 if seq == 54_321 else 1_000 + seq % 50, True) for seq in range(last))
    long = report._replace(points=points, crossings=(), receipts=(), stored=report.stored._replace(last_seq=last))
    chart = drawn(long)
    (epoch,) = chart.epochs
    found = places(epoch.line)
    assert len(found) <= COLUMNS + 1
    highest = min(found, key=lambda one: one[1])
    assert abs(highest[0] - WIDTH * 54_321 / last) < 2
    assert [x for x, _ in found] == sorted(x for x, _ in found)


def test_a_window_far_above_what_was_held_is_told_and_not_drawn(report: Report) -> None:
    highest = max(point.tokens for point in report.points)
    near, far = Window(size=int(2 * highest), mark=int(1.5 * highest)), Window(size=int((FAR + 1) * highest))
    assert [one.name for one in drawn(report._replace(occupancy=Occupancy(window=near))).levels] == [
        "window",
        "compacts at",
    ]
    alone = drawn(report._replace(occupancy=Occupancy(window=far)))
    assert alone.levels == () and f"{far.size:,}" in alone.words


def test_nothing_known_is_no_picture(report: Report, tmp_path: Path) -> None:
    assert draw(report._replace(points=()), utc) is None
    with opened() as store:
        one = gather(store, session_of(store, turns(1).write(tmp_path / "one")), utc)
    assert "estimate" in drawn(one).words
