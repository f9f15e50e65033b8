"""Writing files so that a crash leaves the old content or the new, never half of it. Private by default.

Importable on the hook path: ``os`` only.
"""

from __future__ import annotations

import os

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
LARGEST_SMALL = 1 << 20  # bytes of a small file that are read


def make_folder(path: str) -> None:
    """Create a folder and its parents, readable by the user alone. An existing one is left as it is."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_folder(parent)
    try:
        os.mkdir(path, PRIVATE_FOLDER)
    except FileExistsError:
        pass


def write_atomic(path: str, data: bytes, mode: int = PRIVATE_FILE, *, durable: bool = True) -> None:
    """Replace a file's content in one step. ``durable`` waits until it is on the disk (about a millisecond)."""
    make_folder(os.path.dirname(path))
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise


def write_new(path: str, data: bytes, mode: int = PRIVATE_FILE) -> None:
    """Write a file that must not be there yet, whole or not at all. Raises FileExistsError."""
    beside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.new"
    write_atomic(beside, data, mode)
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: only there, somebody may come between
        if os.path.exists(path):
            raise FileExistsError(path) from None
        os.rename(beside, path)
    finally:
        remove(beside)


def made_once(path: str, data: bytes) -> bytes:
    """What stands in a small file, which is made with ``data`` where there is none: whoever comes first makes it for all.
    Raises OSError where it can be neither read nor made."""
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST_SMALL)
    except FileNotFoundError:
        pass
    try:
        write_new(path, data)
        return data
    except FileExistsError:
        return read_bytes(path)


def read_bytes(path: str, limit: int = LARGEST_SMALL) -> bytes:
    """Read up to ``limit`` bytes of a small file; empty where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def remove(path: str) -> None:
    """Delete a file; no matter if it is gone already."""
    try:
        os.unlink(path)
    except OSError:
        pass


def free_bytes(path: str) -> int:
    """Free space on the disk of a folder, in bytes; a large number where the platform does not tell."""
    try:
        import shutil

        return shutil.disk_usage(path).free
    except OSError:
        return 1 << 62
