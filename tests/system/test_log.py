"""Log lines: one a call, bounded, on one line; the file rotates; writing never raises."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from obsmem.system import log
from obsmem.system.paths import data_home
from tests.tasks.talk import CLAUDE, opened, turns


def lines(home: Path) -> list[str]:
    return (home / "log.txt").read_text(encoding="utf-8").split("\n")[:-1]


def test_a_call_is_one_line_of_names_and_values(tmp_path: Path) -> None:
    home = tmp_path / "h"
    log.write(str(home), "hook", name="claude-code Stop", ms=3, odd="a\nb\x00 c" + "x" * 500)
    log.write(str(home), "hook")
    first, second = lines(home)
    assert " hook name=claude-code_Stop ms=3 odd=a_b" in first
    assert len(first) < 300
    assert second.endswith(" hook")
    assert stat.S_IMODE(os.stat(home / "log.txt").st_mode) == 0o600


def test_a_full_file_makes_room_for_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LIMIT", 300)
    for number in range(100):
        log.write(str(tmp_path), "event", number=number)
        last = number
        if number > 40 and (tmp_path / "log.txt").exists():
            break
    sizes = [(tmp_path / name).stat().st_size for name in ("log.txt", "log.1.txt")]
    assert max(sizes) < 400
    both = (tmp_path / "log.1.txt").read_text("utf-8") + (tmp_path / "log.txt").read_text("utf-8")
    numbers = [int(line.rpartition("=")[2]) for line in both.split("\n")[:-1]]
    assert numbers == list(range(numbers[0], last + 1))
    assert sorted(name for name in os.listdir(tmp_path) if name.startswith("log")) == ["log.1.txt", "log.txt"]


def test_writing_never_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log.write(str(tmp_path / "file" / "below"), "event")
    log.write(str(tmp_path), "event", text="\ud800")


def test_a_maintainers_run_logs_no_word_of_the_transcript(tmp_path: Path) -> None:
    from obsmem.tasks import maintain as module

    conversation = turns(2)
    path = conversation.write(tmp_path)
    with opened(observe_after_tokens=1) as store:
        module.maintain(store, CLAUDE, str(path), conversation.session, "")
    path.unlink()
    with opened() as store:
        module.maintain(store, CLAUDE, str(path), conversation.session, "")
    text = Path(data_home(), "log.txt").read_text(encoding="utf-8")
    assert "no-transcript" in text
    assert "number_" not in text
    assert str(path) not in text


@pytest.mark.parametrize(
    ("outcome", "is_trouble"),
    [("started", False), ("exit-0", False), ("exit-4", False), ("part-1-of-2", False), ("stretches-1-notes-2", False),
     ("waiting", False), ("no-transcript", False), ("exit-1", True), ("killed", True), ("failed-StoreError", True), ("PermissionError", True),
     ("workers-killed", True), ("disk-full", True)],
)  # fmt: skip
def test_the_last_trouble_is_the_newest_line_that_tells_of_a_failure(
    tmp_path: Path, outcome: str, is_trouble: bool
) -> None:
    home = str(tmp_path)
    assert log.last_trouble(home, time.time()) == ""
    log.write(home, "hook", name="a", outcome=outcome)
    log.write(home, "hook", name="b", outcome="started")
    found = log.last_trouble(home, time.time())
    assert bool(found) == is_trouble and (not is_trouble or f"name=a outcome={outcome}" in found)
    assert log.last_trouble(home, time.time() + 2 * log.DAY_SECONDS) == "", "that was the day before yesterday"


def test_a_damaged_log_tells_of_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(b"\x00\xff outcome=\n\noutcome=Error\n" * 1000)
    log.last_trouble(str(tmp_path), time.time())


def test_lines_about_a_session_are_those_that_name_its_folder(tmp_path: Path) -> None:
    home, folder = str(tmp_path), str(tmp_path / "sessions" / "h" / "a name-0badcafe")
    log.write(home, "hook", name="h Stop", outcome="started", ms=3, **log.session_field([folder]))
    log.write(home, "hook", name="h Stop", outcome="started", ms=4, **log.session_field([folder + "0"]))
    log.write(home, "hook", name="h Stop", outcome="started", ms=5, **log.session_field([]))
    os.replace(log.log_path(home), tmp_path / "log.1.txt")
    with open(log.log_path(home), "wb") as file:
        file.write(b"torn \xff session=a_name-0badcafe\n\n")
    log.write(home, "maintain", **log.session_field([folder]), outcome="fine")
    found = log.lines_about(home, folder)
    assert [(event, fields["outcome"]) for _, event, fields in found] == [("hook", "started"), ("maintain", "fine")]
    assert found[0][2] == {"name": "h_Stop", "outcome": "started", "ms": "3", "session": "a_name-0badcafe"}
    assert all(at > 1_600_000_000_000 for at, _, _ in found)
    assert log.lines_about(str(tmp_path / "nowhere"), folder) == []
