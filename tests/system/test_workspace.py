"""A repository, its sub-folders and its worktrees (made by git itself) are one workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from obsmem.system.workspace import workspace_of

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> None:
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "src" / "deep").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "src" / "deep" / "a.txt").touch()
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@needs_git
def test_worktrees_and_sub_folders_share_the_repositorys_workspace(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    own = workspace_of(str(repository))
    assert own == os.path.realpath(repository / ".git")
    for folder in (repository / "src" / "deep", tmp_path / "tree", tmp_path / "tree" / "src" / "deep"):
        assert workspace_of(str(folder)) == own


@needs_git
def test_a_submodule_is_a_workspace_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(repository), "inner")
    assert workspace_of(str(outer / "inner" / "src")) not in (workspace_of(str(outer)), workspace_of(str(repository)))


@needs_git
def test_two_repositories_are_two_workspaces(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repository), "clone")
    assert workspace_of(str(tmp_path / "clone")) != workspace_of(str(repository))


@needs_git
def test_a_link_to_a_repository_leads_to_it(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)
    assert workspace_of(str(tmp_path / "link" / "src")) == workspace_of(str(repository))


def test_a_plain_folder_is_its_own_and_a_missing_one_stays_as_it_is(tmp_path: Path) -> None:
    assert workspace_of(str(tmp_path)) == os.path.realpath(tmp_path)
    assert workspace_of("/no/such/place") == "/no/such/place"
    assert workspace_of("") == ""


@pytest.mark.parametrize("content", [b"", b"nonsense", b"gitdir: /no/where", b"\xff\xfe"])
def test_a_broken_git_file_is_no_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert workspace_of(str(tmp_path)) == str(Path(os.path.realpath(tmp_path)) / ".git")
