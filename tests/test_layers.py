"""The layout holds: who imports whom, who opens databases, who prints, and where a harness's name may stand.

Each rule is a function from a module's name and source to complaints, so that it can be shown to complain.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("core", "system", "store", "harnesses", "workers", "memory", "tasks", "interfaces")
# Folder -> the beginnings of its modules' names that belong together; all other modules there are for everybody.
FAMILIES = {
    "harnesses": ("claude_code", "codex", "cursor", "opencode"),
    "workers": ("extractive", "scripted", "command", "http"),
}
# The programs of harnesses can be workers, too: each is named in one module, and in the registry of these.
PRESETS = "obsmem.workers.command_presets"
PRESET_MODULES = {
    "obsmem.workers.command_claude_code": "claude",
    "obsmem.workers.command_codex": "codex",
    "obsmem.workers.command_opencode": "opencode",
}
_HARNESS = re.compile(r"claude|codex|opencode|(?<![a-z])cursor(?![a-z])", re.IGNORECASE)

Rule = Callable[[str, str], Iterator[str]]


def modules() -> dict[str, str]:
    """Dotted name -> source of every module of the package."""
    found = {}
    for path in sorted((ROOT / "obsmem").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts)] = path.read_text(encoding="utf-8")
    return found


def imports(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a module imports, wherever it does; ``from a.b import c`` gives ``a.b`` and ``a.b.c``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(name: str) -> str:
    """The layer of a module of ours; '' for the package itself and for what is not ours."""
    parts = name.split(".")
    return parts[1] if parts[0] == "obsmem" and len(parts) > 1 and parts[1] in LAYERS else ""


def family(name: str) -> str:
    """Which harness or kind of worker a module belongs to; '' for what all of them share."""
    parts = name.split(".")
    if len(parts) < 3 or parts[0] != "obsmem":
        return ""
    return next((one for one in FAMILIES.get(parts[1], ()) if parts[2] == one or parts[2].startswith(f"{one}_")), "")


def imports_only_earlier_layers(name: str, source: str) -> Iterator[str]:
    if not layer(name):
        return
    for other in imports(ast.parse(source)):
        if layer(other) and LAYERS.index(layer(other)) > LAYERS.index(layer(name)):
            yield f"imports {other}"


def imports_no_other_family(name: str, source: str) -> Iterator[str]:
    for other in imports(ast.parse(source)):
        if layer(other) == layer(name) and family(name) and family(other) not in ("", family(name)):
            yield f"imports {other}"


def imports_absolutely(name: str, source: str) -> Iterator[str]:
    """Relative imports would slip through the other rules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"line {node.lineno} imports relatively"


