"""A session whose hooks went silent is gone on with by the maintainer of any other, once a day."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from obsmem.system import seats
from obsmem.tasks.left_behind import IDLE_SECONDS, MARK, wish_for_left_behind
from obsmem.tasks.store import Store
from tests.tasks.talk import FORK, SESSION, active_texts, opened, session_of, turns

SCRIPT = Path(__file__).resolve().parents[2] / "observational_memory.py"


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def left(store: Store, folder: Path) -> Path:
    """The transcript of a session that was read, and has grown since without anybody being told."""
    talk = turns(2)
    session_of(store, talk.write(folder))
    talk.turn(7)
    return talk.write(folder)


def test_the_next_maintainer_of_another_session_reads_it_to_its_end(tmp_path: Path) -> None:
    """As after a machine that went off: nothing but the transcript says that there is more."""
    with opened() as store:
        path = left(store, tmp_path / "a")
    age(path, IDLE_SECONDS + 60)
    other = turns(1, FORK).write(tmp_path / "b")
    command = [sys.executable, str(SCRIPT), "maintain", "claude-code", "--transcript", str(other), "--session", FORK]
    assert subprocess.run(command, timeout=120, env=dict(os.environ)).returncode == 0
    with opened() as store:
        stored = store.archive.by_id("claude-code", SESSION)
        assert stored is not None
        assert any("number_7" in text for text in active_texts(store, stored))
        assert store.archive.sources(stored.no)[-1].offset == path.stat().st_size
        assert seats.wishes(store.home) == []
        assert len(store.archive.sessions()) == 2


def test_what_is_read_to_its_end_still_written_or_gone_is_left_alone(tmp_path: Path) -> None:
    with opened() as store:
        written = left(store, tmp_path / "a")
        read = turns(2, FORK).write(tmp_path / "b")
        session_of(store, read)
        age(read, IDLE_SECONDS + 60)
        assert wish_for_left_behind(store) == 0
        os.unlink(os.path.join(store.home, MARK))
        written.unlink()
        assert wish_for_left_behind(store) == 0


def test_it_is_looked_for_once_a_day(tmp_path: Path) -> None:
    with opened() as store:
        path = left(store, tmp_path / "a")
        age(path, IDLE_SECONDS + 60)
        assert wish_for_left_behind(store) == 1
        assert wish_for_left_behind(store) == 0
        age(Path(store.home) / MARK, 90_000)
        assert wish_for_left_behind(store) == 1
        assert len(seats.wishes(store.home)) == 1
