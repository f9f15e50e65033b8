"""Which lines of a Claude Code transcript are on the live path.

A rewind writes nothing: the next prompt simply has an older parent. The live path is walked from the newest prompt or
reply through parents; across a record without a parent (a compaction boundary) it goes on with the record before it in
the file. A subtree off that path is inactive only if a human prompt stands in it, since results of parallel tool calls,
attachments and progress hang beside the path too. Where two programs append to one file, the branch with the newer
record is live; the other stays archived, inactive until it grows again.

Invariant: the usual record costs nothing (its parent is recent, no prompt stands between); the whole tree is asked for
only when a record branches off. Lines without a record id share the state of the record before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from obsmem.harnesses.base import Activity, Link
from obsmem.harnesses.written import link_key

RECENT = 64

History = Callable[[], Iterable[tuple[int, Link]]]


class Branches:
    """Follows the live path, record by record. Ids are the harness's own; those of the history are their keys."""

    def __init__(self, state: Mapping[str, Any], history: History) -> None:
        self._history = history
        self._tree: Tree | None = None
        self._since: list[tuple[int, Link]] = []  # what came after the tree was built; added when it is needed again
        self._recent: dict[str, tuple[int, bool]] = {
            str(id_): (int(line), bool(active)) for id_, line, active in state.get("recent", [])
        }
        self._prompt_line = int(state.get("prompt", 0))
        self._leaf = str(state.get("leaf", ""))

    def state(self) -> dict[str, Any]:
        """What a later reader needs, as JSON."""
        recent = [[id_, line, active] for id_, (line, active) in self._recent.items()]
        return {"recent": recent, "prompt": self._prompt_line, "leaf": self._leaf}

    def add(self, line: int, link: Link, leads: bool) -> tuple[Activity, ...]:
        """Take in the next record. ``leads``: a prompt or a reply, and none of a sub-agent's; the path ends at these."""
        parent_line, parent_active = self._recent.get(link.parent, (0, True))
        changes: tuple[Activity, ...] = ()
        active = True
        if leads:
            straight = not link.parent or (parent_active and parent_line >= self._prompt_line and parent_line > 0)
            if not straight and self._prompt_line:
                changes = self._move(link.id, (line, link))
            self._leaf = link.id
            if link.prompt:
                self._prompt_line = line
        elif not parent_active:
            active = False
            changes = (Activity(line, line, False),)
        if self._tree is not None:
            self._since.append((line, link))
        self._recent[link.id] = (line, active)
        if len(self._recent) > 2 * RECENT:
            self._recent = dict(list(self._recent.items())[RECENT:])
        return changes

    def holds(self, id_: str) -> bool:
        """True if the record is among the newest."""
        return id_ in self._recent

    def move_to(self, leaf: str) -> tuple[Activity, ...]:
        """Follow an explicit statement of the harness about the end of the live path."""
        return self._move(leaf, None)

    def _move(self, leaf: str, new: tuple[int, Link] | None) -> tuple[Activity, ...]:
        tree = self._tree = self._tree or Tree(self._history())
        for line, link in self._since:
            tree.append(line, _keyed(link))
        self._since.clear()
        if new is None and not tree.holds(link_key(leaf)):
            return ()
        before = tree.inactive(link_key(self._leaf))
        if new:
            tree.append(new[0], _keyed(new[1]))
        after = tree.inactive(link_key(leaf))
        self._leaf = leaf
        self._prompt_line = tree.last_prompt(after)
        self._mark(after)
        return tuple(tree.changes(before, after))

    def _mark(self, inactive: set[int]) -> None:
        self._recent = {id_: (line, line not in inactive) for id_, (line, _) in self._recent.items()}


def _keyed(link: Link) -> Link:
    return Link(link_key(link.id), link_key(link.parent), link.prompt)


class Tree:
    """All records of a file in order, by line and parent. Costs time and memory in proportion to them."""

    def __init__(self, links: Iterable[tuple[int, Link]]) -> None:
        self._links: list[tuple[int, Link]] = []
        self._index: dict[str, int] = {}
        for line, link in links:
            self.append(line, link)

    def append(self, line: int, link: Link) -> None:
        """Add the next record, once. Of records with the same id the first one counts."""
        if self._links and self._links[-1] == (line, link):
            return
        self._index.setdefault(link.id, len(self._links))
        self._links.append((line, link))

    def holds(self, id_: str) -> bool:
        """True if the record is in the file."""
        return id_ in self._index

    def inactive(self, leaf: str) -> set[int]:
        """The lines of records that are off the live path which ends at ``leaf``; none for an unknown leaf."""
        if leaf not in self._index:
            return set()
        path, floor = self._path(leaf)
        roots: dict[str, str] = {}
        members: dict[str, list[int]] = {}
        prompted: set[str] = set()
        for line, link in self._links:
            if link.id in path or line < floor:
                continue
            root = roots.get(link.parent, link.id)
            roots.setdefault(link.id, root)
            members.setdefault(root, []).append(line)
            if link.prompt:
                prompted.add(root)
        return {line for root in prompted for line in members[root]}

    def _path(self, leaf: str) -> tuple[set[str], int]:
        """The ids on the way up from ``leaf``, and the line before which everything counts as on it."""
        path: set[str] = set()
        position = self._index.get(leaf, -1)
        while position >= 0:
            line, link = self._links[position]
            path.add(link.id)
            if not link.parent:
                position -= 1
            elif link.parent in path or link.parent not in self._index:
                return path, line  # a lost parent, or a circle: nothing can be said about what came before
            else:
                position = self._index[link.parent]
        return path, 0

    def last_prompt(self, inactive: set[int]) -> int:
        """The line of the newest prompt that is live; 0 for none."""
        return max((line for line, link in self._links if link.prompt and line not in inactive), default=0)

    def changes(self, before: set[int], after: set[int]) -> Iterator[Activity]:
        """The ranges of lines whose state differs, each up to the next record whose state does not."""
        first, state = 0, None
        for line, _ in self._links:
            now = (line not in after) if (line in before) != (line in after) else None
            if now is not state:
                if state is not None:
                    yield Activity(first, line - 1, state)
                first, state = line, now
        if state is not None:
            yield Activity(first, self._links[-1][0], state)
