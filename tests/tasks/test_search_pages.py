"""Pages of a search go on to the end: every text that holds a word comes once, whatever is indexed and whatever arrives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from obsmem.core.errors import UsageError
from obsmem.core.finds import Hits, Query
from obsmem.core.identifiers import read_terms
from obsmem.core.ids import entry_id
from obsmem.store.archive_schema import row_number
from obsmem.store.search import Filter, Search, word_expression
from obsmem.tasks.entries import read_entries
from obsmem.tasks.search import search
from obsmem.tasks.search_pages import LONGEST_TOKEN, PAGED, Page, Rest, page_token, read_page
from obsmem.tasks.store import Store
from obsmem.tasks.word_rows import text_hash, word_rows
from obsmem.tasks.words import index_all, index_words
from tests.harnesses.cases import SHARED
from tests.tasks.talk import Talk, fresh, opened, session_of, turns, utc, watch

NOW = 1_790_000_000_000
# Words of real conversations: frequent ones, a name, a phrase, nothing, and no word at all.
QUERIES = ("error file", "fix the import", '"not found"', "zzz_qqqq", "")
REAL = [
    path
    for folder in ("claude-code", "codex")
    for path in sorted((SHARED / "transcripts" / folder).glob("*.jsonl"))
    if 300_000 < path.stat().st_size < 1_500_000
][::3][:3]
OTHER = "5e551011-0000-4000-8000-0000000000b7"


def page(store: Store, text: str, after: str = "", limit: int = 10, **fields: object) -> Hits:
    """One page, in UTC."""
    return search(store, Query(text, after=after, limit=limit, **fields), now=NOW, clock=utc)  # type: ignore[arg-type]


def to_the_end(store: Store, text: str, after: str = "", limit: int = 10, **fields: object) -> Iterator[Hits]:
    """All pages from one on."""
    while True:
        hits = page(store, text, after, limit, **fields)
        yield hits
        after = hits.more
        if not after:
            return


def names(pages: Iterator[Hits]) -> list[str]:
    return [hit.id for hits in pages for hit in hits.hits]


def holding(store: Store, text: str) -> dict[str, int]:
    """Entry -> hash of its text, of all that hold a word of a question: by tables that hold everything, asked once."""
    terms = [term for term in read_terms(text) if term.text not in ("the", "not")]  # which stand in any text
    found: dict[str, int] = {}
    for stored in store.archive.sessions():
        rows = list(store.archive.entries(stored.no, where="copied=0 AND replaced_by IS NULL"))
        tables = Search.in_memory()
        tables.add(word_rows(store, stored, read_entries(store, stored, rows, lost=True), {}))
        held = tables.rows_holding(" OR ".join(map(word_expression, terms)), Filter())
        found.update(
            (entry_id(stored.session.handle, number - row_number(stored.no, 0)), hash_) for number, hash_ in held
        )
    return found


def check(store: Store, text: str, found: list[str]) -> None:
    """Nothing came twice, and nothing is lost."""
    assert len(found) == len(set(found)), text
    wanted = holding(store, text)
    hashes = {wanted[name] for name in found if name in wanted}
    hashes |= {
        text_hash(one.note.text) for one in store.memory.notes_by_id([name for name in found if "." not in name])
    }
    assert {name for name, hash_ in wanted.items() if hash_ not in hashes} == set(), text


@pytest.mark.skipif(not REAL, reason="the folder of real transcripts is not beside the project")
@pytest.mark.parametrize("indexed", ["nothing", "some", "all"])
def test_every_text_of_real_transcripts_that_holds_a_word_comes_once(indexed: str) -> None:
    with opened() as store:
        harnesses = [path.parent.name for path in REAL]
        sessions = [session_of(store, path, name) for path, name in zip(REAL, harnesses, strict=True)]
        for stored in sessions[: {"nothing": 0, "some": 2, "all": len(sessions)}[indexed]]:
            watch(store, stored)
            index_words(store, fresh(store, stored))
        assert sum(one.last_seq for one in sessions) > 500
        for text in QUERIES:
            pages = list(to_the_end(store, text, limit=100))
            check(store, text, names(iter(pages)))
            assert all(len(hits.hits) == 100 for hits in pages[:-1] if hits.complete) or len(pages) < 3, text
        assert len(names(to_the_end(store, "error file", limit=100))) > PAGED + 100


def test_what_arrives_between_pages_moves_nothing(tmp_path: Path) -> None:
    talk = Talk()
    for number in range(90):
        talk.agent(f"the walrus {'and the fox ' * (number % 3)}number {number}")
    with opened() as store:
        path = talk.write(tmp_path)
        stored = session_of(store, path)
        index_all(store, float("inf"))
        before = {f"{stored.session.handle}.{seq}" for seq in range(90)}
        found, after = [], ""
        for count in range(60):
            hits = page(store, "walrus fox", after, 7)
            found += [hit.id for hit in hits.hits]
            talk.user(f"walrus fox, says number {count}")
            talk.write(tmp_path)
            session_of(store, path)
            if count % 2:
                index_all(store, float("inf"))
            after = hits.more
            if not after:
                break
        assert len(found) == len(set(found)) and before <= set(found)
        assert count < 59, "it ends although more arrives"
        both = [name for name in found[7 + PAGED :] if int(name.rpartition(".")[2]) % 3 and name in before]
        none = [name for name in found[7 + PAGED :] if not int(name.rpartition(".")[2]) % 3 and name in before]
        assert none and (not both or found.index(both[-1]) < found.index(none[0])), "what holds every word comes first"


def test_equal_texts_are_one_hit_of_a_page_and_do_not_come_again_when_they_were_shown(tmp_path: Path) -> None:
    talk = Talk()
    for number in range(1, 400):
        talk.run(
            f"make step_{number}", "the same old output" if number % 2 else f"output number {number} of the walrus"
        )
    with opened() as store:
        session_of(store, talk.write(tmp_path))
        index_all(store, float("inf"))
        pages = list(to_the_end(store, "output", kinds=("tool_result",)))
        texts = [hit.snippet for hits in pages for hit in hits.hits]
        assert texts.count("the same old output") == 1 and len(texts) == 200
        assert sum(1 + hit.also for hits in pages for hit in hits.hits if hit.snippet != "the same old output") == 199


def test_notes_come_to_the_end_and_filters_hold_there(tmp_path: Path) -> None:
    with opened() as store:
        first = session_of(store, turns(60).write(tmp_path))
        other = Talk(OTHER, "/w/other")
        for number in range(80):
            other.agent(f"module number {number} elsewhere")
        session_of(store, other.write(tmp_path))
        watch(store, first)
        index_words(store, fresh(store, first))
        notes = {one.note.id for one in store.memory.notes(first.session.handle) if "module" in one.note.text}
        assert len(notes) > PAGED + 5
        found = names(to_the_end(store, "module", kinds=("note",), limit=5))
        assert len(found) == len(set(found)) and notes <= set(found) and not any("." in name for name in found)
        found = names(to_the_end(store, "module", workspace="/w/shop", kinds=("user",), limit=9))
        assert len(found) == 60 and {name.partition(".")[0] for name in found} == {first.session.handle}
        whole = names(to_the_end(store, "", workspace="/w/other", limit=30))
        assert len(whole) == len(set(whole)) == 80


def test_where_the_time_is_over_the_next_page_goes_on(tmp_path: Path) -> None:
    talk = Talk()
    for number in range(300):
        talk.agent(f"walrus number {number} " + "x" * 3000)
    with opened() as store:
        session_of(store, talk.write(tmp_path))
        index_all(store, float("inf"))
        more = page(store, "walrus").more
        store.rebuild_index()  # what was indexed is not any more
        found, late = [], 0
        for _ in range(200):
            hits = search(store, Query("walrus", after=more), now=NOW, clock=utc, seconds=0.0 if late < 3 else 6.0)
            found += [hit.id for hit in hits.hits]
            late += not hits.complete
            assert hits.complete or "next page goes on" in hits.message
            more = hits.more
            if not more:
                break
        assert late == 3 and len(found) == len(set(found)) == 290


def test_a_token_holds_what_a_page_is_and_nothing_else_is_one() -> None:
    whole = Page((("abcd.1", 0), ("3fa9c1d00000", 12)), Rest(2, "ffe1", 0b101, True, ("abcd.1", "wxyz.99")))
    for one in (whole, whole._replace(rest=None), whole._replace(names=()), Page((), Rest(0, "", 0, False, ()))):
        assert read_page(page_token(one)) == one
    assert page_token(Page(())) == ""
    most = Page(tuple((f"abcd.{n * 977}", n) for n in range(PAGED)), Rest(1, "f" * 12, 7, False, tuple(f"ab{n % 9}d.{n * 7919}" for n in range(130))))  # fmt: skip
    assert len(page_token(most)) < LONGEST_TOKEN and read_page(page_token(most)) == most
    for wrong in ("", "p", "x" * 9, page_token(whole)[:-9], "p" + page_token(whole), page_token(whole._replace(rest=Rest(7, "", 0, False, ())))):  # fmt: skip
        with pytest.raises(UsageError):
            read_page(wrong)
