"""Our own words when they come back: what our commands and tools gave an agent stands in its transcript as any result does.

Invariant: such a result is archived whole, but nobody observes it, since what it repeats stands in the record already: else
an old claim, recalled, would count as shown by a tool. A command that also runs something else is no command of ours.
Where a harness gives its calls no ids, a result belongs to the first call of its tool that has none yet; what an answer to
an agent opens with is known by itself, whatever the tool is called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from obsmem.core.model import Entry
from obsmem.memory.own import is_answer, is_ours_alone
from obsmem.store.archive import StoredSession
from obsmem.store.archive_scan import calls_before
from obsmem.tasks.entries import read_entries
from obsmem.tasks.store import Store

REMEMBERED = 256  # calls of one reading
EMPTY_RESULT = "empty tool result"  # as readers say it
CALLS_BACK = 30  # calls of an earlier reading among which a result's own is looked for
_WORDS = ("user", "assistant")
_BESIDE = (*_WORDS, "tool_call", "tool_result")


class OwnVoice:
    """Tells our own results from others', for one reading of a session."""

    def __init__(self, store: Store, stored: StoredSession) -> None:
        self._store, self._stored = store, stored
        self._calls: dict[str, bool] = {}
        self._waiting: list[tuple[str, bool]] = []  # (tool, ours) of calls without an id that have no result yet
        self._looked = False

    def heard(self, entries: Collection[Entry], skipped: Collection[str] = ()) -> tuple[Entry, ...]:
        """The entries of a record, in the order of their session, with the harness as the speaker of what we gave.
        ``skipped`` says why some of it gave none: a result without words answers a call all the same."""
        if EMPTY_RESULT in skipped:
            self._look_back()
            del self._waiting[:1]
        return tuple(self._heard(entries)) if entries else ()

    def _heard(self, entries: Collection[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if entry.kind == "tool_call" and entry.call_id:
                self._calls.pop(next(iter(self._calls)) if len(self._calls) >= REMEMBERED else "", None)
                self._calls[entry.call_id] = is_ours_alone(entry)
            elif entry.kind == "tool_result" and entry.call_id:
                if entry.speaker == "tool" and (self._is_ours(entry.call_id) or is_answer(entry)):
                    entry = entry._replace(speaker="harness")
            elif entry.kind in _BESIDE:
                ours = self._follow(entry)
                if entry.kind == "tool_result" and entry.speaker == "tool" and (ours or is_answer(entry)):
                    entry = entry._replace(speaker="harness")
            yield entry

    def _follow(self, entry: Entry) -> bool:
        """Keep the calls without an id that wait; True for the result of one of ours. Words end the waiting."""
        if entry.kind in _WORDS:
            self._looked = True  # whatever waited in an earlier reading is over
        self._look_back()
        return self._move(self._waiting, entry)

    def _look_back(self) -> None:
        """Once in a reading: the calls that an earlier one left waiting."""
        if self._looked:
            return
        self._looked = True
        archive = self._store.archive
        last = archive.by_number(self._stored.no).last_seq
        rows = list(archive.entries(self._stored.no, last - CALLS_BACK, None, "replaced_by IS NULL"))
        for known in read_entries(self._store, self._stored, rows, lost=True):
            if known.kind in _BESIDE and not known.call_id:
                self._move(self._waiting, known)

    @staticmethod
    def _move(waiting: list[tuple[str, bool]], entry: Entry) -> bool:
        if entry.kind == "tool_result":
            index = next((at for at, (tool, _) in enumerate(waiting) if entry.tool in ("", tool)), None)
            return False if index is None else waiting.pop(index)[1]
        if entry.kind in _WORDS:
            waiting.clear()
        else:
            waiting.append((entry.tool, is_ours_alone(entry)))
            del waiting[:-REMEMBERED]
        return False

    def _is_ours(self, call_id: str) -> bool:
        if call_id and call_id not in self._calls:  # its call came in an earlier reading, if ever
            archive = self._store.archive
            last = archive.by_number(self._stored.no).last_seq
            rows = calls_before(archive, self._stored.no, last + 1, CALLS_BACK)
            for call in read_entries(self._store, self._stored, rows, lost=True):
                self._calls.setdefault(call.call_id, is_ours_alone(call))
            self._calls.setdefault(call_id, False)
        return self._calls.get(call_id, False)
