"""Commands by which a user fixes something: pin, unpin, pins, note."""

from __future__ import annotations

import argparse
from typing import Any

from obsmem.core.model import Pin
from obsmem.interfaces.report import age, many, say, say_json
from obsmem.memory.render import SHARES
from obsmem.memory.sections import pin_cost, pin_lines
from obsmem.memory.wording import clean, clip
from obsmem.store.memory_pins import StoredPin
from obsmem.tasks.called import command, recall_command
from obsmem.tasks.here import Here, find_here
from obsmem.tasks.pins import pin, pins, unpin, write_note
from obsmem.tasks.remember import masked
from obsmem.tasks.resolve import find_session
from obsmem.tasks.store import Store, open_store

SHOWN = 200  # characters of a pin in a list


def run_pin(arguments: argparse.Namespace) -> int:
    """``pin TEXT|ENTRY|NOTE``: keep words in every block, and say what they cost there."""
    with open_store() as store:
        here = _here(store, arguments.session)
        made = pin(store, " ".join(arguments.what), arguments.scope, here, literal=arguments.text)
        value = _costs(store, [*{one.id: one for one in [*pins(store, here), made]}.values()])
    cost = next(one for one in value["pins"] if one["id"] == made.id)
    if arguments.json:
        say_json({**cost, **{key: value[key] for key in ("budget", "share", "total")}})
        return 0
    say(f"Pinned {_where(made, here)}: {clip(clean(made.text), SHOWN)}")
    say(f"[{made.id}] costs {cost['tokens']} of {value['budget']:,} tokens in every block.")
    _say_share(value)
    return 0


def run_unpin(arguments: argparse.Namespace) -> int:
    """``unpin ID``: take a pin away."""
    with open_store() as store:
        gone = unpin(store, arguments.id, find_here(store), anywhere=True)
    if arguments.json:
        say_json(gone._asdict())
    else:
        say(f"No longer pinned: {clip(clean(gone.text), SHOWN)}")
    return 0


def run_pins(arguments: argparse.Namespace) -> int:
    """``pins``: what is pinned for this session or workspace, oldest first, and what it costs."""
    with open_store(readonly=True) as store:
        here = _here(store, arguments.session)
        everything = store.memory.all_pins()
        shown = [masked(store, one.pin) for one in everything] if arguments.all else pins(store, here)
        value = _costs(store, shown)
    if arguments.json:
        say_json(value)
        return 0
    places = {one.pin.id: _place(one) for one in everything}
    for one, cost in zip(shown, value["pins"], strict=True):
        origin = f"  ← {one.source}" if one.source else ""
        where = places[one.id] if arguments.all else one.scope
        say(f"[{one.id}] {where}, {age(one.at)} ago, {cost['tokens']} tokens: {clip(clean(one.text), SHOWN)}{origin}")
    if not shown:
        say(f"Nothing is pinned here. '{command()} pin TEXT' keeps words in every block.")
    elif not arguments.all:
        say(f"{many(len(shown), 'pin')}: {value['total']} of {value['budget']:,} tokens in every block.")
        _say_share(value)
    others = len(everything) - len(shown)
    if others:
        say(f"{many(others, 'pin')} of other sessions or workspaces: '{command()} pins --all' lists them.")
    return 0


def run_note(arguments: argparse.Namespace) -> int:
    """``note TEXT``: write a note by hand, on the newest words of the user or on the entries that are cited."""
    with open_store() as store:
        here = _here(store, arguments.session)
        note = write_note(store, " ".join(arguments.text), here, arguments.cite, arguments.relevance)
    if arguments.json:
        say_json(note._asdict())
        return 0
    say(f"Noted [{note.id}] {note.relevance}: {note.text}  ← {' '.join(note.entry_ids)}")
    if note.missing:
        say(
            f"The entries it cites do not have {', '.join(note.missing[:4])}, so the block marks it as not fully verified."
        )
    return 0


def _here(store: Store, name: str) -> Here:
    """Where the command was called, or the session that it names."""
    here = find_here(store)
    if not name:
        return here
    stored = find_session(store, name)
    return Here(here.cwd, stored.session.workspace, stored)


def _costs(store: Store, shown: list[Pin]) -> dict[str, Any]:
    """Each pin with the tokens of its line, all of them together, and what they may take of a full block."""
    budget, recall = int(store.config["budget_tokens"]), recall_command()
    lines = pin_lines(shown, recall)
    return {
        "pins": [{**one._asdict(), "tokens": line.cost} for one, line in zip(shown, lines, strict=True)],
        "total": pin_cost(shown, recall),
        "budget": budget,
        "share": int(budget * SHARES["Pins"]),
    }


def _say_share(value: dict[str, Any]) -> None:
    if value["total"] > value["share"]:
        say(
            f"All pins here take {value['total']:,} tokens, more than their share of {value['share']:,}: where the block is "
            f"full, long ones lose their middle there. '{command()} pins' lists them, '{command()} unpin ID' takes one away."
        )


def _where(made: Pin, here: Here) -> str:
    if made.scope == "session" and here.session is not None:
        return f"for session {here.session.session.handle}"
    return "everywhere" if made.scope == "everywhere" else f"for the workspace {here.workspace}"


def _place(one: StoredPin) -> str:
    """Whom a pin is for."""
    return {"session": f"session {one.session}", "workspace": f"workspace {one.workspace}"}.get(
        one.pin.scope, "everywhere"
    )
