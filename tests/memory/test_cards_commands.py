"""What a command was, and how it ended, by the formats of real runners."""

from __future__ import annotations

import pytest

from obsmem.memory import cards_commands as commands

PYTEST = """\
.F.
=================================== FAILURES ===================================
    def test_b():
>       assert load() == 3
E       AssertionError: assert 2 == 3

tests/test_a.py:9: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_b - AssertionError: assert 2 == 3
========================= 1 failed, 2 passed in 0.12s ==========================
"""
GO = """\
=== RUN   TestSum
--- FAIL: TestSum (0.00s)
    --- FAIL: TestSum/negative (0.00s)
        sum_test.go:14: got 3, want -1
FAIL
FAIL\texample.com/sum\t0.004s
"""
CARGO = """\
running 2 tests
test tests::adds ... ok
test tests::subtracts ... FAILED

thread 'tests::subtracts' panicked at src/lib.rs:12:5:
assertion failed
test result: FAILED. 1 passed; 1 failed; 0 ignored
"""
JEST = """\
FAIL src/sum.test.js
  ● sum › adds negatives

    Error: expected 1 to be 2

Tests:       1 failed, 4 passed, 5 total
"""
VITEST = """\
 FAIL  src/sum.test.ts > sum > adds negatives
AssertionError: expected 1 to be 2
      Tests  1 failed | 4 passed (5)
"""
UNITTEST = """\
FAIL: test_b (tests.test_a.Case)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests/test_a.py", line 5, in test_b
    self.assertEqual(1, 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1)
"""
MOCHA = """\
  2 passing (8ms)
  1 failing

  1) sum adds negatives:
     AssertionError: expected 1 to equal 2
"""
RSPEC = """\
3 examples, 1 failure

rspec ./spec/sum_spec.rb:7 # Sum adds negatives
"""


@pytest.mark.parametrize(
    ("output", "failing", "error", "summary"),
    [
        (PYTEST, "tests/test_a.py::test_b", "E       AssertionError: assert 2 == 3", "1 failed, 2 passed in 0.12s"),
        (GO, "TestSum/negative", "sum_test.go:14: got 3, want -1", "FAIL\texample.com/sum\t0.004s"),
        (
            CARGO,
            "tests::subtracts",
            "thread 'tests::subtracts' panicked at src/lib.rs:12:5:",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored",
        ),
        (JEST, "sum › adds negatives", "Error: expected 1 to be 2", "Tests:       1 failed, 4 passed, 5 total"),
        (
            VITEST,
            "src/sum.test.ts > sum > adds negatives",
            "AssertionError: expected 1 to be 2",
            "Tests  1 failed | 4 passed (5)",
        ),
        (UNITTEST, "test_b (tests.test_a.Case)", "AssertionError: 1 != 2", "FAILED (failures=1)"),
        (MOCHA, "sum adds negatives", "AssertionError: expected 1 to equal 2", "1 failing"),
        (RSPEC, "./spec/sum_spec.rb:7", None, "3 examples, 1 failure"),
    ],
)
def test_a_runner_that_failed_is_known_even_behind_a_pipe_that_ended_well(
    output: str, failing: str, error: str | None, summary: str
) -> None:
    outcome = commands.read_outcome(output, True, 0)
    assert outcome.ok is False
    assert outcome.failing == (failing,)
    assert outcome.summary == summary
    assert error is None or error in outcome.errors


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\nKeyError: 'name'\n",
            "KeyError: 'name'",
        ),
        (
            "Exit code 2\nsrc/a.c: In function 'f':\nsrc/a.c:3:5: error: 'x' undeclared\nmake: *** [a.o] Error 1",
            "src/a.c:3:5: error: 'x' undeclared",
        ),
        ("./a.go:3:7: undefined: parse\n", "./a.go:3:7: undefined: parse"),
        ("src/a.ts(3,7): error TS2304: Cannot find name 'x'.", "src/a.ts(3,7): error TS2304: Cannot find name 'x'."),
        ("error[E0425]: cannot find value `x`\n --> src/a.rs:3:5", "error[E0425]: cannot find value `x`"),
        ("[lint] ERROR task failed\n[lint] src/a.go:3:7: unused x\n", "[lint] src/a.go:3:7: unused x"),
        ("bash: foo: command not found", "bash: foo: command not found"),
        ("10%\r20%\rfatal: refusing to merge", "fatal: refusing to merge"),
        ("Exit code 1\nnothing to say", "nothing to say"),
    ],
)
def test_the_deciding_line_is_quoted_verbatim(output: str, error: str) -> None:
    outcome = commands.read_outcome(output, False, 1)
    assert outcome.errors[0] == error


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        ("===== 214 passed in 3.01s =====", "214 passed in 3.01s"),
        ("ok  \texample.com/sum\t0.004s\nok  \texample.com/x\t0.1s [no tests to run]", "ok  \texample.com/sum\t0.004s"),
        ("Success: no issues found in 3 source files", "Success: no issues found in 3 source files"),
        ("a line about an error that was handled", ""),
    ],
)
def test_a_good_end_has_its_summary_and_no_errors(output: str, summary: str) -> None:
    assert commands.read_outcome(output, True, 0) == commands.Outcome(True, 0, (), (), summary)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cd /w && pytest  -q", "pytest -q"),
        ('cd "/a b" ; make\tall', "make all"),
        ("CI=1 make test", "CI=1 make test"),
        ("cat > a.py <<'EOF'\nx = 1\nEOF", "cat > a.py <<'EOF' x = 1 […]"),
        (
            "cd /w\nmkdir -p b\ncat > b/a.py <<'EOF'\nx = 1\nEOF\npython b/a.py",
            "mkdir -p b cat > b/a.py <<'EOF' x = 1 […]",
        ),
        (
            "git commit -m \"$(cat <<'EOF'\nMend the reader\n\nIt read twice.\nEOF\n)\"",
            "git commit -m \"$(cat <<'EOF' Mend the reader […]",
        ),
        ("cd /w", "cd /w"),
    ],
)
def test_a_command_has_one_line_as_its_name(command: str, name: str) -> None:
    assert commands.normalise(command) == name


