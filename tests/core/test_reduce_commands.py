"""Which programs a shell line runs whose output is seen."""

from __future__ import annotations

import random

import pytest

from obsmem.core.reduce_commands import effective_commands, is_bypassed


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("git status", ["git status"]),
        ("cd src && git diff", ["git diff"]),
        ("cd 'my folder' ; git -C x --no-pager -c a.b=c diff --stat", ["git diff --stat"]),
        ("FOO=1 BAR='two words' pytest -q", ["pytest -q"]),
        ("A=$(git rev-parse HEAD; ls) git diff $A", ["git diff $A"]),
        ("LOG=/tmp/a.log TMPDIR=/tmp make", ["make"]),
        ("sudo -u www timeout -k 5 60 nice -n 10 env -u HOME A=1 make -j4", ["make -j4"]),
        ("time -p cargo +nightly test --lib", ["cargo test --lib"]),
        ("uv run --with x python -m pytest tests", ["pytest tests"]),
        ("poetry run pytest", ["pytest"]),
        ("npx -y jest --ci", ["jest --ci"]),
        ("pnpm exec vitest run", ["vitest run"]),
        ("pnpm --filter web test", ["pnpm test"]),
        (".venv/bin/python3.12 -m unittest -v", ["unittest -v"]),
        ("python script.py", ["python script.py"]),
        ("node_modules/.bin/eslint .", ["eslint ."]),
        ("bash -lc 'cd a && go test ./... 2>&1 | tail -50'", ["go test ./..."]),
        ("(cd a; npx jest) || true", ["jest"]),
        ("if ! make; then echo broken; fi", ["make"]),
        ("for f in *.c; do gcc -c $f; done", ["gcc -c $f"]),
        ("git log | head -20 | cat", ["git log"]),
        ("git show HEAD:a.py | sed -n '1,80p'", ["git show HEAD:a.py"]),
        ("cargo test 2>&1 | grep -v '^warning' | tail", ["cargo test"]),
        ("cargo test 2>&1 | grep -c ok", ["grep -c ok"]),
        ("find . -name '*.py' | xargs -n 1 grep foo", ["grep foo"]),
        ("gh api x | jq '.[]'", ["jq .[]"]),
        ("cargo test > /tmp/o.txt 2>&1; tail -50 /tmp/o.txt", ["cargo test"]),
        ("make 2>&1 | tee build.log | tail -3", ["make"]),
        ("make >/dev/null 2>errors.txt", []),
        ("make 2>/dev/null", ["make"]),
        ("cat <<'END' > x\ngit diff\nEND\ngit status", ["git status"]),
        ("git status && git diff; ls", ["git status", "git diff", "ls"]),
        ("git log --format='%h | %s; x' # a | comment; ls", ["git log --format=%h | %s; x"]),
        ("cd a && export B=1 && mkdir c", []),
        ("rtk cargo build", ["cargo build"]),
        ("echo 'never ends", []),
        ("", []),
    ],
)
def test_a_line_is_read_as_what_it_shows(command: str, programs: list[str]) -> None:
    assert effective_commands(command) == programs


def test_no_line_is_too_broken_to_be_read() -> None:
    signs = ["'", '"', "`", "$(", ")", "(", "|", "||", "&&", ";", "\n", "<<E", "<<<", ">", "2>&1", "\\", "#", " ", "a", "git", "-m", "python", "sh", "-c", "="]  # fmt: skip
    chance = random.Random(7)
    for _ in range(3_000):
        line = "".join(chance.choice(signs) for _ in range(chance.randint(1, 25)))
        assert all(program for program in effective_commands(line))


@pytest.mark.parametrize(
    "command", ["make # whole output", "make  #whole output", "# Whole Output\nmake", "make; # whole output please"]
)
def test_a_comment_asks_for_the_whole(command: str) -> None:
    assert is_bypassed(command)


@pytest.mark.parametrize("command", ["make", "make # the whole output", "grep '#whole' output", "make #wholeoutput"])
def test_other_comments_do_not(command: str) -> None:
    assert not is_bypassed(command)
