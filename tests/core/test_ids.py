"""Names depend on content alone, and short forms stay unambiguous."""

import pytest

from obsmem.core import ids
from obsmem.core.errors import UsageError


def test_an_entry_id_reads_back() -> None:
    assert ids.parse_entry_id(ids.entry_id("abcd", 812)) == ("abcd", 812)


@pytest.mark.parametrize("text", ["", "abcd", "abcd.", "abc.1", "ABCD.1", "abcd.-1", "abcd.1x", "abcd.1\n", "abcd.1.2"])
def test_what_is_no_entry_id_is_refused_with_an_example(text: str) -> None:
    assert not ids.is_entry_id(text)
    with pytest.raises(UsageError, match="should look like"):
        ids.parse_entry_id(text)


def test_a_content_id_is_that_of_text_and_sorted_sources() -> None:
    """Upstream hashes the text alone; here the sources count too, so equal words in two sessions are two notes."""
    assert ids.content_id("text", ["b", "a"]) == ids.content_id("text", ["a", "b"])
    assert ids.content_id("text", ["a"]) != ids.content_id("text", ["b"])
    assert ids.content_id("User prefers source-backed memory.", []) != "6ef6333f05ca"
    assert len(ids.content_id("text", ["a"])) == 12


def test_short_ids_are_unique_and_at_least_seven_long() -> None:
    whole = ["3fa9c1d00000", "3fa9c1d1ffff", "9c0d41e55555"]
    short = ids.shorten(whole)
    assert short == {"3fa9c1d00000": "3fa9c1d0", "3fa9c1d1ffff": "3fa9c1d1", "9c0d41e55555": "9c0d41e"}


def test_handles_grow_and_never_read_as_numbers() -> None:
    for number in range(200):
        candidates = list(ids.handle_candidates("harness", f"session {number}"))
        assert [len(text) for text in candidates] == list(range(4, 27))
        assert all(later.startswith(candidates[0]) for later in candidates)
        assert candidates[0][0].isalpha() and ids.is_entry_id(candidates[0] + ".1")


def test_note_prefixes_are_hex_of_four_to_twelve() -> None:
    assert ids.is_note_prefix("3fa9c1d") and not ids.is_note_prefix("3fa") and not ids.is_note_prefix("3fa9c1g")
