"""Checks of what shortens outputs: registered where it is switched on, and nothing left waiting.

Invariant: files are read, never written; where it was never asked for there is one line and nothing to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from obsmem.harnesses import REGISTRY, load
from obsmem.system import config as configuration
from obsmem.system.raw_files import waiting_bytes
from obsmem.tasks.called import command
from obsmem.tasks.finding import GOOD, WARNING, Check
from obsmem.tasks.install import detect, shortens, user_home

LABEL = "shortening"
MOST_WAITING = 64 << 20  # bytes of whole outputs that wait without worrying anybody


def check_shortening(home: str, cwd: str) -> Iterator[Check]:
    """Where outputs are shortened, where they could be, and how much waits to be archived."""
    try:
        is_on = configuration.load(cwd)["reduce"] == "on"
    except ImportError:
        yield Check(LABEL, GOOD, "not known: this interpreter lacks what the config is read with")
        return
    names = detect()
    registered = [name for name in names if shortens(home, name, cwd)]
    if not is_on:
        told = f"off (registered for {', '.join(registered)})" if registered else "off"
        yield Check(LABEL, GOOD, told)
    else:
        yield from (_about(home, cwd, name, is_registered=name in registered) for name in names)
    waiting = _waiting(home)
    if waiting > MOST_WAITING:
        yield Check(
            LABEL, WARNING, f"{waiting >> 20} MB of whole outputs wait to be archived", f"run: {command()} sync"
        )


def _about(home: str, cwd: str, name: str, *, is_registered: bool) -> Check:
    module = load(name)
    if module.SHORTENS:
        return Check(LABEL, GOOD, f"{name}: outputs stay as they are: {module.SHORTENS}")
    if is_registered:
        return Check(LABEL, GOOD, f"{name}: on")
    if not module.reduce_config(str):
        ways = module.other_ways(user_home(), cwd)
        return Check(
            LABEL, GOOD, f"{name}: on, by {', '.join(ways)}" if ways else f"{name}: on, once its plugin is installed"
        )
    return Check(LABEL, WARNING, f"{name}: on, but not registered", f"run: {command()} install {name} --reduce")


def _waiting(home: str) -> int:
    total = 0
    for harness in REGISTRY:
        root = os.path.join(home, "sessions", harness)
        for name in os.listdir(root) if os.path.isdir(root) else []:
            total += waiting_bytes(os.path.join(root, name))
    return total
