"""From an id to the exact words, within a budget, whatever is missing."""

import json
import re

import pytest

from obsmem.core.model import Entry, Place
from obsmem.core.tokens import estimate
from obsmem.memory.recall import Found, Source, as_value, cut, render, with_context
from tests.memory.make import note, reflection, result, user

PLACE = Place("/home/ann/session.jsonl", line=12)
SAID = user(1, "Use uv, not pip", place=PLACE)
SHOWN = result(2, "3 failed", ok=False)
NOTE = note("Uses uv (not pip)", 1, relevance="high")
SOURCES = (Source("abcd.1", SAID), Source("abcd.2", SHOWN))


def test_a_note_comes_with_its_own_line_and_the_exact_words() -> None:
    text = render(Found((NOTE,), sources=SOURCES))
    assert text == (
        f"Note [{NOTE.id[:7]}] 2026-05-02 12:00 [high] Uses uv (not pip)\n"
        "  the user said it\n\n"
        "[abcd.1] user 2026-05-02 12:01 · /home/ann/session.jsonl:12:\nUse uv, not pip\n\n"
        "[abcd.2] tool Bash 2026-05-02 12:02 (failed):\n3 failed"
    )


def test_sources_that_exist_are_printed_when_others_are_missing() -> None:
    found = Found((NOTE,), sources=(Source("abcd.1", SAID), Source("abcd.2", missing="the transcript was deleted")))
    text = render(found)
    assert found.status == "partial"
    assert "abcd.2: the transcript was deleted" in text and "Use uv, not pip" in text


@pytest.mark.parametrize(
    ("found", "status", "kind"),
    [
        (Found(), "not_found", "entry"),
        (Found((NOTE,), sources=SOURCES), "ok", "note"),
        (Found((NOTE,)), "no_source", "note"),
        (Found((NOTE,), sources=(Source("abcd.1"),)), "source_unavailable", "note"),
        (Found(sources=SOURCES), "ok", "entry"),
        (Found((NOTE,), (reflection("uv", NOTE),), SOURCES), "ok", "reflection"),
        (Found((NOTE,), (reflection("uv", NOTE),), SOURCES, missing_notes=("9c0d41e55555",)), "partial", "reflection"),
        (Found((NOTE,), (reflection("uv", note("x", 5)),), SOURCES), "ok", "mixed"),
    ],
)
def test_every_outcome_has_its_status(found: Found, status: str, kind: str) -> None:
    assert (found.status, found.kind) == (status, kind)
    assert render(found)
    value = as_value(found)
    assert json.loads(json.dumps(value)) == value and value["status"] == status and value["kind"] == kind


def test_a_dropped_note_says_so_and_is_still_there() -> None:
    found = Found((NOTE,), sources=SOURCES, dropped={NOTE.id: "retired by the dropper"})
    assert "dropped: no longer in the block" in render(found) and "Use uv, not pip" in render(found)
    assert as_value(found)["notes"][0]["status"] == "dropped"


def test_what_refuted_a_note_or_replaced_a_reflection_is_named() -> None:
    lasting = reflection("uv only", NOTE)
    found = Found(
        (NOTE,), (lasting,), SOURCES, {NOTE.id: "refuted by 3fa9c1d20b44", lasting.id: "replaced by 77aa00bb11cc"}
    )
    text, value = render(found), as_value(found)
    assert "dropped (refuted by 3fa9c1d20b44)" in text and "dropped (replaced by 77aa00bb11cc)" in text
    assert (value["reflections"][0]["status"], value["notes"][0]["why"]) == ("dropped", "refuted by 3fa9c1d20b44")


def test_a_reflection_shows_its_notes_and_what_is_lost() -> None:
    lasting = reflection("uv only", NOTE)
    text = render(Found((NOTE,), (lasting,), SOURCES, missing_notes=("9c0d41e55555",)))
    assert text.startswith(f"Reflection [{lasting.id[:7]}] uv only\nNote [{NOTE.id[:7]}]")
    assert "Notes not available: 9c0d41e55555" in text


