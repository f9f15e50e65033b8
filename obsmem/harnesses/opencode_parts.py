"""What OpenCode's messages and their parts say, wherever they are kept.

A message has a role, and parts: text, reasoning, tool, file, and marks of the harness. A *finding* is an entry, or a
reason (text) why something yields none. Invariants: what comes out depends on the part, its message's role and its
message's time alone; the harness's own words (synthetic or ignored texts, files, errors) are notices, so that nobody
takes them for the human's; an unknown part is kept as a notice, its words whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from obsmem.core.model import Entry, EntryKind, Speaker
from obsmem.core.tuples import NamedTuple
from obsmem.harnesses.opencode_actions import actions, notice_actions
from obsmem.harnesses.own_block import apart
from obsmem.harnesses.written import OWN_BLOCK, exit_code_in, flatten, parse_time

Finding = Entry | str

_IDS = ("id", "sessionID", "messageID", "type", "metadata", "time")
_SHELLS = ("bash", "shell")
_WITHOUT_WORDS = ("step-start", "step-finish", "snapshot", "patch")


class Voice(NamedTuple):
    """Whose message a part belongs to. ``role`` is user | assistant, '' where unknown; ``summary`` marks the message that
    a compaction leaves; ``at`` is the message's time in milliseconds."""

    role: str
    summary: bool = False
    at: int = 0


def voice_of(info: Mapping[str, Any]) -> Voice:
    """The voice of a message, from its info."""
    role = info.get("role")
    return Voice(role if isinstance(role, str) else "", info.get("summary") is True, moment(info, "created"))


def moment(value: Mapping[str, Any], name: str, default: int = 0) -> int:
    """A time of a message, part or tool state, in milliseconds; ``default`` where it has none."""
    times = value.get("time")
    return (parse_time(times.get(name)) if isinstance(times, Mapping) else 0) or default


def message_findings(info: Mapping[str, Any]) -> Iterator[Finding]:
    """What a message says beside its parts: an error, a system prompt of its own, an answer in a given form."""
    source_id, at = _text(info, "id"), moment(info, "created")
    for key in ("error", "system", "structured"):
        if text := flatten(info.get(key)):
            yield _notice(source_id, text, at)


def part_findings(part: Any, voice: Voice) -> Iterator[Finding]:
    """What one part says. The source id of its entries is the part's id: it is the same in every place it is kept."""
    if not isinstance(part, Mapping):
        yield "part is no object"
        return
    kind = _text(part, "type")
    if kind in _WITHOUT_WORDS:
        yield kind
        return
    yield from _PARTS.get(kind, _unknown)(part, voice)


def in_progress(part: Any) -> bool:
    """True for a part that the harness has begun and not ended; it comes again when it has."""
    if not isinstance(part, Mapping):
        return False
    state = part.get("state")
    if isinstance(state, Mapping):
        return state.get("status") in ("pending", "running")
    times = part.get("time")
    return isinstance(times, Mapping) and "end" not in times


def has_voice(part: Mapping[str, Any]) -> bool:
    """True for a text that the human or the agent said, as against one that the harness put there."""
    text = _text(part, "text")
    return part.get("type") == "text" and _speaker(part, Voice("user"), text)[1] == "human"


def _said(part: Mapping[str, Any], voice: Voice) -> Iterator[Finding]:
    text = _text(part, "text")
    if not text.strip():
        yield "empty text"
        return
    for _, words in apart(text):
        kind, speaker = _speaker(part, voice, words)
        told = notice_actions(words) if kind == "notice" else ()
        yield Entry(-1, _text(part, "id"), kind, speaker, words, at=moment(part, "start", voice.at), actions=told)


def _speaker(part: Mapping[str, Any], voice: Voice, text: str) -> tuple[EntryKind, Speaker]:
    metadata = part.get("metadata")
    continues = isinstance(metadata, Mapping) and metadata.get("compaction_continue")
    if part.get("synthetic") or part.get("ignored") or continues or text.lstrip().startswith(OWN_BLOCK):
        return "notice", "harness"
    if voice.role == "user":
        return "user", "human"
    if voice.summary:
        return "summary", "harness"
    return ("assistant", "agent") if voice.role == "assistant" else ("notice", "harness")


def _thought(part: Mapping[str, Any], voice: Voice) -> Iterator[Finding]:
    text = _text(part, "text")
    if not text.strip():
        yield "empty reasoning"
        return
    yield Entry(-1, _text(part, "id"), "thinking", "agent", text, at=moment(part, "start", voice.at))


