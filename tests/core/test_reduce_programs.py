"""What real programs print, shortened: git, pytest, unittest, cargo, node, make, ls, find, grep, run here and now."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.reduce_check import losses
from obsmem.core.reduce import Reduced, Rules, reduce

needs = {name: pytest.mark.skipif(shutil.which(name) is None, reason=f"no {name} here") for name in ("git", "cargo", "node", "make", "gcc", "jq")}  # fmt: skip


class Ran(NamedTuple):
    """A command as a shell ran it, what it printed, and what is left of that."""

    output: str
    code: int
    reduced: Reduced | None

    @property
    def text(self) -> str:
        assert self.reduced is not None
        return self.reduced.text


def run(folder: Path, command: str, **rules: int) -> Ran:
    """Run a line in a folder and shorten its output. Of a failed one nothing may be lost."""
    environment = {**os.environ, "LC_ALL": "C", "GIT_CONFIG_GLOBAL": os.devnull, "PYTEST_ADDOPTS": "", "NO_COLOR": "1"}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, timeout=240, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    output = done.stdout.decode("utf-8", "surrogateescape")
    reduced = reduce(command, output, done.returncode, Rules(**rules))
    if reduced is not None:
        lost = losses(output, reduced.text, done.returncode)
        assert not lost.invented
        if done.returncode:
            assert not any(lost[1:])
    return Ran(output, done.returncode, reduced)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    run(
        folder,
        "git init -q . && git config user.email a@b.c && git config user.name me && git config commit.gpgsign false",
    )
    return folder


def commit(folder: Path, subject: str) -> None:
    run(folder, f"git add -A && git commit -q --allow-empty -m '{subject}' -m 'A body of a few words that say why.'")


@needs["git"]
def test_git_status_counts_untracked_files(repository: Path) -> None:
    for number in range(120):
        (repository / f"some_file_{number:03}.txt").write_text("x")
    (repository / "kept.py").write_text("x")
    run(repository, "git add kept.py")
    ran = run(repository, "git status")
    assert "\tnew file:   kept.py\n" in ran.text
    assert "\tsome_file_000.txt\n" in ran.text
    assert "\tsome_file_119.txt\n" in ran.text
    assert "108 untracked in ./" in ran.text
    short = run(repository, "git status --short", minimum=500)
    assert short.text.startswith("A  kept.py\n?? some_file_000.txt\n")
    assert "108 untracked in ./" in short.text


@needs["git"]
def test_a_diff_keeps_every_changed_line(repository: Path) -> None:
    lines = [f"line {number} of the file\n" for number in range(300)]
    (repository / "long.txt").write_text("".join(lines))
    (repository / "package-lock.json").write_text("".join(lines))
    (repository / "gone.txt").write_text("".join(lines))
    commit(repository, "first")
    changed = [*lines[:150], "a new line\n", "--- looks like a head\n", *lines[151:]]
    (repository / "long.txt").write_text("".join(changed))
    (repository / "package-lock.json").write_text("".join(reversed(lines)))
    (repository / "gone.txt").unlink()
    ran = run(repository, "cd . && git diff -U120 | cat")
    assert "-line 150 of the file\n+a new line\n+--- looks like a head\n" in ran.text
    assert " line 147 of the file\n line 148 of the file\n line 149 of the file\n" in ran.text
    assert "unchanged lines …]" in ran.text
    assert "598 changed lines of package-lock.json" in ran.text
    assert "297 deleted lines of gone.txt" in ran.text
    assert ran.text.count("diff --git ") == 3
    assert len(ran.text) < len(ran.output) / 8


@needs["git"]
def test_a_small_diff_stays_whole(repository: Path) -> None:
    (repository / "a.txt").write_text("".join(f"{number}\n" for number in range(600)))
    commit(repository, "first")
    (repository / "a.txt").write_text(
        "".join(f"{number}\n" if number % 6 else f"{number} changed\n" for number in range(600))
    )
    ran = run(repository, "git diff")
    assert len(ran.output) > 2_000
    assert ran.reduced is None


@needs["git"]
def test_a_log_keeps_hashes_and_subjects(repository: Path) -> None:
    for number in range(50):
        (repository / "a.txt").write_text(str(number))
        commit(repository, f"Subject {number}")
    ran = run(repository, "git log")
    for line in ran.output.splitlines():
        if line.startswith("commit ") or "Subject" in line:
            assert f"{line}\n" in ran.text
    assert ran.text.count("Author: ") == 8
    assert ran.text.endswith("more lines of the commits above …]\n")
    assert ran.text.count("[…") == 1
    line = run(repository, "git --no-pager log --format='%h %an %s'", minimum=100)
    assert "Subject 49\n" in line.text
    assert "Subject 0\n" in line.text
    assert "[… 15 more commits …]\n" in line.text


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    for name in ("alpha", "beta"):
        (folder / f"test_{name}.py").write_text(
            "import pytest\n@pytest.mark.parametrize('number', range(70))\n"
            f"def test_error_{name}(number):\n    assert number >= 0\n",
            encoding="utf-8",
        )
    return folder


PYTEST = f"{sys.executable} -m pytest -p no:cacheprovider -p no:randomly"


def test_passing_tests_of_pytest_become_counts(suite: Path) -> None:
    ran = run(suite, f"{PYTEST} -v")
    assert ran.code == 0
    assert "passing tests in test_alpha.py" in ran.text
    assert "passing tests in test_beta.py" in ran.text
    assert "140 passed" in ran.text
    assert len(ran.text) < len(ran.output) / 5


def test_failing_tests_of_pytest_stay_whole(suite: Path) -> None:
    (suite / "test_gamma.py").write_text(
        "def test_broken():\n    print('said before')\n    value = {'a': 1}\n    assert value == {'a': 2}, 'why not'\n",
        encoding="utf-8",
    )
    ran = run(suite, f"cd . && {PYTEST} -v")
    assert ran.code == 1
    report = ran.output[ran.output.index("= FAILURES =") :]
    assert report in ran.text
    assert "test_gamma.py::test_broken FAILED" in ran.text
    assert len(ran.text) < len(ran.output) / 2


def test_a_traceback_at_collection_stays(suite: Path) -> None:
    (suite / "test_gamma.py").write_text("import nothing_of_that_name\n", encoding="utf-8")
    ran = run(suite, f"{PYTEST} -v --continue-on-collection-errors")
    assert ran.code == 1
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in ran.text


def test_unittest_folds_what_is_ok(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_fails(self):\n        self.assertEqual(1, 2)\n"
        + "".join(f"    def test_a_long_name_of_a_test_{number}(self):\n        pass\n" for number in range(60)),
        encoding="utf-8",
    )
    ran = run(tmp_path, f"{sys.executable} -m unittest -v")
    assert ran.code == 1
    assert "AssertionError: 1 != 2\n" in ran.text
    assert "FAILED (failures=1)" in ran.text
    assert "passing tests …]" in ran.text


@needs["cargo"]
def test_cargo_folds_what_is_ok(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "thing"\nversion = "0.1.0"\nedition = "2021"\n')
    tests = "".join(f"#[test] fn handles_error_{number}() {{}}\n" for number in range(80))
    (tmp_path / "src" / "lib.rs").write_text(tests + '#[test] fn breaks() { assert_eq!(1, 2, "told so"); }\n')
    toolchains = Path(str(shutil.which("cargo"))).parents[2] / ".rustup"  # the home of a test has none
    ran = run(tmp_path, f"RUSTUP_HOME={toolchains} RUST_BACKTRACE=0 CARGO_NET_OFFLINE=true cargo test 2>&1")
    if "running 81 tests" not in ran.output:
        pytest.skip("cargo cannot build here")
    assert "test breaks ... FAILED\n" in ran.text
    assert "told so" in ran.text
    assert "passing tests …]" in ran.text
    assert len(ran.text) < len(ran.output) / 2


@needs["node"]
def test_node_folds_what_is_ticked(tmp_path: Path) -> None:
    checks = "".join(f"test('does the thing number {number}', () => {{}});\n" for number in range(60))
    (tmp_path / "it.test.js").write_text(
        f"const test = require('node:test'); const assert = require('node:assert');\n{checks}"
        "test('breaks', () => { assert.strictEqual(1, 2); });\n"
    )
    ran = run(tmp_path, "node --test --test-reporter=spec it.test.js")
    if "breaks" not in ran.output:
        pytest.skip("this node has no runner of tests")
    assert ran.code == 1
    assert "AssertionError" in ran.text
    assert "passing tests" in ran.text
    tap = run(tmp_path, "node --test --test-reporter=tap it.test.js")
    assert "not ok" in tap.text
    assert len(tap.text) < len(tap.output) / 2


@needs["make"]
@needs["gcc"]
def test_a_build_keeps_its_warnings_and_errors(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"part{number}.c").write_text(f"int part{number}(void) {{ return {number}; }}\n")
    (tmp_path / "part20.c").write_text("int part20(void) { int unused; return 20; }\n")
    (tmp_path / "Makefile").write_text(
        "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\tgcc -Wall -Wextra -O0 -I/usr/include/some/where -c $< -o $@\n"
    )
    fine = run(tmp_path, "make -B")
    assert fine.code == 0
    assert "part20.c:1:24: warning: unused variable" in fine.text
    assert "steps …]" in fine.text
    (tmp_path / "part30.c").write_text("int part30(void) { return x; }\n")
    broken = run(tmp_path, "make -B -k")
    assert broken.code != 0
    where = broken.text if broken.reduced else broken.output
    assert "part30.c:1:27: error: " in where
    assert all(f"part{number}.c" in where for number in range(40))


def test_listings_are_counted_by_folder(tmp_path: Path) -> None:
    for folder in ("src/one", "src/two", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        for number in range(60):
            (tmp_path / folder / f"name{number:02}.py").write_text(f"value_{number} = compute({number})\n")
    found = run(tmp_path, "find . -type f | sort")
    assert "56 more in ./src/one/" in found.text
    assert "./src/two/name00.py\n" in found.text
    assert "./docs/name59.py\n" in found.text
    listed = run(tmp_path, "ls -la src/one")
    assert "more *.py …]" in listed.text
    assert listed.text.startswith("total ")
    assert "name59.py\n" in listed.text
    hits = run(tmp_path, "grep -rn compute . | sort")
    assert hits.text.count("value_") < 200
    lines = run(tmp_path, "grep -n 'import\\|def' $(python3 -c 'import argparse; print(argparse.__file__)') /dev/null")
    assert "more in /" in lines.text


def test_a_failed_listing_keeps_its_paths(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"name{number:02}.py").write_text("x = 1\n")
    ran = run(tmp_path, "find . nowhere -type f")
    assert ran.code != 0
    shown = ran.text if ran.reduced else ran.output
    assert all(f"./name{number:02}.py" in shown for number in range(100))
    assert "nowhere" in shown


def test_arrays_of_alike_objects_become_a_count(tmp_path: Path) -> None:
    items = [
        {"id": number, "name": f"job {number}", "conclusion": "success", "body": "words " * 9} for number in range(60)
    ]
    items[30]["conclusion"] = "failure"
    (tmp_path / "a.py").write_text(f"import json\nprint(json.dumps({{'total': 60, 'jobs': {items!r}}}))\n")
    ran = run(tmp_path, f"{sys.executable} a.py")
    assert ran.text.startswith('{"total": 60, "jobs": [{"id": 0,')
    assert '"id": 30, "name": "job 30", "conclusion": "failure"' in ran.text
    assert '"id": 59' in ran.text
    assert "[… 28 objects like these with id, name, conclusion, body …]" in ran.text
    (tmp_path / "a.py").write_text(f"import json\nprint(json.dumps({items!r}, indent=2))\n")
    pretty = run(tmp_path, f"{sys.executable} a.py")
    assert '    "id": 30,\n' in pretty.text
    assert "28 objects like these with" in pretty.text
    (tmp_path / "a.py").write_text(f"import json\nfor item in {items!r}: print(json.dumps(item))\n")
    lines = run(tmp_path, f"{sys.executable} a.py")
    assert json.loads(lines.text.split("\n")[0]) == items[0]
    assert "28 objects like these with" in lines.text


def test_a_progress_bar_is_left_as_it_ends(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "print('start')\nfor n in range(200): print(f'{n/2:.1f}% of the files copied to there', end='\\r')\nprint('done, 200 files')\n"
    )
    ran = run(tmp_path, f"{sys.executable} a.py")
    assert ran.text.startswith("start\n")
    assert ran.text.endswith("done, 200 files\n")
    assert "overwritten lines" in ran.text


def test_a_log_keeps_its_warnings(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "for n in range(120):\n    print(f'2026-01-02T03:04:{n % 60:02}Z INFO served request {n} in {n * 7} ms')\n"
        "    if n == 60: print('2026-01-02T03:05:00Z WARN the disk is nearly full')\n"
    )
    ran = run(tmp_path, f"{sys.executable} a.py")
    assert "WARN the disk is nearly full\n" in ran.text
    assert "served request 0 " in ran.text
    assert "served request 119 " in ran.text
    assert len(ran.text) < 1_000


def test_a_long_line_is_cut_in_its_middle(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print('begin ' + 'word ' * 4000 + 'end')\n")
    ran = run(tmp_path, f"{sys.executable} a.py; exit 0")
    assert ran.text.startswith("begin word")
    assert ran.text.endswith("word end\n")
    assert "characters …]" in ran.text


def test_a_hit_in_a_long_line_stays_in_sight(tmp_path: Path) -> None:
    (tmp_path / "bundle.js").write_text("var a=1;" * 2_000 + "function wantedThing(){}" + "var b=2;" * 2_000 + "\n")
    ran = run(tmp_path, "grep -rn wantedThing .")
    assert "function wantedThing(){}" in ran.text
    assert ran.text.startswith("./bundle.js:1:")
    assert len(ran.text) < 1_500
