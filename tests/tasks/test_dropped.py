"""Whether a note was dropped is the same whether all notes of its session are read or only those that say the same."""

from __future__ import annotations

from pathlib import Path

from obsmem.core.ids import content_id, entry_id
from obsmem.core.model import Note
from obsmem.harnesses.base import Source
from obsmem.store.memory import WorkerCall
from obsmem.system import config
from obsmem.tasks.ingest import ingest
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import find
from obsmem.tasks.store import open_store
from tests.tasks.talk import CLAUDE, turns


def test_dropped_notes_are_told_without_the_others(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "home"), config.defaults()) as store:
        stored = ingest(store, CLAUDE, Source(str(turns(6).write(tmp_path)))).stored
        assert stored is not None
        handle = stored.session.handle
        call = WorkerCall(handle, "observe", "test", 0, 0, stored.last_seq, "ok")
        made = []
        for seq, text in enumerate(("The price is 3.", "The price is 3.", "The price is 4.", "It's 'quoted', 100%.")):
            names = (entry_id(handle, seq),)
            made.append(Note(content_id(text, names), text, seq, "medium", names, "agent", "verified", 8))
        assert store.memory.commit_stretch(call, -1, 0, stored.last_seq, "", made)
        store.memory.commit_drops(call, [made[1].id, made[3].id], "done", stored.last_seq)
        everything = remember(store, stored).dropped
        assert everything == {made[0].id, made[1].id, made[3].id}  # equal texts go together
        for note in made:
            only = remember(store, stored, texts=[note.text])
            assert (note.id in only.dropped) == (note.id in everything)
            assert {one.text for one in only.notes} <= {note.text}
            assert set(find(store, note.id).dropped) == {note.id} & everything
        assert remember(store, stored, texts=[]).notes == ()
