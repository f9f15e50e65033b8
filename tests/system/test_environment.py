"""What an interpreter needs is named in one way everywhere, and looking into one tells whether it has that."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from obsmem.system import environment

ROOT = Path(__file__).resolve().parents[2]


def test_the_requirements_are_those_of_the_project_its_makefile_and_its_script() -> None:
    wanted = set(environment.REQUIREMENTS)
    project = re.search(r"^dependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text("utf-8"), re.S | re.M)
    makefile = re.search(r"^PACKAGES := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)
    script = re.search(r"^# dependencies = \[(.*)\]", (ROOT / "observational_memory.py").read_text("utf-8"), re.M)
    for found in (project, makefile, script):
        assert found and set(re.findall(r"[\"']([^\"']+)[\"']", found.group(1))) == wanted
    assert {re.split(r"\W", one)[0] for one in wanted} == set(environment.NEEDED.values())


def test_looking_tells_version_and_what_is_missing(tmp_path: Path) -> None:
    assert environment.look(sys.executable) == (sys.version_info[:2], [])
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    assert environment.look(str(bare)) == (sys.version_info[:2], list(environment.NEEDED.values()))


def test_what_does_not_run_is_no_interpreter(tmp_path: Path) -> None:
    for name, text in (("text", "hello"), ("silent", "#!/bin/sh\n"), ("failing", "#!/bin/sh\nexit 3\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        os.chmod(tmp_path / name, 0o755)
        assert environment.look(str(tmp_path / name)) is None
    assert environment.look(str(tmp_path / "missing")) is None


def test_an_interpreter_that_has_the_packages_is_recorded_as_it_is(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    assert environment.set_up(home) == sys.executable
    assert os.listdir(home) == ["interpreter"]
