"""Finding what a person names, and what is left to show when something is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from obsmem.core.errors import NotFound, UsageError
from obsmem.system.paths import data_home
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import find, find_session, neighbours
from tests.tasks.talk import FORK, SESSION, Talk, entries, fresh, opened, session_of, turns, watch


def test_a_session_is_found_by_whatever_names_it(tmp_path: Path) -> None:
    with opened() as store:
        path = turns(1).write(tmp_path)
        stored = session_of(store, path)
        session_of(store, turns(1, FORK).write(tmp_path))
        for name in (SESSION, stored.session.handle, str(path), SESSION[-6:]):
            assert find_session(store, name).no == stored.no
        assert find_session(store).session.id == FORK
        with pytest.raises(NotFound, match="no-such"):
            find_session(store, "no-such")


def test_an_empty_store_says_what_to_do() -> None:
    with opened() as store, pytest.raises(NotFound, match="sync"):
        find_session(store)


def test_ids_are_found_by_any_unambiguous_beginning(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(2).write(tmp_path))
        watch(store, stored)
        notes = remember(store, stored).notes
        for note in notes:
            assert [one.id for one in find(store, f"[{note.id.upper()}]").notes] == [note.id]
        for odd in ("xyz", "abcd.1.2", "", "gg", "123"):
            with pytest.raises((UsageError, NotFound)):
                find(store, odd)
        with pytest.raises(NotFound):
            find(store, f"{stored.session.handle}.999")


def test_an_ambiguous_beginning_is_refused_with_the_candidates(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(3).write(tmp_path))
        watch(store, stored)
        first, second = [one.note.id for one in store.memory.notes(stored.session.handle)][:2]
        store.memory.connection.execute("PRAGMA foreign_keys=OFF")
        twin = first[:6] + ("0" if second[6] != "0" else "1") + second[7:]
        store.memory.connection.execute("UPDATE notes SET id=? WHERE id=?", (twin, second))
        with pytest.raises(UsageError, match=twin):
            find(store, first[:6])


def test_a_note_is_shown_when_its_archive_was_lost(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(1).write(tmp_path))
        watch(store, stored)
        note = remember(store, stored).notes[0]
    for name in ("archive.db", "index.db"):
        os.unlink(os.path.join(data_home(), name))
    with opened() as store:
        answer = find(store, note.id)
        assert [one.text for one in answer.notes] == [note.text]
        assert answer.status == "source_unavailable"


def test_neighbours_stand_around_an_entry_in_order(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(3).write(tmp_path))
        _, around = neighbours(store, f"{stored.session.handle}.5", 1)
        assert 5 in [one.seq for one in around]
        assert [one.seq for one in around] == sorted(one.seq for one in around)


@pytest.mark.parametrize("fate", ["deleted", "truncated", "rewritten", "rewound", "compacted", "forked", "moved"])
def test_every_cited_entry_resolves_to_its_exact_bytes_whatever_became_of_the_file(fate: str, tmp_path: Path) -> None:
    conversation = turns(3)
    path = conversation.write(tmp_path)
    with opened() as store:
        stored = session_of(store, path)
        watch(store, stored)
        handle = stored.session.handle
        lines = conversation.lines()
        cited = {name for one in store.memory.notes(handle) for name in one.note.entry_ids}
        texts = {f"{handle}.{one.seq}": one.text for one in entries(store, stored)}
        assert len(cited) == 12
        become(fate, conversation, path)
        if path.exists():
            session_of(store, path)
            watch(store, fresh(store, stored))
        for one in store.memory.notes(handle):
            assert find(store, one.note.id).status == "ok"
        for name in cited:
            row = store.archive.entry(stored.no, int(name.partition(".")[2]))
            assert row is not None
            assert store.archive.record(row) == lines[row.seq]
            (source,) = find(store, name).sources
            assert source.entry is not None
            assert source.entry.text == texts[name]


def become(fate: str, conversation: Talk, path: Path) -> None:
    """Do to a transcript what harnesses and people do."""
    lines = conversation.lines()
    if fate == "deleted":
        path.unlink()
    elif fate == "truncated":
        path.write_bytes(b"".join(lines[:3]))
    elif fate == "rewritten":
        path.write_bytes(b"".join(turns(2, SESSION).lines()[4:]) + b'{"type":"summary","summary":"x"}\n')
    elif fate == "rewound":
        conversation.head = conversation.records[0]["uuid"]
        conversation.turn(8)
        conversation.write(path.parent)
    elif fate == "compacted":
        conversation.compact()
        conversation.turn(8)
        conversation.write(path.parent)
    elif fate == "forked":
        conversation.fork().write(path.parent)
        with opened() as store:
            session_of(store, path.parent / f"{FORK}.jsonl")
        path.unlink()
    else:
        moved = path.parent / "elsewhere" / path.name
        moved.parent.mkdir()
        path.rename(moved)
        with opened() as store:
            session_of(store, moved)
