"""A closed world for every test: its own home and data folders, no real agent program, no network but this machine.

The guard is an audit hook, so that it holds however a test or the code under it starts a program or opens a
connection. Child processes find shims in place of the agents' programs. Tests marked ``e2e`` bring their own world.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENTS = frozenset(("claude", "codex", "opencode", "cursor", "cursor-agent"))
LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost", ""))
_STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"))


class Forbidden(RuntimeError):
    """A test tried to run a real agent program, or to reach beyond this machine."""


_closed = False


def _guard(event: str, values: tuple[object, ...]) -> None:
    if not _closed:
        return
    if event in _STARTS:
        words = values[1] if event != "os.spawn" else values[2]
        first = words[0] if isinstance(words, (list, tuple)) and words else words
        for name in (values[0], first):
            if isinstance(name, (str, bytes, os.PathLike)) and os.path.basename(os.fsdecode(name)) in AGENTS:
                raise Forbidden(f"a test may not start {os.fsdecode(name)}")
    elif event == "os.system":
        command = values[0].decode() if isinstance(values[0], bytes) else str(values[0])
        if command.split() and os.path.basename(command.split()[0]) in AGENTS:
            raise Forbidden(f"a test may not start {command!r}")
    elif event in ("socket.connect", "socket.getaddrinfo"):
        address = values[1] if event == "socket.connect" else values
        host = address[0] if isinstance(address, tuple) else ""  # a path is a socket on this machine
        if isinstance(host, (str, bytes)) and os.fsdecode(host) not in LOOPBACK:
            raise Forbidden(f"a test may not reach {host!r}")


sys.addaudithook(_guard)


@pytest.fixture(autouse=True)
def closed_world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Point every folder that the project or an agent could write to into the test's own folder."""
    global _closed
    if request.node.get_closest_marker("e2e"):
        yield
        return
    root: Path = request.getfixturevalue("tmp_path") / "world"
    for variable, name in (
        ("HOME", "home"),
        ("USERPROFILE", "home"),
        ("XDG_DATA_HOME", "share"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_RUNTIME_DIR", "run"),
        ("OBSERVATIONAL_MEMORY_HOME", "memory"),
    ):
        monkeypatch.setenv(variable, str(root / name))
    (root / "home").mkdir(parents=True)
    for name in list(os.environ):
        if name.startswith(("OBSERVATIONAL_MEMORY_SET_", "OBSERVATIONAL_MEMORY_OFF", "OBSERVATIONAL_MEMORY_WORKER")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_CONFIG", str(root / "config.yaml"))
    monkeypatch.setenv("PATH", f"{_shims(root / 'bin')}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(os, "nice", lambda by: 0)  # a maintainer in the tests' own process would slow all that follow
    _closed = True
    yield
    _closed = False


def _shims(folder: Path) -> str:
    folder.mkdir()
    for name in AGENTS:
        shim = folder / name
        shim.write_text(f"#!/bin/sh\necho 'a test may not start {name}' >&2\nexit 99\n", encoding="utf-8")
        shim.chmod(0o755)
    return str(folder)
