"""Marks that were made before the clock was set back a day end as they would have: none stays for a day."""

from __future__ import annotations

import os
import time
from pathlib import Path

from obsmem.system import blockfile, state
from obsmem.system.blockfile import begin_making, freeze, make_due, write_next

DAY = 86_400.0


def test_one_that_died_while_making_a_block_keeps_nobody_from_it(tmp_path: Path) -> None:
    folder, later = str(tmp_path), time.time() + DAY
    assert begin_making(folder, later)
    assert not begin_making(folder, time.time()), "somebody makes one now"
    os.utime(tmp_path / blockfile.MAKING, (later, later))
    assert begin_making(folder, time.time())


def test_a_block_of_another_day_is_not_delivered(tmp_path: Path) -> None:
    write_next(str(tmp_path), "k3f9", ("one",))
    make_due(str(tmp_path))
    later = time.time() + DAY
    os.utime(tmp_path / blockfile.DUE, (later, later))
    assert freeze(str(tmp_path), time.time()) is None


def test_a_session_that_was_off_is_looked_at_again(tmp_path: Path) -> None:
    state.write_state(str(tmp_path), state.State(off=True))
    assert state.read_state(str(tmp_path)).off
    later = time.time() + DAY
    os.utime(tmp_path / state.STATE_FILE, (later, later))
    assert not state.read_state(str(tmp_path)).off