@pytest.mark.parametrize(
    ("command", "noise"),
    [
        ("ls -la src | head -5", True),
        ("git status && git diff --stat", True),
        ("git -C /w log --oneline", True),
        ("grep -n 'a|b;c' x.py", True),
        ("sleep 3; cat log.txt", True),
        ("cat > a.py <<EOF\nx\nEOF", False),
        ("sed -i s/a/b/ x.py", False),
        ("git push", False),
        ("cat list | xargs rm", True),
        ("pytest -q | tail -3", False),
        ("rg x 2>/dev/null", True),
    ],
)
def test_only_looking_around_is_noise(command: str, noise: bool) -> None:
    assert commands.is_noise(command) is noise


def test_commits_and_references_are_read_from_the_output() -> None:
    output = "[main 3f2a9c1] Add the parser\n 2 files changed\n[detached HEAD aaaaaaa] Try it\n"
    assert commands.commits_in("git commit -m x", output) == [
        ("3f2a9c1", "Add the parser", "main"),
        ("aaaaaaa", "Try it", ""),
    ]
    address = "https://github.com/o/r/pull/12"
    assert commands.references_in("gh pr create --fill", address + "\n") == [address]
    assert commands.references_in("gh pr list --state open", address) == []


def test_a_huge_output_is_read_by_its_two_ends() -> None:
    outcome = commands.read_outcome("x\n" * 500_000 + "3 failed, 1 passed in 2.0s\n", True, 0)
    assert (outcome.ok, outcome.summary) == (False, "3 failed, 1 passed in 2.0s")


def test_the_first_and_the_last_line_that_name_trouble_are_kept_beside_the_deciding_ones() -> None:
    output = (
        "Auto-merging a.go\nCONFLICT (content): Merge conflict in a.go\nAutomatic merge failed; fix conflicts first.\n"
    )
    outcome = commands.read_outcome(output, False, 1)
    assert outcome.errors == ("CONFLICT (content): Merge conflict in a.go",)
    told = commands.further_trouble(output, outcome.errors)
    assert told == {"last": "Automatic merge failed; fix conflicts first."}
    assert commands.further_trouble("Exit code 1\nall is well", ()) == {}


def test_a_command_is_typed_up_to_the_first_line_of_its_here_document() -> None:
    command = "cd /w/refl\nsource jars.env\ncat > Probe.java <<'EOF'\nimport java.util.*;\npublic class Probe {}\nEOF\njavac Probe.java"
    assert commands.as_typed(command, "/w") == (
        "cd /w/refl source jars.env cat > Probe.java <<'EOF' import java.util.*;"
    )
