"""The instructions to models: data files whose version tells answers to different words apart."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from obsmem.core.answers import SCHEMAS
from obsmem.core.tokens import estimate
from obsmem.memory.prompt import instructions

FOLDER = Path(__file__).resolve().parents[2] / "obsmem" / "memory" / "prompts"
# Task -> version and beginning of the SHA-256 of its file. Whoever changes words counts the version up, here and there.
KNOWN = {
    "observe": (1, "496937ac1039ffda"),
    "reflect": (1, "906374f4838a4a1f"),
    "drop": (1, "ff6b1e7c63b13068"),
}


@pytest.mark.parametrize("task", KNOWN)
def test_other_words_have_another_version(task: str) -> None:
    digest = hashlib.sha256((FOLDER / f"{task}.txt").read_bytes()).hexdigest()[:16]
    assert (instructions(task).version, digest) == KNOWN[task], "count the version up with every change of words"


@pytest.mark.parametrize("task", KNOWN)
def test_they_say_the_fields_of_the_schema_and_leave_room_in_a_small_window(task: str) -> None:
    words = instructions(task)
    (name,) = SCHEMAS[task]["properties"]
    fields = SCHEMAS[task]["properties"][name]["items"].get("properties", {})
    assert all(f'"{field}"' in words.answer for field in (name, *fields))
    assert f'{{"{name}": []}}' in words.answer, "an empty answer is an answer"
    assert estimate(words.rules + words.answer) < 1_600


def test_every_file_is_known() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(KNOWN) == set(SCHEMAS)
