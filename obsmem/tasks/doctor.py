"""Looking over an installation: one check after the other, each with what to do about it.

Invariants: looking changes nothing in any harness's files and nothing in the store; one check that fails never keeps
the others from being made; runs with the standard library alone.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from obsmem.core.errors import ObsmemError
from obsmem.system import config as configuration
from obsmem.system.environment import look
from obsmem.system.files import free_bytes, read_bytes
from obsmem.system.launcher import launcher_path, launcher_text
from obsmem.system.log import log_path, tells_of_failure
from obsmem.system.process import INTERPRETER_FILE
from obsmem.system.state import switched_off
from obsmem.tasks.ask import make_worker
from obsmem.tasks.called import command, installed_script
from obsmem.tasks.doctor_hooks import check_harnesses, check_programs
from obsmem.tasks.doctor_mcp import check_server
from obsmem.tasks.doctor_reduce import check_shortening
from obsmem.tasks.doctor_store import check_compactions, check_databases, check_deliveries, check_reading, check_workers
from obsmem.tasks.finding import BROKEN, GOOD, WARNING, Check
from obsmem.tasks.install import still_named
from obsmem.workers.base import KEY, as_model

LEAST_VERSION = (3, 10)
LEAST_FREE = 500 << 20  # bytes
LOG_TAIL = 1 << 16  # bytes of the log that are looked at
FOREIGN_PACKAGE = "observational_memory"


class Where(NamedTuple):
    """What is looked over: a data folder, and the working folder ('' for none) whose project config counts too."""

    home: str
    cwd: str


def diagnose(home: str, cwd: str) -> list[Check]:
    """Make every check. Nothing is raised: a check that cannot be made is a warning."""
    return _make(CHECKS, home, cwd)


def unlogged_trouble(home: str, cwd: str) -> list[Check]:
    """What keeps hooks from working and from saying so in the log: no interpreter, no launcher, no place to write to."""
    silent = [(name, check) for name, check in CHECKS if check in (_interpreter, _launcher, _disk)]
    return [check for check in _make(silent, home, cwd) if check.level == BROKEN]


def _make(checks: Iterable[tuple[str, Callable[[Where], Iterator[Check]]]], home: str, cwd: str) -> list[Check]:
    found: list[Check] = []
    for name, check in checks:
        try:
            found += check(Where(home, cwd))
        except (ObsmemError, OSError, ValueError) as error:
            found.append(Check(name, WARNING, f"could not be checked: {error}"))
    return found


def exit_status(checks: list[Check]) -> int:
    """0 where all is sound, 1 for warnings, 5 where something is broken."""
    if any(check.level == BROKEN for check in checks):
        return 5
    return 1 if any(check.level == WARNING for check in checks) else 0


def _interpreter(where: Where) -> Iterator[Check]:
    recorded = os.fsdecode(read_bytes(os.path.join(where.home, INTERPRETER_FILE), 4096)).strip()
    again = f"run: {command()} setup"
    if not recorded:
        yield Check("interpreter", WARNING, "none is recorded; hooks use the one they run under", again)
        return
    found = look(recorded) if os.path.exists(recorded) else None
    if found is None:
        yield Check("interpreter", BROKEN, f"{recorded} is recorded, and is gone or does not run", again)
        return
    version = ".".join(map(str, found[0]))
    if found[1]:
        yield Check("interpreter", BROKEN, f"{recorded} lacks {', '.join(found[1])}", again)
    elif found[0] < LEAST_VERSION:
        yield Check("interpreter", BROKEN, f"{recorded} is Python {version}; 3.10 is the oldest that works", again)
    else:
        yield Check("interpreter", GOOD, f"{recorded} (Python {version}) has the packages")


def _launcher(where: Where) -> Iterator[Check]:
    path = launcher_path(where.home)
    again = f"run: {command()} install"
    text = os.fsdecode(read_bytes(path))
    named = [] if text else still_named(where.home, where.cwd)
    if named:
        yield Check("launcher", BROKEN, f"{path} is gone, and {', '.join(named)} calls it", again)
        return
    if not text:
        yield Check("launcher", WARNING, "there is none: nothing is installed", again)
        return
    script = installed_script()
    if not os.access(path, os.X_OK):
        yield Check("launcher", BROKEN, f"{path} cannot be executed", again)
    elif script not in text:
        yield Check("launcher", WARNING, f"{path} runs another copy of this program than {script}", again)
    elif _without_python(text) != _without_python(launcher_text(where.home, script)):
        yield Check("launcher", WARNING, f"{path} was written by another version", again)
    else:
        yield Check("launcher", GOOD, path)


def _without_python(text: str) -> list[str]:
    """A launcher's lines but the one that names the interpreter: this command may run under another one."""
    return [line for line in text.split("\n") if not line.strip().startswith(("recorded=", "if exist"))]


