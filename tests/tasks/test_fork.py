"""Forks that this program writes: every direction reads back, nothing is observed twice, citations lead to the parent."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from obsmem.core.clock import utc_minute
from obsmem.core.errors import NotFound, UsageError
from obsmem.core.tokens import estimate
from obsmem.core.turns import ToolUse
from obsmem.harnesses import REGISTRY, load, recognise
from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import seq_of
from obsmem.tasks.canonical import conversation
from obsmem.tasks.deliver import make_block
from obsmem.tasks.discover import find_below
from obsmem.tasks.entries import read_entries
from obsmem.tasks.forget import forget_entry, forget_session
from obsmem.tasks.fork import Fork, Forked, fork
from obsmem.tasks.fork_check import read_back
from obsmem.tasks.ingest import ingest
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import find
from obsmem.tasks.store import Store, open_store
from tests.harnesses.cases import SHARED
from tests.tasks.talk import FORK, fresh, session_of, turns, utc, watch

ROOT = Path(__file__).resolve().parents[2]
DEMO = sorted(path for path in (ROOT / "fixtures" / "demo").glob("*/*") if path.is_file())
PAIRS = [(path, target) for path in DEMO for target in REGISTRY if target != "cursor" or path.parent.name != "cursor"]
REAL = sorted(path for path in (SHARED / "transcripts").rglob("*.jsonl") if 50_000 < path.stat().st_size < 3_000_000)[
    :8
]


@pytest.fixture(autouse=True)
def _no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of a harness is found: what is written stays as it was written."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "OPENCODE_DB"):
        monkeypatch.delenv(name, raising=False)


def read(store: Store, path: Path) -> StoredSession:
    (found,) = [one for one in find_below(str(path)) if one.harness]
    stored = ingest(store, found.harness, found.source, final=True).stored
    assert stored is not None
    return stored


def make(store: Store, stored: StoredSession, target: str, folder: Path, **more: object) -> Forked:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    wish = Fork(target, folder=str(project), **more)  # type: ignore[arg-type]
    return fork(store, stored, wish, utc_minute, str(folder / "home"))


def taken_over(store: Store, done: Forked) -> StoredSession:
    """The fork read into the store; where the harness must import it first, from the file to import."""
    assert done.written is not None and done.session is not None
    path = done.written.path
    return session_of(store, Path(path)) if path.endswith(".jsonl") else read(store, Path(path))


@pytest.mark.parametrize(("path", "target"), PAIRS, ids=[f"{path.parent.name}-to-{target}" for path, target in PAIRS])
def test_every_direction_holds_what_was_said_and_each_call_has_its_result(
    path: Path, target: str, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "store")) as store:
        parent = read(store, path)
        before = [tuple(row) for row in store.archive.entries(parent.no)]
        done = make(store, parent, target, tmp_path)
        assert done.fitted.kept == done.fitted.whole
        assert done.written is not None
        text = Path(done.written.path).read_text(encoding="utf-8")
        assert done.draft.turns[0].prompt[0].text.split("\n")[0][:40] in text
        assert [tuple(row) for row in store.archive.entries(parent.no)] == before
        if target == "cursor":
            assert done.session is None
            return
        assert recognise(done.written.path, text.encode()[:4096]) == target
        source = Source(done.written.path)
        assert read_back(target, source, done.written.session, done.draft) == ""
        child = read(store, Path(done.written.path))
        assert child.no == done.session.no if done.session else False
        assert child.session.parent == (parent.session.handle, parent.last_seq)
        rows = list(store.archive.entries(child.no))
        assert all(row.copied for row in rows)
        said = [row for row in rows if row.speaker in ("human", "agent", "tool")]
        aliases = [seq_of(row.alias) for row in said if row.alias is not None]
        steps = [step for turn in done.draft.turns for step in turn.steps]
        results = [step for step in steps if isinstance(step, ToolUse) and step.result_mark]
        assert len(aliases) == sum(len(turn.prompt) for turn in done.draft.turns) + len(steps) + len(results)
        assert {session for session, _ in aliases} == {parent.no}
        assert list(store.archive.observable(child.no, 0)) == []
        again = conversation(store, child)
        assert [len(turn.steps) for turn in again] == [len(turn.steps) for turn in done.draft.turns]


@pytest.mark.skipif(not REAL, reason="the folder of real transcripts is not beside the project")
@pytest.mark.parametrize("path", REAL, ids=[path.stem[:24] for path in REAL])
@pytest.mark.parametrize("target", [name for name in REGISTRY if name != "cursor"])
def test_real_sessions_fit_the_budget_and_read_back(path: Path, target: str, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    with open_store(str(tmp_path / "store")) as store:
        try:
            parent = read(store, copy)
            done = make(store, parent, target, tmp_path, budget=20_000)
        except (UsageError, ValueError, AssertionError):
            if conversation(store, store.archive.sessions()[0]) if store.archive.sessions() else []:
                raise
            pytest.skip("nothing was said in it")
        child = taken_over(store, done)
        entries = read_entries(store, child, store.archive.entries(child.no))
        assert sum(estimate(entry.text) for entry in entries) <= 20_000
        assert done.fitted.tokens <= 20_000
        if done.fitted.kept.turns < done.fitted.whole.turns:
            assert "are left out" in done.draft.preface


def test_notes_and_recall_come_along_and_what_follows_is_new(tmp_path: Path) -> None:
    talk = turns(3)
    with open_store(str(tmp_path / "store")) as store:
        parent = session_of(store, talk.write(tmp_path))
        watch(store, parent)
        known = [note.id for note in remember(store, fresh(store, parent)).notes]
        done = make(store, parent, "claude-code", tmp_path)
        assert done.session is not None and done.written is not None
        child = done.session
        assert [note.id for note in remember(store, child).notes] == known
        assert known[0][:7] in "\n".join(make_block(store, child, utc).parts)
        assert find(store, known[0]).sources[0].entry is not None
        assert watch(store, child).notes == 0
        other = turns(1, done.written.session)
        with open(done.written.path, "ab") as file:
            file.write(b"".join(other.lines()))
        child = session_of(store, Path(done.written.path))
        rows = list(store.archive.observable(child.no, 0))
        assert len(rows) == 4
        assert watch(store, child).notes > 0


def test_a_store_made_anew_knows_the_fork_again_whichever_is_read_first(tmp_path: Path) -> None:
    path = turns(3).write(tmp_path)
    with open_store(str(tmp_path / "store")) as store:
        done = make(store, session_of(store, path), "codex", tmp_path)
    assert done.written is not None
    with open_store(str(tmp_path / "anew")) as store:
        child = read(store, Path(done.written.path))
        assert child.session.parent is not None
        parent = store.archive.by_handle(child.session.parent[0])
        assert parent.session.transcript == str(path)
        assert child.session.parent[1] == parent.last_seq
        assert all(row.copied for row in store.archive.entries(child.no))
        assert store.archive.copies_of(child.no)


def test_a_fork_whose_parent_is_nowhere_is_a_session_of_its_own(tmp_path: Path) -> None:
    path = turns(2).write(tmp_path)
    with open_store(str(tmp_path / "store")) as store:
        done = make(store, session_of(store, path), "codex", tmp_path)
    path.unlink()
    assert done.written is not None
    with open_store(str(tmp_path / "anew")) as store:
        child = read(store, Path(done.written.path))
        assert child.session.parent is None
        assert len(list(store.archive.observable(child.no, 0))) == 8


def test_a_fork_ends_at_the_entry_that_is_named(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store")) as store:
        parent = session_of(store, turns(3).write(tmp_path))
        handle = parent.session.handle
        done = make(store, parent, "claude-code", tmp_path, at=f"{handle}.5")
        assert done.fitted.whole.turns == 2
        assert done.draft.closing
        assert done.session is not None
        assert done.session.session.parent == (handle, 5)
        text = Path(done.written.path).read_text(encoding="utf-8") if done.written else ""
        assert "number_1" in text
        assert "number_2" not in text
        with pytest.raises((UsageError, NotFound)):
            make(store, parent, "claude-code", tmp_path, at="zzzz.1")


def test_secrets_do_not_leave(tmp_path: Path) -> None:
    talk = turns(1)
    secret = "ghp_" + hashlib.sha256(b"x").hexdigest()[:36]
    talk.user(f"The token is {secret}, use it.")
    talk.run(f"curl -H 'Authorization: Bearer {secret}' https://api.example.com", secret)
    talk.agent("Done.")
    with open_store(str(tmp_path / "store")) as store:
        parent = session_of(store, talk.write(tmp_path))
        for target in REGISTRY:
            done = make(store, parent, target, tmp_path)
            assert done.written is not None
            assert secret not in Path(done.written.path).read_text(encoding="utf-8")


def test_long_outputs_are_clipped_and_say_where_the_rest_is(tmp_path: Path) -> None:
    talk = turns(1)
    talk.run("cat big", "word " * 20_000)
    talk.agent("It is big.")
    with open_store(str(tmp_path / "store")) as store:
        parent = session_of(store, talk.write(tmp_path))
        done = make(store, parent, "codex", tmp_path)
        assert done.fitted.clipped == 1
        text = Path(done.written.path).read_text(encoding="utf-8") if done.written else ""
        assert f"{parent.session.handle}.5" in text
        assert "characters left out here" in text
        assert len(text) < 60_000


def test_forgetting_the_parent_leaves_the_fork_alone_and_a_forgotten_entry_goes_from_both(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store")) as store:
        parent = session_of(store, turns(2).write(tmp_path))
        child = make(store, parent, "codex", tmp_path).session
        assert child is not None
        count = len(list(store.archive.entries(child.no)))
        gone = forget_entry(store, f"{parent.session.handle}.0")
        assert gone.entries == 2
        assert len(list(store.archive.entries(child.no))) == count - 1
        forget_session(store, fresh(store, parent))
        left = store.archive.by_handle(child.session.handle)
        assert left.session.parent is None
        assert len(list(store.archive.observable(left.no, 0))) == 0


@pytest.mark.parametrize("target", ["cursor", "opencode"])
def test_what_waits_to_be_taken_over_goes_with_what_is_forgotten(target: str, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store")) as store:
        stored = session_of(store, turns(6).write(tmp_path))
        other = session_of(store, turns(6, FORK).write(tmp_path, f"{FORK}.jsonl"))
        for one in (stored, other):
            make(store, one, target, tmp_path)
        waiting = Path(store.home, "forks")
        assert len(list(waiting.iterdir())) == 2
        forget_session(store, stored)
        (left,) = waiting.iterdir()
        assert left.name.startswith(f"{other.session.handle}-")


def test_nothing_is_ever_written_over(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store")) as store:
        parent = session_of(store, turns(1).write(tmp_path))
        paths = set()
        for _ in range(3):
            done = make(store, parent, "claude-code", tmp_path)
            assert done.written is not None
            paths.add(done.written.path)
        assert len(paths) == 3
        assert all(load("claude-code").recognise(path, Path(path).read_bytes()) for path in paths)
