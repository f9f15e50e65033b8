"""Which names a change brought, over many languages, by one table of patterns.

Invariant: a name given back stands in the new text and not in the old one; definitions come first.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from obsmem.core import late
from obsmem.core.clean import part_escapes

IDENTIFIER_LIMIT = 40
MENTION_LIMIT = 100
VIEW_LIMIT = 60
LOCAL_LIMIT = 3
TEXT_LIMIT = 200_000

# Each pattern has exactly one group, the name. Definitions of things that other code refers to.
_DEFINITIONS = late.pattern(
    r"^[ \t]*(?:@\w+[^\n]*\n[ \t]*)*(?:export +|default +|pub(?:\([^)]*\))? +|public +|private +|protected +|static +|abstract +|final +|async +|unsafe +|inline +|extern +|override +|declare +|open +|data +|sealed +|suspend +)*"
    r"(?:def|class|func|fn|function\*?|interface|type|struct|enum|trait|impl|module|mod|namespace|object|protocol|record|macro_rules!|sub|message|service|rpc)[ \t]+"
    r"(?:\([^)\n]*\)[ \t]*|self\.)?([A-Za-z_$][\w$]*[?!]?)"
    r"|^[ \t]*(?:export +|pub(?:\([^)]*\))? +)?(?:const|let|var|static|val)[ \t]+(?:mut +)?([A-Za-z_$][\w$]*)"
    r"|^[ \t]*(?:CREATE|create)[ \t]+(?:OR REPLACE )?(?:TABLE|VIEW|INDEX|FUNCTION|table|view|index|function)[ \t]+(?:IF NOT EXISTS )?[\"`]?(\w+)"
    r"|^([A-Za-z_]\w*)[ \t]*\(\)[ \t]*\{"  # shell
    r"|^[ \t]*(?:public|private|protected|internal|static)[ \t][\w<>\[\],. \t]*?(\w+)[ \t]*\(",  # Java, C#
    re.MULTILINE,
)
# Names set at the line's start, fields of an object or a tagged Go struct, flags, environment names.
_ASSIGNMENTS = late.pattern(
    r"^(?:[ \t]+(?:self\.|this\.))?([A-Za-z_]\w{2,})[ \t]*(?::[ \t]*[\w.\[\], |\"]+)?[ \t]*(?::=|=)(?![=>])"
    r"|^[ \t]*([A-Z]\w+)[ \t]+[\w.*\[\]]+[ \t]+`"
    r"|(?<![\w-])(--[a-z][a-z0-9-]+)"
    r"|\b([A-Z][A-Z0-9]+_[A-Z0-9_]+)\b",
    re.MULTILINE,
)
# Weaker: local names and calls, only where their spelling says that they are names of something.
_LOCALS = late.pattern(
    r"^[ \t]+([a-z]+(?:[A-Z]\w+|_\w+)|[A-Z]\w+)[ \t]*(?::[ \t]*[\w.\[\], |\"]+)?[ \t]*(?::=|=)(?![=>])"
    r"|(?<![\w.])((?:[a-z]+[A-Z]\w*|[a-z]+_\w+|[A-Z][a-z]\w+))\(",
    re.MULTILINE,
)
_SPELT = late.pattern(
    r"\b(?:[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}[a-z]\w*|[a-z]\w*_\w+|_\w+_\w+|[A-Z][A-Z0-9]+_[A-Z0-9_]+)\b"
)
_LINE_NUMBER = late.pattern(r"^[ \t]*\d+(?:→|\t|[|:] ?)", re.MULTILINE)
_HEADINGS = late.pattern(r"^#{1,4}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_KEYS = late.pattern(
    r"^[ \t]{0,6}[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*[:=]|^\[+([\w.\"-]+)\]+|^([\w.-]+):", re.MULTILINE
)
_SELECTORS = late.pattern(r"^[ \t]*([.#][\w-]+)[^{\n;]*\{", re.MULTILINE)
_PROSE = (".md", ".mdx", ".rst", ".txt", ".adoc")
_DATA = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".env", ".properties")
_STYLES = (".css", ".scss", ".less")
# Words that the patterns can catch and that name nothing.
_COMMON_TEXT = (
    "if else for while return import from with try except finally self this true false null none main init err ok ctx args kwargs result"
    " value data name type test key item items string int bool func class def and or not is in as do end the"
)
_COMMON = frozenset(_COMMON_TEXT.split())


def identifiers_brought(new: str, old: str, path: str) -> tuple[str, ...]:
    """Names that stand in ``new`` and not in ``old``: definitions first, then assignments, flags,
    environment names; local names and calls only where few of those are there."""
    new, old = new[:TEXT_LIMIT], old[:TEXT_LIMIT]
    known = frozenset(re.findall(r"[\w$]+", old)) if old else frozenset()
    found: dict[str, None] = {}
    for pattern in _patterns(path.lower()):
        for match in pattern.finditer(new):
            name = match.group(match.lastindex or 0).strip(" \"'`*")[:80]
            if name in known or name.casefold() in _COMMON or len(name) < 2:
                continue
            if not name[0].isalnum() and name.strip("-_.#$").replace("-", "_") in known:
                continue
            if (pattern is _HEADINGS or "." in name or name.startswith("--")) and name in old:
                continue
            found[name] = None
            if len(found) >= (LOCAL_LIMIT if pattern is _LOCALS else IDENTIFIER_LIMIT):
                return tuple(found)
    return tuple(found)


def mentions_brought(new: str, old: str, defined: Collection[str]) -> tuple[str, ...]:
    """Further names in ``new`` that are neither in ``old`` nor among ``defined``: what the change calls and uses, known
    by their spelling (camelCase, snake_case, CONSTANTS)."""
    known = frozenset(_SPELT.findall(part_escapes(old[:TEXT_LIMIT]))) if old else frozenset()
    found: dict[str, None] = {}
    for name in _SPELT.findall(part_escapes(new[:TEXT_LIMIT])):
        if name not in known and name not in defined:
            found[name] = None
            if len(found) == MENTION_LIMIT:
                break
    return tuple(found)


def names_in_view(text: str, path: str) -> tuple[str, ...]:
    """The definitions in a file's text as a tool showed it, line numbers and all."""
    if path.lower().endswith(_DATA):
        return ()
    bare = _LINE_NUMBER.sub("", text[:TEXT_LIMIT]) if _LINE_NUMBER.match(text) else text
    return identifiers_brought(bare, "", path)[:VIEW_LIMIT]


