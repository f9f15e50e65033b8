"""Checks of what stands in the harnesses' configs: our handlers there, current, once, and trusted.

Invariant: files are read, never written; a harness that is not on this machine is not spoken of.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator

from obsmem.core import jsonc
from obsmem.core.errors import ConfigError
from obsmem.harnesses import REGISTRY, load
from obsmem.harnesses.base import Harness
from obsmem.tasks.config_files import read_config, recognise_ours
from obsmem.tasks.deliver import command
from obsmem.tasks.finding import BROKEN, GOOD, WARNING, Check
from obsmem.tasks.install import detect, expected_config, user_home

VERSION_SECONDS = 5


def check_harnesses(home: str, cwd: str) -> Iterator[Check]:
    """Of each harness on this machine: are our handlers in its config, as they should be, and will they be run?"""
    for name in detect():
        yield from _check_harness(home, cwd, name)


def check_programs() -> Iterator[Check]:
    """The harness programs on PATH, with the version that each reports."""
    for name in REGISTRY:
        for program in load(name).PROGRAMS[:1]:
            path = shutil.which(program)
            if path:
                yield Check(f"{name} program", GOOD, f"{path} {_version(path)}".strip())


def _version(path: str) -> str:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(rb"\d+(?:\.\d+)+[\w.-]*", done.stdout)
    return match.group().decode("ascii", "replace") if match and not done.returncode else ""


def _check_harness(home: str, cwd: str, name: str) -> Iterator[Check]:
    module = load(name)
    label = f"{name} hooks"
    install = f"run: {command()} install {name}"
    is_ours = recognise_ours(home)
    found = {where: _text(module.config_file(user_home(), where)) for where in dict.fromkeys(("", cwd))}
    broken = False
    ours: dict[str, int] = {}
    for where, text in found.items():
        try:
            ours[where] = jsonc.count(text, is_ours)
        except ValueError as error:
            broken = True
            yield Check(
                label, BROKEN, f"{module.config_file(user_home(), where)} is not understood ({error})", "correct it"
            )
    if broken:
        return
    if not any(ours.values()):
        ways = module.other_ways(user_home(), cwd)
        what = f"called by {', '.join(ways)}" if ways else "not installed"
        yield Check(label, GOOD if ways else WARNING, what, "" if ways else install)
        return
    where = next(one for one, count in ours.items() if count)
    yield _check_content(home, module, where, found[where])
    yield from _check_twice(home, cwd, module, found)
    yield from _check_trust(home, module, where)


def _check_content(home: str, module: Harness, where: str, text: str) -> Check:
    name = module.NAME
    path = module.config_file(user_home(), where)
    expected = expected_config(home, name)
    is_ours = recognise_ours(home)
    wanted = Counter(one for one in jsonc.strings(expected) if is_ours(one))
    there = Counter(one for one in jsonc.strings(jsonc.load(text)) if is_ours(one))
    missing = sum((wanted - there).values())
    if missing or jsonc.merge(text, expected) != text:
        what = (
            f"{missing} of {wanted.total()} handlers are missing" if missing else "the handlers are of another version"
        )
        return Check(f"{name} hooks", BROKEN, f"{path}: {what}", f"run: {command()} install {name}")
    if more := {one: count for one, count in there.items() if one in wanted and count > wanted[one]}:
        return Check(
            f"{name} hooks",
            WARNING,
            f"{path}: {len(more)} handlers stand there twice",
            f"run: {command()} install {name}",
        )
    return Check(f"{name} hooks", GOOD, f"{wanted.total()} handlers in {path}")


def _check_twice(home: str, cwd: str, module: Harness, found: dict[str, str]) -> Iterator[Check]:
    """Calls of ours that come by more than one way: each block would be delivered twice."""
    is_ours = recognise_ours(home)
    ways = module.other_ways(user_home(), cwd)
    by_file = [module.config_file(user_home(), where) for where, text in found.items() if jsonc.count(text, is_ours)]
    ways += [f"{path} too" for path in by_file[1:]]
    pattern = re.compile(rf"\bhook {re.escape(module.NAME)} \w")
    for where, text in found.items():
        if any(pattern.search(one) and not is_ours(one) for one in jsonc.strings(jsonc.load(text))):
            ways.append(f"handlers of another copy in {module.config_file(user_home(), where)}")
    if ways:
        yield Check(f"{module.NAME} hooks", WARNING, f"called twice: also by {', '.join(ways)}", "keep one of them")


def _check_trust(home: str, module: Harness, where: str) -> Iterator[Check]:
    is_ours = recognise_ours(home)
    states = Counter(state for text, state in module.trust(user_home(), where) if is_ours(text))
    if not states:
        return
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    is_good = set(states) == {"trusted"}
    yield Check(
        f"{module.NAME} trust", GOOD if is_good else BROKEN, f"handlers: {told}", "" if is_good else module.NEXT_STEP
    )


def _text(path: str) -> str:
    if not path:
        return ""
    try:
        return (read_config(os.path.realpath(path)) or b"").decode("utf-8", "replace")
    except ConfigError:
        return ""
