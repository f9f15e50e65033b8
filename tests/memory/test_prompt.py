"""Prior memory under a cap: half for notes, then reflections, leftovers back, nothing of unbounded length."""

from obsmem.core.model import Memory
from obsmem.core.tokens import estimate
from obsmem.harnesses.written import WORKER_MARK
from obsmem.memory.prompt import assemble, frame, memory_section, prior_memory
from tests.memory.make import NOON, note, reflection

NOTES = tuple(note(f"fact number {n} about it", n, at=NOON + n) for n in range(1, 101))
LASTING = tuple(reflection(f"rule number {n} holds", NOTES[n]) for n in range(100))


def cost(lines: tuple[str, ...]) -> int:
    return sum(estimate(line + "\n") for line in lines)


def test_everything_stays_within_the_cap_and_in_order() -> None:
    prior = prior_memory(Memory(NOTES, LASTING), 1000)
    assert cost(prior.notes) + cost(prior.reflections) <= 1000
    assert cost(prior.notes) > 450 and cost(prior.reflections) > 400
    assert prior.notes[-1].endswith(NOTES[-1].text) and prior.notes_left_out == 100 - len(prior.notes)
    assert list(prior.notes) == sorted(prior.notes, key=lambda line: int(line.split("number ")[1].split()[0]))


def test_notes_take_back_what_reflections_leave() -> None:
    few = prior_memory(Memory(NOTES, LASTING[:1]), 1000)
    assert cost(few.notes) > 900 and len(few.reflections) == 1
    alone = prior_memory(Memory((), LASTING), 1000)
    assert cost(alone.reflections) > 900


def test_a_long_item_is_skipped_and_does_not_stop_the_rest() -> None:
    long = note("word " * 900, 200, at=NOON + 200)
    prior = prior_memory(Memory((*NOTES[:3], long)), 400)
    assert len(prior.notes) == 3 and prior.notes_left_out == 1
    assert "1 notes" in memory_section(prior)


def test_a_note_from_before_masking_is_masked_in_a_prompt() -> None:
    key = "gh" + "p_" + "a1B2" * 9
    assert key not in memory_section(prior_memory(Memory((note(f"key {key}", 1),)), 1000))


def test_the_frame_depends_on_what_it_holds() -> None:
    assert frame("memory", "a").split("\n")[0] != frame("memory", "b").split("\n")[0]


def test_every_prompt_begins_with_the_mark() -> None:
    assert assemble("x", "", "y") == f"{WORKER_MARK}\n\nx\n\ny"