def _patterns(path: str) -> tuple[re.Pattern[str], ...]:
    if path.endswith(_PROSE):
        return (_HEADINGS,)
    if path.endswith(_DATA):
        return (_KEYS,)
    if path.endswith(_STYLES):
        return (_SELECTORS,)
    return (_DEFINITIONS, _ASSIGNMENTS, _LOCALS)


_HERE = late.pattern(
    r"(?:^|[;&|\n(]\s*)(?:cat|tee)\b(?P<before>[^\n<]*)<<-?\s*(?P<quote>[\"']?)(?P<end>\w+)(?P=quote)(?P<after>[^\n]*)\n"
    r"(?P<body>.*?)^\s*(?P=end)\s*$",
    re.MULTILINE | re.DOTALL,
)
_TARGET = late.pattern(r"(>>?)\s*([\"']?)([^\s\"'<>|;&]+)\2")
_TEE = late.pattern(r"\btee\s+(-a\s+)?([\"']?)([^\s\"'<>|;&-][^\s\"'<>|;&]*)\2")
_IN_PLACE = late.pattern(r"\b(?:sed|perl)\s+-[a-zA-Z]*i\S*\s+(?:-e\s+)?(?:'[^']*'|\"[^\"]*\")\s+([\w./@+-]+\.\w+)")


def shell_edits(command: str) -> list[tuple[str, str, str]]:
    """(kind, path, text) of the files that a shell command writes by a here-document or changes in place.

    ``kind`` is write or edit (appended to, or changed by sed); the text is what was written, '' where it is not known.
    """
    if "<<" not in command and " -" not in command:
        return []
    found = []
    for match in _HERE.finditer(command[:TEXT_LIMIT]):
        line = match.group("before") + " " + match.group("after")
        target = _TARGET.search(line)
        tee = _TEE.search(match.group(0).split("\n", 1)[0])
        if target and not target.group(3).startswith(("/dev/", "&")):
            found.append(("edit" if target.group(1) == ">>" else "write", target.group(3), match.group("body")))
        elif tee:
            found.append(("edit" if tee.group(1) else "write", tee.group(3), match.group("body")))
    found += [("edit", match.group(1), "") for match in _IN_PLACE.finditer(command[:TEXT_LIMIT])]
    return found[:20]


def line_changes(new: str, old: str) -> tuple[int, int]:
    """(added, removed) lines between two texts, counting equal lines once on each side; order is not compared."""
    if not old:
        return (_line_count(new), 0)
    if not new:
        return (0, _line_count(old))
    rest: dict[str, int] = {}
    for line in old.split("\n"):
        rest[line] = rest.get(line, 0) + 1
    added = 0
    for line in new.split("\n"):
        if rest.get(line, 0):
            rest[line] -= 1
        else:
            added += 1
    return (added, sum(rest.values()))


def _line_count(text: str) -> int:
    return text.count("\n") + (0 if text.endswith("\n") else 1) if text else 0
