"""Words that later ones of the same human seem to replace bear a mark wherever they are shown, and are shown all the same."""

from __future__ import annotations

from pathlib import Path

from obsmem.core.clock import utc_minute
from obsmem.core.finds import Query
from obsmem.memory.recall import as_value, render
from obsmem.tasks.deliver import make_block
from obsmem.tasks.resolve import find
from obsmem.tasks.search import search
from tests.tasks.talk import Talk, opened, session_of, watch

OLD = "For anything on the staging port, 8091 it is."
NEW = "Staging port: 9090 from Monday."


def talk() -> Talk:
    """An old word, work, a new one on the same, and one on another matter."""
    told = Talk()
    told.user(OLD)
    told.run("make", "ok")
    told.agent("Built.")
    told.user("The audit path is var/audit.")
    told.agent("Noted.")
    told.user(NEW)
    told.agent("Noted, too.")
    told.user("Go on with the parser.")
    return told


def test_a_search_and_a_recall_of_old_words_name_the_later_ones(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, talk().write(tmp_path))
        watch(store, stored)
        handle = stored.session.handle
        hits = {hit.snippet: hit for hit in search(store, Query("staging port", kinds=("user",))).hits}
        later = f'[later on the same: {next(hit.id for hit in hits.values() if "9090" in hit.snippet)}: "{NEW}"]'
        assert hits[OLD].later == later and hits[NEW].later == ""
        assert all(hit.later == "" for hit in search(store, Query("audit path", kinds=("user",))).hits)
        found = find(store, hits[OLD].id)
        assert later in render(found).split("\n")[0] and OLD in render(found)
        assert as_value(found)["sources"][0]["later"] == later
        assert "later" not in render(find(store, hits[NEW].id))
        note = next(one.note for one in store.memory.notes(handle) if "8091" in one.note.text)
        assert later in render(find(store, note.id))
        noted = search(store, Query("8091", kinds=("note",))).hits
        assert [hit.later for hit in noted if hit.id == note.id] == [later]


def test_the_block_shows_both_and_which_is_the_later(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, talk().write(tmp_path))
        watch(store, stored)
        block = "\n".join(make_block(store, stored, utc_minute).parts)
        (old,) = [line for line in block.split("\n") if "8091" in line]
        assert "[later on the same: " in old and NEW in old
        assert [line for line in block.split("\n") if "audit" in line and "later" in line] == []
