"""A program that cannot be had: said loudly, and a failure where CI is set. Needs no program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .programs import CODEX

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
ONE = "tests/e2e/test_canned_hooks.py::test_codex_delivers_four_parts_as_developer_messages"


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
def test_what_was_not_run_is_said_last_and_fails_in_ci(ci: str, status: int, tmp_path: Path) -> None:
    nowhere = {**os.environ, "CI": ci, "PATH": str(tmp_path), "OBSMEM_E2E_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "e2e", "-p", "no:cacheprovider", ONE],
        cwd=ROOT,
        env=nowhere,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stdout
    assert f"NOT RUN: {CODEX}" in done.stdout and "npm, which would install it, is not on this machine" in done.stdout
