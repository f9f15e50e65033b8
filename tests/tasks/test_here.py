"""Where somebody asks from: only the harness itself says which session runs there."""

from __future__ import annotations

import subprocess
from pathlib import Path

from obsmem.tasks.here import find_here, live_from
from tests.tasks.talk import opened, session_of, watch
from tests.tasks.test_observe import long_talk


def test_the_session_is_the_one_that_the_environment_names(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, long_talk(2).write(tmp_path))
        watch(store, stored)
        named = {"CLAUDE_CODE_SESSION_ID": stored.session.id}
        assert find_here(store, str(tmp_path), named).session == store.archive.by_handle(stored.session.handle)
        assert find_here(store, str(tmp_path), {}, stored.session.id).session is not None
        assert find_here(store, str(tmp_path), {"CLAUDE_CODE_SESSION_ID": "another"}).session is None
        assert find_here(store, str(tmp_path), {}).session is None, "the newest one is not taken for it"
        assert live_from(store, stored) == 0, "it was never compacted"


def test_a_folder_of_a_repository_belongs_to_its_workspace(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "src").mkdir()
    with opened() as store:
        assert find_here(store, str(tmp_path / "src"), {}).workspace == str((tmp_path / ".git").resolve())
