"""Tables of ours in somebody's TOML document: put in and taken out again, every other character stays, nothing in a string or
list is taken for a table. What a document means is asked of a real parser."""

from __future__ import annotations

import random
from typing import Any

import pytest

from obsmem.core.tomltables import MARK, count, merge, tables, take_out

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = pytest.importorskip("tomli")

OURS = {"mcp_servers": {"observational-memory": {"command": '/x/y z/"q"', "args": ["mcp"], "enabled": True}}}
# Parts of documents, with a number in their names, so that several fit together; first those that stand before any table.
VALUES = (
    "plain{} = 1\n",
    "# a comment [with.a] header\n\n",
    'text{} = "with # and [brackets] and \\"quotes\\""\n',
    "literal{} = 'C:\\'\n",
    'long{} = """\n[mcp_servers.observational-memory]\ncommand = "/x/y z/"\n"""\n',
    'mcp{} = """\nmcp_servers = 1\n"""\n',
    'escaped{} = """one \\""" two\n[not.a.table]\n\\\\"""\n',
    'full{} = """quotes at the end"""""\n',
    "raw{} = '''\n[also.none]\nit''s \\'''\n",
    "one_line{} = '''\\'''\n",
    "list{} = [\n  \"[a]\", # ]\n  [1, 2],\n  '''\n[b]\n]''',\n]\n",
    "dotted{}.name.x = true\n",
    '"quoted {}" = {{ a = [1], "b" = "]" }}\n',
    "\n",
)
TABLES = (
    "[table{}]\nmcp_servers = true\n",
    '[ table . "with.dots and [brackets] {}" ]\nx = 1\n',
    "[mcp_servers.'other {}'] # of somebody else\ncommand = 'run'\n",
    '[mcp_servers.server_{}]\ncommand = "run"\nargs = [\n"[x]",\n]\n\n[mcp_servers.server_{}.env]\nA = "1"\n',
    "# belongs to what follows\n[[many{}]]\nx = 1\n\n[[many{}]]\n[many{}.below]\ny = 2\n",
    "[empty_{}]\n\n\n",
    "[strings_{}]\na = '''\n[[c]]\n'''\nb = \"\"\"x\"\"\"\n",
)


def is_ours(text: str) -> bool:
    return "/x/y z/" in text


def document(dice: random.Random) -> str:
    """A valid document, made of some of the parts."""
    pieces = [piece.replace("{}", str(n)) for n, piece in enumerate(dice.choices(VALUES, k=dice.randrange(5)))]
    pieces += [piece.replace("{}", str(n)) for n, piece in enumerate(dice.choices(TABLES, k=dice.randrange(5)))]
    text = "".join(pieces).replace("{{", "{").replace("}}", "}")
    if dice.random() < 0.3:
        text = text.rstrip("\n") + dice.choice(["", "  ", " # the end"])
    if dice.random() < 0.4:
        text = text.replace("\n", "\r\n")
    tomllib.loads(text)
    return text


def meaning(text: str) -> dict[str, Any]:
    return dict(tomllib.loads(text))


def with_ours(text: str) -> dict[str, Any]:
    """What a document means with our table in it."""
    value = meaning(text)
    return {**value, "mcp_servers": {**value.get("mcp_servers", {}), **OURS["mcp_servers"]}}


@pytest.mark.parametrize("seed", range(300))
def test_what_is_put_in_is_there_and_taken_out_leaves_every_byte(seed: int) -> None:
    text = document(random.Random(seed))
    merged = merge(text, OURS)
    assert merged.startswith(text) and meaning(merged) == with_ours(text)
    assert ("\r\n" in merged) == ("\r\n" in text) and merged.count("\n") - merged.count("\r\n") in (
        0,
        merged.count("\n"),
    )
    assert count(merged, is_ours) == count(text, is_ours) + 1 == 1
    assert merge(merged, OURS) == merged, "once is enough"
    assert take_out(merged, is_ours) == text
    assert take_out(text, is_ours) == text, "what is not there cannot be taken out"


@pytest.mark.parametrize("seed", range(300))
def test_what_others_write_around_it_stays(seed: int) -> None:
    dice = random.Random(seed)
    text = document(dice)
    merged = merge(text, OURS)
    added = dice.choice(TABLES).replace("{}", "99")
    where = dice.choice(["behind", "inside", "comment"])
    if where == "behind":
        edited = merged + added
    elif where == "inside":  # a table below ours, as a harness writes it
        edited = merged + "[mcp_servers.observational-memory.env]\nA = '1'\n" + added
    else:
        edited = merged + "# what the user remembers\n" + added
    assert count(edited, is_ours) == 1
    left = take_out(edited, is_ours)
    assert meaning(left) == meaning(text + "\n" + added)
    assert added in left and MARK not in left and left.startswith(text)
    assert where != "comment" or "# what the user remembers\n" in left


@pytest.mark.parametrize("seed", range(200))
def test_tables_are_those_that_a_parser_sees(seed: int) -> None:
    text = document(random.Random(1_000 + seed))
    value = meaning(text)
    for table in tables([f"{line}\n" for line in text.split("\n")]):
        found: Any = value
        for name in table.name:
            found = found[-1][name] if isinstance(found, list) else found[name]
        assert isinstance(found, dict), table
    assert not any("not" in table.name or "also" in table.name for table in tables(text.split("\n")))


@pytest.mark.parametrize(
    "values",
    [
        {
            "command": "C:\\Program Files\\x.exe",
            "args": ["a b", "\"'", "é日本\x7f\t\n\x1b"],
            "number": 12,
            "off": False,
        },
        {"a key with blanks": "x", "dotted.key": "y", 'with"quote': []},
        {},
    ],
)
@pytest.mark.parametrize("name", ["plain", "with.dots", "with blanks", 'with"quote', "é"])
def test_any_name_and_value_comes_back_from_a_parser(name: str, values: dict[str, Any]) -> None:
    for text in ("", "a = 1\n", "[b]\nc = 1"):
        merged = merge(text, {"outer": {name: values, "second": {"x": 1}}})
        assert meaning(merged) == {**meaning(text), "outer": {name: values, "second": {"x": 1}}}
        assert merge(merged, {"outer": {name: values, "second": {"x": 1}}}) == merged


@pytest.mark.parametrize(
    "there", ["mcp_servers = {}\n", '"mcp_servers" = {}\n', "'mcp_servers'={}", "\tmcp_servers = { a = 1 }\n"]
)
def test_a_value_of_that_name_is_refused(there: str) -> None:
    with pytest.raises(ValueError, match="stands there as one value"):
        merge(f"a = 1\n{there}", OURS)


def test_the_end_of_a_line_comes_back_only_where_ours_is_the_end() -> None:
    merged = merge("a = 1", OURS)
    assert take_out(merged, is_ours) == "a = 1"
    assert take_out(merged + "[later]\nb = 2\n", is_ours) == "a = 1\n[later]\nb = 2\n"
    assert take_out(merge("", OURS), is_ours) == "" and take_out(merge("\n", OURS), is_ours) == "\n"


def test_ours_is_found_by_what_it_runs_wherever_it_stands() -> None:
    moved = (
        '[mcp_servers.mine]\ncommand = "/x/y z/\\"q\\""\n\n[mcp_servers.mine.env]\nA = "1"\n\n# kept\n[other]\nx = 1\n'
    )
    assert count(moved, is_ours) == 1
    assert take_out(moved, is_ours) == "\n\n# kept\n[other]\nx = 1\n"
