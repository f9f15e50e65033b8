"""The turn-end hook as harnesses run it, ``python -I -S`` with nothing installed: what it imports, prints and starts."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from obsmem.harnesses import REGISTRY, load

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "observational_memory.py"
SESSION = "00000000-0000-4000-8000-000000000001"
PYTHON = os.path.realpath(sys.executable)

# What a turn-end hook may add to a bare interpreter. Every name here costs each turn of each session.
_LIBRARY = ("__future__", "_collections_abc", "_json", "_signal", "_stat", "genericpath", "os", "os.path", "posixpath", "stat")  # fmt: skip
_LAYERS = ("obsmem", "obsmem.harnesses", "obsmem.interfaces", "obsmem.system")
_OURS = ("interfaces.hook", "system.files", "system.log", "system.paths", "system.process", "system.seats", "system.state")  # fmt: skip
ALLOWED = frozenset((*_LIBRARY, "observational_memory", *_LAYERS, *(f"obsmem.{name}" for name in _OURS)))
DEAR = frozenset(("json", "re", "typing", "sqlite3", "subprocess", "pathlib", "enum", "collections", "hashlib"))

_LOADED = """
import sys
bare = set(sys.modules)
sys.path.insert(0, sys.argv[1])
sys.argv[:] = sys.argv[2:]
import observational_memory
status = observational_memory.main()
sys.stderr.write("\\n".join(sorted(set(sys.modules) - bare)))
sys.exit(status)
"""


class Place:
    """A data folder whose recorded interpreter only leaves a trace, and a transcript beside it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "data"
        self.project = folder / "project"
        self.transcript = folder / f"{SESSION}.jsonl"
        self.trace = folder / "started"
        self.environment = {"PATH": os.environ.get("PATH", ""), "OBSERVATIONAL_MEMORY_HOME": str(self.home)}
        self.home.mkdir()
        self.project.mkdir()
        program = folder / "program"
        program.write_text(f'#!/bin/sh\necho "$@" > "{self.trace}.new"\nmv "{self.trace}.new" "{self.trace}"\n')
        program.chmod(0o755)
        (self.home / "interpreter").write_text(str(program), encoding="utf-8")
        self.write(1_000)

    def write(self, size: int) -> None:
        """Make the transcript ``size`` bytes long."""
        with self.transcript.open("wb") as file:
            file.truncate(size)

    def payload(self, **changes: str) -> bytes:
        """What the harness says at the end of a turn."""
        values = {"session_id": SESSION, "transcript_path": str(self.transcript), "cwd": str(self.project)}
        return json.dumps(
            {**values, "hook_event_name": "Stop", "last_assistant_message": "Fertig – ✓", **changes}
        ).encode()

    def files(self) -> list[str]:
        """Everything that stands in the data folder."""
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))

    def stop(self, payload: bytes, harness: str = "claude-code") -> subprocess.CompletedProcess[bytes]:
        """Run the hook, and check what holds for all calls: nothing printed, status 0."""
        command = [PYTHON, "-I", "-S", str(SCRIPT), "hook", harness, "Stop"]
        done = subprocess.run(command, input=payload, env=self.environment, capture_output=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return done

    def started(self, wait: float = 0.3) -> str:
        """The arguments that the hook started our program with; '' if it has not within ``wait`` seconds."""
        end = time.monotonic() + wait
        while not self.trace.exists() and time.monotonic() < end:
            time.sleep(0.02)
        return self.trace.read_text(encoding="utf-8") if self.trace.exists() else ""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_turn_end_imports_only_what_is_allowed(place: Place) -> None:
    """Neither deciding that nothing is due nor starting the maintainer needs more than ``os`` and our small files."""
    for size in (1_000, 10_000_000):
        place.write(size)
        command = [PYTHON, "-I", "-S", "-c", _LOADED, str(ROOT), str(SCRIPT), "hook", "claude-code", "Stop"]
        done = subprocess.run(
            command, input=place.payload(), env=place.environment, capture_output=True, timeout=30, check=True
        )
        loaded = set(done.stderr.decode().split())
        assert "obsmem.interfaces.hook" in loaded
        assert not loaded & DEAR
        assert loaded <= ALLOWED, sorted(loaded - ALLOWED)
    assert place.started(10).split()[1:3] == ["maintain", "claude-code"]


@pytest.mark.parametrize(
    ("harness", "event"),
    [(name, event) for name in REGISTRY for event in load(name).EVENTS if event != "session.resumed"],
)
def test_no_hook_loads_what_is_dear(place: Place, harness: str, event: str) -> None:
    """Nor does a part of a block at a session start, a prompt, or a payload in a harness's words."""
    place.write(1_000)
    command = [PYTHON, "-I", "-S", "-c", _LOADED, str(ROOT), str(SCRIPT), "hook", harness, event, "--part", "2/4"]
    payload = place.payload(source="resume")
    done = subprocess.run(command, input=payload, env=place.environment, capture_output=True, timeout=60, check=True)
    assert not set(done.stderr.decode().split()) & DEAR


def test_no_package_is_to_be_had(place: Place) -> None:
    """The way these tests run the hook, an installed package is out of reach: else they would show nothing."""
    done = subprocess.run([PYTHON, "-I", "-S", "-c", "import yaml"], capture_output=True, timeout=30)
    assert b"ModuleNotFoundError" in done.stderr


def test_below_the_threshold_nothing_is_started_or_written(place: Place) -> None:
    before = place.files()
    place.stop(place.payload())
    assert place.started() == ""
    assert place.files() == before


def test_above_the_threshold_the_maintainer_is_started(place: Place) -> None:
    place.write(10_000_000)
    place.stop(place.payload())
    arguments = place.started(10).split()
    assert arguments[0] == str(SCRIPT)
    assert arguments[arguments.index("--transcript") + 1] == str(place.transcript)
    assert arguments[arguments.index("--session") + 1] == SESSION


@pytest.mark.parametrize("marks", [1, 2, 3])
def test_a_payload_behind_byte_order_marks_is_read(place: Place, marks: int) -> None:
    place.write(10_000_000)
    place.stop(b"\xef\xbb\xbf" * marks + place.payload())
    assert str(place.transcript) in place.started(10)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\n",
        b"not json",
        b"\xff\xfe\x00{",
        b"[1, 2]",
        b'"text"',
        b"17",
        b"{",
        b"{}",
        b'{"a":' * 100_000,
        b'{"session_id": 5, "transcript_path": {}, "cwd": null}',
    ],
    ids=lambda payload: repr(payload[:20]),
)
def test_a_payload_that_names_no_transcript_starts_nothing(place: Place, payload: bytes) -> None:
    place.stop(payload)
    assert place.started() == ""


