"""Lasting statements: one line, shorter than their notes, every support known."""

from typing import Any

import pytest

from obsmem.core.model import Memory, Note, Reflection, Reply
from obsmem.harnesses.written import WORKER_MARK
from obsmem.memory import reflect
from tests.memory.make import note, reflection

A = note("User decided on uv for installs because pip is slow", 1)
B = note("User repeated that pip must not be used anywhere", 2)
C = note("Tests passed", 3, relevance="low")


def accept(
    *items: dict[str, Any], notes: tuple[Note, ...] = (A, B, C), existing: tuple[Reflection, ...] = ()
) -> list[Reflection]:
    return list(reflect.accept(Reply(items, "test"), notes, existing).reflections)


def test_a_reflection_replaces_one_that_it_names_and_no_other() -> None:
    old, other = reflection("Use pip", A), reflection("Tests pass", C)
    new = {"text": "Use uv", "note_ids": [A.id], "replaces": [old.id[:8]]}
    outcome = reflect.accept(Reply((new,), "test"), (A, B, C), (old, other))
    assert outcome.replaced == {old.id: outcome.reflections[0].id}
    for wrong in (["ffff"], "", None, 7, [other.id, "ffff"]):
        assert reflect.accept(Reply(({**new, "replaces": wrong},), "test"), (A, B, C), (old, other)).replaced == {}
    refused = {"text": "Use uv", "note_ids": ["ffff"], "replaces": [old.id]}
    assert reflect.accept(Reply((refused,), "test"), (A, B, C), (old, other)).replaced == {}, "nothing takes its place"


def test_supports_are_kept_once_and_in_the_order_of_the_notes() -> None:
    """Upstream vector: supports given as (b, a, a) with pool order (a, b) are stored as (a, b)."""
    (made,) = accept({"text": "Use uv, never pip", "note_ids": [B.id, A.id, A.id]})
    assert made.note_ids == (A.id, B.id)


def test_short_ids_and_brackets_are_understood() -> None:
    (made,) = accept({"text": "Use uv, never pip", "note_ids": [f"[{A.id[:7]}]", B.id[:7].upper()]})
    assert made.note_ids == (A.id, B.id)


@pytest.mark.parametrize(
    "proposal",
    [
        {"text": "Use uv", "note_ids": [A.id, "0123456789ab"]},
        {"text": "Use uv", "note_ids": []},
        {"text": "Use uv"},
        {"text": "Use uv", "note_ids": ["a"]},
        {"text": "Use uv", "note_ids": [""]},
        {"text": "Use uv\nnever pip", "note_ids": [A.id]},
        {"text": " ", "note_ids": [A.id]},
        {"text": None, "note_ids": [A.id]},
        {"text": "word " * 200, "note_ids": [A.id, B.id]},
        {"text": f"{A.text} {B.text} and so on", "note_ids": [A.id, B.id]},  # longer than what it stands on
    ],
)
def test_a_proposal_that_breaks_a_rule_is_left_out_alone(proposal: dict[str, Any]) -> None:
    assert [made.text for made in accept(proposal, {"text": "Fine", "note_ids": [C.id]})] == ["Fine"]


def test_text_is_trimmed_before_it_is_named() -> None:
    one = accept({"text": "Use uv\n", "note_ids": [A.id]})
    assert one == accept({"text": "  Use uv", "note_ids": [A.id]})


def test_what_is_known_is_not_made_again() -> None:
    known = reflection("Use uv", A)
    assert accept({"text": "Use uv", "note_ids": [A.id]}, existing=(known,)) == []
    assert accept({"text": "Use uv", "note_ids": [A.id, B.id]}, existing=(known,)) == []
    assert len(accept({"text": "Use uv", "note_ids": [A.id]}, {"text": "Use uv", "note_ids": [A.id]})) == 1


def test_secrets_are_masked() -> None:
    key = "gh" + "p_" + "a1B2" * 9
    long = note(
        f"User gave a token for the release job on the server and said it must never be printed: {'x ' * 40}", 9
    )
    (made,) = accept({"text": f"Release token {key}", "note_ids": [long.id]}, notes=(long,))
    assert made.text == "Release token ghp_…[masked github token]"


def test_tiers_count_distinct_reflections() -> None:
    """Upstream: none, partial, strong for 0, 1 and 2 or more; an id twice in one reflection counts once."""
    one = Reflection("r1", "x", (A.id, A.id), 1)
    two = Reflection("r2", "y", (B.id,), 1)
    three = Reflection("r3", "z", (B.id,), 1)
    four = Reflection("r4", "w", (B.id, "unknown"), 1)
    assert reflect.tiers((A, B, C), (one, two, three, four)) == {A.id: 1, B.id: 2, C.id: 0}


def test_the_prompt_shows_notes_with_their_coverage() -> None:
    request = reflect.build(Memory((A, B, C), (reflection("Use uv", A),)), (), "abcd", 2000)
    assert request.prompt.startswith(WORKER_MARK) and request.task == "reflect"
    assert f"[{A.id[:7]}] (covered: partial)" in request.prompt
    assert f"[{C.id[:7]}] (covered: none)" in request.prompt
    assert '{"reflections": []}' in request.prompt


def test_answers_are_read() -> None:
    assert reflect.parse('{"reflections":[{"text":"a","note_ids":["b"]}]}') == [{"text": "a", "note_ids": ["b"]}]
