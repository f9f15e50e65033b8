"""The maintainer as real processes: one a session, killed at any instant, asked again while it works."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.store.archive import StoredSession
from obsmem.system import config, files, lock
from obsmem.system.blockfile import NEXT, freeze, read
from obsmem.system.paths import data_home, session_folder
from obsmem.system.seats import name_of, wishes
from obsmem.system.state import read_state
from obsmem.tasks import maintain as module
from obsmem.tasks.maintain import maintain
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store, open_store
from tests.tasks.talk import CLAUDE, entries, opened, plain, turns
from tests.tasks.test_observe import check_coverage, long_talk

SCRIPT = Path(__file__).resolve().parents[2] / "observational_memory.py"
SETTINGS = {"OBSERVATIONAL_MEMORY_SET_OBSERVE_AFTER_TOKENS": "1", "OBSERVATIONAL_MEMORY_SET_CHUNK_MAX_TOKENS": "600",
            "OBSERVATIONAL_MEMORY_SET_REFLECT_AFTER_TOKENS": "2000"}  # fmt: skip


def start(path: Path, home: str = "", *more: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **SETTINGS}
    if home:
        environment["OBSERVATIONAL_MEMORY_HOME"] = home
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), "maintain", CLAUDE, "--transcript", str(path), "--verbose", *more],
        env=environment,
    )


def only(store: Store) -> StoredSession:
    (stored,) = store.archive.sessions()
    return stored


def contents(home: str) -> dict[str, Any]:
    """Everything that must not depend on how the work was interrupted."""
    with open_store(home) as store:
        stored = only(store)
        handle = stored.session.handle
        memory = remember(store, stored)
        return {
            "entries": plain(entries(store, stored)),
            "notes": [(one.note, one.first_seq, one.last_seq) for one in store.memory.notes(handle)],
            "stretches": [(one.first_seq, one.last_seq, one.shown) for one in store.memory.stretches(handle)],
            "gaps": store.memory.gaps(handle),
            "reflections": sorted(one.reflection.id for one in store.memory.reflections(handle)),
            "visible": sorted(note.id for note in memory.notes),
            "cards": store.index.cards(stored.no, handle),
            "bytes": b"".join(b"".join(store.archive.bytes_of(row.no)) for row in store.archive.sources(stored.no)),
        }


def test_two_maintainers_of_one_session_at_once_do_the_work_once(tmp_path: Path) -> None:
    path = long_talk(15).write(tmp_path)
    running = [start(path) for _ in range(3)] + [start(path, "", "--before-compact") for _ in range(2)]
    ended = [process.wait(60) for process in running]
    assert ended[:3] == [0] * 3
    assert sorted(ended[3:]) in ([0, 0], [0, 4]), "4: the other one prepares the compaction"
    assert start(path).wait(60) == 0
    alone = str(tmp_path / "alone")
    assert start(path, alone).wait(60) == 0
    together = contents(data_home())
    assert together["bytes"] == path.read_bytes()
    undisturbed = contents(alone)
    assert {one[0].text for one in together["notes"]} == {one[0].text for one in undisturbed["notes"]}
    assert together["entries"] == undisturbed["entries"]
    with opened(chunk_max_tokens=600) as store:
        check_coverage(store, only(store))


def test_killed_at_any_instant_and_run_again_it_gives_what_an_undisturbed_run_gives(tmp_path: Path) -> None:
    conversation = long_talk(10)
    path = conversation.write(tmp_path)
    alone = str(tmp_path / "alone")
    began = time.monotonic()
    assert start(path, alone).wait(60) == 0
    took = time.monotonic() - began
    wanted = contents(alone)
    chance = random.Random(20)
    home = str(tmp_path / "killed")
    for number in range(20):
        process = start(path, home)
        time.sleep(took * chance.uniform(0.15, 0.9))
        process.kill()
        process.wait()
        if number % 7 == 6 and os.path.exists(os.path.join(home, "memory.db")):
            with open_store(home):  # opening after a kill repairs nothing that was not whole
                pass
    assert start(path, home).wait(60) == 0
    assert contents(home) == wanted


def test_a_second_maintainer_leaves_a_mark_and_the_first_looks_again(tmp_path: Path, monkeypatch: Any) -> None:
    conversation = turns(2)
    path = conversation.write(tmp_path)
    folder = session_folder(data_home(), CLAUDE, str(path), conversation.session)
    looks = []
    with opened(observe_after_tokens=1) as store:
        run = module.run_passes

        def grow_meanwhile(*arguments: Any, **more: Any) -> Any:
            looks.append(1)
            if len(looks) == 1:
                conversation.turn(2)
                conversation.write(tmp_path)
                with opened(observe_after_tokens=1) as other:
                    done = maintain(other, CLAUDE, str(path), conversation.session, "")
                assert done.stretches == 0
                assert wishes(data_home()) == [name_of(folder)]
            return run(*arguments, **more)

        monkeypatch.setattr(module, "run_passes", grow_meanwhile)
        maintain(store, CLAUDE, str(path), conversation.session, "")
        assert len(looks) == 2
        assert wishes(data_home()) == []
        stored = only(store)
        assert stored.last_seq == 11
        check_coverage(store, stored)


def test_turns_whose_end_nobody_told_of_cost_no_word_of_the_user(tmp_path: Path) -> None:
    """Ten turns told of one by one, and the same ten of which only the last was told: all is covered, and only small notes
    are fewer, as a longer stretch has room for."""
    noted: list[list[tuple[str, tuple[str, ...]]]] = []
    for told in (range(1, 11), (10,)):
        conversation = turns(0)
        with open_store(
            str(tmp_path / str(len(noted))), config.override(config.load(), {"observe_after_tokens": 1}, "test")
        ) as store:
            for number in range(1, 11):
                conversation.turn(number)
                path = conversation.write(tmp_path)
                if number in told:
                    maintain(store, CLAUDE, str(path), conversation.session, "")
            check_coverage(store, only(store))
            notes = remember(store, only(store)).notes
            noted.append(
                sorted(
                    (note.text, tuple(i.split(".")[1] for i in note.entry_ids))
                    for note in notes
                    if note.evidence == "user"
                )
            )
    each, last = noted
    assert each == last and len(each) >= 10


def test_a_mark_left_at_the_last_moment_is_not_lost(tmp_path: Path, monkeypatch: Any) -> None:
    """The second comes after the first has looked for its mark, and before the lock is free."""
    conversation = turns(2)
    path = conversation.write(tmp_path)
    release = lock.try_hold
    late: list[int] = []
    with opened(observe_after_tokens=1) as store:
        from contextlib import contextmanager

        @contextmanager
        def slow_release(home: str, name: str) -> Any:
            with release(home, name) as held:
                yield held
                if held and name.startswith("maintain-") and not late:
                    late.append(1)
                    conversation.turn(2)
                    conversation.write(tmp_path)
                    with opened(observe_after_tokens=1) as other:
                        maintain(other, CLAUDE, str(path), conversation.session, "")

        monkeypatch.setattr(module, "try_hold", slow_release)
        maintain(store, CLAUDE, str(path), conversation.session, "")
        assert late
        assert only(store).last_seq == 11


def test_the_turn_end_hook_finds_how_far_the_transcript_was_read(tmp_path: Path) -> None:
    conversation = long_talk(20)
    path = conversation.write(tmp_path)
    folder = session_folder(data_home(), CLAUDE, str(path), conversation.session)
    with opened() as store:
        maintain(store, CLAUDE, str(path), conversation.session, "")
        stored = only(store)
        state = read_state(folder)
        size = path.stat().st_size
        assert state.read == size
        assert not state.off
        tokens = store.archive.observable_tokens(stored.no, -1)
        assert state.rate == pytest.approx(tokens / size, rel=0.01)
        waiting = store.archive.observable_tokens(stored.no, store.memory.covered_to(stored.session.handle))
        assert state.after == 10_000 - waiting
        assert freeze(folder, time.time()) is None  # no compaction came
        delivery, parts = read(os.path.join(folder, NEXT))
        assert delivery
        assert parts[0].startswith("<observational-memory ")


def test_before_a_compaction_everything_is_observed_and_the_next_delivery_is_new(tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    folder = session_folder(data_home(), CLAUDE, str(path), conversation.session)
    with opened() as store:
        maintain(store, CLAUDE, str(path), conversation.session, "", before_compact=True)
        first = freeze(folder, time.time())
        check_coverage(store, only(store))
        assert store.memory.stretches(only(store).session.handle)
        conversation.turn(7)
        conversation.write(tmp_path)
        maintain(store, CLAUDE, str(path), conversation.session, "", before_compact=True)
        second = freeze(folder, time.time())
        assert first
        assert second
        assert second != first
        assert "number_7" in "".join(second)


def test_nothing_is_written_when_the_disk_is_nearly_full(tmp_path: Path, monkeypatch: Any) -> None:
    conversation = turns(2)
    path = conversation.write(tmp_path)
    monkeypatch.setattr(module, "free_bytes", lambda home: module.LOWEST_DISK - 1)
    for before_compact in (False, True):
        with opened() as store:
            maintain(store, CLAUDE, str(path), conversation.session, "", before_compact=before_compact)
            assert store.archive.sessions() == []
    assert "outcome=disk-full" in Path(data_home(), "log.txt").read_text(encoding="utf-8")
    assert files.free_bytes(data_home()) > 0


@pytest.mark.parametrize("switch", ["config", "machine", "project", "environment", "worker"])
def test_an_off_switch_holds_before_anything_is_read(switch: str, tmp_path: Path, monkeypatch: Any) -> None:
    conversation = turns(2)
    path = conversation.write(tmp_path)
    project = tmp_path / "project" / "deep"
    project.mkdir(parents=True)
    changes: dict[str, Any] = {}
    if switch == "config":
        changes["off"] = True
    elif switch == "machine":
        files.write_atomic(os.path.join(data_home(), "off"), b"")
    elif switch == "project":
        (tmp_path / "project" / ".observational-memory-off").touch()
    elif switch == "environment":
        monkeypatch.setenv("OBSERVATIONAL_MEMORY_OFF", "1")
    else:
        monkeypatch.setenv("OBSERVATIONAL_MEMORY_WORKER", "1")
    for before_compact in (False, True):
        with opened(**changes) as store:
            maintain(store, CLAUDE, str(path), conversation.session, str(project), before_compact=before_compact)
            assert store.archive.sessions() == []
    folder = session_folder(data_home(), CLAUDE, str(path), conversation.session)
    assert read_state(folder).off == (switch == "config")


def test_a_transcript_that_is_not_there_is_logged_and_leaves_nothing(tmp_path: Path) -> None:
    with opened() as store:
        maintain(store, CLAUDE, str(tmp_path / "gone.jsonl"), "gone", "")
        assert store.archive.sessions() == []
    log = Path(data_home(), "log.txt").read_text(encoding="utf-8")
    assert "no-transcript" in log


def test_one_backup_a_day_is_left(tmp_path: Path) -> None:
    conversation = turns(1)
    path = conversation.write(tmp_path)
    with opened() as store:
        for _ in range(2):
            maintain(store, CLAUDE, str(path), conversation.session, "")
    assert len(os.listdir(os.path.join(data_home(), "backups"))) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe with a name is a thing of POSIX systems")
@pytest.mark.parametrize("more", [(), ("--before-compact",)])
def test_a_transcript_that_is_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path, more: tuple[str, ...]) -> None:
    pipe = tmp_path / "session.jsonl"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        assert start(path, "", *more).wait(60) == 0
    assert "ingest harness=claude-code outcome=OSError" in Path(data_home(), "log.txt").read_text(encoding="utf-8")
