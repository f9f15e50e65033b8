"""Searching: any question has an answer, filters hold, nothing that is exact is missed, and the answer says what it left out."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsmem.core.clock import read_minute
from obsmem.core.errors import NotFound, UsageError
from obsmem.core.finds import Hits, Query
from obsmem.store.archive import StoredSession
from obsmem.tasks import words
from obsmem.tasks.forget import forget_entry
from obsmem.tasks.here import live_from
from obsmem.tasks.search import search
from obsmem.tasks.store import Store
from obsmem.tasks.words import index_all, index_words
from tests.harnesses.test_opencode_rows import Database
from tests.tasks.talk import SESSION, Talk, entries, fresh, opened, session_of, utc, watch
from tests.tasks.test_rows import finish_tool, read

OTHER = "5e551011-0000-4000-8000-0000000000b7"
NOW = read_minute("2026-03-05 14:30")
KEY = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
# What breaks a search that passes its words on: syntax of FTS5, LIKE, GLOB, JSON and expressions, odd characters, sizes.
ODD = [
    '"', '""', '"""', 'a"b', '"open', "c++", "-x", "- -", "*", "(", ")", "NEAR(", "a NEAR b", "col:x", "human:word", "names : x",
    "AND", "OR", "NOT", "a AND", "NOT a", "^x", "{a}", "{a b}:c", "\\", "\\\\", "\x00", "a\x00b", "\ud800", "\udfff\ud800", "é",
    "e\u0301", "\u0301", "日本語", "🙂", "🙂🙂", "👩‍👩‍👧", "%", "_", "%%", "a%b", "[", "]", "[a-z", "[[:alpha:]]", "a" * 3000, " ", "\n",
    "\t", "\r\n", "", "/", "./", "../..", "src/", "C:\\x\\y", "~/.config", "'", "';--", "'; DROP TABLE words", "“quote”", "«x»", "$1",
    "${x}", "$(x)", "+", "a+", "++", "#", "@", "@x", "~", "`ls`", "<tag>", "</observational-memory>", "&amp;", "\u200b", "\u202e",
    "\ufeff", "ﬁ", "ß", "İ", "ı", "١٢٣", "²", "1e9", "0x1f", "-1", "1.5", "2026-02-31", "yesterday", "last", "ago", "0 days ago",
    "99999 years ago", "w " * 300, '"' + "w " * 300 + '"', "a:b:c", "*foo", "foo*", "fo*o", "?", "a?b", "(a OR b", "rank", "rowid",
    "words", '"a" "b"', '"a "b" c"', "\\u00e9", "\\n", "NULL", "None", "a,b", "a;b", "a|b", "||", "&&", "!", "!=", "==", "=>", "->",
    "::", "a::b", "->x", "x.y.z", "...", "…", "–", "—", "(?P<", "(?", "(?i)x", "a{2", "a{99999}", "a**", "[^", "\\Z", "\\1", "x" * 61,
    "ａｂｃ", "абв", "ΑΒΓ", "हिन्दी", "ไทย", "한국어", "\U0010ffff", "\u0000\u0001\u0002", "\x1b[31mred", "\x7f", "a\u00a0b", "a\u2028b", "\v",
    "{}", "[]", '{"a": 1}', "null", "true", "//", "/*", "*/", "<!--", "-->", "<|x|>", "%s", "%d", "{0}", "{x!r}", "\\x41", "\\", "/dev/null",
    "a" + "\u0300" * 50, ".", "..", ",", ";", ":", "''", "´", "¨", "ªº", "Ⅷ", "㍿", "＂", "＊", "NOT (", 'a "', '" a', "a OR", "OR a", "NEAR",
    "NEAR/2", "a NEAR/2 b", "- a", "+a", "a -b", "a - b", "--", "---", "--exact", "-h",
]  # fmt: skip


def first_talk() -> Talk:
    """A conversation about a parser, with a secret, a name in three forms, and calls of our own."""
    talk = Talk()
    talk.user("The parser must never touch the legacy tokens, please refresh the token quietly.")
    talk.run("cat src/parse/config.py", "def parse_config(path):\n    return load(path)")
    talk.agent("parseConfig is called from three places; refreshing tokens happens elsewhere.")
    talk.run("pytest tests/test_parse.py", f"E   AssertionError: 'é\"\\n' is odd\nexport TOKEN={KEY}", failed=True)
    talk.run("observational-memory search zebrafinch", "[abcd.1] the zebrafinch sings")
    talk.agent("Done with the parser.")
    return talk


