"""Taking a bundle in: the union of what it holds and what is here already.

Invariants: a whole file is checked before anything of it is written; each session is one transaction in the archive and
then one in the memory, so that an import that is stopped is finished by the same import again, and a third changes
nothing; what was forgotten here does not come back; no transcript is looked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from obsmem.core.errors import StoreError, UsageError
from obsmem.core.ids import content_id, entry_id
from obsmem.core.model import Drop, Note, Pin, Reflection, Session
from obsmem.harnesses import REGISTRY
from obsmem.store.archive import StoredSession
from obsmem.store.archive_import import Arriving, descend, describe, identities, take_in
from obsmem.store.memory import StoredNote, StoredReflection
from obsmem.store.memory_import import Brought, Stretched, take_memory
from obsmem.store.memory_pins import StoredPin
from obsmem.system.git_remote import alias_of
from obsmem.system.workspace import workspace_of
from obsmem.tasks.bundle_format import ENDING, Line, as_bytes, unpack
from obsmem.tasks.cards import update_cards
from obsmem.tasks.store import Store

MOST_FILE = 1 << 30  # bytes of a bundle's file


class Imported(NamedTuple):
    """What came in: sessions that were new, entries that were, rows of memory (notes, reflections, tombstones, stretches,
    pins) that were; and the sessions that were left out, each with the reason."""

    sessions: int = 0
    entries: int = 0
    memory: int = 0
    left_out: tuple[tuple[str, str], ...] = ()

    def plus(self, other: Imported) -> Imported:
        """Both together."""
        return Imported(
            self.sessions + other.sessions, self.entries + other.entries, self.memory + other.memory,
            self.left_out + other.left_out,
        )  # fmt: skip


def import_path(store: Store, path: str, workspace: str = "") -> Imported:
    """Take in a bundle, or every bundle below a folder. ``workspace`` is the folder that the sessions belong to here.
    Raises UsageError for a file that is no bundle; nothing of any file is written then."""
    files = [path] if not os.path.isdir(path) else _bundles(path)
    if not files:
        raise UsageError(
            f"There is no bundle (*{ENDING}) below {path}: name the folder or file that one was exported to."
        )
    for name in files:
        for _ in unpack(_read(name), name):
            pass
    done, parents = Imported(), []
    for name in files:
        for lines in _sessions(unpack(_read(name), name)):
            one = _Taking(store, lines, workspace)
            done = done.plus(one.take())
            parents.append(one)
    for one in parents:  # a parent may come behind its child
        one.link()
    return done


def _bundles(folder: str) -> list[str]:
    root = os.path.realpath(folder)
    found = []
    for where, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (os.path.join(where, name) for name in sorted(names) if name.endswith(ENDING))
        found += [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    return found


def _read(path: str) -> bytes:
    if os.path.getsize(path) > MOST_FILE:
        raise UsageError(
            f"{path} is larger than a bundle may be ({MOST_FILE >> 20} MiB): export fewer sessions at once."
        )
    with open(path, "rb") as file:
        return file.read()


def _sessions(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines of each session."""
    group: list[Line] = []
    for line in lines:
        if line["line"] == "session":
            if group:
                yield group
            group = []
        if line["line"] == "session" or group:
            group.append(line)
    if group:
        yield group


