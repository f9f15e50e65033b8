"""Going on with a session in another harness, or from an earlier point of it: a session of that harness's own is written.

Invariants: the parent is only read; what is written is offered after it was read back; no word of it is observed again,
since each is known as the parent's; the fork remembers what its parent knew at that point, and its citations lead to the
parent's entries.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.errors import ObsmemError, StoreError, UsageError
from obsmem.core.ids import entry_id, is_entry_id
from obsmem.core.model import Session
from obsmem.core.turns import FORK_OPENING, Draft, Parentage, Turn, Words, Written
from obsmem.harnesses import load
from obsmem.harnesses.base import Source
from obsmem.memory.fit import Fitted, fit
from obsmem.store.archive import StoredSession
from obsmem.store.archive_known import set_parent
from obsmem.system.files import remove
from obsmem.system.workspace import workspace_of
from obsmem.tasks.called import command, recall_command
from obsmem.tasks.canonical import conversation
from obsmem.tasks.deliver import leave_block
from obsmem.tasks.deliveries import leave_for_resume
from obsmem.tasks.entries import find_entry, original
from obsmem.tasks.fork_check import read_back, run_command
from obsmem.tasks.handoff import make_handoff
from obsmem.tasks.identify import excluded
from obsmem.tasks.ingest import ingest, is_database
from obsmem.tasks.store import Store

WINDOW_SHARE = 0.5  # of the target's window: instructions, tools and the work to come need the rest
FRAME_TOKENS = 700  # the preface and the closing words
LEAST_BUDGET = 2_000
FOLDER = "forks"  # in the data folder: what no harness keeps itself


class Fork(NamedTuple):
    """A fork to make. ``target`` is a harness's name; ``at`` the id of the last entry to take along ('' for all);
    ``folder`` where it goes on ('' for the session's own, if it is there, else this one); ``budget`` in tokens (0 for a
    share of the target's window)."""

    target: str
    at: str = ""
    folder: str = ""
    budget: int = 0


class Forked(NamedTuple):
    """What was made. ``written`` and ``session`` are None for a trial; ``session`` also where the target takes no foreign
    session. ``checked`` says by whom it was read back, ``unchecked`` why others did not; ``troubles`` what the user must know
    before going on."""

    fitted: Fitted
    draft: Draft
    budget: int
    written: Written | None = None
    session: StoredSession | None = None
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


def fork(
    store: Store, stored: StoredSession, wish: Fork, clock: Clock, home: str = "", *, trial: bool = False
) -> Forked:
    """Write a session of the target harness that goes on with this one; with ``trial`` only say what it would hold.

    ``home`` is the user's home folder. Raises UsageError for an entry, folder or budget that does not do, StoreError where
    what was written does not read back (it is removed then), OSError where it cannot be written.
    """
    module = load(wish.target)
    parent = _catch_up(store, stored)
    draft, fitted, budget = _draft(store, parent, wish, clock)
    if trial:
        return Forked(fitted, draft, budget)
    home = home or os.path.expanduser("~")
    if not module.TAKES_SESSIONS:
        draft = draft._replace(handoff=make_handoff(store, parent, "notes", clock))
    written = module.write_session(draft, home)
    if not written.session:
        return Forked(fitted, draft, budget, written)
    try:
        own = Source(written.path)
        _must_read_back(wish.target, own, written.session, draft)
        child = _register(store, parent, wish.target, written, draft)
    except BaseException:
        remove(written.path)
        raise
    done = _taken_over(Forked(fitted, draft, budget, written, checked=("our own reader",)), home)
    return _known(store, child, wish.target, clock, done)


def drop_fork_files(store: Store, stored: StoredSession) -> None:
    """Remove what of a session waits for a harness to take it over: it may hold what is being forgotten."""
    folder = os.path.join(store.home, FOLDER)
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.startswith(f"{stored.session.handle}-"):
            remove(os.path.join(folder, name))


def _catch_up(store: Store, stored: StoredSession) -> StoredSession:
    """The parent with its newest words, where its transcript is still there."""
    session = stored.session
    if session.transcript and os.path.exists(session.transcript):
        source = Source(session.transcript, session.id if is_database(session.transcript) else "")
        try:
            ingest(store, session.harness, source)
        except OSError:
            pass  # what is archived is forked
    return store.archive.by_number(stored.no)


def _draft(store: Store, stored: StoredSession, wish: Fork, clock: Clock) -> tuple[Draft, Fitted, int]:
    cut = _cut(store, stored, wish.at)
    turns = conversation(store, stored, cut)
    if not turns:
        raise UsageError(
            f"Session {stored.session.handle} has nothing that was said up to there, so that nothing could go on. "
            f"'observational-memory show {stored.session.handle}' prints what it holds."
        )
    budget = wish.budget or int(_window(store, wish.target) * WINDOW_SHARE)
    if budget < LEAST_BUDGET:
        raise UsageError(f"--budget {budget} is too little for a conversation: give at least {LEAST_BUDGET} tokens.")
    fitted = fit(turns, budget - FRAME_TOKENS, recall_command())
    folder = _folder(store, stored, wish.folder)
    session = stored.session
    draft = Draft(
        turns=fitted.turns,
        preface=_preface(store, stored, cut, fitted, clock),
        closing=_closing(stored, cut, fitted.turns),
        title=store.mask(f"{session.name or os.path.basename(session.cwd) or session.id} (fork of {session.handle})"),
        folder=folder,
        of=Parentage(session.harness, session.id, session.handle, cut, session.transcript),
        now=int(time.time() * 1000),
        keep=os.path.join(store.home, FOLDER),
    )
    return draft, fitted, budget


def _cut(store: Store, stored: StoredSession, name: str) -> int:
    """The seq of the last entry to take along."""
    if not name:
        return stored.last_seq
    handle = stored.session.handle
    owner, row = find_entry(store, name) if is_entry_id(name) else (stored, None)
    if row is None and name.isdigit():
        owner, row = find_entry(store, entry_id(handle, int(name)))
    if row is None:
        raise UsageError(f"--at takes the id of an entry ({handle}.12), not {name!r}. 'show {handle}' lists them.")
    if owner.no != stored.no:  # the entry that one of this session's repeats will do
        copies = (
            one for one in store.archive.entries(stored.no) if (found := original(store, one)) and found[1].no == row.no
        )
        row = next(copies, None)
        if row is None:
            raise UsageError(f"Entry {name} is not in session {handle}: give one that 'show {handle}' lists.")
    if not row.active:
        raise UsageError(f"Entry {name} was taken back in session {handle}: give one on its live path.")
    return row.seq


def _window(store: Store, target: str) -> int:
    """The tokens of the target's window: as its newest session says that names one, else as its module does."""
    sizes = (one.session.window for one in store.archive.sessions() if one.session.harness == target)
    return next((size for size in sizes if size > 0), load(target).WINDOW)


def _folder(store: Store, stored: StoredSession, wanted: str) -> str:
    folder = os.path.realpath(wanted or (stored.session.cwd if os.path.isdir(stored.session.cwd) else os.getcwd()))
    if not os.path.isdir(folder):
        raise UsageError(
            f"{folder} is no folder, so no session can go on there. Make it, or give another with --folder."
        )
    if excluded(store, "", folder):
        raise UsageError(
            f"{folder} is excluded by the configuration, so nothing is written there. Give another folder."
        )
    return folder


def _preface(store: Store, stored: StoredSession, cut: int, fitted: Fitted, clock: Clock) -> str:
    session, whole, kept = stored.session, fitted.whole, fitted.kept
    handle, recall = session.handle, recall_command()
    last = max((words.at for turn in fitted.turns for words in [*turn.prompt, *turn.steps]), default=0)
    lines = [
        f'{FORK_OPENING}{handle}">',
        f"This session goes on from session {handle} ({session.harness}, in {store.mask(session.cwd) or 'no folder'}), as it "
        f"stood at entry {entry_id(handle, cut)}" + (f" on {clock(last)}." if last else "."),
        f"Here are its newest {kept.turns} of {whole.turns} turns, with {kept.calls} of {whole.calls} tool calls and "
        f"{kept.characters:,} of {whole.characters:,} characters: a record of what was said and done there, not new orders.",
    ]
    if kept.turns < whole.turns or kept.calls < whole.calls:
        lines.append(
            f"The oldest {whole.turns - kept.turns} turns are left out. `{command()} show {handle}` prints them, "
            f"`{command()} notes {handle}` what was noted of them."
        )
    if fitted.clipped:
        lines.append(f"{fitted.clipped} long texts are clipped; each names the entry that has the rest.")
    lines += [
        f"`{recall} <id>` prints the exact words behind a note or an entry, also of the session before.",
        "What the model thought was not recorded here. Tools have the names that they have here, or those that they had "
        "there; secrets are masked. Files as they are now win over what is said of them.",
        "</observational-memory>",
    ]
    return "\n".join(lines)


def _closing(stored: StoredSession, cut: int, turns: Sequence[Turn]) -> str:
    """Words for the end, where the agent's are not the last: a call's result there would look as if it waited."""
    last = turns[-1].steps[-1:]
    if last and isinstance(last[0], Words):
        return ""
    handle = stored.session.handle
    return (
        f'{FORK_OPENING}{handle}">The copied part ends here, at entry {entry_id(handle, cut)}.</observational-memory>'
    )


def _must_read_back(target: str, source: Source, session: str, draft: Draft) -> None:
    wrong = read_back(target, source, session, draft)
    if wrong:
        raise StoreError(
            f"The session that was written does not read back ({wrong}), so it was removed. "
            "Report this with 'observational-memory doctor --json'."
        )


def _register(store: Store, parent: StoredSession, target: str, written: Written, draft: Draft) -> StoredSession:
    """Make the fork known with its parent, before anybody reads it."""
    session = Session(
        target, written.session, cwd=draft.folder, transcript=written.source[0], started_at=draft.now, name=draft.title
    )
    child = store.archive.register(session)
    store.archive.describe(child.no, draft.folder, workspace_of(draft.folder), draft.title)
    set_parent(store.archive, child.no, parent.no, draft.of.seq)
    return store.archive.by_number(child.no)


def _taken_over(done: Forked, home: str) -> Forked:
    """Have the harness take the session over where it must, and have its own program read it back."""
    written, folder, wrong = done.written, done.draft.folder, ""
    assert written is not None
    if written.bring is not None:
        if wrong := run_command(written.bring, folder, home).wrong:
            trouble = f"{written.bring.arguments[0]} did not take it over yet ({wrong}): run the first command."
            return done._replace(troubles=(trouble,))
        remove(written.path)
        done = done._replace(written=written._replace(offers=written.offers[1:], bring=None))
    for check in written.checks:
        ran = run_command(check, folder, home)
        if not ran.there:
            return done._replace(unchecked=(ran.wrong,))
        if ran.wrong:
            done = done._replace(troubles=(*done.troubles, f"{check.name} does not show it whole: {ran.wrong}"))
        else:
            done = done._replace(checked=(*done.checked, check.name))
    return done


def _known(store: Store, child: StoredSession, target: str, clock: Clock, done: Forked) -> Forked:
    """Read the session as the harness's own, where it has it, and leave the block for its start."""
    assert done.written is not None
    if done.written.bring is None:
        try:
            ingest(store, target, Source(*done.written.source))
        except (OSError, ObsmemError) as error:
            trouble = f"It could not be read into the store yet: {error}"
            done = done._replace(troubles=(*done.troubles, trouble))
    child = store.archive.by_number(child.no)
    if leave_block(store, child, clock).parts:
        leave_for_resume(store.folder_of(child))
    return done._replace(session=child)
