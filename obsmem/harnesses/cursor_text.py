"""Cursor's older transcripts: plain text in labelled sections.

Owns the split of such a file into records, one per section, and what a section says. Invariants: the records joined are
the file; a section's meaning depends on its own label alone. A line inside of a text that looks like a label cannot be
told from one: the format has no escape.
"""

from __future__ import annotations

from collections.abc import Iterator

from obsmem.core import late
from obsmem.harnesses.base import Raw, Source, split_lines
from obsmem.harnesses.cursor_content import Finding, spoken, thought, tool_call, tool_result

_LABEL = late.pattern(rb"(?:(user|assistant|system):[ \t]*\r?\n?\Z|\[(Tool call|Tool result|Thinking)\])")
_ARGUMENT = late.pattern(r"  ([A-Za-z_]\w*): ?(.*)")


def is_labelled(data: bytes) -> bool:
    """True if the first line that is not blank is a label: ``user:``, ``[Tool call] …``."""
    for line in data.lstrip(b"\xef\xbb\xbf").split(b"\n"):
        if line.strip():
            return _LABEL.match(line) is not None
    return False


def sections(source: Source, offset: int, line: int) -> Iterator[Raw]:
    """Yield the labelled sections of a text file; what stands before the first label is a section too."""
    lines: list[bytes] = []
    first = Raw(b"", line + 1, offset)
    complete = True
    for raw in split_lines(source, offset, line):
        if lines and _LABEL.match(raw.data):
            yield first._replace(data=b"".join(lines))
            lines = []
        if not lines:
            first = raw
        lines.append(raw.data)
        complete = raw.complete
    if lines:
        yield first._replace(data=b"".join(lines), complete=complete)


def section_findings(data: bytes) -> Iterator[Finding]:
    """What one labelled section says."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    head, _, rest = text.partition("\n")
    match = _LABEL.match(head.encode("utf-8"))
    if not text.strip("\r\n \t\x00"):
        yield "empty line"
    elif match is None:
        yield "text without a label"
    elif match.group(1):
        yield from spoken(match.group(1).decode("ascii"), rest.strip("\r\n"))
    else:
        label = match.group(2).decode("ascii")
        yield from _marked(label, head[len(label) + 2 :].strip(), rest)


def _marked(label: str, title: str, rest: str) -> Iterator[Finding]:
    body = rest.strip("\r\n")
    if label == "Thinking":
        yield from thought("\n".join(part for part in (title, body) if part))
    elif label == "Tool result":
        yield from tool_result(title, body, "", None)
    else:
        call = tool_call(title, _arguments(body))
        yield call._replace(text=f"{title}\n{body}".strip("\n"))


def _arguments(body: str) -> dict[str, str]:
    """The arguments as the transcript lists them, ``  name: value``; further lines belong to the value before."""
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for line in body.replace("\r\n", "\n").split("\n"):
        match = _ARGUMENT.match(line)
        if match:
            values = found.setdefault(match.group(1), [])
            values.append(match.group(2))
        else:
            values.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}
