"""Careful edits of a JSON document that a person keeps: comments, trailing commas, tabs and line ends stay as they are.

Invariants: only what is put in or taken out changes, every other character stays; what is taken out right after it was
put into a list or object that had something in it gives the old text again. A text that is not understood is refused
(ValueError), never guessed at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from obsmem.core.tuples import NamedTuple

_COMMENT = r"//[^\r\n]*|/\*.*?\*/"
_SPACE = re.compile(rf"(?:[ \t\r\n\ufeff]|{_COMMENT})*", re.DOTALL)
_COMMENTS = re.compile(rf"[ \t\r\n\ufeff]*({_COMMENT})", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")
_CLOSE = {"{": "}", "[": "]"}

Path = tuple[str, ...]


class Node(NamedTuple):
    """A value and where it stands in the text. ``start`` and ``end`` span the value; ``key`` and ``key_start`` belong to
    a member of an object ('' and the value's own start for an item of a list)."""

    start: int
    end: int
    value: Any
    children: tuple[Node, ...] = ()
    key: str = ""
    key_start: int = -1

    @property
    def outer(self) -> int:
        """Where the item or member begins, its key included."""
        return self.start if self.key_start < 0 else self.key_start


def load(text: str) -> Any:
    """The value of a document; {} where there is none. Raises ValueError with the line of what is wrong."""
    node = _parse(text)
    return {} if node is None else node.value


def merge(text: str, additions: Mapping[str, Any]) -> str:
    """The text with ``additions`` in it: objects are joined, items of lists are added at their ends unless they are there
    already, other values are set only where their key is missing. Raises ValueError where something else is in the way."""
    for path, value, is_item in _leaves(additions, ()):
        text = _add(text, path, value, is_item)
    return text


def take_out(text: str, is_ours: Callable[[str], bool], kept: Any = None) -> str:
    """The text without the items of lists and the members of objects that are ours, and without the lists and objects
    that thereby become empty, unless ``kept`` (the value of an earlier document) has them too.

    An item is ours if it is a string of ours, or has one directly inside it; a member, if its key is a string of ours, or
    its value an object whose ``command`` is.
    """
    while (root := _parse(text)) is not None and (chain := _find(root, is_ours)):
        text = _remove(text, *_with_emptied(chain, kept))
    return text


def string_at(text: str, path: Path) -> str:
    """The string that a document has at a path of keys, as it is written there, quotes included; '' where it has none."""
    node = _string(text, path)
    return "" if node is None else text[node.start : node.end]


def with_string(text: str, path: Path, written: str) -> str:
    """The text with another string in the place of the one at a path of keys; ``written`` is how it is to stand there."""
    node = _string(text, path)
    return text if node is None else text[: node.start] + written + text[node.end :]


def _string(text: str, path: Path) -> Node | None:
    node = _parse(text)
    for key in path:
        node = _member(node, key) if node is not None and isinstance(node.value, dict) else None
    return node if node is not None and isinstance(node.value, str) else None


def count(text: str, is_ours: Callable[[str], bool]) -> int:
    """How many items and members of a document are ours."""
    root = _parse(text)
    return 0 if root is None else sum(1 for _ in _all(root, is_ours, ()))


def holds(value: Any, additions: Mapping[str, Any], is_ours: Callable[[str], bool]) -> bool:
    """True if a document's value has those of ``additions`` that are ours."""
    found = set(filter(is_ours, strings(value)))
    wanted = set(filter(is_ours, strings(additions)))
    return bool(wanted) and wanted <= found


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)


# --- reading


def _parse(text: str) -> Node | None:
    start = _skip(text, 0)
    if start == len(text):
        return None
    try:
        node = _value(text, start)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if (end := _skip(text, node.end)) != len(text):
        raise _wrong(text, end)
    return node


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _wrong(text: str, position: int) -> ValueError:
    found = repr(text[position : position + 12]) if position < len(text) else "its end"
    return ValueError(f"line {text.count(chr(10), 0, position) + 1}: unexpected {found}")


def _value(text: str, position: int) -> Node:
    first = text[position : position + 1]
    if first in ("{", "["):
        return _container(text, position, first)
    match = (_STRING if first == '"' else _WORD).match(text, position)
    if match is None:
        raise _wrong(text, position)
    try:
        return Node(position, match.end(), json.loads(match.group(), strict=False))
    except ValueError:
        raise _wrong(text, position) from None


def _container(text: str, start: int, opening: str) -> Node:
    children: list[Node] = []
    position = _skip(text, start + 1)
    while text[position : position + 1] != _CLOSE[opening]:
        key, key_start = "", -1
        if opening == "{":
            name = _value(text, position)
            if not isinstance(name.value, str):
                raise _wrong(text, position)
            key, key_start = name.value, position
            position = _skip(text, name.end)
            if text[position : position + 1] != ":":
                raise _wrong(text, position)
            position = _skip(text, position + 1)
        child = _value(text, position)._replace(key=key, key_start=key_start)
        children.append(child)
        position = _skip(text, child.end)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
        elif text[position : position + 1] != _CLOSE[opening]:
            raise _wrong(text, position)
    is_object = opening == "{"
    value: Any = {child.key: child.value for child in children} if is_object else [child.value for child in children]
    return Node(start, position + 1, value, tuple(children))


def _member(node: Node, key: str) -> Node | None:
    """The member with a key; the last one counts, as in every JSON reader."""
    return next((child for child in reversed(node.children) if child.key == key), None)


# --- putting in


def _leaves(value: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any, bool]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _leaves(item, (*path, key))
        elif isinstance(item, list) and item:
            for one in item:
                yield (*path, key), one, True
        else:
            yield (*path, key), item, False


