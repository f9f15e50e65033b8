"""The demo: each harness's saved session, from its bytes to a recall of what the summary lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from obsmem.harnesses import load
from obsmem.tasks.discover import find_below
from tests.interfaces.conftest import Run
from tests.interfaces.place import DEMO, SCRIPT

STAGES = ("ingest ", "notes ", "reflections ", "compaction ", "block ", "recall ")


def words(path: Path, kinds: tuple[str, ...]) -> str:
    """The words of all entries of some kinds in a session."""
    (found,) = find_below(str(path))
    module = load(found.harness)
    reader = module.reader(found.source, None, lambda: ())
    entries = [entry for raw in module.records(found.source, 0, 0) for entry in reader.read(raw).entries]
    return "\n".join(entry.text for entry in entries if entry.kind in kinds)


def test_each_harness_gets_back_words_that_its_summary_lost(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    output = run("demo", str(DEMO))
    assert output.status == 0 and output.err == ""
    sections = output.out.split("\n=== ")[1:]
    assert [section.split(" ")[0] for section in sections] == ["claude-code", "codex", "cursor", "opencode"]
    for section in sections:
        path = next(path for path in DEMO.rglob("*") if path.name == section.split(" · ")[1].split(" (")[0] and path.parent.name == section.split(" ")[0])  # fmt: skip
        for stage in STAGES:
            assert f"\n{stage}" in section
        lost = re.findall(r"'([^']+)'", section.split("\nrecall ")[1].split(" The block has note")[0])
        shown = "\n".join(line[4:] for line in section.split("\n") if line.startswith("  > "))
        summary = words(path, ("summary",))
        said = words(path, ("user", "assistant", "tool_call", "tool_result"))
        assert lost and summary
        for word in lost:
            assert word in said and word not in summary
        assert all(word in shown for word in lost)
        name = re.search(r"The block has note ([0-9a-f]+);", section)
        assert name is not None and f"Note [{name[1]}]" in shown


def test_the_demo_keeps_nothing_and_needs_no_arguments(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "demo"]
    done = subprocess.run(command, capture_output=True, env=os.environ, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == b"" and done.stdout.count(b"\n=== ") == 4
    assert not Path(os.environ["OBSERVATIONAL_MEMORY_HOME"]).exists()


def test_the_demo_shows_all_lines_when_asked(run: Run) -> None:
    path = str(DEMO / "codex")
    short, whole = run("demo", path).out, run("demo", path, "--whole").out
    assert "more lines (demo --whole shows all)" in short and "more lines (demo" not in whole
    assert len(whole.splitlines()) > len(short.splitlines())
