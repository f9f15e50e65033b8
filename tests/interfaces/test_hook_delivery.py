"""Whether the block arrives: whatever hooks fire, in whatever order, it is given to the model exactly once.

Each test lives through a session with real hook processes: the transcript grows as the harness would write it, with
what our hooks printed among its records, or without where the harness lost it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from obsmem.harnesses.written import receipts
from obsmem.interfaces import hook_delivery
from obsmem.system import blockfile, seats
from tests.interfaces.place import SESSION, Place, until
from tests.tasks.talk import Talk

OPEN, RETRY, RESUME = "block.open", "block.retry", "block.resume"


class Life(Place):
    """A session of Claude Code that goes on. ``given`` is everything that our hooks gave to the model."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.talk = Talk(SESSION, str(self.project))
        self.given: list[str] = []
        for number in range(3):
            self.talk.turn(number)
        self.save()

    def save(self) -> None:
        """Write the transcript."""
        self.talk.write(self.folder)

    def precompact(self) -> None:
        """The hook before a compaction."""
        assert self.hook("claude-code", "PreCompact", given=self.payload("PreCompact-auto")).stdout == b""

    def starts(self, source: str = "compact") -> list[str]:
        """All four handlers of a session start; what they gave."""
        return self._gives([self.start(part, source) for part in (1, 2, 3, 4)])

    def prompt(self) -> list[str]:
        """The hook at a prompt; what it gave."""
        return self._gives(
            [self.hook("claude-code", "UserPromptSubmit", given=self.payload("UserPromptSubmit")).stdout]
        )

    def _gives(self, outputs: list[bytes]) -> list[str]:
        texts = [json.loads(output)["hookSpecificOutput"].get("additionalContext", "") for output in outputs if output]
        texts = [text for text in texts if text]
        self.given += texts
        return texts

    def boundary(self, *texts: str) -> None:
        """The compaction as the transcript shows it, with what arrived of our parts."""
        self.talk.compact()
        self.arrive(*texts)

    def arrive(self, *texts: str, hook: str = "SessionStart") -> None:
        """A record of what hooks gave to the model."""
        if texts:
            attachment = {
                "type": "hook_additional_context",
                "content": list(texts),
                "hookName": hook,
                "hookEvent": hook,
            }
            self.talk._add("attachment", attachment=attachment)
        self.save()

    def answer(self) -> None:
        """The agent says something after the compaction."""
        self.talk.agent("I go on with the import cycle.")
        self.save()

    def turn_ends(self) -> None:
        """The hook at a turn's end, and all that it starts."""
        self.hook("claude-code", "Stop", given=self.payload("Stop"))
        assert until(lambda: not seats.wishes(str(self.home)) and not self.seated()), self.log

    def seated(self) -> list[str]:
        """The seats that are taken."""
        return [name for name in os.listdir(self.home / "waiting") if name.startswith(".seat")] if self.waits() else []

    def waits(self) -> bool:
        """True if any hook ever wanted a maintainer."""
        return (self.home / "waiting").is_dir()

    def maintain(self) -> None:
        """A maintainer's run that no open delivery caused."""
        done = self.command(
            "maintain", "claude-code", "--transcript", str(self.transcript), "--session", SESSION, "--verbose"
        )
        assert done.returncode == 0, done.stderr

    def has(self, name: str) -> bool:
        """True if the session's folder has a file."""
        return (self.notes_folder / name).exists()

    def status(self) -> str:
        """What ``status`` says."""
        done = self.command("status")
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path / "life")


def all_is_well(life: Life) -> None:
    life.precompact()
    life.boundary(*life.starts())
    life.answer()
    life.turn_ends()


def precompact_is_missing(life: Life) -> None:
    life.boundary(*life.starts())
    life.answer()
    life.turn_ends()


def start_is_missing(life: Life) -> None:
    life.precompact()
    life.boundary()
    life.answer()
    life.turn_ends()


def the_context_is_lost(life: Life) -> None:
    life.precompact()
    life.starts()
    life.given.clear()  # the harness dropped it: the transcript has none of it
    life.boundary()
    life.answer()
    life.turn_ends()


def every_hook_is_missing(life: Life) -> None:
    life.boundary()
    life.answer()
    life.maintain()


def start_comes_after_the_boundary(life: Life) -> None:
    life.precompact()
    life.boundary()
    life.arrive(*life.starts())
    life.answer()
    life.turn_ends()


