"""What the answers of real small models are worth, and what the extractive worker makes of the same chunks.

    python -m bench.answers [FOLDER] [--worker JSON] [--json FILE]

FOLDER holds ``chunkNN.txt`` (numbered entries) and ``answers.jsonl`` (what models said about them). With ``--worker``, the
entry of a ``workers`` list, each answer that has a fault is put to that model once more, as a running session would.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from bench import facts
from bench.corpus import PROJECT
from obsmem import workers
from obsmem.core.answers import parse_answer
from obsmem.core.errors import WorkerError
from obsmem.core.model import Chunk, Entry, EntryKind, Memory, Reply, Request, Speaker
from obsmem.memory import check, observe, repair
from obsmem.memory.cards import CardBuilder
from obsmem.memory.chunk import select

FOLDER = PROJECT.parent / "shared" / "evals" / "answers"
SESSION, NOON = "abcd", 1_770_000_000_000
_ENTRY = re.compile(r"^\[(\d+)\] (user|assistant|result|tool (\S+)): ", re.MULTILINE)
_KINDS: dict[str, tuple[EntryKind, Speaker]] = {
    "user": ("user", "human"),
    "assistant": ("assistant", "agent"),
    "result": ("tool_result", "tool"),
}


def read_chunk(path: Path) -> Chunk:
    """The chunk that a model saw, as entries of ours."""
    text = path.read_text(encoding="utf-8")
    heads = list(_ENTRY.finditer(text))
    entries, call = [], ""
    for number, head in enumerate(heads):
        words = text[head.end() : heads[number + 1].start() if number + 1 < len(heads) else len(text)].strip("\n")
        kind, speaker = _KINDS.get(head[2], ("tool_call", "agent"))
        call = f"call-{head[1]}" if kind == "tool_call" else call
        entries.append(
            Entry(int(head[1]), f"e{head[1]}", kind, speaker, words, tool=head[3] or "", at=NOON + number * 1000,
                  call_id=call if kind in ("tool_call", "tool_result") else "")
        )  # fmt: skip
    chunk = select(entries, SESSION, 60_000)
    if chunk is None:
        raise SystemExit(f"{path} holds no entries")
    return chunk


def weigh(chunk: Chunk, items: list[dict[str, Any]]) -> Counter[str]:
    """Count what of an answer's proposals holds."""
    accepted = observe.accept(Reply(tuple(items), "bench"), chunk, (), NOON + 10**9)
    counted: Counter[str] = Counter(note.grounding for note in accepted.notes)
    counted["rejected"] = len(accepted.rejected)
    counted["proposals"] = len(items)
    for item in items:
        asked = item.get("entry_ids") or ()
        names = asked if isinstance(asked, list) else [asked]
        counted["citations"] += len(names)
        counted["valid citations"] += sum(not check.citations([name], chunk)[1] for name in names)
    return counted


def measure(folder: Path, worker: Any = None, only: str = "") -> dict[str, Counter[str]]:
    """Counts by who answered (``only`` models with such a name); ``<name>, mended`` where a worker mends what has faults."""
    found: dict[str, Counter[str]] = {}
    chunks = {path.stem: read_chunk(path) for path in sorted(folder.glob("chunk*.txt"))}
    for line in (folder / "answers.jsonl").read_text(encoding="utf-8").split("\n"):
        if line:
            record = json.loads(line)
            if only not in record["model"]:
                continue
            chunk = chunks[record["chunk"]]
            counted = _answer(chunk, record["answer"])
            name = f"{record['model']}, {record['mode']}"
            found.setdefault(name, Counter()).update(counted)
            if worker is not None:
                found.setdefault(f"{name}, mended", Counter()).update(_mended(chunk, record["answer"], counted, worker))
    for chunk in chunks.values():
        found.setdefault("extractive", Counter()).update(_extractive(chunk))
    return found


def _answer(chunk: Chunk, text: str) -> Counter[str]:
    counted = Counter(answers=1)
    try:
        items = parse_answer(text)
    except WorkerError:
        return counted
    return counted + Counter(parsed=1) + weigh(chunk, items)


def _mended(chunk: Chunk, text: str, counted: Counter[str], worker: Any) -> Counter[str]:
    """The better of an answer and of what the worker makes of it when it is told the faults."""
    try:
        first = observe.accept(Reply(tuple(parse_answer(text)), "bench"), chunk, (), NOON + 10**9)
        verdict = repair.judge(first)
    except WorkerError as error:
        verdict = repair.Verdict(0, (str(error),))
    if not verdict.problems:
        return counted
    request = observe.build(chunk, (), (), Memory(), "now", 1000)
    try:
        reply = worker.ask(repair.build(request, text, verdict.problems))
    except WorkerError:
        return counted
    second = observe.accept(reply, chunk, (), NOON + 10**9)
    if not repair.judge(second).better_than(verdict):
        return counted
    return Counter(answers=1, parsed=1) + weigh(chunk, [dict(item) for item in reply.items])


def _extractive(chunk: Chunk) -> Counter[str]:
    builder = CardBuilder(SESSION)
    for entry in chunk.entries:
        builder.feed(entry)
    request = Request("observe", SESSION, Memory(), chunk, tuple(builder.take()))
    reply = workers.load("extractive").ask(request)
    return Counter(answers=1, parsed=1) + weigh(chunk, [dict(item) for item in reply.items])


def show(found: dict[str, Counter[str]]) -> None:
    """Print the table."""
    for name, counted in found.items():
        notes = sum(counted[one] for one in ("verified", "partial", "none"))
        print(
            f"{name}: {counted['parsed']} of {counted['answers']} answers read; {counted['valid citations']} of "
            f"{counted['citations']} citations valid; {notes} notes ({counted['verified']} verified, {counted['partial']} "
            f"partial, {counted['none']} none), {counted['rejected']} proposals rejected"
        )


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.answers", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--worker", type=json.loads, help="an entry of 'workers', to mend answers with")
    parser.add_argument("--only", default="", metavar="MODEL", help="only answers of models with this in their name")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    worker = workers.load(options.worker["kind"]).make(options.worker) if options.worker else None
    found = measure(options.folder, worker, options.only)
    show(found)
    if options.json:
        facts.write(
            options.json, {"machine": facts.machine(), "answers": {name: dict(one) for name, one in found.items()}}
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
