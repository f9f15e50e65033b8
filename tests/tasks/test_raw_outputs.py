"""Results that stand shortened in a transcript: the whole is what everybody reads, and it goes where the rest goes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from obsmem.core.errors import NotFound
from obsmem.core.ids import entry_id, raw_id
from obsmem.core.model import Entry
from obsmem.store.archive import StoredSession
from obsmem.store.archive_raw import add_raw, raws_of
from obsmem.system.paths import data_home, session_folder
from obsmem.system.raw_files import HALF_SECONDS, save_raw
from obsmem.system.shortening import FORGOTTEN_FILE
from obsmem.tasks.bundle import export_bundle
from obsmem.tasks.bundle_import import import_path
from obsmem.tasks.cards import cards_of
from obsmem.tasks.forget import apply_retention, forget_entry, forget_session
from obsmem.tasks.fsck import check
from obsmem.tasks.raw_outputs import take_journal
from obsmem.tasks.store import Store, open_store
from obsmem.tasks.whole_outputs import find_whole
from tests.tasks.talk import CLAUDE, SESSION, Talk, entries, fresh, opened, session_of, watch

PLANTED = "xylophonist"
RAW = f"collected 100 items\ntests/{PLANTED}.py::test_of_it PASSED\n" + "dots\n" * 900 + "== 100 passed in 1.2s =="
DAY = 86_400_000


def shortened(folder: Path, raw: str = RAW, talk: Talk | None = None) -> tuple[Path, str]:
    """(transcript, id) of a session with a result that a hook shortened."""
    conversation = talk or Talk()
    conversation.user("Run the tests and tell me how many there are.")
    call = f"toolu_{SESSION[-2:]}{conversation.number}"
    id_ = raw_id(CLAUDE, SESSION, call)
    path = folder / f"{SESSION}.jsonl"
    about = {
        "call": call,
        "at": 1_772_000_000_000,
        "rule": "pytest",
        "head": "pytest",
        "kept": 60,
        "folded": 900,
        "cwd": "/w/shop",
    }
    save_raw(session_folder(data_home(), CLAUDE, str(path), SESSION), id_, about, raw.encode())
    conversation.run("pytest -q", f"[… shortened …; id {id_}. Whole: `recall {id_}`]")
    conversation.agent("There are a hundred tests, and all of them pass.")
    return conversation.write(folder), id_


def result(store: Store, stored: StoredSession) -> Entry:
    """The entry of the result."""
    (found,) = [one for one in entries(store, stored) if one.kind == "tool_result"]
    return found


def waiting(path: Path) -> list[str]:
    folder = os.path.join(session_folder(data_home(), CLAUDE, str(path), SESSION), "raw")
    return os.listdir(folder) if os.path.isdir(folder) else []


def test_facts_and_notes_are_made_of_the_whole(tmp_path: Path) -> None:
    path, id_ = shortened(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        assert waiting(path) == []
        entry = result(store, stored)
        assert entry.text == RAW
        told = json.dumps([fact._asdict() for card in cards_of(store, stored) for fact in card.facts])
        assert "100 passed" in told
        assert id_ not in told
        watch(store, stored)
        assert any(entry_id(stored.session.handle, entry.seq) in one.note.entry_ids
                   for one in store.memory.notes(stored.session.handle))  # fmt: skip
        whole = find_whole(store, id_)
        assert (whole.data, whole.entry) == (RAW.encode(), entry_id(stored.session.handle, entry.seq))
        (saved,) = store.memory.reductions()
        assert (saved.id, saved.whole_bytes, saved.kept_bytes) == (id_, len(RAW), 60)
        assert check(store) == []


def test_a_hook_that_ended_before_it_answered_left_a_whole_result(tmp_path: Path) -> None:
    talk = Talk()
    shortened(tmp_path, talk=talk)
    talk.records[-2]["message"]["content"][0]["content"] = RAW
    path = talk.write(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        assert result(store, stored).text == RAW
        assert (waiting(path), raws_of(store.archive, stored.no), store.memory.reductions()) == ([], [], [])


def test_a_reading_that_was_killed_in_between_is_made_good_by_the_next(tmp_path: Path) -> None:
    path, id_ = shortened(tmp_path)
    with opened() as store:
        kept = path.read_bytes()
        path.write_bytes(b"".join(kept.split(b"\n")[:1]) + b"\n")
        stored = session_of(store, path)
        call = f"toolu_{SESSION[-2:]}1"
        add_raw(store.archive, stored, id_, call, RAW.encode())  # archived, tied to nothing, and still waiting
        path.write_bytes(kept)
        stored = session_of(store, path)
        assert result(store, stored).text == RAW
        assert waiting(path) == []
        assert len(raws_of(store.archive, stored.no)) == 1


def test_another_sessions_words_about_an_id_change_nothing(tmp_path: Path) -> None:
    path, id_ = shortened(tmp_path / "a")
    other = Talk("5e551011-0000-4000-8000-0000000000c9")
    other.user("What does it say?")
    other.run("recall it", f"it says: id {id_}.")
    with opened() as store:
        stored = session_of(store, other.write(tmp_path / "b"))
        assert result(store, stored).text == f"it says: id {id_}."
        assert waiting(path) == [id_]
        session_of(store, path)
        assert find_whole(store, id_).data == RAW.encode()


def test_a_fork_reads_the_whole_of_what_it_copied(tmp_path: Path) -> None:
    talk = Talk()
    path, _ = shortened(tmp_path, talk=talk)
    with opened() as store:
        session_of(store, path)
        fork = session_of(store, talk.fork().write(tmp_path))
        assert result(store, fork).text == RAW


def test_it_comes_along_in_a_bundle_and_is_recalled_by_its_id_there(tmp_path: Path) -> None:
    path, id_ = shortened(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        bundle = tmp_path / "one.omb"
        bundle.write_bytes(export_bundle(store, [stored]))
    with open_store(str(tmp_path / "other")) as other:
        import_path(other, str(bundle))
        there = other.archive.by_id(CLAUDE, SESSION)
        assert there is not None
        assert result(other, there).text == RAW
        assert find_whole(other, id_).data == RAW.encode()
        assert check(other) == []


def planted_in(store: Store) -> list[int]:
    """Segments that hold the planted word."""
    numbers = store.archive.connection.execute("SELECT no FROM segments WHERE length(data)>0").fetchall()
    return [number for (number,) in numbers if PLANTED.encode() in store.archive.segment(number)]


def test_a_forgotten_entry_takes_its_whole_output_along(tmp_path: Path) -> None:
    path, id_ = shortened(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        assert planted_in(store)
        forget_entry(store, entry_id(stored.session.handle, result(store, stored).seq))
        assert planted_in(store) == []
        assert store.memory.reductions() == []
        with pytest.raises(NotFound):
            find_whole(store, id_)


def test_a_forgotten_session_takes_what_waits_along_and_nothing_of_it_is_kept_again(tmp_path: Path) -> None:
    path, id_ = shortened(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        save_raw(store.folder_of(stored), "raw_0123456789", {"call": "toolu_x", "at": 1}, PLANTED.encode())
        forget_session(store, stored)
        assert waiting(path) == []
        assert planted_in(store) == []
        assert store.memory.reductions() == []
        assert os.path.exists(os.path.join(store.folder_of(stored), FORGOTTEN_FILE)), (
            "the hook leaves outputs alone then"
        )
        with pytest.raises(NotFound):
            find_whole(store, id_)


def test_retention_takes_the_whole_and_leaves_what_the_transcript_had(tmp_path: Path) -> None:
    path, id_ = shortened(tmp_path)
    with opened(retention_days=1, retention_keep="nothing") as store:
        stored = session_of(store, path)
        apply_retention(store, fresh(store, stored).updated_at + 2 * DAY)
        assert planted_in(store) == []
        assert check(store) == [], "what was removed on purpose is no fault"
        assert id_


def test_a_whole_output_that_is_not_what_was_printed_is_a_finding(tmp_path: Path) -> None:
    path, _ = shortened(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        ((source, _),) = raws_of(store.archive, stored.no)
        store.archive.connection.execute(
            "UPDATE sources SET state=? WHERE no=?", (json.dumps({"sha256": "0" * 64}), source.no)
        )
        (wrong,) = check(store)
        assert "not those that the tool printed" in wrong.what
        store.archive.connection.execute("DELETE FROM sides")
        assert any("is not in the archive" in one.what for one in check(store))


def test_what_a_killed_hook_left_half_written_goes_in_time(tmp_path: Path) -> None:
    path, _ = shortened(tmp_path)
    folder = session_folder(data_home(), CLAUDE, str(path), SESSION)
    for name, age in (("raw_0000000000.1.tmp", HALF_SECONDS * 2), ("raw_0000000000.2.tmp", 0.0)):
        half = Path(folder, "raw", name)
        half.write_bytes(b"half")
        os.utime(half, (time.time() - age,) * 2)
    with opened() as store:
        stored = session_of(store, path)
        take_journal(store, stored)
        assert waiting(path) == ["raw_0000000000.2.tmp"]
        assert check(store) == []