def start_comes_after_the_boundary_and_precompact_is_missing(life: Life) -> None:
    life.boundary()
    life.arrive(*life.starts())
    life.answer()
    life.turn_ends()


ORDERS: list[Callable[[Life], None]] = [
    all_is_well, precompact_is_missing, start_is_missing, the_context_is_lost, every_hook_is_missing,
    start_comes_after_the_boundary, start_comes_after_the_boundary_and_precompact_is_missing,
]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: str(order.__name__))
def test_in_every_order_of_events_the_block_is_given_exactly_once(life: Life, order: Callable[[Life], None]) -> None:
    order(life)
    before = list(life.given)
    late = life.prompt()
    assert len(late) == (0 if before else 1), "the second try is for what did not arrive"
    life.arrive(*late, hook="UserPromptSubmit")
    life.answer()
    life.turn_ends()
    assert life.prompt() == []
    assert life.starts("resume") == []
    numbers = [mark for text in life.given for mark in receipts(text)]
    assert len(numbers) == len(set(numbers)) >= 1
    assert "## Now" in life.given[0]
    assert not life.has(OPEN) and not life.has(RETRY)


def test_the_second_try_gives_the_frozen_text_though_the_block_was_rendered_anew(life: Life) -> None:
    life.precompact()
    frozen = life.starts()[0]
    life.boundary()
    life.talk.user("Paint the door blue from now on.")
    life.answer()
    life.turn_ends()
    life.maintain()
    assert "Paint the door blue" in blockfile.read(str(life.notes_folder / "block.next"))[1][0]
    (text,) = life.prompt()
    assert text == frozen


def test_a_turns_end_below_the_threshold_starts_the_maintainer_only_while_a_delivery_is_open(life: Life) -> None:
    life.maintain()
    life.turn_ends()
    assert "outcome=started" not in life.log
    life.precompact()
    assert life.has(OPEN)
    life.boundary(*life.starts())
    life.answer()
    life.turn_ends()
    assert life.log.count("hook name=claude-code_Stop outcome=started") == 1 and not life.has(OPEN)
    life.turn_ends()
    assert life.log.count("hook name=claude-code_Stop outcome=started") == 1


def test_a_prompt_before_the_agent_answered_gets_nothing(life: Life) -> None:
    life.precompact()
    life.boundary()
    life.turn_ends()
    assert life.prompt() == [] and not life.has(RETRY)


def test_a_new_compaction_ends_the_second_try_of_the_one_before(life: Life) -> None:
    start_is_missing(life)
    assert life.has(RETRY)
    life.precompact()
    assert life.prompt() == []
    life.boundary(*life.starts())
    life.answer()
    life.turn_ends()
    assert life.prompt() == [] and "after compaction 2" in life.status()


def test_a_refused_compaction_changes_nothing(life: Life) -> None:
    all_is_well(life)
    life.precompact()
    life.talk.turn(5)
    life.save()
    life.turn_ends()
    assert life.prompt() == [] and life.starts("resume") == []
    assert "after compaction 1" in life.status()


# Resuming


def test_a_resumed_session_gets_the_block_while_its_context_lacks_it_and_once(life: Life) -> None:
    start_is_missing(life)
    parts = life.starts("resume")
    assert parts and "## Now" in parts[0]
    assert life.prompt() == [], "what a start brought needs no second try"
    assert life.starts("resume") == [] and life.starts("compact") == []
    life.arrive(*parts)
    life.answer()
    life.turn_ends()
    assert not life.has(RESUME) and "delivered" in life.status()


@pytest.mark.parametrize("order", [all_is_well, precompact_is_missing])
def test_a_resumed_session_whose_context_holds_the_block_gets_nothing(
    life: Life, order: Callable[[Life], None]
) -> None:
    order(life)
    assert life.starts("resume") == []


def test_a_resumed_session_without_any_compaction_gets_nothing(life: Life) -> None:
    life.maintain()
    assert life.starts("resume") == []


def test_two_starts_for_one_compaction_give_the_block_once(life: Life) -> None:
    """Codex starts a resumed session whose compaction is due as resume, then as compact."""
    life.precompact()
    assert life.starts("resume") == []
    assert life.starts("compact")
    start_is_missing(life)
    assert life.starts("resume") and life.starts("compact") == []


def test_a_hook_that_is_registered_twice_gives_each_part_once(life: Life) -> None:
    life.precompact()
    assert life.starts() and life.starts() == []


