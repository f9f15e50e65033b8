"""Where Codex keeps its rollouts, and how their bytes fall into records.

Three containers: JSON lines, the same compressed (files of more than a week), and the one JSON document of the first
releases. Invariant: the records of a source, joined in order, are its (decompressed) bytes.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from typing import Any

from obsmem.core import late
from obsmem.core.errors import UsageError
from obsmem.harnesses.base import READ_SIZE, Raw, Source, number_lines, split_lines
from obsmem.harnesses.written import load_objects

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
RECORD_TYPES = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
    | {"inter_agent_communication", "token_usage_record", "dynamic_tools_updated", "realtime_item", "id_allocation"}
)
ITEM_TYPES = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"}
)

_NAME = late.pattern(r"rollout-.*\.jsonl?(?:\.zst)?\Z")
_DOCUMENT = late.pattern(rb'\A(?:\xef\xbb\xbf)?\s*\{\s*"session"\s*:\s*\{')
_ITEMS = late.pattern(r'"items"\s*:\s*\[')
_SEPARATOR = late.pattern(r"[\s,]*")
_FIRST_RECORD = late.pattern(rb'\A\s*\{[^{]{0,120}"type"\s*:\s*"session_meta"\s*,\s*"payload"\s*:\s*\{')
_decoder = json.JSONDecoder()


def recognise(path: str, head: bytes) -> bool:
    """True if the first bytes of a file are a rollout of any generation."""
    if head.startswith(ZSTD_MAGIC):
        return path.endswith(".jsonl.zst")
    if _DOCUMENT.match(head) or _FIRST_RECORD.match(head):
        return True
    lines = head.split(b"\n")
    # The last piece may be cut, unless it is the whole file.
    return any(_is_record(line) for line in lines[:20] if line.strip())


def _is_record(line: bytes) -> bool:
    return any(_is_rollout_object(value) for value in load_objects(line)[0])


def _is_rollout_object(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    if kind is not None and not isinstance(kind, str):
        return False
    if isinstance(value.get("payload"), dict):
        return kind in RECORD_TYPES
    if kind is None:
        return value.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= value.keys()
    # A bare item: the fields tell it from the records of others that also say "message".
    return kind in ITEM_TYPES and bool({"role", "call_id", "summary"} & value.keys()) and "parentUuid" not in value


def find(home: str) -> Iterator[Source]:
    """Yield every rollout below ``$CODEX_HOME``, or ``.codex`` in the home folder; a compressed copy only alone."""
    from pathlib import Path  # slow to load, and no reading of archived records needs it

    roots = [Path(home) / ".codex"]
    if os.environ.get("CODEX_HOME"):
        roots.append(Path(os.environ["CODEX_HOME"]))
    seen: set[str] = set()
    for root in roots:
        for folder in ("sessions", "archived_sessions"):
            for path in sorted((root / folder).rglob("rollout-*")):
                if _NAME.match(path.name) is None or not path.is_file():
                    continue
                if path.suffix == ".zst" and path.with_suffix("").exists():
                    continue
                if str(path) not in seen:
                    seen.add(str(path))
                    yield Source(str(path))


def records(source: Source, offset: int, line: int) -> Iterator[Raw]:
    """Yield the records from a byte offset on. In a compressed file offsets count decompressed bytes.

    In the one-document generation a record is a span of the document, and ``line`` counts spans. Raises UsageError
    for a compressed file where no decoder is installed.
    """
    with open(source.path, "rb") as file:
        head = file.read(4096)
    if head.startswith(ZSTD_MAGIC):
        return _compressed_records(source, offset, line)
    if _DOCUMENT.match(head):
        return _document_records(source, offset, line)
    return split_lines(source, offset, line)


def _compressed_records(source: Source, offset: int, line: int) -> Iterator[Raw]:
    with open(source.path, "rb") as file:
        stream = io.BufferedReader(_decompressor(source.path, file), READ_SIZE)
        skipped = 0
        while skipped < offset:
            piece = stream.read(min(READ_SIZE, offset - skipped))
            if not piece:
                return
            skipped += len(piece)
        yield from number_lines(stream, offset, line)


class _Decompressed(io.RawIOBase):
    """The decompressed bytes of a stream; they end, instead of raising, where it is torn."""

    def __init__(self, stream: Any, errors: tuple[type[Exception], ...]) -> None:
        self._stream, self._errors = stream, errors

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)
        try:
            data = bytes(self._stream.read(len(room)))
        except self._errors:
            return 0
        room[: len(data)] = data
        return len(data)


def _decompressor(path: str, file: Any) -> io.RawIOBase:
    """The decompressed bytes of a file. Raises UsageError where there is no decoder."""
    try:
        import zstandard

        stream: Any = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return _Decompressed(stream, (zstandard.ZstdError, EOFError, OSError))
    except ImportError:
        try:
            from compression import zstd  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise UsageError(
                f"{path} is compressed and no zstd decoder is installed: run `pip install zstandard` and try again."
            ) from None
        return _Decompressed(zstd.ZstdFile(file), (zstd.ZstdError, EOFError, OSError))


def _document_records(source: Source, offset: int, line: int) -> Iterator[Raw]:
    """Split ``{"session": …, "items": […]}``: what stands before the items, one span an item, the rest."""
    with open(source.path, "rb") as file:
        data = file.read()
    spans = _document_spans(data)
    if not spans:  # not yet written whole
        if data[offset:]:
            yield Raw(data[offset:], line + 1, offset, complete=False)
        return
    for start, end in spans:
        if start >= offset:
            line += 1
            yield Raw(data[start:end], line, start)


def _document_spans(data: bytes) -> list[tuple[int, int]]:
    # As Latin-1 a character is a byte, and nothing that JSON's grammar looks at changes.
    text = data.decode("latin-1")
    items = _ITEMS.search(text)
    if items is None:
        return []
    spans = [(0, items.end())]
    position = items.end()
    while True:
        start = _separated(text, position)
        if text[start : start + 1] != "{":
            break
        try:
            _, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return []
        spans.append((position, end))
        position = end
    if text[position:].strip()[:1] != "]":
        return []
    spans.append((position, len(data)))
    return spans


def _separated(text: str, position: int) -> int:
    match = _SEPARATOR.match(text, position)
    return match.end() if match else position


def document_piece(data: bytes) -> tuple[list[dict[str, Any]], tuple[str, ...]] | None:
    """Read one span of a one-document rollout; None where it is none."""
    stripped = data.strip(b", \t\r\n")
    if stripped.startswith(b"]") and stripped.replace(b" ", b"").replace(b"\n", b"").replace(b"\r", b"") == b"]}":
        return [], ("end of document",)
    if _DOCUMENT.match(stripped) and stripped.endswith(b"["):
        stripped += b"]}"
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return ([value], ()) if isinstance(value, dict) else None
