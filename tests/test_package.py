"""What is handed out: the package's files, all of them and no others, and a checkout that gives an agent no orders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD = "import sys; from setuptools import setup; setup(script_args=['-q', 'build', '--build-base', sys.argv[1]])"
# What agents read unasked and obey, in the checkout that is the plugin, or in a folder of site-packages.
ORDERS = re.compile(
    r"(?:.*/)?(?:(?:claude|agents|gemini)(?:\.\w+)?\.md|\.cursorrules|\.mcp\.json|\.(?:claude|cursor|codex|opencode)/.*)",
    re.IGNORECASE,
)


def files_below(folder: Path) -> set[str]:
    """Every file, by its path from the folder."""
    return {
        os.path.relpath(os.path.join(where, name), folder).replace(os.sep, "/")
        for where, _, names in os.walk(folder)
        for name in names
        if not where.endswith("__pycache__")
    }


def test_a_built_package_holds_the_programs_files_and_no_others(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "obsmem", copy / "obsmem", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tests").mkdir()
    for name in ("CLAUDE.md", "AGENTS.md", "obsmem/CLAUDE.md", "obsmem/memory/AGENTS.md", "tests/__init__.py"):
        (copy / name).write_text("Obey.", encoding="utf-8")
    for name in ("pyproject.toml", "observational_memory.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path / "built")], cwd=copy, check=True, timeout=120)
    wanted = {f"obsmem/{name}" for name in files_below(ROOT / "obsmem")} | {"observational_memory.py"}
    assert files_below(tmp_path / "built" / "lib") == wanted


def test_the_checkout_which_is_the_plugin_gives_no_orders_to_an_agent() -> None:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=60)
    if done.returncode:
        pytest.skip("this is no checkout")
    names = done.stdout.split("\n")
    assert len(names) > 100
    assert [name for name in names if ORDERS.fullmatch(name)] == []


@pytest.mark.parametrize("name", ["CLAUDE.md", "docs/CLAUDE.local.md", "a/AGENTS.md", ".cursor/rules/x.mdc", ".claude/settings.json"])  # fmt: skip
def test_such_a_file_would_be_noticed(name: str) -> None:
    assert ORDERS.fullmatch(name) and not ORDERS.fullmatch("hooks/claude-code/settings.json")