def _disk(where: Where) -> Iterator[Check]:
    folder = where.home if os.path.isdir(where.home) else os.path.expanduser("~")
    free = free_bytes(folder)
    if not os.access(folder, os.W_OK):
        yield Check("disk", BROKEN, f"{folder} cannot be written", "make it writable: without it nothing is kept")
    elif free < LEAST_FREE:
        yield Check(
            "disk", WARNING, f"{free >> 20} MB are free beside {folder}", "make room: without it nothing is kept"
        )
    else:
        yield Check("disk", GOOD, f"{free >> 30} GB free")


def _switches(where: Where) -> Iterator[Check]:
    reason = switched_off(where.home, where.cwd)
    try:
        off = bool(configuration.load(where.cwd)["off"])
    except ImportError:
        off = False
    if reason:
        yield Check(
            "switches", WARNING, f"memory is switched off here ({reason})", "remove the off file, or the variable"
        )
    elif off:
        yield Check("switches", WARNING, "memory is switched off in the config file", "remove 'off: true' there")
    else:
        yield Check("switches", GOOD, "memory is on here")


def _models(where: Where) -> Iterator[Check]:
    try:
        workers = configuration.load(where.cwd)["workers"]
    except ImportError:
        yield Check("observer", GOOD, f"not known: {sys.executable} lacks what the config is read with")
        return
    wanted = workers[: workers.index("extractive")] if "extractive" in workers else workers
    if not wanted:
        yield Check("observer", GOOD, "extractive: no model, no network, no API key needed")
    for item in wanted:
        yield _model(item)


def _model(item: object) -> Check:
    """A configured model, and who pays for it: a key that lies in the environment is easily forgotten."""
    worker = as_model(make_worker(item))
    if worker is None:
        return Check("observer", GOOD, f"{make_worker(item).NAME}; extractive where it fails")
    told = f"{worker.NAME}, paid {worker.billing}; extractive where it fails"
    if worker.billing.startswith(KEY):
        return Check("observer", WARNING, told, "if a login is to pay, take that variable out of the environment")
    return Check("observer", GOOD, told)


def _foreign_copy(where: Where) -> Iterator[Check]:
    spec = importlib.util.find_spec(FOREIGN_PACKAGE)
    origin = (spec.origin or "") if spec else ""
    if origin and os.path.realpath(origin) != os.path.realpath(installed_script()):
        yield Check(
            "other copies",
            WARNING,
            f"another project's package {FOREIGN_PACKAGE} is at {origin}",
            "call this program by its path, or as observational-memory of its own environment",
        )
    found = shutil.which("recall")
    if found and not os.path.realpath(found).startswith(os.path.realpath(where.home)):
        text = read_bytes(found, 4096)
        if b"obsmem" not in text:
            yield Check(
                "other copies",
                WARNING,
                f"'recall' on PATH is another program ({found})",
                "use the path that blocks name",
            )


def _log(where: Where) -> Iterator[Check]:
    """What hooks and background runs said of themselves in the last day."""
    path = log_path(where.home)
    size = os.path.getsize(path) if os.path.exists(path) else 0
    if not size:
        yield Check("log", GOOD, "empty: no hook has had anything to do yet")
        return
    with open(path, "rb") as file:
        file.seek(max(0, size - LOG_TAIL))
        lines = file.read().decode("utf-8", "replace").split("\n")
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 86_400))
    recent = [line for line in lines if line[:19] >= since]
    failed = [line for line in recent if tells_of_failure(line)]
    if failed:
        yield Check(
            "log",
            WARNING,
            f"{len(failed)} of {len(recent)} lines of the last day tell of failures: {failed[-1]}",
            f"see {path}",
        )
    else:
        yield Check("log", GOOD, f"no failure in {len(recent)} lines of the last day")


CHECKS: tuple[tuple[str, Callable[[Where], Iterator[Check]]], ...] = (
    ("interpreter", _interpreter),
    ("launcher", _launcher),
    ("hooks", lambda where: check_harnesses(where.home, where.cwd)),
    ("tools", lambda where: check_server(where.home, where.cwd)),
    ("programs", lambda where: check_programs()),
    ("disk", _disk),
    ("store", lambda where: check_databases(where.home)),
    ("reading", lambda where: check_reading(where.home)),
    ("workers", lambda where: check_workers(where.home)),
    ("delivery", lambda where: check_deliveries(where.home)),
    ("compaction", lambda where: check_compactions(where.home)),
    ("shortening", lambda where: check_shortening(where.home, where.cwd)),
    ("log", _log),
    ("observer", _models),
    ("switches", _switches),
    ("other copies", _foreign_copy),
)
