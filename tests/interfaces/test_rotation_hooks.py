"""What the hooks give to a fresh session after ``rotate``: the handoff, whole, once."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from obsmem.harnesses.written import receipts
from tests.interfaces.place import Place, context, until
from tests.tasks.talk import Talk

FRESH = "77777777-0000-4000-8000-0000000000b2"


class Rotated(Place):
    """A place whose session is marked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        talk = Talk(self.transcript.stem, str(self.project))
        for number in range(6):
            talk.turn(number)
        talk.write(folder)
        self.remember()
        done = self.command("rotate", self.transcript.stem)
        assert done.returncode == 0, done.stderr

    def fresh_start(self, part: int, source: str = "clear", session: str = FRESH) -> str:
        """What one handler of a start of a fresh session gives."""
        given = self.payload(
            "SessionStart-compact", source=source, session_id=session,
            transcript_path=str(self.folder / f"{session}.jsonl"),
        )  # fmt: skip
        return context(self.hook("claude-code", "SessionStart", "--part", f"{part}/4", given=given).stdout)


def test_clear_brings_the_handoff_once(tmp_path: Path) -> None:
    place = Rotated(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(place.fresh_start, (1, 2, 3, 4)))
    text = "".join(given)
    assert "WORK IS IN PROGRESS" in text and "never touch src/api_5.py" in text
    marks = receipts(text)
    assert len(marks) == len(set(marks)) == int(marks[0].partition("/")[2])
    assert [place.fresh_start(part) for part in (1, 2, 3, 4)] == [""] * 4, "the same start again"
    assert [place.fresh_start(1, session=FRESH.replace("b2", "b3"))] == [""], "another session"


def test_of_two_that_start_at_once_one_gets_it(tmp_path: Path) -> None:
    place = Rotated(tmp_path)
    sessions = [FRESH.replace("b2", f"c{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(lambda session: place.fresh_start(1, "startup", session), sessions))
    assert [bool(text) for text in given].count(True) == 1


def test_another_folder_and_a_switched_off_one_get_nothing(tmp_path: Path) -> None:
    place = Rotated(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    given = place.payload(
        "SessionStart-compact", source="clear", session_id=FRESH, transcript_path="", cwd=str(elsewhere)
    )
    assert "WORK" not in context(place.hook("claude-code", "SessionStart", "--part", "1/4", given=given).stdout)
    off = place.project / ".observational-memory-off"
    off.touch()
    assert place.fresh_start(1) == ""
    off.unlink()
    assert "WORK IS IN PROGRESS" in place.fresh_start(1)


def test_the_maintainer_finds_who_took_it(tmp_path: Path) -> None:
    place = Rotated(tmp_path)
    assert place.fresh_start(1)
    talk = Talk(FRESH, str(place.project))
    talk.turn(9)
    path = talk.write(tmp_path, f"{FRESH}.jsonl")
    work = ["claude-code", "--transcript", str(path), "--session", FRESH, "--cwd", str(place.project)]
    assert place.command("maintain", *work).returncode == 0

    def linked() -> bool:
        sessions = json.loads(place.command("sessions", "--json").stdout)
        return any(one["id"] == FRESH and one["continues"] for one in sessions)

    assert until(linked)
    assert f"{place.transcript.stem}.jsonl" in os.listdir(tmp_path)