def second_talk() -> Talk:
    """Another session, in another folder."""
    talk = Talk(OTHER, "/w/other")
    for number in range(30):
        talk.run(f"make step_{number}", "the same output of every step")
    talk.user("Where does the parser live? Nobody knows the zebrafinch.")
    return talk


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as store:
        yield store


@pytest.fixture
def sessions(store: Store, tmp_path: Path) -> tuple[StoredSession, StoredSession]:
    """Both sessions, archived, not indexed."""
    one = session_of(store, first_talk().write(tmp_path))
    return fresh(store, one), fresh(store, session_of(store, second_talk().write(tmp_path)))


def ask(store: Store, text: str, **fields: object) -> Hits:
    """Search with a given now, in UTC."""
    return search(store, Query(text, **fields), now=NOW, clock=utc)  # type: ignore[arg-type]


def ids(hits: Hits) -> list[str]:
    """What was found, best first."""
    return [hit.id for hit in hits.hits]


def all_pages(store: Store, text: str, after: str = "", **fields: object) -> list[str]:
    """The ids of every page from one on."""
    found: list[str] = []
    for _ in range(200):
        hits = ask(store, text, after=after, **fields)
        found += ids(hits)
        after = hits.more
        if not after:
            break
    return found


@pytest.mark.parametrize("is_indexed", [True, False])
def test_words_find_other_forms_best_first(store: Store, sessions: tuple[StoredSession, ...], is_indexed: bool) -> None:
    if is_indexed:
        index_all(store, float("inf"))
    one = sessions[0].session.handle
    refreshed = ask(store, "refreshing token")
    assert refreshed.hits[0].id == f"{one}.0" and refreshed.hits[0].speaker == "human"
    assert refreshed.complete and ("not indexed" in refreshed.message) != is_indexed
    assert "refresh the token" in refreshed.hits[0].snippet and refreshed.hits[0].signals["coverage"] == 1
    for name in ("parseConfig", "parse_config", "src/parse/config.py"):
        found = ids(ask(store, name, limit=5))
        assert {f"{one}.1", f"{one}.2", f"{one}.3"} <= set(found), name


@pytest.mark.parametrize("is_indexed", [True, False])
def test_no_question_raises_and_exact_finds_every_text(
    store: Store, sessions: tuple[StoredSession, ...], tmp_path: Path, is_indexed: bool
) -> None:
    assert len(ODD) >= 200
    odd = Talk("5e551011-0000-4000-8000-0000000000c1")
    for text in ODD:
        odd.agent(f"before{text}after")
    stored = fresh(store, session_of(store, odd.write(tmp_path)))
    if is_indexed:
        index_all(store, float("inf"))
    texts = {f"{stored.session.handle}.{one.seq}": one.text for one in entries(store, stored)}
    for text in ODD:
        ask(store, text, limit=3)
        ask(store, text, mode="regex", limit=1)
        if text and not any("\ud800" <= letter <= "\udfff" for letter in text):
            holding = {name for name, whole in texts.items() if f"e{text}a" in whole}
            assert holding, text
            found = all_pages(store, f"e{text}a", mode="exact", sessions=(stored.session.handle,), limit=50, own=True)
            assert set(found) == holding and len(found) == len(holding), text


def test_a_piece_of_any_text_is_found_exactly_wherever_it_was_cut(
    store: Store, sessions: tuple[StoredSession, ...], tmp_path: Path
) -> None:
    index_words(store, sessions[0])  # the others are looked through
    third = Talk("5e551011-0000-4000-8000-0000000000d3")
    third.turn(1)
    third.compact()  # whose words are put around a number
    sessions = (*sessions, fresh(store, session_of(store, third.write(tmp_path))))
    for stored in sessions:
        for entry in entries(store, stored):
            for start in range(0, len(entry.text) - 8, 11):
                piece = entry.text[start : start + 8]
                found = all_pages(store, piece, mode="exact", limit=50, own=True)
                assert f"{stored.session.handle}.{entry.seq}" in found, piece


