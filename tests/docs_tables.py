"""The tables of SPEC.md that are computed from the code, and where they stand in it.

Owns the marks ``<!-- begin: NAME -->`` … ``<!-- end: NAME -->``. Invariant: what stands between them follows from the code
alone, but for the last column of the numbers, which people write and which is kept.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import obsmem
from obsmem import workers
from obsmem.core import model
from obsmem.core.decisions import DECISIONS, REPLAYED
from obsmem.core.mask_kinds import KINDS
from obsmem.core.reduce import ALL_RULES
from obsmem.harnesses import REGISTRY, load
from obsmem.interfaces.cli import build_parser
from obsmem.store import archive_schema, index, memory_schema
from obsmem.system import config
from tests.survival_tables import survival

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "SPEC.md"
SPAN = re.compile(r"<!-- begin: (?P<name>[^>]+) -->\n(?P<body>.*?)<!-- end: (?P=name) -->", re.DOTALL)

VALUES = (
    model.Place, model.Action, model.Entry, model.Session, model.Note, model.Reflection, model.Drop, model.Pin, model.Fact, model.Card,
    model.Chunk, model.Memory, model.Reason, model.Block, model.Request, model.Reply, model.HookEvent, model.HookAnswer,
)  # fmt: skip
DATABASES: Mapping[str, Any] = {
    "archive.db": archive_schema.MIGRATIONS,
    "memory.db": memory_schema.MIGRATIONS,
    "index.db": index.MIGRATIONS,
}
# What is lost with a table that nothing else can give again.
_PRECIOUS_TEXT = (
    "sessions sources segments entries rows sides tombstones originals"
    " notes note_entries reflections reflection_notes drops pins coverage gaps progress worker_calls"
)
PRECIOUS = frozenset(_PRECIOUS_TEXT.split())
HOLDS: Mapping[str, str] = {
    "rotations": "sessions that were marked, and who took their handoff",
    "vectors": "vectors of entries and notes, of one model",
    "sessions": "sessions with their handles and lineage",
    "sources": "what was read for a session, and how far",
    "segments": "records' bytes, compressed",
    "entries": "where each entry's bytes stand, and what it is",
    "links": "places of records in the harness's own tree",
    "rows": "the newest version of each database row",
    "measures": "what the provider counted for each request, and what harnesses say of a compaction",
    "sides": "entries whose whole output is archived apart",
    "tombstones": "hashes of what was forgotten",
    "originals": "entries that came masked, and what their records hash to where they were read",
    "worker_calls": "every request to a worker and how it ended",
    "coverage": "observed stretches",
    "gaps": "stretches that nobody could observe",
    "progress": "how far reflector and dropper have examined",
    "notes": "notes",
    "note_entries": "the entries that notes cite",
    "reflections": "reflections",
    "reflection_notes": "the notes that reflections stand on",
    "drops": "tombstones of notes",
    "pins": "pins",
    "blocks": "renderings left for delivery",
    "receipts": "parts found in transcripts",
    "workers": "what was learned of each model (MODEL-4)",
    "spending": "what models reserved or took (MODEL-3)",
    "reductions": "results that models were given shortened, and their sizes",
    "decisions": "what was decided about a session, and the numbers it turned on",
    "rewound": "which entries went on or off the live path, and when",
    "windows": "windows of models and marks of their compactions, as reported or learned",
    "marks": "where windows of each size were compacted",
    "reach": "how far each derived table has come",
    "cards": "cards",
    "words": "full text of entries, without their words",
    "facets": "what an entry is filtered by: time, kind, tool, whether it is ours, hash of its text",
    "tools": "names of tools",
    "paths": "paths that tool calls name",
    "entry_paths": "which entry names which path",
}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def code(names: Iterable[str]) -> str:
    """Names set off as code, in a row."""
    return " ".join(f"`{name}`" for name in names)


def values() -> str:
    """The fields of each value."""
    return table(("value", "fields"), ((f"`{value.__name__}`", code(value._fields)) for value in VALUES))


def columns(name: str) -> dict[str, list[str]]:
    """Table -> columns of a database, as its migrations make it."""
    connection = sqlite3.connect(":memory:")
    for _, migrate in DATABASES[name]:
        migrate(connection)
    found = {}
    for (made,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY rowid").fetchall():
        if not made.startswith(("sqlite_", "words_")):
            found[made] = [row[1] for row in connection.execute(f"PRAGMA table_info({made})")]
    connection.close()
    return found


def tables() -> str:
    """Every table of every database with its columns."""
    rows = [
        (f"`{database}`", f"`{name}`", HOLDS.get(name, ""), code(fields), "yes" if name in PRECIOUS else "")
        for database in DATABASES
        for name, fields in columns(database).items()
    ]
    made = (
        f"Migrations of `{name}`: {code(one for one, _ in migrations)}.\n" for name, migrations in DATABASES.items()
    )
    return table(("database", "table", "holds", "columns", "precious"), rows) + "\n" + "".join(made)


def ignored(harness: str) -> str:
    """The keys of a harness that stand in no entry, by reason."""
    by_reason: dict[str, list[str]] = {}
    for key, reason in load(harness).IGNORED_KEYS.items():
        by_reason.setdefault(reason, []).append(key)
    return table(("ignored keys", "reason"), ((code(keys), reason) for reason, keys in by_reason.items()))


def facts() -> str:
    """Every kind of fact."""
    return table(("fact", "meaning"), ((f"`{kind}`", meaning) for kind, meaning in model.FACT_KINDS.items()))


def decisions() -> str:
    """Every kind of decision."""
    rows = ((f"`{kind}`", meaning, "yes" if kind in REPLAYED else "") for kind, meaning in DECISIONS.items())
    return table(("decision", "what it says", "replayed"), rows)


def mask_kinds() -> str:
    """The kinds of secrets that are known by their shape."""
    return code(dict.fromkeys(kind.name for kind in KINDS)) + "\n"


def reduce_rules() -> str:
    """Every rule of shortening, in the order in which they are tried."""
    rows = []
    for rule in ALL_RULES:
        commands = "any" if "*" in rule.commands else code(rule.commands)
        rows.append((f"`{rule.name}`", commands, "yes" if rule.sign and "*" not in rule.commands else "", rule.about))
    return table(("rule", "commands", "any other whose output shows it", "what is folded"), rows)


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Command -> its parser."""
    (commands,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)