def _tool(part: Mapping[str, Any], voice: Voice) -> Iterator[Finding]:
    state = part.get("state")
    if not isinstance(state, Mapping):
        state = {}
    source_id, tool, call_id = _text(part, "id"), _text(part, "tool"), _text(part, "callID")
    arguments = state.get("input")
    said = flatten(arguments) or flatten(state.get("raw"))
    at = moment(state, "start", voice.at)
    text = f"{tool}\n{said}" if said else tool
    yield Entry(-1, source_id, "tool_call", "agent", text, tool, call_id, at=at, actions=actions(tool, arguments))
    output, ok, exit_code = _outcome(tool, state)
    if output is None:
        yield f"tool {_text(state, 'status') or 'without a state'}"
    else:
        ended = moment(state, "end", at)
        yield Entry(-1, source_id, "tool_result", "tool", output, tool, call_id, ok, ended, exit_code=exit_code)
    attachments = state.get("attachments")
    for attachment in attachments if isinstance(attachments, list) else ():
        if isinstance(attachment, Mapping):
            yield from _file({"id": source_id, **attachment}, voice)


def _outcome(tool: str, state: Mapping[str, Any]) -> tuple[str | None, bool | None, int | None]:
    """A tool's words, whether it went well, and its exit status; no words while it has not ended."""
    metadata = state.get("metadata")
    details: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    if "error" in state or state.get("status") == "error":
        text = flatten(state.get("error"))
        # An interrupted command leaves what it had printed only here.
        printed = _text(details, "output")
        if printed and printed not in text:
            text = f"{text}\n{printed}" if text else printed
        return text, False, _whole(details.get("exit"))
    if "output" not in state:
        return None, None, None
    text = flatten(state.get("output"))
    exit_code = _whole(details.get("exit"))
    if exit_code is None and "exit" in details:
        return text, None, None  # the command was killed
    if exit_code is None and tool in _SHELLS:
        exit_code = exit_code_in(text)
    return text, not exit_code, exit_code


def _file(part: Mapping[str, Any], voice: Voice) -> Iterator[Finding]:
    url = _text(part, "url")
    shown = {key: part.get(key) for key in ("filename", "mime", "url", "source")}
    if url.startswith("data:"):
        del shown["url"]
        yield "image or data"
    text = flatten(shown)
    if text:
        yield _notice(_text(part, "id"), text, voice.at)
    elif not url:
        yield "empty file"


_AUTOMATIC, _BY_HAND = "automatic", "by hand"


def trigger_of(boundary: str) -> str:
    """``auto`` or ``manual``, by a boundary's text as ``_compaction`` writes it; '' for another."""
    return "auto" if _AUTOMATIC in boundary else "manual" if _BY_HAND in boundary else ""


def _compaction(part: Mapping[str, Any], voice: Voice) -> Iterator[Finding]:
    how = _AUTOMATIC if part.get("auto") else _BY_HAND
    overflow = ", on overflow" if part.get("overflow") else ""
    text = f"compaction ({how}{overflow})"
    yield Entry(-1, _text(part, "id"), "boundary", "harness", text, at=voice.at)


def _retry(part: Mapping[str, Any], voice: Voice) -> Iterator[Finding]:
    yield "retry"
    if text := flatten(part.get("error")):
        yield _notice(_text(part, "id"), text, moment(part, "created", voice.at))


def _named(part: Mapping[str, Any], voice: Voice) -> Iterator[Finding]:
    """A part that names an agent, or a task given to one: words of the human's command, put together by the harness."""
    text = flatten({key: value for key, value in part.items() if key not in _IDS})
    yield _notice(_text(part, "id"), text, voice.at) if text else f"empty {part.get('type')}"


def _unknown(part: Mapping[str, Any], voice: Voice) -> Iterator[Finding]:
    yield "unknown part type"
    if text := flatten({key: value for key, value in part.items() if key not in _IDS}):
        yield _notice(_text(part, "id"), text, moment(part, "start", voice.at))


_PARTS: Mapping[str, Callable[[Mapping[str, Any], Voice], Iterator[Finding]]] = {
    "text": _said,
    "reasoning": _thought,
    "tool": _tool,
    "file": _file,
    "agent": _named,
    "subtask": _named,
    "compaction": _compaction,
    "retry": _retry,
}


def _notice(source_id: str, text: str, at: int) -> Entry:
    return Entry(-1, source_id, "notice", "harness", text, at=at)


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
