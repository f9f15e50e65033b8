"""A closed world for one test: a home, a project, a scripted model, and no network but loopback.

Owns the processes of a run and ends them all. Invariants: a program gets only the environment that is written here;
every process has a deadline and is killed with its process group; where the system allows a network namespace,
nothing in it can reach any other machine.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from . import model_server
from .programs import cache_folder

PROJECT_ROOT = Path(__file__).resolve().parents[2]
SCRIPT = PROJECT_ROOT / "observational_memory.py"
RECORDER = Path(__file__).with_name("recorder.py")
DEADLINE = 120.0


class Ended(NamedTuple):
    """A program that ran to its end, or was killed at its deadline (status None)."""

    status: int | None
    stdout: str
    stderr: str


class Call(NamedTuple):
    """One hook call as the recorder wrote it down. ``payload`` is what the harness sent, parsed."""

    event: str
    command: list[str]
    payload: dict[str, Any]
    stdout: str
    stderr: str
    status: int
    started: int
    ended: int
    environment: list[str]


class World:
    """The folders of one run, and the model server that answers in it. ``prefix`` stands before every command: it enters
    the namespaces of the run."""

    def __init__(self, folder: Path, prefix: Sequence[str], port: int) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        self.memory = folder / "memory"
        self.port = port
        self.prefix = list(prefix)

    def script(self, *answers: Mapping[str, Any], kind: str = "main") -> None:
        """Append answers for the next main requests (or ``summary`` requests). See ``wire`` for their keys."""
        with open(self.folder / model_server.SCRIPTS[kind], "a", encoding="utf-8") as file:
            for answer in answers:
                file.write(json.dumps(answer) + "\n")

    def requests(self, kind: str = "") -> list[dict[str, Any]]:
        """The logged requests, in order, as {number, path, kind, body}; of one kind where it is named."""
        found = [json.loads(line) for line in _lines(self.folder / model_server.LOG)]
        return [request for request in found if kind in ("", request["kind"])]

    def calls(self, event: str = "") -> list[Call]:
        """The recorded hook calls in the order in which they began; of one event where it is named."""
        found = []
        for path in (self.folder / "calls").glob("*.json"):
            record = json.loads(path.read_text(encoding="utf-8"))
            found.append(Call(**{**record, "payload": json.loads(record["payload"])}))
        return [call for call in sorted(found, key=lambda call: call.started) if event in ("", call.event)]

    def recorder(self, event: str, *command: str) -> str:
        """A shell line that records one hook call and runs ``command`` for the answer, if there is one."""
        return shlex.join([sys.executable, str(RECORDER), str(self.folder / "calls"), event, *command])

    def hook_command(self, arguments: str) -> str:
        """The shell line for our own script, behind the recorder: ``hook <harness> <event> …`` as installed."""
        words = arguments.split()
        words = words if words[0] == "hook" else ["hook", *words]
        return self.recorder(words[2], sys.executable, "-I", "-S", str(SCRIPT), *words)

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], stdin: str = "", seconds: float = DEADLINE
    ) -> Ended:
        """Run a program in the project with this environment alone, to its end or its deadline."""
        process = subprocess.Popen(
            [*self.prefix, *arguments],
            cwd=self.project,
            env={**self.environment(), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            return Ended(None, stdout, stderr)
        return Ended(process.returncode, stdout, stderr)

    def environment(self) -> dict[str, str]:
        """What every program of this world gets: no proxy, no credentials, nothing of the caller's."""
        return {
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/sh",
            "OBSERVATIONAL_MEMORY_HOME": str(self.memory),
        }


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


@contextmanager
def open_world(name: str) -> Iterator[World]:
    """Make a world below the cache folder (Codex refuses a home below /tmp), and end all of it at the end."""
    folder = cache_folder() / "runs" / f"{name}-{os.getpid()}-{time.time_ns()}"
    for part in ("home", "project", "memory", "calls"):
        (folder / part).mkdir(parents=True)
    server, prefix = _start_server(folder)
    try:
        yield World(folder, prefix, int((folder / model_server.PORT).read_text(encoding="ascii")))
    finally:
        _kill(server)
        _kill_left_behind(folder)
        if not os.environ.get("OBSMEM_E2E_KEEP"):
            shutil.rmtree(folder, ignore_errors=True)


def _start_server(folder: Path) -> tuple[subprocess.Popen[bytes], list[str]]:
    """Start the model server, in a network namespace where possible. Returns it and how programs join it there."""
    serve = [sys.executable, "-m", model_server.__name__, str(folder)]
    inside = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", *serve]
    enter = ["nsenter", "--net", "--target"]
    ways = [(["unshare", "--net", *inside], enter)] if os.name == "posix" and shutil.which("unshare") else []
    for arguments, way_in in [*ways, (serve, [])]:
        server = subprocess.Popen(arguments, cwd=PROJECT_ROOT, stdin=subprocess.DEVNULL, start_new_session=True)
        limit = time.monotonic() + 20
        while server.poll() is None and time.monotonic() < limit:
            if (folder / model_server.PORT).exists():
                return server, [*way_in, str(server.pid)] if way_in else []
            time.sleep(0.05)
        _kill(server)
    raise RuntimeError("the model server did not start")


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _kill_left_behind(folder: Path) -> None:
    """End what detached itself from its process group: each process whose environment names this world's folder."""
    mark = os.fsencode(folder)
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != os.getpid() and mark in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue
