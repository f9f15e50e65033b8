"""What a harness module must have, and the basics that it may assign instead of writing.

A harness is a **module** that has the names of ``Harness`` below. It turns a harness's bytes into entries, and our
answers into its words; nothing outside the module knows how either looks. Invariants kept here: lines split at 0x0A
only; a bad line costs only itself; what a record yields depends on its bytes alone (``blocks``), so that the text of
an entry can be had again from the archive; context (who spoke, copies, branches) is added by ``Reader`` on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from obsmem.core.hooks import ToolOutput
from obsmem.core.model import Entry, HookAnswer, HookEvent, Session
from obsmem.core.pressure import Limits as Limits
from obsmem.core.pressure import Measure as Measure
from obsmem.core.tuples import NamedTuple

if TYPE_CHECKING:
    from obsmem.core.turns import Draft, Written
    from obsmem.harnesses.forks import Repeats
    from obsmem.harnesses.skills import Skill

READ_SIZE = 1 << 20
SNIFF_SIZE = 1 << 16


class Source(NamedTuple):
    """Where one session is kept: a file, or (with ``session_id``) one session inside a database or folder."""

    path: str
    session_id: str = ""


class Raw(NamedTuple):
    """One record as the harness wrote it. ``data`` joined over a file's records is the file.

    ``line`` counts physical lines from 1, ``offset`` is in bytes. Rows of a database carry ``table`` and ``key``
    instead. ``complete`` is False only for a last line that has no newline yet.
    """

    data: bytes
    line: int = 0
    offset: int = 0
    table: str = ""
    key: str = ""
    complete: bool = True


class Link(NamedTuple):
    """A record's place in the harness's own tree of records. ``prompt`` marks what a human typed."""

    id: str
    parent: str
    prompt: bool = False


class Activity(NamedTuple):
    """Entries of lines ``first``..``last`` (inclusive) are on the live path from now on, or no longer."""

    first: int
    last: int
    active: bool


class Parsed(NamedTuple):
    """What one record says. Each physical line has entries, or at least one reason in ``skipped``.

    ``copied`` marks a record that repeats a parent's history (a fork, a resume into a new file): its entries are
    aliases, never observed again; ``repeats`` is there where our own fork wrote it. ``receipts`` are the delivery marks of our own block found in the record.
    ``disowned`` are earlier lines whose words turn out to be the harness's own (a summariser's answer): they are no
    longer the agent's.
    """

    entries: tuple[Entry, ...] = ()
    skipped: tuple[str, ...] = ()
    activity: tuple[Activity, ...] = ()
    link: Link | None = None
    measure: Measure | None = None
    copied: bool = False
    receipts: tuple[str, ...] = ()
    disowned: tuple[int, ...] = ()
    repeats: Repeats | None = None


class Reader(Protocol):
    """Reads one source in order. ``session`` fills up as records are read; ``parent_id`` is the harness's id of the
    session that this one was forked from or spawned by, '' for none. Where a fork refers to its parent's history
    instead of copying it, ``parent_offset`` is the byte of the parent's transcript at which it branched off, else -1."""

    session: Session
    parent_id: str
    parent_offset: int

    def read(self, raw: Raw) -> Parsed:
        """Turn one record into entries or reasons. Never raises on bad input."""

    def state(self) -> dict[str, Any]:
        """What must be kept, as JSON, so that a new reader continues where this one ended. Small, whatever was read."""

    def inactive_keys(self) -> frozenset[str] | None:
        """For rows of a database: the keys that are off the live path now. None where nothing can be said."""


