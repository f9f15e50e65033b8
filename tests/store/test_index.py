"""Derived tables: reach moves with what was added, words are never query syntax, a damaged file makes room for a new."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from obsmem.core.model import Card, Fact
from obsmem.store.archive_schema import row_number
from obsmem.store.index import Index

CARD = Card("abcd", 1, 0, 3, (Fact("command", (1, 2), 5, "make", "ok", True, {"exit": 0, "errors": ["a"]}),))


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(str(tmp_path / "index.db"))


def test_cards_come_back_as_they_were_added(index: Index) -> None:
    assert index.add_cards(1, [CARD], 3, {"turn": 1}, -1, 7)
    assert index.cards(1, "abcd") == [CARD]
    assert index.reach(1, "cards") == (3, {"turn": 1})
    assert index.reach(1, "rewinds")[0] == 7
    assert index.cards(1, "abcd", up_to=-1) == index.cards(2, "abcd") == []


def test_whoever_comes_second_adds_nothing(index: Index) -> None:
    assert index.add_cards(1, [CARD], 3, {}, -1)
    assert not index.add_cards(1, [CARD._replace(first_seq=1)], 9, {}, -1)
    assert index.reach(1, "cards")[0] == 3
    assert index.add_words(1, [(0, "some words")], 0, -1)
    assert not index.add_words(1, [(0, "some words")], 0, -1)


def test_words_are_found_and_never_read_as_syntax(index: Index) -> None:
    texts = ["the parser fails on brackets", 'a "quoted" NEAR thing AND more', "nothing here"]
    index.add_words(1, enumerate(texts), 2, -1)
    assert index.find(["parser"]) == [row_number(1, 0)]
    assert index.find(["quoted", "unheard"]) == [row_number(1, 1)]
    index.add_words(2, [(0, "see parse_config in src/a.py"), (1, "parse the config of src/b")], 1, -1)
    assert index.find(["parse_config", "src/a.py"])[0] == row_number(2, 0)
    assert index.find(["src/a.py"]) == [row_number(2, 0)]
    for odd in ('"', "a OR b", "NEAR(", "col:x", "*", "-parser", "", "  ", "'; DROP TABLE words"):
        assert isinstance(index.find([odd]), list)


def test_a_damaged_file_is_kept_aside_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    index = Index(str(path))
    index.add_cards(1, [CARD], 3, {}, -1)
    index.close()
    path.write_bytes(b"broken" * 1000)
    again = Index(str(path))
    assert again.cards(1, "abcd") == []
    assert again.check() == ""
    assert os.path.exists(f"{path}.damaged")


def test_forgetting_a_session_takes_its_cards_and_all_full_text(index: Index, tmp_path: Path) -> None:
    for session in (1, 2):
        index.add_cards(session, [CARD], 3, {}, -1)
        index.add_words(session, [(0, f"secretword{session}")], 0, -1)
    index.forget(1)
    index.vacuum()
    assert index.cards(1, "abcd") == []
    assert index.cards(2, "abcd") == [CARD]
    assert index.find(["secretword1", "secretword2"]) == []
    assert index.reach(2, "words")[0] == -1
    assert not any(
        b"secretword1" in (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if name.startswith("index")
    )