def _add(text: str, path: Path, value: Any, is_item: bool) -> str:
    root = _parse(text)
    if root is None:
        end_of_line = "" if not text or text.endswith("\n") else "\n"
        text += f"{end_of_line}{{}}\n"
        root = _parse(text)
        assert root is not None
    node = root
    for depth, key in enumerate(path):
        _expect(node, dict, path[:depth])
        child = _member(node, key)
        if child is None:
            new: Any = [value] if is_item else value
            for missing in reversed(path[depth + 1 :]):
                new = {missing: new}
            return _insert(text, node, key, new)
        node = child
    if not is_item:
        return text
    _expect(node, list, path)
    return text if value in node.value else _insert(text, node, None, value)


def _expect(node: Node, kind: type, path: Path) -> None:
    if not isinstance(node.value, kind):
        where = f"{'.'.join(path)!r}" if path else "the document"
        raise ValueError(f"{where} is no {'object' if kind is dict else 'list'}")


def _insert(text: str, node: Node, key: str | None, value: Any) -> str:
    """Put a new last member or item into an object or list, in the manner of what stands there."""
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    unit = _indent_unit(text)
    outside = _line_indent(text, node.start)
    inside = outside + unit
    is_inline = bool(node.children) and "\n" not in text[node.start : node.end]
    if node.children and not is_inline:
        inside = _own_line_indent(text, node.children[0].outer, inside)
    written = json.dumps(value, ensure_ascii=False, indent=None if is_inline else unit)
    item = ("" if key is None else json.dumps(key, ensure_ascii=False) + ": ") + written
    item = (" " if is_inline else end_of_line + inside) + item.replace("\n", end_of_line + inside)
    close = node.end - 1
    if not node.children:
        place = _last_word(text, node.start + 1, close)
        rest = text[place:close]
        return text[:place] + item + (rest if "\n" in rest else end_of_line + outside) + text[close:]
    after = node.children[-1].end
    comma = _comma(text, after)
    place = _last_word(text, after if comma < 0 else comma + 1, close)
    if comma >= 0:
        return text[:place] + item + "," + text[place:]
    return text[:after] + "," + text[after:place] + item + text[place:]


def _comma(text: str, position: int) -> int:
    """The place of the comma behind a value; -1 where none follows."""
    position = _skip(text, position)
    return position if text[position : position + 1] == "," else -1


def _last_word(text: str, start: int, stop: int) -> int:
    """The end of the last comment between two places, else ``start``."""
    while (match := _COMMENTS.match(text, start, stop)) is not None:
        start = match.end()
    return start


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _own_line_indent(text: str, position: int, otherwise: str) -> str:
    """The blanks before a thing that begins its line."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line if not line.strip(" \t") else otherwise


def _indent_unit(text: str) -> str:
    """What the document indents by: the blanks of its first indented line that is not part of a comment."""
    match = re.search(r'\n([ \t]+)["{\[]', text)
    return match.group(1) if match else "  "


# --- taking out


Chain = tuple[tuple[Node, int], ...]  # from the document down: a node, and the number of the child that comes next


def _find(root: Node, is_ours: Callable[[str], bool]) -> Chain | None:
    return next(_all(root, is_ours, ()), None)


def _all(node: Node, is_ours: Callable[[str], bool], above: Chain) -> Iterator[Chain]:
    is_list = isinstance(node.value, list)
    for index, child in enumerate(node.children):
        chain = (*above, (node, index))
        if (is_list and _owns(child.value, is_ours)) or (
            not is_list and (is_ours(child.key) or _runs(child.value, is_ours))
        ):
            yield chain
        else:
            yield from _all(child, is_ours, chain)


def _owns(value: Any, is_ours: Callable[[str], bool]) -> bool:
    if isinstance(value, str):
        return is_ours(value)
    if isinstance(value, dict):
        return any(isinstance(item, str) and is_ours(item) for item in value.values())
    return isinstance(value, list) and any(not isinstance(item, list) and _owns(item, is_ours) for item in value)


def _runs(value: Any, is_ours: Callable[[str], bool]) -> bool:
    """True of an object whose ``command`` is ours: a line, or a list of words that begins with it."""
    command = value.get("command") if isinstance(value, dict) else None
    first = command[0] if isinstance(command, list) and command else command
    return isinstance(first, str) and is_ours(first)


def _with_emptied(chain: Chain, kept: Any) -> tuple[Node, int]:
    """What to remove so that nothing empty is left: the item itself, or the outermost thing that held it alone. An object
    in a list (a group of handlers) whose own list becomes empty means nothing any more, whatever else it says."""
    depth = len(chain) - 1
    while depth > 0 and len(chain[depth][0].children) == 1 and not _had(kept, chain[:depth]):
        depth -= 1
        if depth > 0 and isinstance(chain[depth - 1][0].value, list):
            depth -= 1
    return chain[depth]


def _had(kept: Any, chain: Chain) -> bool:
    """True if the earlier document had this object or list too; what stands inside a list is not compared."""
    for node, index in chain:
        if not isinstance(kept, dict) or not isinstance(node.value, dict):
            return False
        kept = kept.get(node.children[index].key)
    return isinstance(kept, (dict, list))


def _remove(text: str, node: Node, index: int) -> str:
    child = node.children[index]
    comma_before = _comma(text, node.children[index - 1].end) if index else -1
    start = _last_word(text, comma_before + 1 if index else node.start + 1, child.outer)
    comma = _comma(text, child.end)
    if comma >= 0:
        text = text[:start] + text[comma + 1 :]
    else:
        text = text[:start] + text[child.end :]
        if index:
            return text[:comma_before] + text[comma_before + 1 :]
    if len(node.children) == 1:
        close = _skip(text, node.start + 1)
        if not text[node.start + 1 : close].strip():
            text = text[: node.start + 1] + text[close:]
    return text