class Hooks(Protocol):
    """The names that a harness's hook half has: a module of its own, ``<module>_hooks``, since hooks load nothing else.
    It imports nothing but ``core.hooks``; the harness module takes its names over."""

    NAME: str
    EVENTS: Mapping[str, str]
    """Event name of the harness -> kind of HookEvent."""

    KEEPS_BLOCK: bool
    """True where the block stands in every request until the next compaction: it is answered before the compaction too,
    and the same again whenever a session that was compacted goes on."""

    SHOWS_NOTICES: bool
    """True if the user sees the line that an answer has for them, at a prompt and at a session's start."""

    STATUS_SECONDS: float
    """Seconds that the user's own status line has, where ours stands in its place; 0 where there is no status line."""

    def read_event(self, event: str, payload: Mapping[str, Any]) -> HookEvent:
        """Turn a hook's payload into our words. Unknown events have kind 'other'."""

    def answer(self, event: HookEvent, answer: HookAnswer) -> str:
        """Turn our answer into what the harness wants on stdout; '' for nothing at all."""

    def read_output(self, payload: Mapping[str, Any]) -> ToolOutput | None:
        """What a shell tool printed, by the payload of a ``tool_result``; None where it cannot be replaced."""

    def replace_output(self, payload: Mapping[str, Any], text: str) -> str:
        """What puts a text in the place of that output, as the harness wants it on stdout."""


class Harness(Hooks, Protocol):
    """The names that a harness module has. See CONTRIBUTING.md, "Adding a harness"."""

    ROWS: bool
    """True for the formats kept in databases, whose rows change: entries then have versions."""

    IGNORED_KEYS: Mapping[str, str]
    """Keys whose strings stand in no entry, each with the reason. SPEC lists them."""

    SHOWS_RECEIPTS: bool
    """True if its transcripts hold what hooks gave to the model, so that a block that was dropped is noticed."""

    PROGRAMS: tuple[str, ...]
    """The commands that start it, best first: found on PATH, it is on this machine."""

    RESUME: tuple[str, ...]
    """The words between its program and a session's id that go on with that session at a terminal."""

    PROMPT: tuple[str, ...]
    """The words between its program and a first prompt that begin a session with it at a terminal."""

    def headless(self, arguments: list[str], session: str) -> list[str] | None:
        """The words behind its program that run one prompt from standard input without a terminal, with the user's own
        ``arguments``, in a session where an id is named; None where nobody has run it so."""

    LOGIN_SHELL: bool
    """True if it runs handlers with the user's login shell, else with /bin/sh."""

    NEXT_STEP: str
    """What only the user can do after an install, in one sentence."""

    def recognise(self, path: str, head: bytes) -> bool:
        """True if these first bytes (up to SNIFF_SIZE) of a file are in one of this harness's formats."""

    def find(self, home: str) -> Iterator[Source]:
        """Yield every session that this harness keeps on this machine, below the given home folder."""

    def sources(self, path: str) -> list[Source]:
        """List the sessions in one file, database or folder."""

    def records(self, source: Source, offset: int, line: int) -> Iterator[Raw]:
        """Yield the records of a source from a byte offset on (``line`` = number of lines before it)."""

    def blocks(self, data: bytes) -> list[Entry]:
        """Yield everything that a record's bytes say, without context. Entry.block is the index in this list."""

    def reader(
        self, source: Source, state: Mapping[str, Any] | None, history: Callable[[], Iterable[tuple[int, Link]]]
    ) -> Reader:
        """Make a reader. ``state`` continues an earlier one; ``history`` yields (line, link) of all records before,
        and costs time in proportion to them: call it only when a branch needs it. Its ids are those that ``link_key`` makes."""

    def hook_config(self, command: Callable[[str], str]) -> dict[str, Any]:
        """What a user copies into the harness's config. ``command(arguments)`` gives the shell line to run."""

    def reduce_config(self, command: Callable[[str], str]) -> dict[str, Any]:
        """What goes into the same config so that long outputs may be shortened; {} where that takes no handler."""

    SHORTENS: str
    """'' where a hook can put other words in the place of a tool's output; else why not, in a few words."""

    def config_file(self, home: str, project: str) -> str:
        """The file that ``hook_config`` goes into: of the user whose home folder is given, or of a project ('' for none).
        '' where this copy of the program has nothing to put there."""

    def recall_rule(self, home: str, project: str, command: str) -> tuple[str, dict[str, Any]]:
        """A file and what goes into it, so that the agent may run ``command`` (the shell word that recalls) without
        asking. ('', {}) where no rule is needed."""

    def status_config(self, home: str, command: str) -> tuple[str, dict[str, Any]]:
        """The user's file that names the command of the status line, and what goes into it: ``statusLine`` with
        ``command``. ('', {}) where the harness has no place for one."""

    def rule_file(self, project: str, text: str) -> tuple[str, str]:
        """A file of a project that stands in every request, and its content with ``text`` ('' for none yet) in it; the
        beginning is the same whatever the text. ('', '') where there is no such file, or hooks do as well."""

    def trust(self, home: str, project: str) -> list[tuple[str, str]]:
        """(command, state) of every handler in the config file, where the harness asks the user to trust each; state is
        trusted, untrusted, changed or disabled. Empty where it does not ask."""

    def other_ways(self, home: str, project: str) -> list[str]:
        """Ways besides the config file by which this harness calls us already (a plugin), each in a few words."""

    def mcp_config(self, home: str, project: str, name: str, command: str) -> tuple[str, dict[str, Any]]:
        """The file that names MCP servers, and what goes into it for ours: its name, and the program that it is."""

    def mcp_rule(self, home: str, project: str, name: str, tools: list[str]) -> tuple[str, dict[str, Any]]:
        """A file and what goes into it, so that the agent may call these tools of our server without asking. ('', {})
        where no rule is needed."""

    def session_of_call(self, meta: Mapping[str, object]) -> str:
        """The id of the session that makes a tool's call, from what came with it beside the arguments; '' for none."""

    def folder_of_server(self, environment: Mapping[str, str]) -> str:
        """The folder that an MCP server serves, where its environment names one; '' for that which it was started in."""

    def skill_file(self, home: str, project: str, skill: Skill) -> tuple[str, str]:
        """The file by which a user or an agent can call something by name, and what it says."""

    TAKES_SESSIONS: bool
    """True if it goes on with a session that another program wrote; else ``write_session`` writes a file to begin with."""

    WINDOW: int
    """Tokens of the window of its usual model, where no session of it says more."""

    LARGER_WINDOWS: tuple[int, ...]
    """Windows that its models come in besides, where a session held more than the usual one takes."""

    def limits(self, size: int, output: int) -> Limits:
        """What it makes of a window of ``size`` tokens whose model answers with at most ``output`` (0: not known)."""

    def model_window(self, home: str, model: str) -> tuple[int, int, str]:
        """The window of a model by the files that this harness keeps below a home folder, the most tokens that it answers
        with, and the file's kind in a few words; (0, 0, '') where no file says."""

    def write_session(self, draft: Draft, home: str) -> Written:
        """Write a session that this harness can go on with, below a home folder: a new file, marked (``forks``), with
        every tool call followed by its result. Raises OSError where it cannot be written."""