def test_a_regular_expression_matches_and_a_broken_one_is_looked_for_as_it_stands(
    store: Store, sessions: tuple[StoredSession, ...]
) -> None:
    index_all(store, float("inf"))
    assert f"{sessions[0].session.handle}.3" not in ids(ask(store, r"^def \w+_config", mode="regex"))
    assert ids(ask(store, r"def \w+_config", mode="regex")) == [f"{sessions[0].session.handle}.2"]
    broken = ask(store, "(path", mode="regex")
    assert ids(broken) == [f"{sessions[0].session.handle}.2"] and "no regular expression" in broken.message


EXPRESSIONS = (
    r"pars\w+", r"refresh.*token", r"re.?fresh", r"\w+Config\b", r"src/.+\.py", r"[Pp]arse", r"toke+n", r"(?i)PARSER", r"\\w+",
    r"a\.b", r"\D\d+", r"^\w+ \w+", r"parse_?config", r"config.{0,9}py", r".", r"\Srse", r"the\s*token", r"tests? pass",
)  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_finds_what_matches_in_any_text(
    store: Store, sessions: tuple[StoredSession, ...], expression: str
) -> None:
    matching = {
        f"{stored.session.handle}.{entry.seq}"
        for stored in sessions
        for entry in entries(store, stored)
        if re.search(expression, entry.text)
    }
    assert set(all_pages(store, expression, mode="regex", limit=50, own=True)) == matching


def test_an_expression_that_never_ends_is_ended(store: Store, tmp_path: Path) -> None:
    talk = Talk()
    talk.agent("a" * 60 + "!")
    talk.agent("before it")
    session_of(store, talk.write(tmp_path))
    started = time.monotonic()
    hits = search(store, Query(r"(a+)+$", "regex"), now=NOW, clock=utc, seconds=0.5)
    assert time.monotonic() - started < 20 and not hits.complete
    assert "too long" in hits.message and hits.more


def test_filters_hold(store: Store, sessions: tuple[StoredSession, ...]) -> None:
    one, other = (stored.session.handle for stored in sessions)
    for _ in range(2):  # looked through, then from the index
        assert {hit.session for hit in ask(store, "parser").hits} == {one, other}
        assert {hit.session for hit in ask(store, "parser", sessions=(other,)).hits} == {other}
        assert {hit.session for hit in ask(store, "parser", workspace="/w/other").hits} == {other}
        assert ids(ask(store, "parser", harness="codex")) == []
        assert {hit.kind for hit in ask(store, "parser", kinds=("user",)).hits} == {"user"}
        assert ids(ask(store, "path", tools=("bash",))) == [f"{one}.2"], "a result belongs to its call's tool"
        assert set(ids(ask(store, "config", path="parse/config.py"))) == {f"{one}.1", f"{one}.2"}
        assert set(ids(ask(store, "config", path="/w/shop/src/parse/config.py"))) == {f"{one}.1", f"{one}.2"}
        assert ids(ask(store, "parser", until=read_minute("2026-03-01 09:00"))) == []
        index_all(store, float("inf"))
    with pytest.raises(NotFound):
        ask(store, "parser", sessions=("nosuch",))
    with pytest.raises(UsageError):
        ask(store, "parser", kinds=("nosuch",))


def test_a_filter_without_words_lists_the_newest(store: Store, sessions: tuple[StoredSession, ...]) -> None:
    index_all(store, float("inf"))
    found = ask(store, "", kinds=("user",))
    assert [hit.at for hit in found.hits] == sorted((hit.at for hit in found.hits), reverse=True) and found.hits


def test_dates_among_the_words_are_bounds(store: Store, sessions: tuple[StoredSession, ...]) -> None:
    index_all(store, float("inf"))
    assert ask(store, "parser last sunday").hits and "2026-03-01" in ask(store, "parser last sunday").message
    assert not ask(store, "parser yesterday").hits