def imports_packages_only_inside_functions(name: str, source: str) -> Iterator[str]:
    """Other people's packages may be missing where a hook runs."""
    for node in _top_level(ast.parse(source)):
        for other in imports(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            if other.split(".")[0] not in (*sys.stdlib_module_names, "obsmem"):
                yield f"imports {other} at the top"


def _top_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            yield from _top_level(node)


def opens_no_database(name: str, source: str) -> Iterator[str]:
    """Only the store writes databases. Harness modules, and the check of a damaged file, open others' read-only."""
    if layer(name) == "store":
        return
    reads_only = layer(name) == "harnesses" or name == "obsmem.tasks.fsck"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "connect" and ast.unparse(node.value) == "sqlite3":
            if not reads_only:
                yield f"line {node.lineno} opens a database"
            elif "mode=ro" not in source or "mode=rw" in source:
                yield f"line {node.lineno} opens a database for more than reading"


def prints_nothing(name: str, source: str) -> Iterator[str]:
    if layer(name) == "interfaces":
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == "print":
            yield f"line {node.lineno} prints"
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.__stdout__"):
            yield f"line {node.lineno} writes to standard output"


def names_no_harness(name: str, source: str) -> Iterator[str]:
    """Neither in code nor in comments or texts. A variable called ``cursor`` is SQLite's."""
    if layer(name) == "harnesses" or name == PRESETS:
        return
    own = PRESET_MODULES.get(name, "")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if own and own in token.string.lower():
            continue  # also where one program's variable has another's name in it
        if _HARNESS.search(token.string) and not (token.type == tokenize.NAME and token.string == "cursor"):
            yield f"line {token.start[0]} has {token.string[:60]!r}"


RULES: tuple[Rule, ...] = (
    imports_only_earlier_layers,
    imports_no_other_family,
    imports_absolutely,
    imports_packages_only_inside_functions,
    opens_no_database,
    prints_nothing,
    names_no_harness,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule: Rule) -> None:
    complaints = [f"{name}: {what}" for name, source in modules().items() for what in rule(name, source)]
    assert complaints == []


@pytest.mark.parametrize(
    ("rule", "name", "source"),
    [
        (imports_only_earlier_layers, "obsmem.core.ids", "def f():\n    from obsmem.store import archive\n"),
        (imports_only_earlier_layers, "obsmem.memory.fold", "from obsmem import tasks\n"),
        (imports_no_other_family, "obsmem.harnesses.codex_reader", "from obsmem.harnesses import claude_code_blocks\n"),
        (imports_no_other_family, "obsmem.workers.scripted", "import obsmem.workers.extractive_words\n"),
        (imports_absolutely, "obsmem.tasks.ingest", "from . import store\n"),
        (imports_packages_only_inside_functions, "obsmem.system.config", "try:\n    import yaml\nexcept ImportError: ...\n"),
        (opens_no_database, "obsmem.tasks.ingest", "import sqlite3\nsqlite3.connect('x?mode=ro')\n"),
        (opens_no_database, "obsmem.harnesses.cursor_rows", "import sqlite3\nsqlite3.connect('x')\n"),
        (prints_nothing, "obsmem.memory.fold", "print('x')\n"),
        (prints_nothing, "obsmem.tasks.ingest", "import sys\nsys.stdout.write('x')\n"),
        (names_no_harness, "obsmem.core.ids", "x = 'claude-code'\n"),
        (names_no_harness, "obsmem.core.ids", "def f():\n    # as Cursor does\n    pass\n"),
        (names_no_harness, "obsmem.store.index", "opencode_rows = 1\n"),
        (names_no_harness, "obsmem.workers.command_codex", "x = 'claude'\n"),
        (names_no_harness, "obsmem.workers.command", "x = 'codex'\n"),
    ],
)  # fmt: skip
def test_each_rule_complains_about_what_it_forbids(rule: Rule, name: str, source: str) -> None:
    assert list(rule(name, source))


@pytest.mark.parametrize(
    ("rule", "name", "source"),
    [
        (imports_only_earlier_layers, "obsmem.tasks.ingest", "from obsmem.store.archive import Archive\n"),
        (imports_no_other_family, "obsmem.harnesses.codex", "from obsmem.harnesses import base, codex_reader\n"),
        (imports_packages_only_inside_functions, "obsmem.system.config", "def f():\n    import yaml\n"),
        (names_no_harness, "obsmem.store.index", "cursor = connection.execute('SELECT 1')\n"),
        (names_no_harness, "obsmem.workers.command_codex", "x = 'codex'\n"),
    ],
)
def test_no_rule_complains_about_what_is_allowed(rule: Rule, name: str, source: str) -> None:
    assert not list(rule(name, source))


def test_every_module_lies_in_a_layer() -> None:
    outside = [name for name in modules() if not layer(name) and name != "obsmem.__init__"]
    assert outside == []


def test_every_harness_in_the_registry_has_its_family() -> None:
    from obsmem.harnesses import REGISTRY

    assert sorted(FAMILIES["harnesses"]) == sorted(module.split(".")[-1] for module in REGISTRY.values())


def test_every_preset_in_the_registry_has_its_module() -> None:
    from obsmem.workers.command_presets import PRESETS as registry

    assert {module: word for word, module in registry.items()} == PRESET_MODULES
