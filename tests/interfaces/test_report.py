"""How results are written for people."""

from __future__ import annotations

import io
import json
import sys
import time

import pytest

from obsmem.interfaces import report


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (812, "812 B"), (999, "999 B"), (1_000, "1.0 kB"), (123_302, "123 kB"), (4_100_000, "4.1 MB"), (7 * 10**12, "7000 GB")])  # fmt: skip
def test_sizes(count: int, text: str) -> None:
    assert report.size(count) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (119, "119 s"), (180, "3 min"), (7_300, "2 h"), (500_000, "5 d")])  # fmt: skip
def test_ages(monkeypatch: pytest.MonkeyPatch, seconds: int, text: str) -> None:
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    assert report.age((2_000_000_000 - seconds) * 1000) == text
    assert report.age(0) == "never"


@pytest.mark.parametrize(("count", "noun", "text"), [(1, "part", "1 part"), (2, "part", "2 parts"), (0, "entry", "0 entries"), (1, "entry", "1 entry"), (3, "stretch", "3 stretches")])  # fmt: skip
def test_counted_nouns(count: int, noun: str, text: str) -> None:
    assert report.many(count, noun) == text


def test_what_is_said_to_a_person_has_no_secrets_and_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    report.say("key AKIAIOSFODNN7EXAMPLE \x1b[2Jcleared\x07")
    report.warn("key AKIAIOSFODNN7EXAMPLE \x1b[2Jcleared\x07")
    captured = capsys.readouterr()
    for text in captured:
        assert "AKIAIOSFODNN7EXAMPLE" not in text and "\x1b" not in text and "\x07" not in text and "cleared" in text


def test_what_is_said_to_a_program_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    report.say_json({"path": "ä", "kinds": ("a", "b")})
    text = capsys.readouterr().out
    assert json.loads(text) == {"path": "ä", "kinds": ["a", "b"]} and "ä" in text and text.endswith("}\n")


def test_columns_of_a_table_are_as_wide_as_they_must_be() -> None:
    assert report.table([["a", "long one"], ["bbb", ""]], ["x", "y"]) == [
        "x    y",
        "---  --------",
        "a    long one",
        "bbb",
    ]


def test_counts_name_the_most_frequent_first() -> None:
    assert report.counts({"rare": 1, "often": 9}) == "often 9 · rare 1"


def test_a_bar_is_drawn_for_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    bar = report.Bar("reading")
    bar.show(5, 10)
    bar.end()
    assert stream.getvalue() == ""
    monkeypatch.setattr(stream, "isatty", lambda: True)
    bar = report.Bar("reading")
    bar.show(5, 10)
    drawn = stream.getvalue()
    assert drawn.startswith("\rreading") and "[###############...............] 5 B of 10 B" in drawn
    bar.end()
    assert stream.getvalue().endswith(" \r")


def test_nobody_agrees_where_nobody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert report.agreed("Remove it?") is False
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert report.agreed("Remove it?") is False