def split_lines(source: Source, offset: int, line: int) -> Iterator[Raw]:
    """Yield the physical lines of a file from ``offset`` on, split at 0x0A only, each with its newline.

    Reads in blocks of 1 MiB, so memory follows the longest line, not the file. A last line without a newline comes
    with ``complete=False``.
    """
    with open(source.path, "rb", READ_SIZE) as file:
        file.seek(offset)
        yield from number_lines(file, offset, line)


def number_lines(lines: Iterable[bytes], offset: int, line: int) -> Iterator[Raw]:
    """Yield lines, the first of which stands at ``offset`` behind ``line`` others, as ``split_lines`` does."""
    for data in lines:
        line += 1
        yield Raw(data, line, offset, "", "", data.endswith(b"\n"))
        offset += len(data)


def no_reduce_config(command: Callable[[str], str]) -> dict[str, Any]:
    """``Harness.reduce_config`` of a harness without such a handler."""
    return {}


def no_model_window(home: str, model: str) -> tuple[int, int, str]:
    """``model_window`` of a harness that keeps nothing about its models where others can read it."""
    return 0, 0, ""


def no_rule_file(project: str, text: str) -> tuple[str, str]:
    """``rule_file`` of a harness that has none."""
    return "", ""


def no_status_line(home: str, command: str) -> tuple[str, dict[str, Any]]:
    """``status_config`` of a harness that has no place for one."""
    return "", {}