def test_a_quoted_phrase_stands_first_where_it_really_is(store: Store, tmp_path: Path) -> None:
    talk = Talk()
    talk.user("touch the never ending story, never ever touch anything, never, never, touch touch")
    talk.run("ls", "they said: Never\n touch it")
    talk.user("no touching, never")
    stored = fresh(store, session_of(store, talk.write(tmp_path)))
    index_all(store, float("inf"))
    assert ask(store, '"never touch"').hits[0].id == f"{stored.session.handle}.2"
    assert ask(store, "never touch").hits[0].id != f"{stored.session.handle}.2"


def test_our_own_output_and_the_live_context_are_left_out(store: Store, tmp_path: Path) -> None:
    talk = first_talk()
    talk.compact()
    talk.agent("The giraffe parser is live.")
    one = fresh(store, session_of(store, talk.write(tmp_path)))
    handle = one.session.handle
    live = (handle, live_from(store, one))
    for _ in range(2):
        assert ids(ask(store, "zebrafinch")) == [], "what our own command printed"
        assert len(ids(ask(store, "zebrafinch", own=True))) == 2
        assert ids(ask(store, "giraffe")) and not ids(ask(store, "giraffe", live=live))
        assert not ids(ask(store, "giraffe", mode="exact", live=live))
        assert ids(ask(store, "legacy tokens", live=live))[0] == f"{handle}.0"
        index_all(store, float("inf"))


def test_equal_texts_are_shown_once(store: Store, sessions: tuple[StoredSession, ...]) -> None:
    index_all(store, float("inf"))
    (hit,) = ask(store, "output every step", kinds=("tool_result",)).hits
    assert hit.also == 29


def test_copies_in_a_fork_are_not_found_twice(store: Store, tmp_path: Path) -> None:
    talk = first_talk()
    one = session_of(store, talk.write(tmp_path))
    child = talk.fork()
    child.agent("In the fork the parser is new.")
    session_of(store, child.write(tmp_path))
    for _ in range(2):
        assert [hit.session for hit in ask(store, "legacy").hits] == [one.session.handle]
        index_all(store, float("inf"))


