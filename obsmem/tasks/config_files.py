"""A harness's config file as installing changes it: planned whole, written in one step, kept so that it can be given back.

Invariants: a file is never written that was not read in full and understood; what is not ours keeps every byte; before
a file changes, its bytes are in ``install/<harness>/`` of the data folder, beside a record of what was written, so that
uninstalling restores them, or (where somebody has edited the file since) takes out our entries alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from obsmem.core import jsonc, tomltables
from obsmem.core.errors import ConfigError, ObsmemError
from obsmem.system.files import PRIVATE_FILE, read_bytes, remove, write_atomic
from obsmem.system.launcher import calls, launcher_path, recall_path, server_path
from obsmem.system.paths import APP

FOLDER = "install"
RECORD = "record.json"
Records = dict[str, dict[str, Any]]
LIMIT = 16 << 20  # bytes; a config file that is larger is not one
STATUS_LINE = ("statusLine", "command")  # the one place where a value of ours may stand in place of the user's


# How harnesses write a rule about one tool of a server.
_RULE = re.compile(rf"mcp__{APP}__\w+|Mcp\({APP}:\w+\)")


def _form(path: str) -> Any:
    """What edits files of this kind: by the ending, TOML or JSON."""
    return tomltables if path.endswith(".toml") else jsonc


class Change(NamedTuple):
    """What is to become of one file. ``before`` is None where there is none now, ``base`` (the file without anything of
    ours) where there was none before we came. ``own`` is the user's command for the status line as it was written where
    ours stands now, '' where they had none."""

    path: str
    before: bytes | None
    after: bytes
    base: bytes | None
    is_recorded: bool
    own: str = ""

    @property
    def is_needed(self) -> bool:
        """False where the file is as it should be, and known to be ours."""
        return self.before != self.after or not self.is_recorded


def recognise_ours(home: str) -> Callable[[str], bool]:
    """What tells our entries from others: they name a launcher of this data folder, or are rules about our server's tools."""
    launchers = (launcher_path(home), recall_path(home), server_path(home))
    return lambda text: any(calls(text, one) for one in launchers) or _RULE.fullmatch(text) is not None


