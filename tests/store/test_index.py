"""Derived tables: reach moves with what was added, words are never query syntax, a damaged file makes room for a new."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.identifiers import read_terms, split, whole_names
from obsmem.core.model import Card, Fact
from obsmem.store.archive_schema import row_number
from obsmem.store.index import MIGRATIONS, Index
from obsmem.store.schema import open_database
from obsmem.store.search import Filter, WordRow

EVERYTHING = Filter()
CARD = Card("abcd", 1, 0, 3, (Fact("command", (1, 2), 5, "make", "ok", True, {"exit": 0, "errors": ["a"]}),))


def row(session: int, seq: int, text: str, **fields: Any) -> WordRow:
    """An entry as it is indexed."""
    names = " ".join(whole_names(text))
    plain = WordRow(row_number(session, seq), "human", split(text), names, 1000 + seq, "user", "", 0, hash(text))
    return plain._replace(**fields)


def find(index: Index, text: str, filter_: Filter = EVERYTHING) -> list[int]:
    """Row numbers that hold any of the words, best first."""
    terms = read_terms(text)
    return [match.no for match in index.search.matches(terms, filter_, 20)] if terms else []


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
    assert index.add_words(1, [row(1, 0, "some words")], 0, -1)
    assert not index.add_words(1, [row(1, 0, "some words")], 0, -1)


def test_words_are_found_and_never_read_as_syntax(index: Index) -> None:
    texts = ["the parser fails on brackets", 'a "quoted" NEAR thing AND more', "nothing here"]
    index.add_words(1, [row(1, seq, text) for seq, text in enumerate(texts)], 2, -1)
    assert find(index, "parser") == [row_number(1, 0)]
    assert find(index, "quoted unheard") == [row_number(1, 1)]
    index.add_words(2, [row(2, 0, "see parse_config in src/a.py"), row(2, 1, "parse the config of src/b")], 1, -1)
    assert find(index, "parse_config src/a.py")[0] == row_number(2, 0)
    for odd in ('"', "a OR b", "NEAR(", "col:x", "*", "-parser", "", "  ", "'; DROP TABLE words"):
        assert isinstance(find(index, odd), list)


def test_the_best_row_is_first_and_not_the_one_with_the_lowest_number(index: Index) -> None:
    long = "filler words about the weather, and the parser among all of it " + "more of the same and nothing new " * 9
    rows = [row(1, seq, long, hash=seq) for seq in range(3)] + [row(1, 3, "the parser")]
    rows += [row(1, seq, f"something else {seq}") for seq in range(4, 20)]
    index.add_words(1, rows[:3] + rows[4:] + [rows[3]], 19, -1)
    assert find(index, "parser")[0] == row_number(1, 3)


def test_forms_of_a_name_find_each_other(index: Index) -> None:
    texts = ["parseConfig fails", "parse_config fails", "open src/parse/config.py", "nothing alike"]
    index.add_words(1, [row(1, seq, text) for seq, text in enumerate(texts)], 3, -1)
    for name in ("parseConfig", "parse_config", "parse-config", "parse/config"):
        assert sorted(find(index, name)) == [row_number(1, seq) for seq in range(3)]
    assert sorted(find(index, "parseconfig")) == [row_number(1, 0), row_number(1, 1)]


def test_every_filter_holds_while_candidates_are_chosen(index: Index) -> None:
    rows = [row(1, seq, f"word {seq}", tool="Shell", paths=(f"src/f{seq}.py",)) for seq in range(30)]
    rows[7] = rows[7]._replace(kind="tool_call", tool="Edit", at=5)
    rows[8] = rows[8]._replace(flags=1)
    index.add_words(1, rows, 29, -1)
    index.add_words(2, [row(2, 0, "word elsewhere")], 0, -1)
    seventh = [row_number(1, 7)]
    assert find(index, "word", Filter(kinds=("tool_call",))) == seventh
    assert find(index, "word", Filter(tools=("edit",))) == seventh
    assert find(index, "word", Filter(paths=("F7.py",))) == seventh
    assert find(index, "word", Filter(until=6, since=5)) == seventh
    assert find(index, "word", Filter(sessions=frozenset((2,)))) == [row_number(2, 0)]
    assert row_number(1, 8) not in find(index, "8") and find(index, "8", Filter(own=True)) == [row_number(1, 8)]
    assert find(index, "elsewhere", Filter(hidden=(row_number(2, 0), row_number(2, 9)))) == []


def test_equal_texts_are_one_with_a_count(index: Index) -> None:
    index.add_words(1, [row(1, seq, "the same words", hash=5) for seq in range(4)], 3, -1)
    (match,) = index.search.matches(read_terms("same"), Filter(), 20)
    assert (match.no, match.copies) == (row_number(1, 3), 4)


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


def test_cards_of_an_earlier_version_are_read_as_they_are_and_made_anew_by_who_may_write(tmp_path: Path) -> None:
    path = str(tmp_path / "index.db")
    earlier = open_database(path, MIGRATIONS[:3], journal="TRUNCATE")
    fact = ["read", [3], 0, "a.py", "", True, {}]
    earlier.execute("INSERT INTO cards VALUES(1,0,3,1,?)", (json.dumps([fact]),))
    earlier.execute("INSERT INTO reach VALUES(1,'cards',3,'{}')")
    earlier.commit()
    earlier.close()
    reading = Index(path, readonly=True)
    assert reading.cards(1, "abcd") == [Card("abcd", 1, 0, 3, (Fact("read", (3,), 0, "a.py", "", True, {}),))]
    reading.close()
    writing = Index(path)
    assert writing.cards(1, "abcd") == [] and writing.reach(1, "cards") == (-1, {})
    writing.close()


def test_forgetting_a_session_takes_its_cards_and_all_full_text(index: Index, tmp_path: Path) -> None:
    for session in (1, 2):
        index.add_cards(session, [CARD], 3, {}, -1)
        index.add_words(session, [row(session, 0, f"secretword{session}", paths=("secretword",))], 0, -1)
    index.forget(1)
    index.vacuum()
    assert index.cards(1, "abcd") == []
    assert index.cards(2, "abcd") == [CARD]
    assert find(index, "secretword1 secretword2") == []
    assert index.reach(2, "words")[0] == -1
    assert not any(
        b"secretword1" in (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if name.startswith("index")
    )
