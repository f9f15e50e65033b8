"""Which later words speak of the same thing: another value, or none any more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from obsmem.core.claims import Claim, claims_in, on_the_same, replaces, topics_in
from obsmem.core.fold import fold
from obsmem.core.model import Card, Fact


@pytest.mark.parametrize(
    ("text", "thing", "value"),
    [
        ("Our staging port is `8091`.", {"staging", "port"}, "8091"),
        ("Please use ab3c9 wherever a release code is needed.", {"release", "code"}, "ab3c9"),
        ("Change of plan: we go with xy7z for the release code.", {"release", "code"}, "xy7z"),
        ("Ops moved us over to xy7z; that is what the release code has to be.", {"release", "code"}, "xy7z"),
        ("Set the retry limit to 5", {"retry", "limit"}, "5"),
        ("We go with feuwavtdp for the report folder.", {"report", "folder"}, "feuwavtdp"),
        ("Rename: the id column is tracking_ref now.", {"id", "column"}, "tracking_ref"),
        ("Forget the release code, nobody needs it any more.", {"release", "code"}, ""),
        ("We no longer need the report folder.", {"report", "folder"}, ""),
    ],
)
def test_a_sentence_gives_a_thing_a_value_or_takes_it_back(text: str, thing: set[str], value: str) -> None:
    assert claims_in(text) == (Claim(frozenset(thing), value, text),)


@pytest.mark.parametrize(
    "text",
    [
        "Fix the parser, please.",
        "There are 3 failing tests in tests/core.",
        "Built: /var/folders/gz/T/tmp.4qY",
        "=== Step 11: Check attribution in commit ===",
        "I think line numbers are off",
    ],
)
def test_what_ties_no_value_to_a_thing_is_no_claim(text: str) -> None:
    assert claims_in(text) == ()


def claim(words: str, value: str) -> Claim:
    return Claim(frozenset(words.split()), value)


def test_a_later_claim_replaces_one_of_the_same_thing_only() -> None:
    old = claim("staging port", "8091")
    assert replaces(claim("staging port", "8100"), old)
    assert replaces(claim("port staging service", ""), old)
    assert not replaces(claim("staging port", "8091"), old), "the same value"
    assert not replaces(claim("port", "8100"), old), "which port is not said"
    assert not replaces(claim("staging host", "8100"), old)
    assert not replaces(old, claim("staging port", "")), "what was taken back has no value to replace"


def said(*words: str) -> list[Card]:
    facts = tuple(Fact("instruction", (seq,), seq, text=text) for seq, text in enumerate(words))
    return [Card("abcd", 1, 0, len(words) - 1, facts)]


def test_earlier_words_are_marked_with_the_newest_later_ones_and_stay() -> None:
    state = fold(said(
        "The staging port is 8091.", "The audit path is /var/log/a.", "We go with 8100 for the staging port.",
        "Set the staging port to 8200.",
    ))  # fmt: skip
    assert [one.later for one in state.instructions] == [3, None, 3, None]
    assert all(one.superseded_by is None for one in state.instructions)
    assert (
        state.instructions[0].later_is == "superseded"
        and state.instructions[0].later_words == "Set the staging port to 8200."
    )


@pytest.mark.parametrize(
    ("earlier", "later", "how"),
    [
        ("For anything on the staging port, 8091 it is.", "Staging port: 9090 from Monday.", "same"),
        ("Nightly builds land in `out/nightly`.", "From today nightly builds land in `dist/n`, says Ops.", "same"),
        ("You find it under our audit path, var/audit/x.", "We are done with the audit path, drop it.", "withdrawn"),
    ],
)
def test_later_words_that_name_the_same_and_hold_another_value_are_on_the_same(
    earlier: str, later: str, how: str
) -> None:
    (new,), (old,) = topics_in(later), topics_in(earlier)
    assert on_the_same(new, old) == how
    state = fold(said(earlier, "Go on.", later))
    assert [one.later for one in state.instructions] == [2, None, None]
    assert state.instructions[0].later_words == later
    assert all(one.superseded_by is None for one in state.instructions)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The staging port is 8091.", "Does the staging port 9090 answer?"),
        ("The staging port is 8091.", "Log the staging port 8091 at the start."),
        ("The staging port is 8091.", "Look at the staging port once more."),
        ("The staging port is 8091.", "2026-01-01 INFO | staging port 9090"),
        ("Fix the unit test in a_test.go.", "Add a unit test in b_test.go."),
    ],
)
def test_later_words_that_ask_repeat_or_paste_are_not(earlier: str, later: str) -> None:
    assert fold(said(earlier, later)).instructions[0].later is None


def test_the_same_words_are_marked_alike_in_every_process() -> None:
    """Of two things in one text one seems withdrawn, the other given a new value: one mark, whatever order sets come in."""
    code = (
        "from tests.core.test_claims import *\n"
        "earlier = 'The staging port is 8091 or 9090.\\nThe audit path is var/a.'\n"
        "state = fold(said(earlier, 'Drop 9090 for the staging port and the audit path.'))\n"
        "print(state.instructions[0].later_is)\n"
    )
    marks = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True,
            encoding="utf-8", check=True, timeout=60,
        ).stdout
        for seed in range(8)
    }  # fmt: skip
    assert marks == {"withdrawn\n"}
