"""A store with the demo's sessions, made once, and a way to run commands in this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from obsmem.interfaces.cli import main
from tests.interfaces.place import DEMO, SCRIPT

SHORT = {
    "OBSERVE_AFTER_TOKENS": "1500",
    "CHUNK_MAX_TOKENS": "1500",
    "REFLECT_AFTER_TOKENS": "3000",
    "POOL_TARGET_TOKENS": "1200",
}  # the clocks of a twentieth of a day's session


class Output(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


Run = Callable[..., Output]


@pytest.fixture(scope="session")
def made_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's sessions, copied beside a data folder that holds them. Tests work on copies of it."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(DEMO, folder / "transcripts")
    environment = {**os.environ, "OBSERVATIONAL_MEMORY_HOME": str(folder / "data"), "HOME": str(folder)}
    environment["OBSERVATIONAL_MEMORY_CONFIG"] = str(folder / "config.yaml")
    environment.update({f"OBSERVATIONAL_MEMORY_SET_{name}": value for name, value in SHORT.items()})
    command = [sys.executable, str(SCRIPT), "ingest", str(folder / "transcripts")]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return folder


@pytest.fixture
def stored(made_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of this test's own with the demo's sessions in it."""
    home = tmp_path / "data"
    shutil.copytree(made_store / "data", home)
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(home))
    return home


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run one command in this process."""

    def command(*arguments: str) -> Output:
        capfd.readouterr()
        try:
            status = main(list(arguments))
        except SystemExit as end:  # argparse's own refusals
            status = int(end.code or 0)
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return Output(status, captured.out, captured.err)

    return command
