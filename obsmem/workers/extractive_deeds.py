"""Notes on what was done: files, commands with their outcome, commits, to-dos, pages.

Invariant: several facts on one file or one command in one turn make one note, which cites them all.
"""

from __future__ import annotations

from obsmem.core.fold import CommandState, Fold, command_key
from obsmem.core.model import Fact, Relevance
from obsmem.workers.extractive_draft import Draft, Sight
from obsmem.workers.extractive_lines import clip, code, command_line, file_line, names, quote

PLAIN_FILES_IN_NOTE = 5
COMMANDS_IN_NOTE = 5
READS_IN_NOTE = 8

_VERBS = {"write": "Wrote", "edit": "Edited", "delete": "Deleted"}
# Steps towards something else; what came of them is noted by the commit, the push or the run that follows.
_STEPS = ("git add", "git stash", "mkdir", "chmod", "touch", "npm install", "pip install")


def deed_notes(facts: list[Fact], sight: Sight, past: Fold) -> list[Draft]:
    """Drafts for the deeds of one turn; ``past`` is the state before it."""
    drafts = _files(facts, sight)
    drafts += _commands(facts, sight, past)
    drafts += _commits(facts, sight)
    drafts += _todos(facts, sight, past)
    drafts += _looked_at(facts, sight, past)
    return drafts


def _draft(text: str, relevance: Relevance, sight: Sight, facts: list[Fact]) -> list[Draft]:
    seqs = sight.cites(*facts)
    return [Draft(text, relevance, seqs, facts[-1].at)] if seqs else []


def _files(facts: list[Fact], sight: Sight) -> list[Draft]:
    """One note a changed file; files whose changes brought no name share one."""
    changes: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.kind in _VERBS:
            changes.setdefault(fact.subject, []).append(fact)
    drafts: list[Draft] = []
    nameless: dict[str, list[Fact]] = {}
    for path, changed in changes.items():
        seen = [fact for fact in changed if sight.sees(fact, path)]
        if not seen:
            continue
        verb = "Wrote" if any(fact.kind == "write" for fact in seen) else _VERBS[seen[-1].kind]
        brought = [name for fact in seen for name in fact.detail.get("identifiers", ()) if sight.sees(fact, name)]
        if brought or verb != "Edited":
            drafts += _draft(file_line(verb, path, list(dict.fromkeys(brought))), "medium", sight, seen)
        else:
            nameless[path] = seen
    paths = list(nameless)
    for start in range(0, len(paths), PLAIN_FILES_IN_NOTE):
        some = paths[start : start + PLAIN_FILES_IN_NOTE]
        cited = [fact for path in some for fact in nameless[path]]
        drafts += _draft(clip("Edited " + ", ".join(some)), "low" if len(paths) == 1 else "medium", sight, cited)
    return drafts


def _commands(facts: list[Fact], sight: Sight, past: Fold) -> list[Draft]:
    """One note a command that tells something; the others of the turn in one."""
    runs: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.kind == "command" and not fact.detail.get("noise"):
            runs.setdefault(command_key(fact.subject), []).append(fact)
    drafts: list[Draft] = []
    others: list[Fact] = []
    committed = {fact.seqs for fact in facts if fact.kind == "commit"}
    for key, ended in runs.items():
        last = next((fact for fact in reversed(ended) if fact.ok is not None), ended[-1])
        if last.ok is False:
            drafts += _failure(key, last, sight)
        elif _tells(last) or (last.ok and (any(fact.ok is False for fact in ended) or _was_failing(key, past))):
            drafts += _success(key, ended, sight, past)
        elif last.seqs not in committed and not key.startswith(_STEPS) and sight.sees(last, key):
            others.append(last)
    for start in range(0, len(others), COMMANDS_IN_NOTE):
        some = others[start : start + COMMANDS_IN_NOTE]
        line = clip("Ran " + ", ".join(code(command_key(fact.subject), 110) for fact in some))
        drafts += _draft(line, "low", sight, some)
    return drafts


def _tells(fact: Fact) -> bool:
    return bool(fact.detail.get("summary") or fact.detail.get("refs"))


def _was_failing(key: str, past: Fold) -> bool:
    known: CommandState | None = past.commands.get(key)
    return known is not None and known.broken


