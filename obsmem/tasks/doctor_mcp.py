"""Checks of the server that gives an agent its tools: which harnesses name it, and whether it starts as they start it.

Invariant: the server that is started here only says what tools it has, and is gone before the check ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator

from obsmem import __version__
from obsmem.harnesses import load
from obsmem.system.launcher import server_path
from obsmem.tasks.called import command
from obsmem.tasks.finding import BROKEN, GOOD, WARNING, Check
from obsmem.tasks.install import detect, is_registered, user_home

START_SECONDS = 30.0  # the longest that a harness waits for a server
_ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "doctor", "version": __version__}}


def check_server(home: str, cwd: str) -> Iterator[Check]:
    """Is the server registered, and does it answer?"""
    known = detect()
    registered = [name for name in known if is_registered(home, name, cwd)]
    brought = {name: load(name).other_ways(user_home(), cwd) for name in known if name not in registered}
    missing = [name for name, ways in brought.items() if not ways]
    if not registered:
        if known and not missing:
            yield Check("tools", GOOD, f"brought by {', '.join(way for ways in brought.values() for way in ways)}")
        elif known:
            yield Check("tools", WARNING, "the agent's tools are registered nowhere", f"run: {command()} install")
        return
    where = f"registered in {', '.join(registered)}" + (f", not in {', '.join(missing)}" if missing else "")
    began = time.monotonic()
    count, wrong = try_server(home)
    if wrong:
        yield Check("tools", BROKEN, f"{where}, but the server does not start: {wrong}", f"run: {command()} install")
        return
    yield Check("tools", GOOD, f"{where}; {count} tools after {time.monotonic() - began:.1f} s")


def try_server(home: str) -> tuple[int, str]:
    """(number of tools, what is wrong or ''): start the server as a harness does, and ask it what it has."""
    messages: tuple[dict[str, object], ...] = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _ABOUT},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )
    try:
        process = subprocess.Popen(
            [server_path(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home if os.path.isdir(home) else None,
        )
    except OSError as error:
        return 0, str(error)
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        return _talk(process, messages)
    except OSError as error:
        return 0, str(error)
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def _talk(process: subprocess.Popen[bytes], messages: tuple[dict[str, object], ...]) -> tuple[int, str]:
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
        process.stdin.flush()
    except BrokenPipeError:
        pass  # it has ended, and says why below
    for line in process.stdout:
        try:
            answer = json.loads(line)
        except ValueError:
            return 0, "it printed something that is not the protocol"
        if isinstance(answer, dict) and answer.get("id") == 2:
            tools = answer.get("result", {}).get("tools", [])
            return len(tools), "" if tools else "it has no tools"
    said = process.stderr.read(2_000).decode("utf-8", "replace").strip()
    return 0, said.rpartition("\n")[2] or f"no answer within {START_SECONDS:.0f} s"
