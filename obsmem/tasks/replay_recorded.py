"""A worker that answers as models once did: from the notes, reflections and drops that their recorded calls brought.

Invariant: it answers only what was asked in the same way: exactly the stretch that was shown then, or the passes behind it;
anything else, and what was made by rule, it leaves to whoever is asked next.
"""

from __future__ import annotations

from typing import Any

from obsmem.core.errors import WorkerError
from obsmem.core.model import Reply, Request
from obsmem.store.memory import MemoryStore, WorkerCall
from obsmem.tasks.observe import shown_hash

BY_RULE = "extractive"
_GOOD = ("ok", "empty")


class Recorded:
    """Answers for one session out of the store ``kept``; ``grown`` is the one in which it is run again."""

    NAME = "recorded"

    def __init__(self, kept: MemoryStore, grown: MemoryStore, handle: str) -> None:
        self.kept, self.grown, self.handle = kept, grown, handle
        self.reused = 0

    def ask(self, request: Request) -> Reply:
        """The recorded answer to a request. Raises WorkerError where there is none."""
        if request.task == "observe":
            call, items = self._observed(request)
        else:
            covered = self.grown.covered_to(self.handle)
            call, items = self._reflected(covered) if request.task == "reflect" else self._dropped(covered)
        self.reused += 1
        return Reply(tuple(items), call.worker, call.tokens_in, call.tokens_out)

    def _observed(self, request: Request) -> tuple[WorkerCall, list[dict[str, Any]]]:
        shown = shown_hash(request.chunk) if request.chunk is not None else ""
        for stretch in self.kept.stretches(self.handle):
            if stretch.shown == shown and request.chunk is not None and stretch.last_seq == request.chunk.last_seq:
                call = self._call("observe", stretch.last_seq, self.kept.workers_of(self.handle)[stretch.call])
                brought = self.kept.notes_of(stretch.call)
                notes = [one.note for one in self.kept.notes(self.handle) if one.note.id in brought]
                return call, [
                    {"text": note.text, "relevance": note.relevance, "entry_ids": list(note.entry_ids)}
                    for note in notes
                ]
        raise _unknown()

    def _reflected(self, covered: int) -> tuple[WorkerCall, list[dict[str, Any]]]:
        found = [one.reflection for one in self.kept.reflections(self.handle) if one.up_to == covered]
        return self._call("reflect", covered), [{"text": one.text, "note_ids": list(one.note_ids)} for one in found]

    def _dropped(self, covered: int) -> tuple[WorkerCall, list[dict[str, Any]]]:
        drops = [one.drop for one in self.kept.drops(self.handle) if one.up_to == covered]
        return self._call("drop", covered), [{"note_id": id_} for drop in drops for id_ in drop.note_ids]

    def _call(self, task: str, last: int, worker: str = "") -> WorkerCall:
        """The call of a model that ended well there."""
        for call in self.kept.calls(self.handle, task):
            good = call.last_seq == last and call.outcome in _GOOD and call.worker != BY_RULE
            if good and worker in ("", call.worker):
                return call
        raise _unknown()


def _unknown() -> WorkerError:
    return WorkerError("No recorded answer of a model fits this request.", fault="unavailable")
