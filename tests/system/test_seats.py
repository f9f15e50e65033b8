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


def test_one_can_wait_until_the_seats_are_free(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    seats.wait_until_free(home, 60.0)
    assert not os.path.exists(home), "where nothing ever ran there is nothing to wait for"
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    seats.take_seat(home, "a")
    seats.hand_on(home, 0, "a", child.pid)
    seats.wait_until_free(home, 0.3)
    assert os.path.exists(seats.seat_path(home, 0))
    child.communicate(b"\n")
    seats.wait_until_free(home, 60.0)
    assert not os.path.exists(seats.seat_path(home, 0))


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
    for number, name in enumerate("ab"):
        assert seats.take_seat(home, name) == number
        seats.hand_on(home, number, name, child.pid)
    time.sleep(0.5)  # it has ended, and waits to be reaped
    assert seats.take_seat(home, "b") == 0
    child.wait()
    assert seats.take_seat(home, "c") == 1


def test_a_seat_is_handed_on_only_while_it_is_ours(tmp_path: Path) -> None:
    home = str(tmp_path)
    seat = Path(seats.seat_path(home, 0))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert seats.take_seat(home, "a") == 0
    seats.leave_seat(home, 0)  # whom we started had done its work before we came to this
    seats.hand_on(home, 0, "a", child.pid)
    assert not seat.exists()
    seat.write_bytes(b"1 b")  # and somebody else sits here by now
    seats.hand_on(home, 0, "a", child.pid)
    seats.leave_seat(home, 0)
    assert seat.read_bytes() == b"1 b"
    seats.sign(home, 0, "c")
    assert seat.read_bytes() == f"{os.getpid()} c".encode()


HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from obsmem.system import seats
guard = seats._go_first(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


END = """
import sys
sys.path.insert(0, sys.argv[1])
from obsmem.system import seats
seat = seats.take_seat(sys.argv[2], "a")
print(seats.end_service(sys.argv[2], seat, set()), seats.end_service(sys.argv[2], seat, {"b"}), flush=True)
sys.stdin.read()
"""


def test_who_gives_its_seat_up_sees_the_last_wish_and_is_followed_by_nobody_until_it_has_ended(tmp_path: Path) -> None:
    home = str(tmp_path)
    seats.wish(home, "b", ["claude-code"])
    ending = subprocess.Popen(
        [sys.executable, "-c", END, str(ROOT), home], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert ending.stdout and ending.stdout.readline() == b"False True\n"
    assert not Path(seats.seat_path(home, 0)).exists()
    assert seats.take_seat(home, "b") is None
    ending.communicate()
    assert seats.take_seat(home, "b") == 0


def test_nobody_takes_a_seat_while_another_looks_and_who_dies_looking_stops_nobody(tmp_path: Path) -> None:
    looking = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(ROOT), str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert looking.stdout and looking.stdout.readline() == b"held\n"
    assert seats.take_seat(str(tmp_path), "a") is None
    looking.kill()
    looking.communicate()
    assert seats.take_seat(str(tmp_path), "a") == 0


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
