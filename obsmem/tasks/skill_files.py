"""The files by which a user or an agent calls our commands by name in a harness: one for each skill.

Invariants: a file that somebody else made, or has edited since, is never written or removed; what is removed is exactly
what was made here.
"""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

from obsmem.core.errors import ObsmemError
from obsmem.harnesses import load
from obsmem.harnesses.skills import MARK, skills
from obsmem.system.files import read_bytes, remove, write_atomic
from obsmem.system.launcher import launcher_path, quoted, recall_path
from obsmem.tasks.config_files import Records, missing_folders, read_records, remove_empty, write_records

RECORD = "skills.json"
LIMIT = 1 << 20  # bytes
MODE = 0o644


class SkillFile(NamedTuple):
    """What is to become of one file. ``before`` is None where there is none; ``foreign`` says why it is left alone."""

    path: str
    before: bytes | None
    after: bytes
    foreign: str = ""
    is_recorded: bool = False

    @property
    def is_needed(self) -> bool:
        """False where it is as it should be, or not ours to change."""
        return not self.foreign and (self.before != self.after or not self.is_recorded)


def plan_skills(home: str, harness: str, user_home: str, project: str = "") -> tuple[SkillFile, ...]:
    """Work out the files of all skills for a harness, of the user or of a project; nothing is changed."""
    known = records(home)
    return tuple(_plan(known, path, content) for path, content in _wanted(home, harness, user_home, project))


def _wanted(home: str, harness: str, user_home: str, project: str) -> list[tuple[str, bytes]]:
    module = load(harness)
    found = []
    for skill in skills(quoted(launcher_path(home)), quoted(recall_path(home))):
        path, text = module.skill_file(user_home, project, skill)
        found.append(
            (os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)), text.encode("utf-8"))
        )
    return found


def _plan(known: Records, path: str, content: bytes) -> SkillFile:
    if not os.path.lexists(path):
        return SkillFile(path, None, content)
    now = read_bytes(path, LIMIT)
    record = known.get(path)
    if record and _digest(now) != record["sha256"]:
        return SkillFile(path, now, now, "it was edited since", True)
    if not record and (MARK.encode() not in now or os.path.islink(path)):
        return SkillFile(path, now, now, "somebody else's file has that name")
    return SkillFile(path, now, content, "", record is not None)


def write_skills(home: str, harness: str, files: tuple[SkillFile, ...]) -> None:
    """Write what was planned; where one cannot be written, those before it are taken back. Raises ObsmemError."""
    before = records(home)
    known = dict(before)
    done: list[SkillFile] = []
    try:
        for one in files:
            if one.is_needed:
                folders = [*known.get(one.path, {}).get("folders", []), *missing_folders(os.path.dirname(one.path))]
                known[one.path] = {"harness": harness, "sha256": _digest(one.after), "folders": folders}
                write_records(os.path.join(home, RECORD), known)
                done.append(one)
                write_atomic(one.path, one.after, MODE)
    except OSError as error:
        for one in done:
            if one.before is None:
                remove(one.path)
                remove_empty(known[one.path]["folders"])
            else:
                write_atomic(one.path, one.before, MODE)
        write_records(os.path.join(home, RECORD), before)
        raise ObsmemError(
            f"{error.filename or 'A command file'} cannot be written ({error.strerror}). No command of this harness was "
            "changed; mend that and run it again."
        ) from error


def remove_skills(home: str, harness: str, user_home: str, project: str = "") -> list[tuple[str, str]]:
    """Remove every skill of a harness; returns (file, what was done)."""
    known = records(home)
    done = []
    folders: set[str] = set()
    for path in [path for path, record in known.items() if record["harness"] == harness]:
        record = known.pop(path)
        if _digest(read_bytes(path, LIMIT)) == record["sha256"]:
            remove(path)
            done.append((path, "removed"))
        elif os.path.lexists(path):
            done.append((path, "left as it is: it was edited since"))
        folders.update(record["folders"])
    for where in dict.fromkeys(("", project)):  # where the records are lost, what is ours to the byte goes
        for path, content in _wanted(home, harness, user_home, where):
            if os.path.isfile(path) and read_bytes(path, LIMIT) == content:
                remove(path)
                done.append((path, "removed"))
    remove_empty(folders)
    write_records(os.path.join(home, RECORD), known)
    return done


def records(home: str) -> Records:
    """Path -> harness, hash, and the folders made for it, of each file."""
    return read_records(os.path.join(home, RECORD))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