def read_config(path: str) -> bytes | None:
    """The bytes of a config file, None where there is none. Raises ConfigError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(LIMIT)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}). Nothing was changed there; mend that first."
        ) from error


def value_of(path: str) -> Any:
    """The value in a JSON config file; {} where there is none, or none that can be understood."""
    try:
        return jsonc.load(_decode(path, read_config(path) or b""))
    except (ConfigError, ValueError):
        return {}


def plan_change(home: str, harness: str, path: str, additions: Iterable[Mapping[str, Any]]) -> Change:
    """Work out a file with our entries in it. Raises ConfigError where the file is not understood."""
    path = os.path.realpath(path)
    is_ours = recognise_ours(home)
    before = read_config(path)
    record = records(home, harness).get(path)
    text = _decode(path, before or b"")
    additions = list(additions)
    try:
        form = _form(path)
        expected = form.count(_merged(path, "", additions), is_ours)
        if before is not None and form.count(text, is_ours) == expected and _merged(path, text, additions) == text:
            base = _base(home, harness, path, before, record, text, is_ours)
            return Change(path, before, before, base, record is not None)
        base = _base(home, harness, path, before, record, text, is_ours)
        own, start = _stand_in(path, _decode(path, base or b""), additions)
        after = _merged(path, start, additions)
        if form.count(after, is_ours) < expected:
            raise ValueError("something else has the name that our entry needs; rename or remove that")
    except ValueError as error:
        raise ConfigError(
            f"{path} is not what its harness reads ({error}). Nothing was changed; correct it first."
        ) from error
    return Change(path, before, after.encode("utf-8"), base, record is not None, own)


def _stand_in(path: str, text: str, additions: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """(the user's command for the status line as it is written, the text with ours in its place); ('', the text) where they
    have none, or ours is not to stand there."""
    key, name = STATUS_LINE
    ours = next((one[key][name] for one in additions if key in one), "")
    own = jsonc.string_at(text, STATUS_LINE) if ours and _form(path) is jsonc else ""
    return own, jsonc.with_string(text, STATUS_LINE, json.dumps(ours, ensure_ascii=False)) if own else text


def write_change(home: str, harness: str, change: Change) -> Records:
    """Keep the file's bytes, then write it; returns the records as they were. Raises ObsmemError; then nothing changed."""
    if read_config(change.path) != change.before:
        raise ObsmemError(f"{change.path} changed while it was being worked on. Nothing was written; run it again.")
    old = records(home, harness)
    folders = missing_folders(os.path.dirname(change.path))
    earlier = old.get(change.path, {})
    base = b"" if change.base is None else change.base
    backup = f"{_digest(base)[:16]}.bak"
    mode = _mode(change.path)
    entry = {
        "existed": change.base is not None,
        "backup": backup,
        "sha256_before": _digest(base),
        "sha256_after": _digest(change.after),
        "mode": mode,
        "folders": [*earlier.get("folders", []), *folders],
        **({"own": change.own} if change.own else {}),
    }
    try:
        write_atomic(os.path.join(_folder(home, harness), backup), base)
        _write_records(home, harness, {**old, change.path: entry})
        if change.before != change.after:
            _replace(change.path, change.after, mode)
    except OSError as error:
        remove_empty(folders)
        _restore_records(home, harness, old)
        raise ObsmemError(
            f"{change.path} cannot be written ({error.strerror}). Nothing was changed there; mend that and run it again."
        ) from error
    _restore_records(home, harness, records(home, harness))
    return old


def undo_change(home: str, harness: str, change: Change, old: Records) -> None:
    """Put back what stood there before ``write_change``, which returned ``old``."""
    if change.before is None:
        remove(change.path)
        remove_empty(records(home, harness).get(change.path, {}).get("folders", []))
    elif change.before != change.after:
        _replace(change.path, change.before, _mode(change.path))
    _restore_records(home, harness, old)


def take_back(home: str, harness: str, path: str) -> str:
    """Take everything of ours out of a file; returns what was done in a few words, '' for nothing. Raises ConfigError."""
    path = os.path.realpath(path)
    known = records(home, harness)
    record = known.get(path, {})
    now = read_config(path)
    if now is None:
        done = ""
    elif record and _digest(now) == record["sha256_after"]:
        done = _restore(home, harness, path, record)
    else:
        done = _cut(home, harness, path, now, record)
    if now is None or not os.path.exists(path):
        remove_empty(record.get("folders", []))
    if record:
        del known[path]
        _restore_records(home, harness, known)
    return done


def records(home: str, harness: str) -> Records:
    """Path -> what was written there for a harness."""
    return read_records(os.path.join(_folder(home, harness), RECORD))


def read_records(path: str) -> Records:
    """What a file of records holds; {} where there is none, or none that can be read."""
    try:
        value = json.loads(read_bytes(path, LIMIT) or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def write_records(path: str, known: Mapping[str, Any]) -> None:
    """Write a file of records, which goes where it would hold none."""
    if known:
        write_atomic(path, json.dumps(known, indent=1).encode("utf-8"))
    else:
        remove(path)


def _base(
    home: str,
    harness: str,
    path: str,
    now: bytes | None,
    record: Mapping[str, Any] | None,
    text: str,
    is_ours: Callable[[str], bool],
) -> bytes | None:
    """The file as it would be without us."""
    if now is None:
        return None
    if record and _digest(now) == record["sha256_after"] and (backup := _backup(home, harness, record)) is not None:
        return backup if record["existed"] else None
    if not _form(path).count(text, is_ours):
        return now
    rest = _without_ours(home, harness, path, text, record)
    return None if record and not record["existed"] and rest.strip() in ("{}", "") else rest.encode("utf-8")


def _without_ours(home: str, harness: str, path: str, text: str, record: Mapping[str, Any] | None) -> str:
    """A text without our entries; lists and objects that were there before us stay, even if they are empty."""
    backup = _backup(home, harness, record) if record else None
    form = _form(path)
    there = jsonc.string_at(text, STATUS_LINE) if record and record.get("own") else ""
    if record and there and recognise_ours(home)(str(jsonc.load(there))):
        text = jsonc.with_string(text, STATUS_LINE, record["own"])
    kept = jsonc.load(backup.decode("utf-8")) if backup and form is jsonc else None
    return str(form.take_out(text, recognise_ours(home), kept))


def _restore(home: str, harness: str, path: str, record: Mapping[str, Any]) -> str:
    if not record["existed"]:
        remove(path)
        return "removed, as it was not there before"
    backup = _backup(home, harness, record)
    if backup is None:
        return _cut(home, harness, path, read_config(path) or b"", {})
    _replace(path, backup, _mode(path))
    return "restored byte for byte"


def _cut(home: str, harness: str, path: str, now: bytes, record: Mapping[str, Any]) -> str:
    text = _decode(path, now)
    try:
        if not _form(path).count(text, recognise_ours(home)):
            return ""
        rest = _without_ours(home, harness, path, text, record)
    except ValueError as error:
        raise ConfigError(
            f"{path} is not understood ({error}). Take the entries with {home!r} out of it by hand."
        ) from error
    if record and not record["existed"] and rest.strip() in ("{}", ""):
        remove(path)
        return "removed, as nothing else is in it"
    _replace(path, rest.encode("utf-8"), _mode(path))
    return "edited since: only our entries were taken out" if record else "our entries were taken out"


def _backup(home: str, harness: str, record: Mapping[str, Any]) -> bytes | None:
    data = read_bytes(os.path.join(_folder(home, harness), record["backup"]), LIMIT)
    return data if _digest(data) == record["sha256_before"] else None


def _merged(path: str, text: str, additions: Iterable[Mapping[str, Any]]) -> str:
    form = _form(path)
    for addition in additions:
        text = form.merge(text, addition)
    return text


def _decode(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8. Nothing was changed; save it as UTF-8 first.") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _mode(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return PRIVATE_FILE


def _replace(path: str, data: bytes, mode: int) -> None:
    write_atomic(path, data, mode)
    if _mode(path) != mode:
        os.chmod(path, mode)  # the umask took something away


def _folder(home: str, harness: str) -> str:
    return os.path.join(home, FOLDER, harness)


def _write_records(home: str, harness: str, value: Mapping[str, Any]) -> None:
    write_records(os.path.join(_folder(home, harness), RECORD), value)


def _restore_records(home: str, harness: str, value: Mapping[str, Any]) -> None:
    """Write the records, or remove their folder where none are left; drop the backups that nothing names any more."""
    folder = _folder(home, harness)
    if value:
        _write_records(home, harness, value)
    wanted = {RECORD, *(one["backup"] for one in value.values())} if value else set()
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name not in wanted:
            remove(os.path.join(folder, name))
    if not value:
        remove_empty([os.path.dirname(folder), folder])


def missing_folders(folder: str) -> list[str]:
    """The folders that do not exist yet, the outermost first."""
    missing: list[str] = []
    while folder and not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def remove_empty(folders: Iterable[str]) -> None:
    """Remove those folders that are empty, the innermost first."""
    for folder in sorted(folders, key=len, reverse=True):
        try:
            os.rmdir(folder)
        except OSError:
            pass
