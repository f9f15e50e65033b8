"""The arithmetic of the bench of the machine's limits: intervals, counts, verdicts and pictures."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import history, limit_rows
from bench.corpus import DEMO, gather
from bench.curves import APART, BOTTOM, HEIGHT, TOP, Curve, Picture, draw, name_heights, step_of
from bench.intervals import middle, ratio
from bench.limits import LOADED, judge, pictures


def test_a_ratio_is_that_of_medians_and_its_interval_holds_it() -> None:
    ours, theirs = [30.0, 31.0, 29.0, 33.0, 90.0], [20.0, 21.0, 19.0, 22.0, 60.0]
    found = ratio(ours, theirs)
    assert found.value == pytest.approx(31 / 21)
    assert found.low <= found.value <= found.high
    assert found == ratio(ours, theirs)


def test_what_disturbs_both_sides_of_a_turn_does_not_widen_the_interval() -> None:
    busy = [1.0, 5.0, 2.0, 9.0, 3.0, 7.0]
    found = ratio([1.5 * one for one in busy], busy)
    assert found.rounded() == [1.5, 1.5, 1.5]
    alone = ratio([1.5 * one for one in busy], busy[::-1])
    assert alone.high > alone.low


def test_figures_without_a_partner_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        ratio([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="cannot be paired"):
        middle([])


def test_system_calls_are_counted_by_name() -> None:
    trace = 'execve("/usr/bin/python3", ["python3"], 0x7f /* 3 vars */) = 0\n12 read(0, "{}", 65536) = 2\n'
    trace += '12 read(0, "", 65536) = 0\n--- SIGCHLD {si_signo=SIGCHLD} ---\n+++ exited with 0 +++\n'
    assert limit_rows.calls_of(trace) == {"execve": 1, "read": 2}


def test_every_process_of_a_turn_is_run_as_often(tmp_path: Path) -> None:
    said, payload = tmp_path / "said", tmp_path / "payload"
    payload.write_text("{}", encoding="utf-8")
    script = "import sys; open(sys.argv[1], 'a', encoding='utf-8').write(sys.argv[2] + sys.stdin.read())"

    def command(name: str) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", script, str(said), name]

    ends: list[int] = []
    case = limit_rows.Case(
        "one", command("a"), {}, str(payload), {"b": command("b")}, lambda: None, lambda: ends.append(1)
    )
    row = limit_rows.measure(case, 3)
    counted = 0 if row.calls is None else 1
    assert said.read_text(encoding="utf-8").count("a{}") == 4 + counted
    assert said.read_text(encoding="utf-8").count("b{}") == 4
    assert len(ends) == 9
    assert set(row.wall_ratios) == {"b"}
    assert row.cpu > 0


def test_a_history_has_the_size_that_was_asked_for_and_its_word_once(tmp_path: Path) -> None:
    samples = gather([str(DEMO)])["claude-code"]
    paths = history.write_history(tmp_path, samples, history.SESSION_BYTES + 100_000)
    longest = max(len(line) for sample in samples for line in sample.lines)
    size = sum(Path(path).stat().st_size for path in paths)
    assert history.SESSION_BYTES + 100_000 <= size <= history.SESSION_BYTES + 100_000 + longest
    assert len(paths) == 2
    texts = [Path(path).read_text(encoding="utf-8") for path in paths]
    assert sum(text.count(history.WORD) for text in texts) == 1
    for path, text in zip(paths, texts, strict=True):
        assert {json.loads(line).get("sessionId", Path(path).stem) for line in text.split("\n") if line} == {
            Path(path).stem
        }


def _run(stop: float = 1.4, calls: int | None = 500) -> dict[str, Any]:
    def row(share: float, base: str, calls: int | None = 500) -> dict[str, Any]:
        return {f"/ {base}": [share] * 3, f"/ {base}, processor": [share] * 3, "system calls": calls}

    rows = {f"Stop, nothing to do, {name}": row(stop, "start") for name in ("10 KB", "10 MB")}
    rows["Stop, nothing to do, 1 GB"] = row(9.0, "start", calls)
    rows["SessionStart, a part, 1 GB"] = row(2.0, "start")
    rows["recall, 10 KB"] = row(3.1, LOADED)
    steps = {name: {"share of json": [share] * 3} for name, share in (("read", 0.5), ("archive", 0.1), ("words", 0.1))}
    return {
        "rows": rows,
        "transcripts": {"steps": steps, "disk": {"archive": 0.3, "with index": 0.7}},
        "history": {"10 KB": {"peak MB": 30}, "10 MB": {"peak MB": 210}},
        "maintainer": {"steps": [{"tokens": 10_000, "processor s": 0.3}, {"tokens": 20_000, "processor s": 0.4}]},
    }


def test_goals_are_judged_by_the_figures_that_they_are_about() -> None:
    met = {goal.name: goal.met for goal in judge(_run())}
    assert met["Stop, nothing to do / start"] and met["SessionStart, a part / start"]
    assert not met[f"recall / {LOADED}"]
    assert met["reading, share of json.loads"] and not met["ingest, share of json.loads"]
    assert met["archive, bytes for each of transcript"] and not met["archive and index, bytes for each of transcript"]
    assert not met["peak memory for a history of 10 MB, MB"]
    assert met["Stop, system calls more at 1 GB than at 10 KB"]
    assert not {goal.name: goal.met for goal in judge(_run(stop=1.51))}["Stop, nothing to do / start"]
    assert not {goal.name: goal.met for goal in judge(_run(calls=501))}["Stop, system calls more at 1 GB than at 10 KB"]
    assert not [goal for goal in judge(_run(calls=None)) if "system calls" in goal.name]


def test_pictures_are_svg_that_draws_every_point() -> None:
    run = _run()
    run["rows"] |= {f"search, {name}": run["rows"]["recall, 10 KB"] for name in ("10 KB", "0 notes")}
    run["rows"] |= {f"recall, {name}": run["rows"]["recall, 10 KB"] for name in ("0 notes",)}
    made = pictures(run)
    assert set(made) == {"hooks", "commands", "notes", "maintainer"}
    tree = ElementTree.fromstring(draw(made["maintainer"]))
    assert len(tree.findall("{http://www.w3.org/2000/svg}circle")) == 2


def test_a_picture_is_the_same_again_and_escapes_what_it_names() -> None:
    picture = Picture(
        "a < b & c", "x", "y", [Curve("<one>", [(1, 2, 1, 3), (10, 4, 3, 5)])], [(1, "1"), (10, "10")], True, 3
    )
    assert draw(picture) == draw(picture)
    words = [element.text for element in ElementTree.fromstring(draw(picture)).iter() if element.text]
    assert "<one>" in words and "a < b & c" in words and "goal: at most 3" in words
    with pytest.raises(ValueError, match="nothing to show"):
        draw(picture._replace(curves=[]))


@pytest.mark.parametrize(("highest", "step"), [(5.2, 1), (0.45, 0.1), (13, 5), (2.1, 0.5), (600, 100)])
def test_steps_are_round(highest: float, step: float) -> None:
    assert step_of(highest) == pytest.approx(step)


def test_names_stand_apart_and_inside() -> None:
    heights = name_heights([100, 101, 99, 400, 0, HEIGHT])
    ordered = sorted(heights)
    assert all(after - before >= APART for before, after in pairwise(ordered))
    assert ordered[0] >= TOP and ordered[-1] <= HEIGHT - BOTTOM + 2
    assert heights[2] < heights[0] < heights[1]
