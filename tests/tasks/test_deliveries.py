"""What receipts and files say about a delivery, and in which words."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from obsmem.memory.render import CLOSE, PART_BYTES
from obsmem.store.archive import StoredSession
from obsmem.system import blockfile
from obsmem.system.blockfile import DUE, DUE_SECONDS, NEXT, RESUME, RETRY
from obsmem.system.state import OPEN_FILE
from obsmem.tasks.deliver import leave_block
from obsmem.tasks.deliveries import (
    Delivery,
    describe,
    first_part,
    newest_delivery,
    open_delivery,
    recent_deliveries,
    settle,
)
from obsmem.tasks.store import Store
from tests.tasks.talk import Talk, opened, session_of, turns, utc


def compacted(store: Store, folder: Path, *, answered: bool = True) -> StoredSession:
    """A session that was compacted once, with a block before it and nothing received of it."""
    talk = turns(2)
    stored = session_of(store, talk.write(folder))
    leave_block(store, stored, utc, fresh=True)
    open_delivery(store, stored)
    talk.compact()
    if answered:
        talk.agent("I go on.")
    return session_of(store, talk.write(folder))


def receive(store: Store, stored: StoredSession, *marks: str) -> Delivery:
    """Receipts behind the newest compaction."""
    for mark in marks:
        delivery, part = mark.split(" ")
        store.memory.record_receipt(stored.session.handle, delivery, part, stored.last_seq, 1_000)
    return newest_delivery(store, stored)


def test_a_session_without_a_compaction_has_no_delivery(tmp_path: Path) -> None:
    with opened() as store:
        assert newest_delivery(store, session_of(store, turns(1).write(tmp_path))) == Delivery()


@pytest.mark.parametrize(
    ("marks", "state", "parts"),
    [
        (["d 1/2", "d 2/2"], "whole", (1, 2)),
        (["d 2/2"], "partial", (2,)),
        (["d 1/3", "e 1/2", "e 2/2"], "whole", (1, 2)),
        (["e 1/2", "e 2/2", "d 1/3"], "whole", (1, 2)),
        (["d 1/3", "d 3/3", "d 1/3"], "partial", (1, 3)),
        ([], "missing", ()),
    ],
)
def test_the_most_complete_delivery_behind_the_compaction_counts(
    tmp_path: Path, marks: list[str], state: str, parts: tuple[int, ...]
) -> None:
    with opened() as store:
        found = receive(store, compacted(store, tmp_path), *marks)
        assert (found.state, found.parts, found.compaction) == (state, parts, 1)


def test_a_receipt_before_the_compaction_says_nothing_about_it(tmp_path: Path) -> None:
    with opened() as store:
        stored = compacted(store, tmp_path)
        store.memory.record_receipt(stored.session.handle, "d", "1/1", 0, 1_000)
        assert newest_delivery(store, stored).state == "missing"


def test_a_second_try_is_decided_once_a_compaction_whatever_became_of_its_file(tmp_path: Path) -> None:
    with opened() as store:
        stored = compacted(store, tmp_path)
        folder = store.folder_of(stored)
        assert settle(store, stored).offered and os.path.exists(os.path.join(folder, RETRY))
        assert not os.path.exists(os.path.join(folder, DUE)), "a late start must not give it, too"
        os.unlink(os.path.join(folder, RETRY))
        settle(store, stored)
        assert not os.path.exists(os.path.join(folder, RETRY))
        assert not os.path.exists(os.path.join(folder, OPEN_FILE)), "nothing more is to be found out"


def test_before_the_agent_answered_nothing_is_offered_and_the_delivery_stays_open(tmp_path: Path) -> None:
    with opened() as store:
        stored = compacted(store, tmp_path, answered=False)
        folder = store.folder_of(stored)
        assert settle(store, stored).state == "waiting"
        assert {name for name in os.listdir(folder) if not name.startswith("reasons.")} == {
            NEXT,
            DUE,
            OPEN_FILE,
            RESUME,
        }


def test_a_compaction_that_never_comes_is_given_up(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(2).write(tmp_path))
        leave_block(store, stored, utc, fresh=True)
        open_delivery(store, stored)
        mark = os.path.join(store.folder_of(stored), OPEN_FILE)
        settle(store, stored)
        assert os.path.exists(mark)
        long_ago = time.time() - DUE_SECONDS - 1
        os.utime(mark, (long_ago, long_ago))
        settle(store, stored)
        assert not os.path.exists(mark)


@pytest.mark.parametrize("content", [b"", b"\xff", b"x y z", b"99999999999999999999 z"])
def test_a_damaged_mark_harms_nothing(tmp_path: Path, content: bytes) -> None:
    with opened() as store:
        stored = compacted(store, tmp_path)
        Path(store.folder_of(stored), OPEN_FILE).write_bytes(content)
        assert settle(store, stored).compaction == 1


def test_part_1_gives_up_its_last_lines_for_the_way_to_the_others() -> None:
    lines = [f"line {number} " + "x" * 80 for number in range(200)]
    part = "\n".join(["<observational-memory delivery=…>", *lines])
    part = part[: PART_BYTES - len(CLOSE) - 10] + "\n" + CLOSE
    text = first_part([part, "other"], "hint")
    assert len(text.encode()) <= PART_BYTES and text.endswith(f"\nhint\n{CLOSE}")
    assert part.startswith(text[: -len(f"\nhint\n{CLOSE}")])
    assert first_part([part], "hint") == part


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Delivery(), ""),
        (Delivery(3, 9, "whole", "d", (1, 2, 3, 4), 4, 60_000), "delivered 4/4 at 1970-01-01 00:01 after compaction 3"),
        (Delivery(3, 9, "partial", "d", (1, 3), 4, 60_000), "part 2, 4 of 4 missing after compaction 3"),
        (Delivery(3, 9, "waiting"), "not seen yet after compaction 3"),
        (Delivery(3, 9, "missing"), "not delivered after compaction 3"),
        (Delivery(3, 9, "missing", offered=1), "not delivered after compaction 3; part 1 comes with the next prompt"),
        (
            Delivery(3, 9, "missing", offered=1, tried=60_000),
            "not delivered after compaction 3; part 1 given with the prompt at 1970-01-01 00:01",
        ),
        (Delivery(0, -1, "given", "d", (1,), 1, 60_000), "handed out at 1970-01-01 00:01"),
    ],
)
def test_what_became_of_a_block_in_words(found: Delivery, words: str) -> None:
    assert describe(found, utc) == words


def test_the_newest_sessions_come_first_and_those_that_lack_their_block_with_them(tmp_path: Path) -> None:
    with opened() as store:
        for number in range(4):
            talk = Talk(f"5e551011-0000-4000-8000-00000000000{number}")
            talk.turn(number)
            stored = session_of(store, talk.write(tmp_path))
            leave_block(store, stored, utc, fresh=True)
            talk.compact()
            talk.agent("Done.")
            stored = session_of(store, talk.write(tmp_path))
            if number % 2:
                receive(store, stored, "d 1/1")
        assert blockfile.read(os.path.join(store.folder_of(stored), NEXT))[1]
        assert [found.state for _, found in recent_deliveries(store)] == ["whole", "missing", "whole", "missing"]
        assert [found.state for _, found in recent_deliveries(store, 1)] == ["whole", "missing"]
