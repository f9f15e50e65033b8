"""Bundles: what leaves a store, what comes in, and that two stores which exchange them end alike."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from obsmem.core.errors import NotFound, UsageError
from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.system import config
from obsmem.tasks.bundle import export_bundle
from obsmem.tasks.bundle_import import import_path
from obsmem.tasks.fingerprint import fingerprint
from obsmem.tasks.forget import forget_session
from obsmem.tasks.fsck import check
from obsmem.tasks.ingest import ingest
from obsmem.tasks.remember import remember
from obsmem.tasks.remote import add_remote, pull, push, see_remote
from obsmem.tasks.resolve import find
from obsmem.tasks.store import Store, open_store
from tests.tasks.talk import CLAUDE, SESSION, Talk, entries, fresh, turns, watch

OTHER = "5e551011-0000-4000-8000-0000000000b7"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@contextmanager
def store_at(folder: Path) -> Iterator[Store]:
    loaded = config.override(config.load(), {"observe_after_tokens": 50}, "test")
    with open_store(str(folder), loaded) as store:
        yield store


def filled(store: Store, folder: Path, talk: Talk) -> StoredSession:
    done = ingest(store, CLAUDE, Source(str(talk.write(folder))))
    assert done.stored is not None
    watch(store, done.stored)
    return fresh(store, done.stored)


def bundle(store: Store, path: Path) -> Path:
    path.write_bytes(export_bundle(store, store.archive.sessions()))
    return path


def changed(path: Path, kind: str, **values: object) -> Path:
    """The bundle with other values in its first line of a kind."""
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).split(b"\n")[:-1]]
    next(line for line in lines if line["line"] == kind).update(values)
    path.write_bytes(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
    return path


def test_a_session_comes_whole_and_its_notes_lead_to_the_same_words(tmp_path: Path) -> None:
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        stored = filled(a, tmp_path / "t", turns(4))
        before = entries(a, stored)
        (tmp_path / "t" / f"{SESSION}.jsonl").unlink()
        done = import_path(b, str(bundle(a, tmp_path / "one.omb")))
        there = b.archive.by_id(CLAUDE, SESSION)
        assert there is not None and done.entries == len(before) and done.sessions == 1
        assert [one.text for one in entries(b, there)] == [one.text for one in before]
        note = remember(a, stored).notes[0]
        assert note in remember(b, there).notes
        assert [s.entry.text for s in find(b, note.id).sources if s.entry] == [
            s.entry.text for s in find(a, note.id).sources if s.entry
        ]
        assert b.memory.covered_to(there.session.handle) == a.memory.covered_to(stored.session.handle)
        assert check(b) == []


def test_importing_twice_changes_nothing_and_equal_content_is_equal_bytes(tmp_path: Path) -> None:
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        filled(a, tmp_path / "t", turns(3))
        path = bundle(a, tmp_path / "one.omb")
        assert export_bundle(a, a.archive.sessions()) == path.read_bytes()
        import_path(b, str(path))
        first = fingerprint(b)
        again = import_path(b, str(path))
        assert (again.sessions, again.entries, again.memory) == (0, 0, 0)
        assert fingerprint(b) == first == fingerprint(a)


def test_two_stores_that_went_on_apart_end_alike(tmp_path: Path) -> None:
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        filled(a, tmp_path / "ta", turns(3))
        import_path(b, str(bundle(a, tmp_path / "first.omb")))
        longer = turns(6)
        filled(a, tmp_path / "ta", longer)
        branch = turns(3)
        branch.user("Rather keep number_2 as it is, and write docs/other.md instead.")
        branch.agent("Wrote docs/other.md: it says why number_2 stays.")
        filled(b, tmp_path / "tb", branch)
        filled(b, tmp_path / "tb", turns(2, OTHER))
        assert fingerprint(a) != fingerprint(b)
        import_path(b, str(bundle(a, tmp_path / "a.omb")))
        import_path(a, str(bundle(b, tmp_path / "b.omb")))
        assert fingerprint(a) == fingerprint(b)
        stored = a.archive.by_id(CLAUDE, SESSION)
        assert stored is not None
        texts = {one.text for one in entries(a, stored)}
        assert any("docs/other.md" in text for text in texts) and any("number_5" in text for text in texts)
        assert check(a) == [] and check(b) == []


def test_a_secret_does_not_leave_and_its_record_is_still_known_again(tmp_path: Path) -> None:
    talk = turns(2)
    talk.user(f"The token is {TOKEN}, use it for the release.")
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        filled(a, tmp_path / "t", talk)
        path = bundle(a, tmp_path / "one.omb")
        assert TOKEN.encode() not in gzip.decompress(path.read_bytes())
        import_path(b, str(path))
        back = import_path(a, str(bundle(b, tmp_path / "back.omb")))
        assert back.entries == 0 and fingerprint(a) == fingerprint(b)
        raw = export_bundle(a, a.archive.sessions(), raw=True)
        assert TOKEN.encode() in gzip.decompress(raw)


def test_a_transcript_that_appears_here_later_gives_no_second_entries(tmp_path: Path) -> None:
    talk = turns(2)
    talk.user(f"The token is {TOKEN}, use it for the release.")
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        stored = filled(a, tmp_path / "t", talk)
        import_path(b, str(bundle(a, tmp_path / "one.omb")))
        talk.agent("Released with it.")
        there = filled(b, tmp_path / "here", talk)
        texts = [one.text for one in entries(b, there)]
        assert texts == [*(one.text for one in entries(a, stored)), "Released with it."]
        assert all(one.active for one in entries(b, there)) and check(b) == []


def test_entry_ids_follow_the_handle_that_the_session_has_here(tmp_path: Path) -> None:
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        stored = filled(a, tmp_path / "t", turns(3))
        # The handle is taken here, as it would be by another session of a colliding name.
        b.archive.connection.execute("INSERT INTO tombstones VALUES(?, 0)", (f"handle:{stored.session.handle}",))
        import_path(b, str(bundle(a, tmp_path / "one.omb")))
        there = b.archive.by_id(CLAUDE, SESSION)
        assert there is not None and there.session.handle != stored.session.handle
        notes = b.memory.notes(there.session.handle)
        assert notes and all(
            name.startswith(there.session.handle + ".") for one in notes for name in one.note.entry_ids
        )
        assert fingerprint(a) == fingerprint(b) and check(b) == []


def test_what_was_forgotten_here_does_not_come_back(tmp_path: Path) -> None:
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        filled(a, tmp_path / "t", turns(2))
        path = bundle(a, tmp_path / "one.omb")
        import_path(b, str(path))
        there = b.archive.by_id(CLAUDE, SESSION)
        assert there is not None
        forget_session(b, there)
        assert import_path(b, str(path)).left_out and b.archive.sessions() == []


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        ("manifest", {"format": 99}, "newer version"),
        ("session", {"harness": 7}, "not as it must be"),
        ("note", {"entries": ["../../etc"]}, "not as it must be"),
        ("record", {"sha256": "short"}, "not as it must be"),
    ],
)
def test_a_bundle_that_is_off_is_refused_before_anything_is_written(
    tmp_path: Path, kind: str, values: dict[str, object], said: str
) -> None:
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        filled(a, tmp_path / "t", turns(2))
        path = changed(bundle(a, tmp_path / "one.omb"), kind, **values)
        with pytest.raises(UsageError, match=said):
            import_path(b, str(path))
        assert b.archive.sessions() == []


def test_a_bundle_that_breaks_off_or_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        filled(a, tmp_path / "t", turns(2))
        path = bundle(a, tmp_path / "one.omb")
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(UsageError):
            import_path(b, str(path))
        path.write_bytes(gzip.compress(b" " * (300 << 20)))
        with pytest.raises(UsageError, match="unfolds"):
            import_path(b, str(path))
        assert b.archive.sessions() == []


def test_machines_exchange_sessions_through_a_repository(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True, timeout=60)
    with store_at(tmp_path / "a") as a, store_at(tmp_path / "b") as b:
        with pytest.raises(NotFound):
            push(a, [])
        filled(a, tmp_path / "ta", turns(2))
        filled(b, tmp_path / "tb", turns(3, OTHER))
        for store in (a, b):
            add_remote(store, str(bare))
        assert push(a, a.archive.sessions()).changed == 1
        assert push(b, b.archive.sessions()).changed == 1  # after the other's, without a conflict
        assert push(a, a.archive.sessions()).changed == 0
        assert pull(a).sessions == 1 and pull(b).sessions == 1
        assert fingerprint(a) == fingerprint(b) and len(a.archive.sessions()) == 2
        assert len(see_remote(a).bundles) == 2
        assert pull(a)[:3] == (0, 0, 0)


def test_an_address_that_git_would_take_for_a_program_is_refused(tmp_path: Path) -> None:
    with store_at(tmp_path / "a") as a:
        for url in ("ext::sh -c id", "--upload-pack=id", ""):
            with pytest.raises(UsageError):
                add_remote(a, url)