def test_two_records_with_one_prefix_are_both_shown() -> None:
    found = Found((NOTE, note("other", 2)), sources=SOURCES)
    assert "More than one record" in render(found) and as_value(found)["collision"]


def test_what_was_not_grounded_is_named() -> None:
    doubtful = NOTE._replace(grounding="partial", missing=("src/a.py",))
    assert "missing there: src/a.py" in render(Found((doubtful,), sources=SOURCES))


LONG = "HEAD\n" + "\n".join(f"line {number} of the output" for number in range(3000)) + "\nTAIL"


def test_a_long_entry_is_cut_and_says_how_to_get_the_rest() -> None:
    text = render(Found((NOTE,), sources=(Source("abcd.1", SAID), Source("abcd.2", result(2, LONG)))))
    assert estimate(text) <= 2000
    assert "Use uv, not pip" in text and "HEAD" in text and text.endswith("TAIL")
    match = re.search(r"\[… (\d+) characters left out: recall abcd\.2 --range (\d+):(\d+) …\]", text)
    assert match
    count, start, end = map(int, match.groups())
    assert end - start == count
    before, after = text.split(match.group())
    head = before[before.index("HEAD") :].removesuffix("\n")
    assert head + cut(LONG, start, end) + after.removeprefix("\n") == LONG


@pytest.mark.parametrize("budget", [150, 500, 2000])
def test_the_budget_holds_however_much_there_is(budget: int) -> None:
    many = tuple(Source(f"abcd.{seq}", user(seq, LONG[: seq * 40])) for seq in range(1, 120))
    notes = tuple(note(f"fact {seq} " + "word " * 30, seq) for seq in range(1, 120))
    for found in (
        Found(notes, sources=many),
        Found(sources=many),
        Found((note("word " * 1900, 1),), sources=many),
        Found(notes),
    ):
        assert estimate(render(found, budget)) <= budget


def test_short_entries_leave_their_room_to_long_ones() -> None:
    small = tuple(Source(f"abcd.{seq}", user(seq, f"short {seq}")) for seq in range(3, 9))
    text = render(Found((NOTE,), sources=(*small, Source("abcd.2", result(2, LONG)))))
    assert all(f"short {seq}" in text for seq in range(3, 9))
    assert 1700 <= estimate(text) <= 2000


def test_secrets_are_masked_unless_raw_is_asked_for() -> None:
    key = "gh" + "p_" + "a1B2" * 9
    found = Found((note(f"old note with {key}", 1),), sources=(Source("abcd.1", user(1, f"\x1b[1muse {key}")),))
    assert key not in render(found) and key not in json.dumps(as_value(found)) and "\x1b" not in render(found)
    assert key in render(found, raw=True) and key not in cut(f"use {key}", 0, 99)


def test_entries_around_are_shown_in_order_and_marked() -> None:
    session = [user(seq, f"words {seq}") for seq in range(10)]
    sources = with_context((Source("abcd.4", session[4]), Source("efgh.1", missing="gone")), "abcd", session, 1)
    assert [(source.id, source.around) for source in sources] == [
        ("efgh.1", False),
        ("abcd.3", True),
        ("abcd.4", False),
        ("abcd.5", True),
    ]
    found = Found((NOTE,), sources=sources)
    assert found.status == "partial" and "· around it:" in render(found)
    assert [source.id for source in with_context((Source("abcd.0", session[0]),), "abcd", session, 2)] == [
        "abcd.0",
        "abcd.1",
        "abcd.2",
    ]


def test_an_abandoned_branch_and_a_database_row_are_named() -> None:
    row = Entry(1, "x", "user", "human", "hi", active=False, place=Place("/db.sqlite", table="part", key="k1"))
    text = render(Found(sources=(Source("abcd.1", row),)))
    assert "on an abandoned branch" in text and "/db.sqlite part k1" in text
