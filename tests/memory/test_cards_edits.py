"""Names that a change brought, in many languages."""

from __future__ import annotations

import pytest

from obsmem.memory.cards_edits import identifiers_brought, line_changes, mentions_brought, shell_edits


@pytest.mark.parametrize(
    ("path", "new", "expected"),
    [
        (
            "a.py",
            "class Loader:\n    async def load_all(self):\n        LIMIT_MAX = 3\n",
            ("Loader", "load_all", "LIMIT_MAX"),
        ),
        ("a.go", "func (s *Store) Append(x int) error {\n}\ntype Record struct {\n}\n", ("Append", "Record")),
        ("a.rs", "pub fn parse() {}\npub(crate) struct Token;\nimpl Token {}\n", ("parse", "Token")),
        (
            "a.ts",
            "export const maxItems = 3;\nexport interface Shape {}\nfunction draw() {}\n",
            ("maxItems", "Shape", "draw"),
        ),
        ("A.java", "public class Job {\n  public static void start(int n) {\n  }\n}\n", ("Job", "start")),
        ("run.sh", "cleanup() {\n  rm x\n}\nOUT_DIR=/tmp/x\n", ("cleanup", "OUT_DIR")),
        ("q.sql", "CREATE TABLE IF NOT EXISTS notes (id)", ("notes",)),
        ("cli.py", 'parser.add_argument("--dry-run")\n', ("--dry-run",)),
        ("c.toml", "[tool.thing]\nline-length = 3\n", ("tool.thing", "line-length")),
        ("d.md", "# How it works\ntext\n## Limits\n", ("How it works", "Limits")),
    ],
)
def test_definitions_of_many_languages(path: str, new: str, expected: tuple[str, ...]) -> None:
    found = identifiers_brought(new, "", path)
    assert set(expected) <= set(found)
    assert found[0] == expected[0]


def test_names_that_were_there_before_are_not_new() -> None:
    old = "def load():\n    return 1\n"
    assert identifiers_brought("def load():\n    return 2\n\ndef save():\n    pass\n", old, "a.py") == ("save",)


def test_at_most_forty_names() -> None:
    assert len(identifiers_brought("".join(f"def f_{n}(): ...\n" for n in range(60)), "", "a.py")) == 40


@pytest.mark.parametrize(
    ("new", "old", "changes"),
    [("a\nb\n", "", (2, 0)), ("", "a", (0, 1)), ("a\nc", "a\nb", (1, 1)), ("a", "a", (0, 0)), ("a\na", "a", (1, 0))],
)
def test_lines_added_and_removed(new: str, old: str, changes: tuple[int, int]) -> None:
    assert line_changes(new, old) == changes


@pytest.mark.parametrize(
    ("command", "edits"),
    [
        ("cat > b.py <<'EOF'\ndef f(): ...\nEOF", [("write", "b.py", "def f(): ...\n")]),
        ("mkdir -p x && cat <<END > x/a.sh\necho hi\nEND\nchmod +x x/a.sh", [("write", "x/a.sh", "echo hi\n")]),
        ("cat >> notes.md <<EOF\nmore\nEOF", [("edit", "notes.md", "more\n")]),
        ("tee -a .env <<EOF\nA=1\nEOF", [("edit", ".env", "A=1\n")]),
        ("sed -i 's/a/b/' src/a.py && pytest", [("edit", "src/a.py", "")]),
        ("git commit -m \"$(cat <<'EOF'\nSay why\nEOF\n)\"", []),
        ("python3 - <<'PY'\nopen('x')\nPY", []),
        ("cat a > /dev/null", []),
    ],
)
def test_files_that_a_shell_command_writes(command: str, edits: list[tuple[str, str, str]]) -> None:
    assert shell_edits(command) == edits


def test_the_letter_of_an_escape_belongs_to_no_name() -> None:
    new = r'print("\nNewLine\tgitHash", baseCommit)'
    assert mentions_brought(new, "", ()) == ("NewLine", "gitHash", "baseCommit")