def test_a_missing_transcript_starts_nothing(place: Place) -> None:
    place.transcript.unlink()
    place.stop(place.payload())
    assert place.started() == ""


@pytest.mark.parametrize("harness", ["claude-code", "no-such-harness"])
def test_a_data_folder_that_is_a_file_is_left_alone(place: Place, tmp_path: Path, harness: str) -> None:
    """Not even the log can be written then (the second call has something to say there)."""
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    place.environment["OBSERVATIONAL_MEMORY_HOME"] = str(file)
    place.stop(place.payload(), harness)
    assert file.read_bytes() == b"mine"


def test_inside_a_worker_nothing_is_started_or_written(place: Place) -> None:
    place.write(10_000_000)
    before = place.files()
    place.environment["OBSERVATIONAL_MEMORY_WORKER"] = "1"
    place.stop(place.payload())
    assert place.started() == ""
    assert place.files() == before


@pytest.mark.parametrize("where", ["data/off", "project/.observational-memory-off", ".observational-memory-off"])
def test_an_off_file_stops_everything(place: Place, tmp_path: Path, where: str) -> None:
    """The machine's, the project's, and one in a folder above the project."""
    place.write(10_000_000)
    (tmp_path / where).touch()
    before = place.files()
    place.stop(place.payload())
    assert place.started() == ""
    assert place.files() == before


def test_without_its_package_the_script_says_so_and_the_hook_goes_on(place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "alone" / "observational_memory.py"
    copy.parent.mkdir()
    copy.write_bytes(SCRIPT.read_bytes())
    command = [PYTHON, "-I", "-S", str(copy)]
    hook = subprocess.run([*command, "hook", "claude-code", "Stop"], input=b"{}", capture_output=True, timeout=30)
    assert (hook.returncode, hook.stdout) == (0, b"")
    other = subprocess.run([*command, "status"], capture_output=True, timeout=30)
    assert other.returncode == 1
    assert other.stderr.count(b"\n") == 1 and b"beside its folder 'obsmem'" in other.stderr


_COMMAND = """
import sys
bare = set(sys.modules)
sys.path.insert(0, sys.argv[1])
from obsmem.interfaces.cli import main
status = main(sys.argv[2:])
sys.stderr.write("\\n".join(sorted(set(sys.modules) - bare)))
sys.exit(status)
"""
# What neither search nor recall needs for a record that is indexed; most of it takes longer to load than their answer.
SLOW = frozenset(
    [
        "asyncio",
        "base64",
        "concurrent.futures",
        "email",
        "filelock",
        "hashlib",
        "http.client",
        "jsonschema",
        "logging",
        "pathlib",
        "platformdirs",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "urllib.parse",
        "yaml",
    ]
)
NOT_ASKED = ("obsmem.workers.", "obsmem.tasks.observe", "obsmem.memory.cards", "obsmem.interfaces.commands_show")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with indexed sessions."""
    home = tmp_path_factory.mktemp("filled") / "data"
    environment = {**os.environ, "OBSERVATIONAL_MEMORY_HOME": str(home)}
    demo = ROOT / "fixtures" / "demo"
    for words in (["ingest", str(demo / "claude-code"), str(demo / "codex")], ["index"]):
        subprocess.run(
            [sys.executable, str(SCRIPT), *words], env=environment, capture_output=True, timeout=120, check=True
        )
    return home


@pytest.mark.parametrize("harness", ["claude-code", "codex"])
@pytest.mark.parametrize(
    "words", [("search", "--everywhere", "the", "--session", "ID"), ("recall", "ID.0")], ids=lambda words: str(words[0])
)
def test_what_an_agent_waits_for_loads_nothing_slow(filled: Path, words: tuple[str, ...], harness: str) -> None:
    with sqlite3.connect(filled / "archive.db") as archive:
        (handle,) = archive.execute("SELECT handle FROM sessions WHERE harness=? LIMIT 1", (harness,)).fetchone()
    call = [sys.executable, "-c", _COMMAND, str(ROOT), *(word.replace("ID", handle) for word in words)]
    environment = {**os.environ, "OBSERVATIONAL_MEMORY_HOME": str(filled)}
    done = subprocess.run(call, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert f"[{handle}." in done.stdout.decode()
    loaded = set(done.stderr.decode().split("\n"))
    assert "obsmem.tasks.entries" in loaded
    assert not loaded & SLOW, sorted(loaded & SLOW)
    assert not [name for name in loaded if name.startswith(NOT_ASKED)]
