"""What a hook call says and what we give back, as values that cost a hook nothing to load.

On the hook path: no import, not even ``typing`` (which alone costs a third of an interpreter's start). Elsewhere they
are used like the values of ``model``, which names them too. Invariant: immutable, and equal when their fields are.
"""

from __future__ import annotations


class HookEvent(tuple[str, ...]):
    """A harness's hook call in our words. ``kind``: turn_end | before_compact | session_start | session_end |
    prompt | other. ``source`` says why a session started (startup, resume, clear, compact, fork, or what came);
    ``since`` is when the compaction was that it goes on after, in milliseconds, where the harness tells."""

    __slots__ = ()
    _fields = ("kind", "name", "session_id", "transcript", "cwd", "source", "agent_id", "since")

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
    ) -> HookEvent:
        """Make an event; everything but what happened may be unknown."""
        return tuple.__new__(cls, (kind, name, session_id, transcript, cwd, source, agent_id, since))

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


def write_json(value: dict[str, object] | str) -> str:
    """Objects and strings as JSON (ASCII only): importing ``json`` costs a hook more than the rest of its work."""
    try:
        from _json import encode_basestring_ascii as quote
    except ImportError:
        import json

        return json.dumps(value)
    if isinstance(value, str):
        return quote(value)
    pairs = (f"{quote(key)}: {write_json(item)}" for key, item in value.items())  # type: ignore[arg-type]
    return "{" + ", ".join(pairs) + "}"


def text_of(payload: object, key: str) -> str:
    """The text that a payload has under a key; '' where it has none, or something else."""
    value = payload.get(key) if hasattr(payload, "get") else None
    return value if isinstance(value, str) else ""
