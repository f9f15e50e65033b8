"""A session as plain files: every word is there, nothing foreign is touched, again only what changed is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsmem.core.errors import UsageError
from obsmem.core.ids import entry_id
from obsmem.core.mask import mask
from obsmem.harnesses.base import Source
from obsmem.tasks.discover import find_below
from obsmem.tasks.export_folder import MARK, export_folder
from obsmem.tasks.forget import forget_entry, forget_session
from obsmem.tasks.ingest import ingest
from tests.interfaces.place import DEMO
from tests.tasks.talk import FORK, SESSION, Talk, entries, fresh, opened, session_of, turns, utc
from tests.tasks.test_look import KEY


@pytest.mark.parametrize("harness", ["claude-code", "codex", "cursor", "opencode"])
def test_every_word_of_a_session_stands_in_its_folder(harness: str, tmp_path: Path) -> None:
    with opened() as store:
        for found in find_below(str(DEMO / harness)):
            ingest(store, found.harness, Source(*found.source))
        (stored,) = (one for one in store.archive.sessions() if one.session.role == "main")
        done = export_folder(store, stored, str(tmp_path / "out"), utc)
        pages = "\n".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*") if path.is_file())
        for entry in entries(store, stored):
            assert mask(entry.text) in pages
            assert f"[{entry_id(stored.session.handle, entry.seq)}]" in pages
        assert done.written == done.files > done.turns > 3
        assert str(tmp_path / "out") in done.pointer
        assert export_folder(store, stored, str(tmp_path / "out"), utc).written == 0


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    talk = turns(3)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        export_folder(store, stored, str(tmp_path / "out"), utc)
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "turns").iterdir()}
        talk.turn(7)
        session_of(store, talk.write(tmp_path))
        done = export_folder(store, fresh(store, stored), str(tmp_path / "out"), utc)
        assert (done.turns, done.written) == (4, 2), "the new turn, and the front page"
        assert all(path.stat().st_mtime_ns == time for path, time in before.items())


def test_what_was_forgotten_goes(tmp_path: Path) -> None:
    talk = turns(2)
    talk.run("make", "\n".join(f"row {number}" for number in range(3_000)))
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        export_folder(store, stored, str(tmp_path / "out"), utc)
        (output,) = (tmp_path / "out" / "outputs").iterdir()
        (tmp_path / "out" / "turns" / "mine.md").write_text("a note of the user's", encoding="utf-8")
        forget_entry(store, entry_id(stored.session.handle, int(output.stem)))
        export_folder(store, fresh(store, stored), str(tmp_path / "out"), utc)
        assert not output.exists() and (tmp_path / "out" / "turns" / "mine.md").exists()
        assert "row 2999" not in (tmp_path / "out" / "turns" / "0002.md").read_text(encoding="utf-8")


def test_long_outputs_stand_beside_and_secrets_nowhere(tmp_path: Path) -> None:
    talk = turns(1)
    output = "\n".join(f"row {number}" for number in range(3_000)) + f"\ntoken {KEY}\n```\nend"
    talk.run("make", output)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path))
        export_folder(store, stored, str(tmp_path / "out"), utc)
        (file,) = (tmp_path / "out" / "outputs").iterdir()
        text = file.read_text(encoding="utf-8")
        assert "row 2999" in text and text.rstrip().endswith("end")
        assert not any(KEY in path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*.*"))
        assert f"../outputs/{file.name}" in (tmp_path / "out" / "turns" / "0001.md").read_text(encoding="utf-8")


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "mine"
    foreign.mkdir()
    (foreign / "diary.txt").write_text("dear", encoding="utf-8")
    with opened() as store:
        stored = session_of(store, turns(1).write(tmp_path))
        other = session_of(store, turns(1, FORK).write(tmp_path, f"{FORK}.jsonl"))
        with pytest.raises(UsageError, match="not empty"):
            export_folder(store, stored, str(foreign), utc)
        assert [path.name for path in foreign.iterdir()] == ["diary.txt"]
        export_folder(store, stored, str(tmp_path / "out"), utc)
        with pytest.raises(UsageError, match="another session"):
            export_folder(store, other, str(tmp_path / "out"), utc)
        with pytest.raises(UsageError, match="cannot be used"):
            export_folder(store, stored, str(foreign / "diary.txt"), utc)
        assert (tmp_path / "out" / MARK).is_file()


def test_a_sub_agent_that_was_forgotten_goes(tmp_path: Path) -> None:
    agent = Talk()
    agent.user("Explore.")
    agent.run("ls", "found the lighthouse")
    for record in agent.records:
        record.update(isSidechain=True, agentId="a1b2c3d")
    with opened() as store:
        stored = session_of(store, turns(1).write(tmp_path))
        child = session_of(store, agent.write(tmp_path / SESSION / "subagents", "agent-a1b2c3d.jsonl"))
        out = tmp_path / "out"
        assert export_folder(store, stored, str(out), utc).subagents == 1
        below = out / "subagents" / child.session.handle
        assert any("lighthouse" in path.read_text(encoding="utf-8") for path in below.rglob("*.md"))
        mine = out / "subagents" / "mine.md"
        mine.write_text("a note of the user's", encoding="utf-8")
        forget_session(store, child)
        assert export_folder(store, fresh(store, stored), str(out), utc).subagents == 0
        assert not below.exists() and mine.exists()


def test_sub_agents_of_sub_agents_are_written_too(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, turns(1).write(tmp_path))
        made = []
        for name, words in (("a1", "found the lighthouse"), ("b2", "found the harbour"), ("c3", "found the reef")):
            agent = Talk()
            agent.user("Explore.")
            agent.run("ls", words)
            for record in agent.records:
                record.update(isSidechain=True, agentId=name)
            made.append(session_of(store, agent.write(tmp_path / SESSION / "subagents", f"agent-{name}.jsonl")))
        first, second, third = (one.session.handle for one in made)
        for child, parent in ((made[1], made[0]), (made[2], made[1])):
            store.archive.connection.execute("UPDATE sessions SET parent=? WHERE no=?", (parent.no, child.no))
        out = tmp_path / "out"
        assert export_folder(store, stored, str(out), utc).subagents == 3
        assert sorted(path.name for path in (out / "subagents").iterdir()) == sorted((first, second, third))
        pages = {name: (out / "subagents" / name / "README.md").read_text(encoding="utf-8") for name in (first, second)}
        assert f"(subagents/{first}/README.md)" in (out / "README.md").read_text(encoding="utf-8")
        assert second not in (out / "README.md").read_text(encoding="utf-8")
        assert f"(../{second}/README.md)" in pages[first] and f"(../{third}/README.md)" in pages[second]
        (page,) = (out / "subagents" / third / "turns").iterdir()
        assert "found the reef" in page.read_text(encoding="utf-8")
        assert export_folder(store, stored, str(out), utc).written == 0


@pytest.mark.parametrize("mark", [b"{", b"[]", b"\xff", b'{"session": 3}'])
def test_a_mark_that_cannot_be_read_is_not_ours(mark: bytes, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MARK).write_bytes(mark)
    with opened() as store:
        stored = session_of(store, turns(1).write(tmp_path))
        with pytest.raises(UsageError, match="another session"):
            export_folder(store, stored, str(tmp_path / "out"), utc)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [MARK]
