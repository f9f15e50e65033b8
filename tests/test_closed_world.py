"""The guard of the test suite itself: what a test must not be able to do, it cannot do."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from obsmem.system import config, paths
from tests.conftest import AGENTS, Forbidden


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_a_test_cannot_start_an_agent(name: str) -> None:
    for start in (
        lambda: subprocess.run([name, "--version"], check=False),
        lambda: subprocess.run([f"/usr/local/bin/{name}"], check=False),
        lambda: os.posix_spawn(f"/usr/bin/{name}", [name], {}),
        lambda: os.system(f"{name} --version"),
    ):
        with pytest.raises(Forbidden):
            start()


def test_a_child_of_a_test_finds_a_shim_instead_of_an_agent() -> None:
    done = subprocess.run(["sh", "-c", "claude --version"], capture_output=True, text=True, check=False)
    assert done.returncode == 99
    assert "may not start claude" in done.stderr


def test_a_test_reaches_this_machine_only() -> None:
    with pytest.raises(Forbidden):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(Forbidden):
        socket.getaddrinfo("example.org", 80)
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
    server.close()


def test_every_folder_lies_in_the_tests_own(tmp_path: Path) -> None:
    for path in (paths.data_home(), config.user_file(), os.path.expanduser("~"), os.environ["XDG_DATA_HOME"]):
        assert Path(path).is_relative_to(tmp_path)
    assert Path(shutil.which("claude") or "").is_relative_to(tmp_path)
