"""Where things lie: the data folder, and one small folder per session inside it.

Kept importable on the hook path: built-in modules only. Invariant: the same transcript always leads to the same
session folder, whoever asks (a hook with a payload, the maintainer with a path).
"""

from __future__ import annotations

import os
import sys
from binascii import crc32  # built in; hashlib would cost a hook 13 ms

APP = "observational-memory"
HOME_VARIABLE = "OBSERVATIONAL_MEMORY_HOME"
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def data_home() -> str:
    """The data folder. ``OBSERVATIONAL_MEMORY_HOME`` moves it; else the platform's place for user data.

    The rule is that of platformdirs' ``user_data_dir(APP, appauthor=False)`` (a test compares them), written out here
    because importing the package costs a hook more than all its other work.
    """
    given = os.environ.get(HOME_VARIABLE)
    if given:
        return os.path.abspath(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(os.path.expanduser("~"), "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(os.path.expanduser("~"), "Library", "Application Support")
    else:
        given = os.environ.get("XDG_DATA_HOME", "").strip()
        base = given or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, APP)


def safe_name(text: str, limit: int = 120) -> str:
    """A file name made of a text: other characters than ASCII letters, digits, ``._-`` become ``_``."""
    name = "".join(character if character in _SAFE else "_" for character in text)[-limit:]
    return name if name.strip(".") else "_" + name


def session_folder(home: str, harness: str, transcript: str, session_id: str) -> str:
    """The folder of a session's small files: the transcript's stem (in a database, the session id), and a checksum of
    the transcript's whole path, since two projects may have files of one name."""
    stem = transcript.replace("\\", "/").rsplit("/", 1)[-1] if transcript else ""
    is_database = stem.endswith((".db", ".vscdb"))
    if stem and not is_database:
        for ending in (".zst", ".jsonl", ".json", ".txt"):
            if stem.endswith(ending):
                stem = stem[: -len(ending)]
    else:
        stem = session_id
    mark = crc32(os.fsencode(transcript or session_id))
    return os.path.join(home, "sessions", harness, f"{safe_name(stem or 'unknown')}-{mark:08x}")