def _failure(key: str, fact: Fact, sight: Sight) -> list[Draft]:
    """What failed, by its own words: failing tests, then the deciding lines."""
    parts = ""
    failing = [name for name in fact.detail.get("failing", ()) if sight.sees(fact, name)]
    if failing:
        parts += f" in {names(failing, 5)}"
    errors = [line for line in fact.detail.get("errors", ()) if sight.sees(fact, line)]
    if errors:
        room = 150 if len(errors) > 1 else 240
        parts += ": " + "; ".join(quote(line, room) for line in errors[:2])
    elif fact.detail.get("summary") and sight.sees(fact, fact.detail["summary"]):
        parts += ": " + quote(fact.detail["summary"], 200)
    elif fact.detail.get("exit") and sight.sees(fact, str(fact.detail["exit"])):
        parts += f" with exit code {fact.detail['exit']}"
    return _draft(command_line(key, True, parts), "high", sight, [fact])


def _success(key: str, ended: list[Fact], sight: Sight, past: Fold) -> list[Draft]:
    """A good end, and what had gone wrong before, quoted where the chunk shows it."""
    last = next(fact for fact in reversed(ended) if fact.ok or _tells(fact))
    parts, cited = "", [last]
    summary = last.detail.get("summary", "")
    if summary and sight.sees(last, summary):
        parts += ": " + quote(summary, 140)
    references = [name for name in last.detail.get("refs", ()) if sight.sees(last, name)]
    if references and not summary:
        return _draft(clip(f"Ran {code(key)}: {', '.join(references[:3])}"), "medium", sight, [last])
    failed = [fact for fact in ended if fact.ok is False]
    if failed:
        lines = [line for line in failed[-1].detail.get("errors", ()) if sight.sees(failed[-1], line)]
        parts += ", was failing" + (f" ({quote(lines[0], 140)})" if lines else "")
        cited = [failed[-1], last]
    elif _was_failing(key, past):
        parts += ", was failing before"
    fixed = "was failing" in parts
    return _draft(command_line(key, False, parts), "medium" if fixed or summary else "low", sight, cited)


def _commits(facts: list[Fact], sight: Sight) -> list[Draft]:
    drafts: list[Draft] = []
    for fact in facts:
        if fact.kind == "commit" and sight.sees(fact, fact.subject):
            branch = fact.detail.get("branch", "")
            where = f" on {branch}" if branch and sight.sees(fact, branch) else ""
            drafts += _draft(clip(f"Committed {fact.subject}{where}: {quote(fact.text, 250)}"), "high", sight, [fact])
    return drafts


def _todos(facts: list[Fact], sight: Sight, past: Fold) -> list[Draft]:
    """What the turn changed in the to-do list: items done, and items that are new and open."""
    lists = [fact for fact in facts if fact.kind == "todo"]
    if not lists:
        return []
    before = {(text, status) for _, status, text, _ in past.state().todos}
    known = {text for text, _ in before}
    after = [(str(text), str(status)) for _, status, text in lists[-1].detail.get("items", ())]
    shown = {text for text, _ in after if text and any(sight.sees(fact, text) for fact in lists)}
    done = [text for text, status in after if status == "done" and (text, status) not in before and text in shown]
    opened = [text for text, status in after if status != "done" and text not in known and text in shown]
    parts = []
    if done:
        parts.append("done: " + ", ".join(quote(text, 90) for text in done[:5]))
    if opened:
        parts.append("open: " + ", ".join(quote(text, 90) for text in opened[:5]))
    return _draft(clip("To-do " + "; ".join(parts)), "medium", sight, lists) if parts else []


def _looked_at(facts: list[Fact], sight: Sight, past: Fold) -> list[Draft]:
    """Files read for the first time and not changed in the turn, and pages fetched: one low note each."""
    changed = {fact.subject for fact in facts if fact.kind in _VERBS}
    reads: dict[str, Fact] = {}
    for fact in facts:
        fresh = fact.kind == "read" and fact.subject not in changed and fact.subject not in past.files
        if fresh and sight.sees(fact, fact.subject):
            reads.setdefault(fact.subject, fact)
    drafts: list[Draft] = []
    if reads:
        some = list(reads.values())[:READS_IN_NOTE]
        drafts += _draft(clip("Read " + names(list(reads), READS_IN_NOTE)), "low", sight, some)
    pages = {fact.subject: fact for fact in facts if fact.kind == "fetch" and sight.sees(fact, fact.subject)}
    if pages:
        drafts += _draft(clip("Looked up " + names(list(pages), 4)), "low", sight, list(pages.values()))
    return drafts