def commands() -> str:
    """Every command with its words and options."""
    rows = []
    for name, parser in parsers().items():
        actions = [action for action in parser._actions if action.dest not in ("help", "json")]
        words = [str(action.metavar or action.dest) for action in actions if not action.option_strings]
        options = [option for action in actions for option in action.option_strings]
        rows.append((f"`{name}`", code([*words, *options]), parser.description or ""))
    return table(("command", "words and options", "what it does"), rows)


def keys() -> str:
    """Every configuration key with its default."""
    rows = ((f"`{key}`", f"`{json.dumps(default)}`", meaning) for key, (default, _, meaning) in config.KEYS.items())
    return table(("key", "default", "meaning"), rows)


def worker_options(kind: str) -> str:
    """Every option of a kind of worker."""
    options = workers.load(kind).OPTIONS
    needed = options.get("required", ())
    rows = (
        (f"`{name}`", "yes" if name in needed else "", str(rule.get("description", "")).replace("|", "or"))
        for name, rule in options["properties"].items()
    )
    return table(("option", "required", "meaning"), rows)


def constants() -> dict[str, dict[str, float]]:
    """Module (without ``obsmem.``) -> its public numbers."""
    found: dict[str, dict[str, float]] = {}
    for info in pkgutil.walk_packages(obsmem.__path__, "obsmem."):
        module = importlib.import_module(info.name)
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        for name in re.findall(r"^([A-Z][A-Z0-9_]*)(?::[^=\n]+)? = ", text, re.MULTILINE):
            value = getattr(module, name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found.setdefault(info.name.removeprefix("obsmem."), {})[name] = value
    return found


_NUMBERS_ROW = re.compile(r"^\| `([\w.]+)` \|[^|]*\|(.*)\|$", re.MULTILINE)


def numbers(old: str) -> str:
    """Every number of the code. What they bound is kept from the table that stands there."""
    meanings = {module: meaning.strip() for module, meaning in _NUMBERS_ROW.findall(old)}
    rows = [
        (f"`{module}`", " · ".join(f"`{name} = {value}`" for name, value in named.items()), meanings.get(module, ""))
        for module, named in constants().items()
    ]
    return table(("module", "constants", "what they bound, and the source"), rows)


TABLES: Mapping[str, Callable[[str], str]] = {
    "values": lambda old: values(),
    "tables": lambda old: tables(),
    "facts": lambda old: facts(),
    "decisions": lambda old: decisions(),
    "mask kinds": lambda old: mask_kinds(),
    "rules of shortening": lambda old: reduce_rules(),
    "commands": lambda old: commands(),
    "config": lambda old: keys(),
    "numbers": numbers,
    "survival development": lambda old: survival("development", table),
    "survival held-out": lambda old: survival("held-out", table),
    "survival elsewhere": lambda old: survival("elsewhere", table),
    **{f"worker {kind}": (lambda old, kind=kind: worker_options(kind)) for kind in ("http", "command")},  # type: ignore[misc]
    **{f"ignored {name}": (lambda old, name=name: ignored(name)) for name in REGISTRY},  # type: ignore[misc]
}


def computed(text: str) -> str:
    """A document with every computed table as the code gives it now."""

    def replace(match: re.Match[str]) -> str:
        name, body = match.group("name"), match.group("body")
        return f"<!-- begin: {name} -->\n{TABLES[name](body)}<!-- end: {name} -->"

    return SPAN.sub(replace, text)
