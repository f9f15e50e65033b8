"""Finding sources below a path, whatever else lies there, and on a machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from obsmem.core.errors import UsageError
from obsmem.tasks.discover import find_below, find_on_machine, newest_on_machine
from tests.harnesses.cases import FIXTURES
from tests.harnesses.test_opencode_rows import Database
from tests.tasks.talk import CLAUDE, turns


def test_every_harness_is_recognised_in_one_folder(tmp_path: Path) -> None:
    for path in (FIXTURES.parent / "demo").glob("*/*.json*"):
        (tmp_path / "all" / path.parent.name).mkdir(parents=True)
        shutil.copy(path, tmp_path / "all" / path.parent.name)
    (tmp_path / "all" / "notes.txt").write_text("nothing of ours", encoding="utf-8")
    (tmp_path / "all" / "empty.jsonl").touch()
    found = {Path(one.source.path).parent.name: one.harness for one in find_below(str(tmp_path / "all"))}
    assert {name: harness for name, harness in found.items() if harness} == {
        name: name for name in ("claude-code", "codex", "cursor", "opencode")
    }


def test_a_named_harness_overrides_recognition(tmp_path: Path) -> None:
    path = turns(1).write(tmp_path)
    assert [one.harness for one in find_below(str(path), "codex")] == ["codex"]


def test_a_database_gives_one_source_a_session(tmp_path: Path) -> None:
    database = Database(tmp_path / "opencode.db")
    database.talk()
    database.session("ses_0ccc11112222ExampleSession3")
    found = list(find_below(str(database.path)))
    assert {one.source.session_id for one in found} >= {"ses_0aaa11112222ExampleSession1"}
    assert {one.harness for one in found} == {"opencode"}


def test_links_that_lead_up_are_not_followed(tmp_path: Path) -> None:
    turns(1).write(tmp_path / "p" / "deep")
    (tmp_path / "p" / "deep" / "up").symlink_to(tmp_path / "p")
    (tmp_path / "p" / "deep" / "self").symlink_to(tmp_path / "p" / "deep")
    (tmp_path / "p" / "broken").symlink_to(tmp_path / "nowhere")
    assert len(list(find_below(str(tmp_path / "p")))) == 1


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(find_below(str(tmp_path / "gone")))


def test_a_machine_is_searched_where_the_harnesses_keep_their_sessions(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert newest_on_machine(str(home)) is None
    path = turns(1).write(home / ".claude" / "projects" / "-w-shop")
    assert [(one.harness, one.source.path) for one in find_on_machine(str(home))] == [(CLAUDE, str(path))]
    assert list(find_on_machine(str(home), "codex")) == []
    newest = newest_on_machine(str(home))
    assert newest is not None
    assert newest.size == path.stat().st_size
    with pytest.raises(UsageError):
        list(find_on_machine(str(home), "unheard-of"))
