"""What a hook call says and what we give back, as values that cost a hook nothing to load.

On the hook path: no import, not even ``typing`` (which alone costs a third of an interpreter's start). Elsewhere they
are used like the values of ``model``, which names them too. Invariant: immutable, and equal when their fields are.
"""

from __future__ import annotations


class HookEvent(tuple[str, ...]):
    """A harness's hook call in our words. ``kind``: turn_end | before_compact | session_start | session_end |
    prompt | other. ``source`` says why a session started (startup, resume, clear, compact, fork, or what came);
    ``since`` is when the compaction was that it goes on after, in milliseconds, where the harness tells; ``focus`` what the
    user asks its summary to attend to; ``held`` the tokens in the window and those of the window itself (``24000/200000``), where
    the harness tells before a compaction."""

    __slots__ = ()
    _fields = ("kind", "name", "session_id", "transcript", "cwd", "source", "agent_id", "since", "focus", "held")

    def __new__(
        cls,
        kind: str,
        name: str,
        session_id: str = "",
        transcript: str = "",
        cwd: str = "",
        source: str = "",
        agent_id: str = "",
        since: str = "",
        focus: str = "",
        held: str = "",
    ) -> HookEvent:
        """Make an event; everything but what happened may be unknown."""
        return tuple.__new__(cls, (kind, name, session_id, transcript, cwd, source, agent_id, since, focus, held))

    @property
    def kind(self) -> str:
        """What happened, in our words."""
        return self[0]

    @property
    def name(self) -> str:
        """What happened, in the harness's words."""
        return self[1]

    @property
    def session_id(self) -> str:
        """The harness's id of the session."""
        return self[2]

    @property
    def transcript(self) -> str:
        """Where the harness keeps the session: a file, or a database."""
        return self[3]

    @property
    def cwd(self) -> str:
        """The working folder."""
        return self[4]

    @property
    def source(self) -> str:
        """Why a session started, or a compaction."""
        return self[5]

    @property
    def agent_id(self) -> str:
        """The sub-agent that this is about; '' for the session itself."""
        return self[6]

    @property
    def since(self) -> str:
        """When the compaction was that a session goes on after, in milliseconds; '' where nobody says."""
        return self[7]

    @property
    def focus(self) -> str:
        """What the user asks a compaction's summary to attend to."""
        return self[8]

    @property
    def held(self) -> str:
        """How full the window is before a compaction, and how large it is, in tokens; '' where nobody says."""
        return self[9]


class HookAnswer(tuple[str, ...]):
    """What we give back: context for the model, and ``notice``, one line for the user. Either may be ''."""

    __slots__ = ()
    _fields = ("context", "notice")

    def __new__(cls, context: str = "", notice: str = "") -> HookAnswer:
        """Make an answer; an empty one says nothing."""
        return tuple.__new__(cls, (context, notice))

    @property
    def context(self) -> str:
        """What the model gets."""
        return self[0]

    @property
    def notice(self) -> str:
        """What the user sees."""
        return self[1]


class ToolOutput:
    """What a shell tool printed. ``text`` is all of it, unless ``path`` names a file that holds the whole, of ``size`` bytes.
    ``exit_code`` is None where nobody says how the command ended."""

    __slots__ = ("call_id", "command", "exit_code", "path", "size", "text")

    def __init__(
        self, call_id: str, command: str, text: str, exit_code: int | None, path: str = "", size: int = 0
    ) -> None:
        self.call_id = call_id
        self.command = command
        self.text = text
        self.exit_code = exit_code
        self.path = path
        self.size = size or len(text)


def write_json(value: object) -> str:
    """Objects, strings, numbers and truth values as JSON (ASCII only): importing ``json`` costs a hook more than the rest
    of its work."""
    try:
        from _json import encode_basestring_ascii as quote
    except ImportError:
        import json

        return json.dumps(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quote(key)}: {write_json(item)}" for key, item in value.items()) + "}"
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    return repr(value)


def text_of(payload: object, key: str) -> str:
    """The text that a payload has under a key; '' where it has none, or something else."""
    value = payload.get(key) if hasattr(payload, "get") else None
    return value if isinstance(value, str) else ""
