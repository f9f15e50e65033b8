"""Two seats a machine, one a session; the dead keep none; a wish is seen by whoever gives a seat up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from obsmem.system import seats

ROOT = Path(__file__).resolve().parents[2]
TAKE = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from obsmem.system import seats
while time.time() < float(sys.argv[4]): pass
print(seats.take_seat(sys.argv[2], sys.argv[3]), flush=True)
sys.stdin.read()
"""


def ask(home: Path, names: list[str]) -> list[str]:
    """What processes get that all ask at the same time and then stay alive until all have an answer."""
    start = str(time.time() + 1.0)
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE, str(ROOT), str(home), name, start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    answers = [process.stdout.readline().strip() for process in asking if process.stdout]
    for process in asking:
        process.communicate()
    return answers


def test_of_many_at_once_two_get_a_seat(tmp_path: Path) -> None:
    answers = ask(tmp_path, [f"session-{number}" for number in range(8)])
    assert sorted(answers) == ["0", "1", *["None"] * 6]


def test_a_session_has_one_seat(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert seats.take_seat(home, "a") == 0
    assert seats.take_seat(home, "a") is None
    assert seats.take_seat(home, "b") == 1
    assert seats.take_seat(home, "c") is None
    seats.leave_seat(home, 0)
    assert seats.take_seat(home, "b") is None
    assert seats.take_seat(home, "c") == 0


def test_the_seat_of_a_process_that_died_is_free(tmp_path: Path) -> None:
    home = str(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", ""])
    for number in range(seats.SEATS):
        seats.sign(home, number, "a", child.pid)
    time.sleep(0.5)  # it has ended, and waits to be reaped
    assert seats.take_seat(home, "b") == 0
    child.wait()
    assert seats.take_seat(home, "c") == 1


def test_a_seat_that_nobody_signed_anew_for_an_hour_is_free(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert seats.take_seat(home, "a") == 0
    long_ago = time.time() - seats.OLDEST_SECONDS - 1
    os.utime(seats.seat_path(home, 0), (long_ago, long_ago))
    assert seats.take_seat(home, "a") == 0


def test_a_damaged_seat_is_free(tmp_path: Path) -> None:
    for content in (b"", b"\xff\xfe", b"12", b"x y", b"-1 a"):
        (tmp_path / "waiting").mkdir(exist_ok=True)
        Path(seats.seat_path(str(tmp_path), 0)).write_bytes(content)
        assert seats.take_seat(str(tmp_path), "a") in (0, 1)
        for number in range(seats.SEATS):
            seats.leave_seat(str(tmp_path), number)


def test_wishes_come_in_the_order_of_their_age_and_with_their_arguments(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert seats.wishes(home) == []
    for age, name in ((3, "old"), (2, "middle"), (1, "young")):
        seats.wish(home, name, ["claude-code", "--cwd", "/a b/\udcff"])
        os.utime(seats.wish_path(home, name), (time.time() - age, time.time() - age))
    seats.take_seat(home, "old")
    assert seats.wishes(home) == ["old", "middle", "young"]
    assert seats.wish_of(home, "old") == ["claude-code", "--cwd", "/a b/\udcff"]
    assert seats.wish_of(home, "nobody") == []
