"""Every way by which stored words leave the store: hooks, commands and their JSON, the agent's tools, files, prompts, exports.

``everything`` runs them all in a place and gives (way, text) for each. Invariant: nothing here asks for raw bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from bench.faults.place import HARNESS, SESSION, Place
from bench.faults.process import Ended, until_quiet

MODEL = ("block", "hook", "tool")  # ways that end in a model's context, where words stand as data
COMMANDS = (
    "show {}", "show {} --whole", "recall {}.0", "recall {}.1", "recall {}.5", "recall {}.3 --context 3", "notes {}", "block {}",
    "sessions", "status", "search deploy", "search --exact passed", "search --regex depl.y", "get {}.0", "get {}.2", "get {}.4",
    "around {}.3 --count 4", "tool toolu_a3", "timeline {}", "timeline", "file src/app_1.py", "handoff {}", "handoff {} --style cards",
    "resume {}", "pins", "rotate {} --force", "usage", "config", "context", "stats", "explain {}", "statusline", "fsck", "doctor",
    "explain {} --last-block",
)  # fmt: skip
FORKS = ("claude-code", "codex", "cursor", "opencode")
STARTS = ("startup", "resume", "compact", "clear")
RAW = ("archive.db", "index.db")  # the bytes themselves, and what a search needs of them: both stay on the machine


def hire(place: Place) -> str:
    """Let a program be the worker that writes down what it is asked; the file of all prompts."""
    prompts, script = os.path.join(place.folder, "prompts"), os.path.join(place.folder, "worker.sh")
    Path(script).write_text(f"#!/bin/sh\ncat >> '{prompts}'\necho '[]'\n", encoding="utf-8")
    os.chmod(script, 0o700)
    place.settings["WORKERS"] = json.dumps([{"kind": "command", "run": [script]}])
    return prompts


def everything(place: Place) -> Iterator[tuple[str, str]]:
    """Run every way out; the words that each let out."""
    prompts = hire(place)
    for more in ((), ("--before-compact",), ()):
        place.maintain(*more)
    yield "prompts to workers", _read(prompts)
    handle = str(place.ask(lambda: _handle(place.home)))
    yield from _hooks(place)
    yield from _commands(place, handle)
    yield from _tools(place, handle)
    yield from _exports(place, handle)
    until_quiet(place.home)
    for path in sorted(Path(place.home).rglob("*")):
        if path.is_file() and not path.name.startswith(RAW) and "raw" not in path.parts:
            yield f"file {path.relative_to(place.home)}", path.read_bytes().decode("utf-8", "replace")


def _handle(home: str) -> str:
    from obsmem.tasks.store import open_store

    with open_store(home, readonly=True) as store:
        return next(one.session.handle for one in store.archive.sessions() if one.session.id == SESSION)


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace") if os.path.exists(path) else ""


def _words(ended: Ended) -> str:
    return (ended.out + b"\n" + ended.err).decode("utf-8", "replace")


def _hooks(place: Place) -> Iterator[tuple[str, str]]:
    place.hook("PreCompact", place.payload("PreCompact-auto"))
    for source in ("compact", *STARTS):
        for part in range(1, 5):
            ended = place.hook(
                "SessionStart", place.payload("SessionStart-compact", source=source), "--part", f"{part}/4"
            )
            yield f"hook SessionStart {source} {part}/4", _context(ended)
    ended = place.hook("UserPromptSubmit", place.payload("UserPromptSubmit"))
    yield "hook UserPromptSubmit", _context(ended)
    yield "hook statusLine", _words(place.hook("statusLine", place.payload("statusLine")))


def _context(ended: Ended) -> str:
    """The text that the model is given, as it will see it."""
    if not ended.out:
        return ended.err.decode("utf-8", "replace")
    value = json.loads(ended.out)
    return str(value.get("hookSpecificOutput", {}).get("additionalContext", "")) + str(value.get("systemMessage", ""))


def _commands(place: Place, handle: str) -> Iterator[tuple[str, str]]:
    for command in COMMANDS:
        words = command.format(handle).split(" ")
        yield f"{'block' if words[0] == 'block' else 'command'} {command}", _words(place.command(*words))
        yield f"json {command}", _words(place.command(*words, "--json"))


def _tools(place: Place, handle: str) -> Iterator[tuple[str, str]]:
    calls: tuple[tuple[str, dict[str, object]], ...] = (
        ("search", {"query": "deploy"}), ("recall", {"id": f"{handle}.0"}), ("recall", {"id": f"{handle}.4"}),
        ("get", {"ids": [f"{handle}.0", f"{handle}.2", f"{handle}.4"]}), ("around", {"id": f"{handle}.3"}), ("timeline", {}),
        ("tool", {"call_id": "toolu_a3"}), ("file", {"path": "src/app_1.py"}), ("notes", {}), ("status", {}), ("pin", {"text": "x"}),
    )  # fmt: skip
    for name, given in calls:
        yield f"tool {name}", str(place.ask(lambda name=name, given=given: _call(name, given, place.project)))  # type: ignore[misc]


def _call(name: str, given: dict[str, object], folder: str) -> str:
    from obsmem.interfaces.mcp_scope import Asker
    from obsmem.interfaces.mcp_tools import NAMES, TOOLS, call_tool

    wanted = next((one for one in NAMES if one.rpartition("_")[2] == name or one == name), name)
    tool = next(one for one in TOOLS if one.name == wanted)
    known = {key: value for key, value in given.items() if key in tool.arguments}
    if "ids" in given and "ids" not in tool.arguments and "id" in tool.arguments:
        known["id"] = given["ids"][0]  # type: ignore[index]
    return call_tool(wanted, known, Asker(folder, SESSION)).text


def _exports(place: Place, handle: str) -> Iterator[tuple[str, str]]:
    folder = os.path.join(place.folder, "exported")
    yield "command export --folder", _words(place.command("export", handle, "--folder", folder))
    bundle = os.path.join(place.folder, "sessions.bundle")
    yield "command export bundle", _words(place.command("export", handle, "--bundle", bundle))
    page = os.path.join(place.folder, "page.html")
    yield "command report", _words(place.command("report", handle, "-o", page))
    for harness in FORKS:
        yield (
            f"command fork {harness}",
            _words(place.command("fork", handle, "--to", harness, "--folder", place.project)),
        )
    seen = {place.transcript, *(str(path) for path in Path(place.home).rglob("*"))}
    for path in sorted(Path(place.folder).rglob("*")):
        if path.is_file() and str(path) not in seen and path.name not in ("prompts", "worker.sh"):
            data = path.read_bytes()
            yield f"written {path.relative_to(place.folder)}", _unpacked(data)


def _unpacked(data: bytes) -> str:
    """The words of a file, whatever it is packed in."""
    import gzip
    import io
    import zipfile
    import zlib

    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            return "\n".join(_unpacked(packed.read(name)) for name in packed.namelist())
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data).decode("utf-8", "replace")
    if data[:1] == b"\x78":
        return zlib.decompress(data).decode("utf-8", "replace")
    return data.decode("utf-8", "replace")


__all__ = ["HARNESS", "MODEL", "everything", "hire"]
