"""Nothing of a failed command is lost, whatever it printed: told by the checker of the bench, which shares nothing with rules."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

import pytest

from bench.reduce_check import losses
from obsmem.core.reduce import Rules, reduce

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"\[… [^\n]* …\]")
COMMANDS = (
    "cargo test", "pytest -v", "go test -v ./...", "npx jest", "make -j4", "npm run build", "git diff -U50", "git status", "git log",
    "grep -rn x src", "find . -type f", "ls -la", "tree", "gh api repos/x", "journalctl -u x", "./run.sh", "python -m unittest -v",
    "cd a && FOO=1 make 2>&1 | tail -400", "docker build .", "cargo build; git status; rg -n foo",
)  # fmt: skip


def pool(chance: random.Random) -> list[str]:
    """A few lines that belong together, of any kind of program."""
    number = chance.randint(1, 99)
    some = chance.randint(1, 14)
    kinds = [
        [f"test module::name_{number + i} ... ok" for i in range(some)],
        [f"test module::error_{number} ... FAILED"],
        [f"tests/test_a{number}.py::test_{i} PASSED [ {i}%]" for i in range(some)],
        [f"tests/test_a{number}.py::test_fail_{i} FAILED [ {i}%]" for i in range(2)],
        ["=== RUN   TestA", f"    a_test.go:{number}: said", "--- PASS: TestA (0.00s)"],
        ["=== RUN   TestB", f"    b_test.go:{number}: expected 1, got 2", "--- FAIL: TestB (0.00s)"],
        [f"  ✓ does {number + i} (3 ms)" for i in range(some)],
        [f"  ✕ fails on {number}", f"  ● suite › fails on {number}"],
        [f"   Compiling crate{i} v1.{number}.0" for i in range(some)],
        [f"src/file{number}.c:{i}:3: error: undefined reference to `f{i}'" for i in range(2)],
        [f"[{i}/99] Building C object src/dir{number}/a{i}.c.o" for i in range(some)],
        [f"src/deep/path{number}.py:{i}:    value = {i}" for i in range(some)],
        [f"./folder{number}/file{i}.txt" for i in range(some)],
        [f"-rw-r--r-- 1 me me {i}00 Jan  1 10:00 name{i}.rs" for i in range(some)],
        [f"2026-01-02T03:04:{i:02}Z INFO request {i} served in {number} ms" for i in range(some)],
        [f"2026-01-02T03:04:05Z ERROR request {number} failed"],
        [
            "Traceback (most recent call last):",
            f'  File "x{number}.py", line 3, in f',
            "    g()",
            "ValueError: bad value",
        ],
        ["the same line"] * some,
        [""] * some,
        [
            f"diff --git a/f{number}.py b/f{number}.py",
            "@@ -1,30 +1,30 @@",
            *[f" context {i}" for i in range(14)],
            "-old",
            "+new",
        ],
        ['[{"name":"a","id":1}' + f',{{"name":"b","id":{number}}}' * 20 + "]"],
        [f"{i * 7}% [#####     ] {i}/14\r" for i in range(some)],
        [f"process exited with exit code {number}"],
        ["x" * 50 * number],
        [f"\t{name}{number}.txt" for name in ("a", "b")],
        ["\x1b[31mFAIL\x1b[0m src/app.test.ts", "npm ERR! code ELIFECYCLE"],
    ]
    return chance.choice(kinds)


def output_of(chance: random.Random) -> str:
    lines = [line for _ in range(chance.randint(5, 60)) for line in pool(chance)]
    return "\n".join(lines) + chance.choice(["", "\n"])


def test_a_failed_command_loses_nothing_that_tells_why() -> None:
    chance = random.Random(11)
    shortened = 0
    for _ in range(400):
        command, output = chance.choice(COMMANDS), output_of(chance)
        reduced = reduce(command, output, chance.choice([1, 2, 101]), Rules(minimum=0))
        if reduced is not None:
            shortened += 1
            lost = losses(output, reduced.text, 1)
            assert lost.failed
            assert not any(lost[1:]), (command, lost)
    assert shortened > 40


@pytest.mark.parametrize("seed", range(40))
def test_what_is_kept_are_lines_of_the_whole_in_their_order(seed: int) -> None:
    chance = random.Random(1_000 + seed)
    for _ in range(8):
        command, output = chance.choice(COMMANDS), output_of(chance)
        reduced = reduce(command, output, 0, Rules(minimum=0))
        if reduced is None:
            continue
        assert reduced.kept_bytes <= 0.8 * reduced.whole_bytes
        at = 0
        for piece in MARK.split(reduced.text):
            for line in piece.split("\n"):
                found = output.find(line, at)
                assert found >= 0, (command, line)
                at = found + len(line)


def test_the_checker_shares_nothing_with_the_rules() -> None:
    tree = ast.parse((ROOT / "bench" / "reduce_check.py").read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= {"__future__", "re", "collections", "typing"}


WHOLE = """running 3 tests
test a ... ok
test b ... FAILED
before
thread 'b' panicked at src/lib.rs:3:5:
after
note: see tests/data/b.json
error: test failed, to rerun pass `--lib`
exit code 101
"""


@pytest.mark.parametrize(
    ("gone", "kind"),
    [
        ("error: test failed, to rerun pass `--lib`\n", "errors"),
        ("before\n", "surroundings"),
        ("test b ... FAILED\n", "tests"),
        ("tests/data/b.json", "paths"),
        ("exit code 101\n", "exits"),
    ],
)
def test_the_checker_sees_what_is_lost(gone: str, kind: str) -> None:
    assert not any(losses(WHOLE, WHOLE, 101)[1:])
    assert getattr(losses(WHOLE, WHOLE.replace(gone, ""), 101), kind)


@pytest.mark.parametrize("shortened", [WHOLE + "made up\n", WHOLE.replace("test a ... ok\n", "") + "test a ... ok\n"])
def test_the_checker_sees_what_is_invented_or_moved(shortened: str) -> None:
    assert losses(WHOLE, shortened, 101).invented
