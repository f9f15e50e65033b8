"""What hooks need to know to shorten a tool's output: one small file in the data folder, compiled from the configuration,
and for each session a list of what it was given.

Invariants: where the file is missing or broken, nothing is shortened; an output counts as standing in the context only
until the next compaction, and no longer than SEEN_SECONDS. On the hook path: ``os`` and our own small modules only.
"""

from __future__ import annotations

import os
import time

from obsmem.core.hooks import write_json
from obsmem.system.files import PRIVATE_FILE, make_folder, read_bytes, remove, write_atomic
from obsmem.system.state import SEEN_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS_FILE = "shorten"
JOURNAL_FILE = "reduce.journal"  # of a session: a JSON line for each long output, until the maintainer takes them
VIEW_FOLDER = "view"  # of the data folder: for each session the calls whose results our plugin masks, written by it
FORGOTTEN_FILE = "forgotten"  # of a session that was forgotten on request: no output of it is kept
SEEN_SECONDS = 1800  # harnesses clear old results away without saying so
SEEN_BYTES = 1 << 14  # from the end of that list
DEFAULT_MINIMUM = 2_000  # bytes


class Settings:
    """``minimum``: bytes below which an output is left alone. ``off``: names of rules. ``excluded``: globs of commands.
    ``never``: globs of transcripts and folders that are not read. ``view``: how old results stand in requests."""

    __slots__ = ("excluded", "minimum", "never", "off", "reduce", "view")

    def __init__(
        self,
        *,
        reduce: bool = False,
        minimum: int = DEFAULT_MINIMUM,
        off: tuple[str, ...] = (),
        excluded: tuple[str, ...] = (),
        never: tuple[str, ...] = (),
        view: str = "full",
    ) -> None:
        self.reduce = reduce
        self.minimum = minimum
        self.off = off
        self.excluded = excluded
        self.never = never
        self.view = view


def write_settings(home: str, settings: Settings) -> None:
    """Write what hooks and the plugin read, if it is not so already; no file at all where nothing is to be shortened."""
    path = os.path.join(home, SETTINGS_FILE)
    if not settings.reduce and settings.view == "full":
        remove(path)
        return
    lists = {"off": settings.off, "excluded": settings.excluded, "never": settings.never}
    value: dict[str, object] = {"reduce": settings.reduce, "minimum": settings.minimum, "view": settings.view}
    value.update({name: "\n".join(words) for name, words in lists.items()})
    data = write_json(value).encode("ascii")
    if read_bytes(path) != data:
        write_atomic(path, data, durable=False)


def read_settings(home: str, parse: Callable[[str], object]) -> Settings:
    """What ``write_settings`` left; with a ``reduce`` that is False where there is nothing, or nothing that can be read.
    ``parse`` reads JSON."""
    data = read_bytes(os.path.join(home, SETTINGS_FILE))
    if not data:
        return Settings()
    try:
        value = parse(data.decode("utf-8", "replace"))
    except ValueError:
        return Settings()
    if not isinstance(value, dict) or not isinstance(value.get("minimum"), int):
        return Settings()

    def words(name: str) -> tuple[str, ...]:
        text = value.get(name)
        return tuple(text.split("\n")) if isinstance(text, str) and text else ()

    view = value.get("view")
    return Settings(
        reduce=value.get("reduce") is True,
        minimum=int(value["minimum"]),
        off=words("off"),
        excluded=words("excluded"),
        never=words("never"),
        view=view if isinstance(view, str) else "full",
    )


def seen_before(folder: str, digest: str) -> tuple[str, int]:
    """(id, time in seconds) of the output with this digest that still stands in the session's context; ('', 0) for none."""
    now = int(time.time())
    found = ("", 0)
    for line in _tail(os.path.join(folder, SEEN_FILE)).split("\n"):
        words = line.split(" ")
        if len(words) == 3 and words[0] == digest and words[2].isdigit() and 0 <= now - int(words[2]) <= SEEN_SECONDS:
            found = (words[1], int(words[2]))
    return found


def note_seen(folder: str, digest: str, id_: str) -> None:
    """Remember that an output stands in the session's context."""
    _append(os.path.join(folder, SEEN_FILE), f"{digest} {id_} {int(time.time())}\n")


def note_outcome(folder: str, outcome: dict[str, object]) -> None:
    """Tell the maintainer what became of a long output: numbers and names, nothing of what it said."""
    _append(os.path.join(folder, JOURNAL_FILE), write_json(outcome) + "\n")


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - SEEN_BYTES))
            return file.read(SEEN_BYTES).decode("ascii", "replace")
    except OSError:
        return ""


def _append(path: str, line: str) -> None:
    make_folder(os.path.dirname(path))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
    try:
        os.write(descriptor, line.encode("utf-8", "replace"))
    finally:
        os.close(descriptor)
