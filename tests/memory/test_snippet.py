"""A snippet is the stored words around what was found, and no piece of a secret."""

from __future__ import annotations

import re

from obsmem.core.identifiers import pattern_of, read_terms
from obsmem.core.mask import mask
from obsmem.memory.snippet import LENGTH, snippet


def test_it_shows_the_place_where_most_of_the_words_stand() -> None:
    text = "token " + "filler " * 300 + "the token refresh fails here" + " more" * 300
    shown = snippet(text, pattern_of(read_terms("token refresh")), mask)
    assert "the token refresh fails here" in shown
    assert shown.startswith("…") and shown.endswith("…") and len(shown) <= LENGTH + 2


def test_a_short_text_is_whole_and_one_without_a_find_shows_its_beginning() -> None:
    assert snippet("two\n  lines", None, mask) == "two lines"
    assert snippet("begin " + "x " * 400, re.compile("nowhere"), mask).startswith("begin x")


def test_a_secret_is_masked_though_the_window_would_cut_it() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for before in range(0, LENGTH * 2, 7):
        text = "word " * (before // 5) + f"match then token {secret} and " + "more " * 200
        assert secret[:12] not in snippet(text, re.compile("match"), mask)
        assert secret[-12:] not in snippet(text, re.compile("and more"), mask)
