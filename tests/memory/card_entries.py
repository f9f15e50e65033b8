"""Short ways to write entries by hand, for the tests of cards and of what is made from them."""

from __future__ import annotations

from typing import Any

from obsmem.core.model import Action, Chunk, Entry
from obsmem.core.tokens import estimate


class Script:
    """Writes entries one after the other; seq counts up, each entry one minute after the one before."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._calls = 0

    def _add(self, kind: Any, speaker: Any, text: str, **more: Any) -> int:
        seq = len(self.entries)
        self.entries.append(Entry(seq, f"s{seq}", kind, speaker, text, at=(seq + 1) * 60_000, **more))
        return seq

    def user(self, text: str) -> int:
        return self._add("user", "human", text)

    def agent(self, text: str) -> int:
        return self._add("assistant", "agent", text)

    def notice(self, text: str) -> int:
        return self._add("notice", "harness", text)

    def boundary(self) -> int:
        return self._add("boundary", "harness", "compacted")

    def call(self, *actions: Action, text: str = "") -> str:
        self._calls += 1
        words = text or "\n".join(
            part for a in actions for part in (a.path, a.command, a.old, a.new, *(i[2] for i in a.items)) if part
        )
        self._add("tool_call", "agent", words, call_id=f"c{self._calls}", actions=actions)
        return f"c{self._calls}"

    def result(
        self,
        call: str,
        text: str = "done",
        ok: bool | None = True,
        exit_code: int | None = None,
        actions: tuple[Action, ...] = (),
    ) -> int:
        return self._add("tool_result", "tool", text, call_id=call, ok=ok, exit_code=exit_code, actions=actions)

    def told(self, text: str, *actions: Action) -> int:
        return self._add("notice", "harness", text, actions=actions)

    def run(self, command: str, output: str = "", ok: bool | None = True, exit_code: int | None = None) -> None:
        self.result(self.call(Action("run", command=command)), output, ok, exit_code)

    def edit(self, path: str, old: str, new: str, ok: bool = True) -> None:
        self.result(self.call(Action("edit", path=path, old=old, new=new)), ok=ok)

    def write(self, path: str, new: str) -> None:
        self.result(self.call(Action("write", path=path, new=new)))

    def read(self, path: str) -> None:
        self.result(self.call(Action("read", path=path)), "text of the file")

    def todo(self, *items: tuple[str, str, str]) -> None:
        self.result(self.call(Action("todo", items=items)))


def chunk_of(entries: list[Entry], session: str = "abcd") -> Chunk:
    """A chunk that shows the given entries whole."""
    seen = tuple(entry for entry in entries if entry.observable)
    shown = {f"{session}.{entry.seq}": entry.text for entry in seen}
    text = "\n\n".join(shown.values())
    return Chunk(session, seen[0].seq, seen[-1].seq, seen, text, shown, estimate(text))