def test_a_replaced_version_is_not_found_before_and_after_the_index_knows(store: Store, tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.talk()
    first = read(store, database)
    index_words(store, first)
    finish_tool(database, "made the ocelot")
    newer = read(store, database)
    replaced = {row.seq for row in store.archive.entries(newer.no, where="replaced_by IS NOT NULL")}
    assert replaced
    for _ in range(2):
        for mode in ("words", "exact"):
            found = ids(ask(store, "make", mode=mode, limit=50))
            assert found and not {int(name.rpartition(".")[2]) for name in found} & replaced
        assert ids(ask(store, "ocelot")) == ids(ask(store, "ocelot", mode="exact"))
        index_words(store, newer)


def test_the_index_is_the_same_whatever_the_batches_were(
    store: Store, sessions: tuple[StoredSession, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows() -> list[object]:
        numbers = [row.no for stored in sessions for row in store.archive.entries(stored.no)]
        return [store.index.search.facets(numbers), ids(ask(store, "parser config", limit=50, own=True))]

    index_all(store, float("inf"))
    whole = rows()
    store.rebuild_index()
    monkeypatch.setattr(words, "BATCH", 1)
    index_all(store, float("inf"))
    assert rows() == whole
    assert all(facet.tool == "Bash" for facet in whole[0].values() if facet.kind == "tool_result")  # type: ignore[attr-defined]


def test_pages_follow_each_other_while_entries_arrive(store: Store, tmp_path: Path) -> None:
    talk = Talk()
    for number in range(60):
        talk.agent(f"the walrus number {number}")
    path = talk.write(tmp_path)
    stored = session_of(store, path)
    index_all(store, float("inf"))
    whole = ids(ask(store, "walrus", limit=30))
    page = ask(store, "walrus", limit=10)
    for number in range(20):
        talk.user(f"walrus walrus walrus {number}")
    talk.write(tmp_path)
    session_of(store, path)
    index_all(store, float("inf"))
    second = ask(store, "walrus", limit=10, after=page.more)
    third = ask(store, "walrus", limit=10, after=second.more)
    assert ids(page) + ids(second) + ids(third) == whole
    scanned = ask(store, "walrus number", mode="exact", limit=7)
    rest = all_pages(store, "walrus number", mode="exact", limit=7, after=scanned.more)
    assert len(set(ids(scanned) + rest)) == 60 and stored.session.handle in rest[0]
    for wrong in ("nonsense", "pAAAA", "r", "rxyz", "p" + "A" * 9000):
        for mode in ("words", "exact"):
            with pytest.raises(UsageError):
                ask(store, "walrus", after=wrong, mode=mode)


def test_notes_are_found_above_what_the_agent_says_and_dropped_ones_are_marked(store: Store, tmp_path: Path) -> None:
    talk = Talk()
    for number in range(6):
        talk.turn(number)
    stored = session_of(store, talk.write(tmp_path))
    watch(store, stored)
    index_all(store, float("inf"))
    notes = store.memory.notes(stored.session.handle)
    text = notes[0].note.text
    (found,) = [hit for hit in ask(store, text, kinds=("note",), limit=50).hits if hit.id == notes[0].note.id]
    assert found.kind == "note" and "dropped" not in found.snippet
    call = store.memory.calls(stored.session.handle)[0]._replace(task="drop")
    store.memory.commit_drops(call, [notes[0].note.id], "test", stored.last_seq)
    (gone,) = [hit for hit in ask(store, text, kinds=("note",), limit=50).hits if hit.id == notes[0].note.id]
    assert "dropped" in gone.snippet and gone.signals["kind"] < found.signals["kind"]
    exact = ask(store, text[:30], mode="exact", kinds=("note",))
    assert notes[0].note.id in ids(exact)


def test_snippets_hold_no_secret(store: Store, sessions: tuple[StoredSession, ...]) -> None:
    for _ in range(2):
        for query in ("AssertionError odd", "TOKEN"):
            for hit in [*ask(store, query).hits, *ask(store, "TOKEN=", mode="exact").hits]:
                assert KEY not in hit.snippet and KEY[4:30] not in hit.snippet
        assert ids(ask(store, KEY, mode="exact")), "who knows it finds it"
        index_all(store, float("inf"))


def test_a_store_that_may_only_be_read_and_has_no_index_is_looked_through(
    store: Store, sessions: tuple[StoredSession, ...]
) -> None:
    before = ids(ask(store, "parser"))
    store.close()
    with opened(readonly=True) as reading:
        assert ids(ask(reading, "parser")) == before


def test_a_damaged_index_is_done_without(store: Store, sessions: tuple[StoredSession, ...]) -> None:
    index_all(store, float("inf"))
    before, home = ids(ask(store, "parser")), store.home
    store.close()
    path = Path(home, "index.db")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x55" * (len(data) - 4096)  # the header stays, so that it opens
    path.write_bytes(bytes(data))
    with opened(readonly=True) as reading:
        hits = ask(reading, "parser")
        assert set(ids(hits)) == set(before) and ("damaged" in hits.message or "not indexed" in hits.message)
        assert ids(ask(reading, "legacy tokens", mode="exact"))


def test_what_is_forgotten_is_not_found(store: Store, sessions: tuple[StoredSession, ...]) -> None:
    index_all(store, float("inf"))
    name = f"{sessions[0].session.handle}.0"
    forget_entry(store, name)
    for _ in range(2):
        assert name not in ids(ask(store, "legacy")) + ids(ask(store, "legacy", mode="exact"))
        index_all(store, float("inf"))


def test_other_rankings_are_joined_and_what_only_they_name_is_shown(
    store: Store, sessions: tuple[StoredSession, ...]
) -> None:
    index_all(store, float("inf"))
    one = sessions[0].session.handle
    words = ids(ask(store, "parser"))
    silent = f"{one}.3"
    assert silent not in words
    joined = search(store, Query("parser"), [[silent, words[-1]]], now=NOW, clock=utc)
    assert silent in ids(joined) and ids(joined)[0] == words[-1]
    assert joined.hits[0].signals["ranking_1"] == 2
    hidden = search(store, Query("parser", workspace="/w/other"), [[silent]], now=NOW, clock=utc)
    assert silent not in ids(hidden)
    assert sessions[0].session.id == SESSION
