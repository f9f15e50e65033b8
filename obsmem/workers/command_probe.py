"""What an installed program can do: asked once for each version, then kept in the data folder.

Invariant: what is kept counts for exactly the file that was asked (its path, time and size); a version that lacks a
lock is refused, and nothing that it lacks is passed over.
"""

from __future__ import annotations

import json
import os
import re
from binascii import crc32
from collections.abc import Mapping
from typing import Any, NamedTuple

from obsmem.core.errors import WorkerError
from obsmem.system.files import read_bytes, remove, write_atomic
from obsmem.system.paths import data_home
from obsmem.workers.command_presets import Preset
from obsmem.workers.command_process import open_folder, run

PROBE_SECONDS = 60.0
PROBE_LIMIT = 8 << 20  # bytes; a list of models with all their texts is more than a megabyte
FOLDER = "workers"
_FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")


class Abilities(NamedTuple):
    """What was found: the version, all flags of its help, those of ours that it lacks, and the preset's own facts."""

    version: str
    flags: frozenset[str]
    dropped: tuple[str, ...]
    facts: Mapping[str, Any]


def abilities(preset: Preset, name: str, program: str, environment: Mapping[str, str]) -> Abilities:
    """What the program at this path can do. Raises WorkerError (fault ``settings``) where it cannot be locked."""
    real = os.path.realpath(program)
    stat = os.stat(real)
    key = [real, stat.st_mtime_ns, stat.st_size]
    path = _file(preset, program)
    kept = _read(path)
    if kept.get("key") != key:
        kept = {"key": key, **_ask(preset, name, program, environment)}
        write_atomic(path, json.dumps(kept).encode(), durable=False)
    flags = frozenset(kept["flags"])
    missing = [flag for flag in preset.LOCKS if flag not in flags]
    if missing:
        raise WorkerError(
            f"The worker {name} cannot be locked down: version {kept['version']} of {preset.PROGRAM} does not know "
            f"{', '.join(missing)}. Update that program, or name another worker.",
            fault="settings",
        )
    return Abilities(kept["version"], flags, tuple(kept["dropped"]), kept["facts"])


def forget(preset: Preset, program: str) -> None:
    """Ask again next time: what was kept may be of another version, behind a name that is the same."""
    remove(_file(preset, program))


def _file(preset: Preset, program: str) -> str:
    mark = crc32(os.fsencode(os.path.realpath(program)))
    return os.path.join(data_home(), FOLDER, f"{preset.PROGRAM}-{mark:08x}.json")


def _read(path: str) -> dict[str, Any]:
    try:
        kept = json.loads(read_bytes(path, PROBE_LIMIT))
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) and {"version", "flags", "dropped", "facts"} <= kept.keys() else {}


def _ask(preset: Preset, name: str, program: str, environment: Mapping[str, str]) -> dict[str, Any]:
    def say(*arguments: str) -> str:
        with open_folder() as folder:
            inside = {**environment, "TMPDIR": folder.temporary}
            preset.confine(folder, inside, environment)
            folder.write("prompt", "")
            try:
                ended = run([program, *arguments], folder, inside, PROBE_SECONDS, PROBE_LIMIT)
            except OSError as error:
                raise _unasked(name, preset, arguments, type(error).__name__) from error
            if ended.status != 0:
                raise _unasked(name, preset, arguments, ended.why or f"status {ended.status}")
            # Some print their help on the other stream where nobody sits at a terminal.
            return folder.read("stdout", PROBE_LIMIT) or folder.read("stderr", PROBE_LIMIT)

    found = _VERSION.search(say("--version"))
    flags = sorted(set(_FLAG.findall(say(*preset.HELP))))
    dropped = [flag for flag in preset.OPTIONAL if flag not in flags]
    lacks_lock = any(flag not in flags for flag in preset.LOCKS)
    facts = {} if lacks_lock else preset.facts(say)
    return {"version": found[0] if found else "", "flags": flags, "dropped": dropped, "facts": facts}


def _unasked(name: str, preset: Preset, arguments: tuple[str, ...], why: str) -> WorkerError:
    return WorkerError(
        f"The worker {name} cannot be locked down: '{preset.PROGRAM} {' '.join(arguments)}' failed ({why}), so that "
        "nobody knows what it can do. Update that program, or name another worker.",
        fault="settings",
    )