class _Taking:
    """One session on its way in."""

    def __init__(self, store: Store, lines: list[Line], workspace: str) -> None:
        self.store, self.head, self.lines, self.workspace = store, lines[0], lines[1:], workspace
        self.stored: StoredSession | None = None
        self.numbers: dict[int, int] = {}
        self.ids: dict[str, str] = {}

    def take(self) -> Imported:
        """Write it."""
        name = f"{self.head['harness']}/{self.head['id']}"
        if self.head["harness"] not in REGISTRY:
            return Imported(left_out=((name, "this version knows no harness of that name"),))
        archive = self.store.archive
        known = archive.by_id(self.head["harness"], self.head["id"])
        session = self._session()
        try:
            stored = archive.register(session, self.head.get("parent_id", ""))
        except StoreError:
            return Imported(left_out=((name, "it was forgotten here on request"),))
        describe(archive, stored, session)
        before = archive.by_number(stored.no).last_seq
        self.numbers = take_in(
            archive, archive.by_number(stored.no), self._arriving(), (self.head["rewinds"], self.head["updated_at"])
        )
        self.stored = archive.by_number(stored.no)
        rows = take_memory(self.store.memory, self._brought(self.stored.session.handle))
        if self.stored.last_seq > before or self.stored.rewinds != stored.rewinds:
            self.store.with_index(lambda: update_cards(self.store, archive.by_number(stored.no)))
        return Imported(int(known is None), self.stored.last_seq - before, rows)

    def _session(self) -> Session:
        head = self.head
        cwd = head.get("cwd", "")
        return Session(
            head["harness"], head["id"], cwd=cwd, workspace=self._place(head.get("workspace", ""), head.get("remote", "")),
            started_at=head.get("started_at", 0), name=head.get("name", ""), role=head["role"],
            model=head.get("model", ""), window=head.get("window", 0),
        )  # fmt: skip

    def _place(self, workspace: str, remote: str) -> str:
        """The workspace here: the one that was given, a known clone of the same repository, the same folder, else its name there."""
        if self.workspace:
            return workspace_of(os.path.abspath(self.workspace))
        if remote:
            places = {one.session.workspace for one in self.store.archive.sessions()} | {workspace_of(os.getcwd())}
            found = sorted(place for place in places if alias_of(place) == remote)
            if found:
                return found[0]
        cwd = self.head.get("cwd", "")
        return workspace_of(cwd) if cwd and os.path.isdir(cwd) else workspace or cwd

    def _arriving(self) -> list[Arriving]:
        forgotten = self.store.archive.forgotten_records()
        found = []
        for line in self.lines:
            if line["line"] != "record" or f"record:{line['sha256']}" in forgotten:
                continue
            data, digest = as_bytes(line), bytes.fromhex(line["sha256"])
            for one in line["entries"]:
                side = one["side"].encode("utf-8", "surrogatepass") if "side" in one else None
                found.append(
                    Arriving(one["seq"], digest, data, one["block"], one["kind"], one["speaker"], one["at"], one["tokens"],
                             "off" not in one, "copied" in one, one.get("replaced_by"), side, one.get("whole", ""))
                )  # fmt: skip
        found = sorted(found, key=lambda one: one.seq)
        if len({one.seq for one in found}) < len(found) or any(one.seq < 0 for one in found):
            raise UsageError(f"The bundle numbers entries of {self.head['id']} twice: get it anew and import that.")
        return found

    def _brought(self, handle: str) -> Brought:
        by_kind: dict[str, list[Line]] = {}
        for line in self.lines:
            by_kind.setdefault(line["line"], []).append(line)
        notes = [note for line in by_kind.get("note", []) if (note := self._note(handle, line)) is not None]
        reflections = []
        for line in by_kind.get("reflection", []):
            on = tuple(self.ids.get(id_, id_) for id_ in line["notes"])
            made = Reflection(content_id(line["text"], on), line["text"], on, line["tokens"])
            self.ids[line["id"]] = made.id
            reflections.append(StoredReflection(made, handle, line["recorded_at"], self._behind(line["up_to"])))
        drops = [
            (
                Drop((self.ids.get(str(line["note"]), str(line["note"])),), line["at"], line["why"]),
                self._behind(line["up_to"]),
            )
            for line in by_kind.get("drop", [])
        ]
        stretches = [one for line in by_kind.get("stretch", []) for one in self._stretches(line)]
        pins = [self._pin(handle, line) for line in by_kind.get("pin", [])]
        return Brought(handle, notes, reflections, drops, stretches, pins)

    def _note(self, handle: str, line: Line) -> StoredNote | None:
        cited = [self._entry(handle, one) for one in line["entries"]]
        names = tuple(name for name in cited if name)
        if len(names) < len(cited):
            return None  # what it stands on was forgotten here, or never came
        made = Note(
            content_id(line["text"], names), line["text"], line["at"], line["relevance"], names, line["evidence"],
            line["grounding"], line["tokens"], tuple(line["missing"]),
        )  # fmt: skip
        self.ids[line["id"]] = made.id
        return StoredNote(
            made, handle, line["recorded_at"], max(self._behind(line["first"]), 0), self._behind(line["last"])
        )

    def _entry(self, handle: str, reference: Any) -> str:
        """The id here of an entry that the bundle names; '' where it is not here."""
        if isinstance(reference, int):
            return entry_id(handle, self.numbers[reference]) if reference in self.numbers else ""
        harness, id_, digest, block, alike = reference
        other = self.store.archive.by_id(harness, id_)
        if other is None:
            return ""
        known = {identity: seq for seq, identity in identities(self.store.archive, other.no).items()}
        seq = known.get((bytes.fromhex(digest), block, alike))
        return "" if seq is None else entry_id(other.session.handle, seq)

    def _behind(self, seq: int) -> int:
        """The number here of the last entry that stands at or before a number there; -1 for none."""
        if seq in self.numbers:
            return self.numbers[seq]
        before = [there for there in self.numbers if there <= seq]
        return self.numbers[max(before)] if before else -1

    def _stretches(self, line: Line) -> Iterator[Stretched]:
        """A stretch here: in as many pieces as its entries lie in."""
        seqs = sorted(here for there, here in self.numbers.items() if line["first"] <= there <= line["last"])
        first = last = -1
        for seq in seqs:
            if first >= 0 and seq != last + 1:
                yield Stretched(first, last, line["worker"], line["reason"])
                first = -1
            first, last = (seq if first < 0 else first), seq
        if first >= 0:
            yield Stretched(first, last, line["worker"], line["reason"])

    def _pin(self, handle: str, line: Line) -> StoredPin:
        named = line.get("workspace", "")
        workspace = self._place(named, "" if os.path.isabs(named) else named) if named else ""
        source = line.get("source", "")
        source = self.ids.get(source, source) if isinstance(source, str) else self._entry(handle, source)
        owner = {"session": handle, "workspace": workspace}.get(line["scope"], "")
        made = Pin(
            content_id(line["text"], [line["scope"], owner]),
            line["text"],
            line["scope"],
            line["at"],
            source,
            line["evidence"],
        )
        return StoredPin(made, handle, workspace)

    def link(self) -> None:
        """Tie it to the session that it came from."""
        parent = self.head["parent"]
        if self.stored is None or parent is None:
            return
        harness, id_, reference = parent
        found = self.store.archive.by_id(harness, id_)
        if found is not None:
            name = self._entry(self.stored.session.handle, reference) if reference is not None else ""
            seq = int(name.rpartition(".")[2]) if name else -1
            descend(self.store.archive, self.store.archive.by_number(self.stored.no), found, seq)
