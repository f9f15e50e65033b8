"""What is visible: records in the order they were made, folded along the live path."""

from collections.abc import Iterable

from obsmem.core.model import Drop, Memory, Pin, Reflection
from obsmem.memory.fold import Recorded, fold
from tests.memory.make import NOON, note, reflection

A, B = note("a", 1, at=NOON), note("b", 2, at=NOON + 1)


def folded(
    notes: Iterable[Recorded],
    reflections: Iterable[Reflection] = (),
    drops: Iterable[Drop] = (),
    pins: Iterable[Pin] = (),
    off: frozenset[str] = frozenset(),
) -> Memory:
    return fold(notes, reflections, drops, pins, lambda name: name not in off)


def test_notes_come_oldest_first() -> None:
    assert folded([Recorded(B, 5), Recorded(A, 6)]).notes == (A, B)
    assert folded([]) == Memory()


def test_a_note_is_visible_while_one_of_its_entries_is_on_the_live_path() -> None:
    both = note("both", 1, 2)
    assert folded([Recorded(both, 1)], off=frozenset({"abcd.1"})).notes == (both,)
    assert folded([Recorded(both, 1)], off=frozenset({"abcd.1", "abcd.2"})).notes == ()


def test_a_dropped_note_comes_back_only_when_it_is_noted_again() -> None:
    dropped = folded([Recorded(A, 1), Recorded(B, 1)], drops=[Drop((A.id,), 5, "")])
    assert dropped.notes == (B,) and dropped.dropped == {A.id}
    again = folded([Recorded(A, 1), Recorded(A, 6)], drops=[Drop((A.id,), 5, "")])
    assert again.notes == (A,) and again.dropped == frozenset()
    twice = folded([Recorded(A, 1), Recorded(A, 6)], drops=[Drop((A.id,), 5, ""), Drop((A.id,), 7, "")])
    assert twice.notes == ()


def test_the_first_record_of_an_id_holds() -> None:
    changed = A._replace(relevance="critical")
    assert folded([Recorded(A, 1), Recorded(changed, 2)]).notes == (A,)


def test_of_equal_texts_the_newest_is_shown_and_dropping_it_shows_no_older_one() -> None:
    older, newer = note("same", 1, at=NOON), note("same", 2, at=NOON + 1)
    records = [Recorded(older, 1), Recorded(newer, 2)]
    assert folded(records).notes == (newer,)
    assert folded(records, drops=[Drop((newer.id,), 5, "")]).notes == ()
    assert folded(records, off=frozenset({"abcd.2"})).notes == (older,)
    assert folded([*records, Recorded(note("same", 3), 9)], drops=[Drop((newer.id,), 5, "")]).notes[0].entry_ids == (
        "abcd.3",
    )


def test_drops_of_unknown_notes_are_kept() -> None:
    assert folded([Recorded(A, 1)], drops=[Drop(("nothing",), 5, "")]) == Memory((A,), (), frozenset({"nothing"}))


def test_reflections_outlive_their_dropped_notes_but_not_their_branch() -> None:
    lasting = reflection("lasting", A, B)
    assert folded([Recorded(A, 1), Recorded(B, 1)], [lasting], [Drop((A.id, B.id), 5, "")]).reflections == (lasting,)
    off = frozenset({"abcd.1", "abcd.2"})
    assert folded([Recorded(A, 1), Recorded(B, 1)], [lasting], off=off).reflections == ()
    assert folded([], [lasting, lasting, reflection("lasting", A)]).reflections == (lasting,)


def test_pins_are_kept_once_in_their_order() -> None:
    pins = [Pin("p1", "one", "", 1), Pin("p2", "two", "", 2), Pin("p1", "changed", "", 3)]
    assert folded([], pins=pins).pins == (pins[0], pins[1])
