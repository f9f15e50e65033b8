"""Which workspace a working folder belongs to: its repository, shared by all worktrees and sub-folders, else itself.

No git process is started: ``.git`` is read as git writes it.
"""

from __future__ import annotations

import os


def workspace_of(cwd: str) -> str:
    """The real path of the git common folder above ``cwd``, else of ``cwd``; ``cwd`` unchanged if it does not exist."""
    if not cwd or not os.path.isdir(cwd):
        return cwd
    folder = os.path.realpath(cwd)
    while True:
        mark = os.path.join(folder, ".git")
        if os.path.isdir(mark):
            return mark
        if os.path.isfile(mark):
            return _common_folder(folder, mark) or mark
        parent = os.path.dirname(folder)
        if parent == folder:
            return os.path.realpath(cwd)
        folder = parent


def _common_folder(folder: str, mark: str) -> str:
    """Follow a worktree's ``.git`` file (``gitdir: …``) and its ``commondir``; '' where they lead nowhere."""
    try:
        with open(mark, encoding="utf-8") as file:
            text = file.read(4096)
        if not text.startswith("gitdir:"):
            return ""
        gitdir = os.path.join(folder, text[len("gitdir:") :].strip())
        common = os.path.join(gitdir, "commondir")
        if os.path.isfile(common):
            with open(common, encoding="utf-8") as file:
                gitdir = os.path.join(gitdir, file.read(4096).strip())
        return os.path.realpath(gitdir) if os.path.isdir(gitdir) else ""
    except (OSError, UnicodeDecodeError):
        return ""


def root_of(cwd: str) -> str:
    """The real path of the folder above ``cwd``, or ``cwd`` itself, that a repository or worktree begins in; of ``cwd`` where
    none does; '' if it does not exist."""
    if not cwd or not os.path.isdir(cwd):
        return ""
    start = folder = os.path.realpath(cwd)
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return start
        folder = parent
    return folder
