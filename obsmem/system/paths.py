"""Where things lie: the data folder, and one small folder per session inside it.

Kept importable on the hook path: built-in modules only. Invariant: the same transcript always leads to the same
session folder, whoever asks (a hook with a payload, the maintainer with a path).
"""

from __future__ import annotations

import os
import sys

APP = "observational-memory"
HOME_VARIABLE = "OBSERVATIONAL_MEMORY_HOME"
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


# The CRC-32 of half a byte.
_NIBBLES = (
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
)  # fmt: skip


def crc32(data: bytes) -> int:
    """The CRC-32 of some bytes. Where it is a library of its own, loading ``binascii`` takes longer than this for any path."""
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        rest = (rest >> 4) ^ _NIBBLES[rest & 15]
        rest = (rest >> 4) ^ _NIBBLES[rest & 15]
    return rest ^ 0xFFFFFFFF


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