# What people are told


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (all_is_well, "delivered 1/1 at "),
        (start_is_missing, "not delivered after compaction 1; part 1 comes with the next prompt"),
    ],
)
def test_status_says_what_became_of_the_newest_block(life: Life, order: Callable[[Life], None], words: str) -> None:
    order(life)
    assert words in life.status()


def test_status_says_that_a_second_try_was_given_and_that_it_arrived(life: Life) -> None:
    start_is_missing(life)
    late = life.prompt()
    assert "part 1 given with the prompt at" in life.status()
    life.arrive(*late, hook="UserPromptSubmit")
    life.maintain()
    assert "at the second try" in life.status()


def test_status_names_the_parts_that_are_missing_and_a_partial_block_gets_no_second_try(life: Life) -> None:
    for number in range(3, 90):
        life.talk.turn(number)
    life.save()
    life.precompact()
    parts = life.starts()
    assert len(parts) > 1
    life.boundary(*parts[:1])
    life.answer()
    life.turn_ends()
    missing = ", ".join(str(number) for number in range(2, len(parts) + 1))
    assert f"part {missing} of {len(parts)} missing after compaction 1" in life.status()
    assert life.prompt() == []
    assert len(life.starts("resume")) >= len(parts)


def test_part_1_of_several_says_how_to_get_the_others_and_passes_the_hook(life: Life) -> None:
    for number in range(3, 90):
        life.talk.turn(number)
    life.save()
    start_is_missing(life)
    frozen = blockfile.read(str(life.notes_folder / "block.resume"))[1]
    assert len(frozen) > 1
    (text,) = life.prompt()
    assert len(text.encode()) <= 9_500 and "## Now" in text
    (mark,) = receipts(text)
    assert mark.split(" ")[1].startswith("1/")
    (command,) = re.findall(r"`([^`]+) block ([a-z0-9]+)` prints the other parts", text)
    assert life.command("block", command[1]).stdout


def test_sessions_that_were_only_read_are_not_said_to_lack_a_block(life: Life) -> None:
    life.boundary()
    life.answer()
    assert life.command("ingest", str(life.transcript)).returncode == 0
    assert "block of" not in life.status()


# The same event twice, at the same time


def test_two_hooks_before_one_compaction_make_one_block(life: Life) -> None:
    given = life.payload("PreCompact-auto")
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: life.hook("claude-code", "PreCompact", given=given), range(2)))
    assert [(one.returncode, one.stdout) for one in done] == [(0, b"")] * 2
    outcomes = re.findall(r"name=claude-code_PreCompact outcome=(\S+)", life.log)
    assert sorted(outcomes) in (["exit-0", "exit-0"], ["exit-0", "exit-4"])
    assert life.starts() and "trouble" not in life.status()


@pytest.mark.parametrize("is_due", [True, False])
def test_handlers_that_are_registered_twice_give_each_part_once_even_at_the_same_time(life: Life, is_due: bool) -> None:
    if is_due:
        life.precompact()
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(life.start, (1, 1, 2, 2, 3, 3, 4, 4)))
    texts = life._gives(outputs)
    marks = [receipts(text)[0] for text in texts]
    assert marks and len(marks) == len(set(marks))
    assert len({mark.split(" ")[0] for mark in marks}) == 1


def test_eight_prompts_at_once_get_one_second_try(life: Life) -> None:
    start_is_missing(life)
    given = life.payload("UserPromptSubmit")
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: life.hook("claude-code", "UserPromptSubmit", given=given), range(8)))
    assert len([one for one in done if one.stdout]) == 1


def test_status_shows_the_last_trouble(life: Life) -> None:
    life.maintain()
    assert "trouble" not in life.status()
    (life.home / "interpreter").write_text("/bin/false", encoding="utf-8")
    life.hook("claude-code", "PreCompact", given=life.payload("PreCompact-auto"))
    assert re.search(r"trouble: \S+ hook name=claude-code_PreCompact outcome=exit-1", life.status())


def test_no_handler_waits_for_a_block_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a read-only data folder the first handler can have none made."""
    monkeypatch.setattr(hook_delivery.os, "access", lambda *_: False)
    monkeypatch.setattr(hook_delivery.time, "sleep", lambda _: pytest.fail("it waits"))
    assert hook_delivery._freeze_or_make(str(tmp_path), "", str(tmp_path / "session"), [], 2) is None
