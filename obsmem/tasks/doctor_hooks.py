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
from typing import NamedTuple

from obsmem.core import jsonc
from obsmem.core.errors import ConfigError
from obsmem.harnesses import REGISTRY, load
from obsmem.harnesses.base import Harness
from obsmem.tasks.called import command
from obsmem.tasks.config_files import read_config, recognise_ours
from obsmem.tasks.finding import BROKEN, GOOD, WARNING, Check
from obsmem.tasks.install import detect, expected_config, user_home

VERSION_SECONDS = 5


class Config(NamedTuple):
    """A config file as it is now. ``project`` is '' for the user's own; ``ours`` counts our entries."""

    project: str
    path: str
    text: str
    ours: int


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
    try:
        configs = _configs(home, cwd, module)
    except ConfigError as error:
        yield Check(label, BROKEN, str(error), "correct it")
        return
    ways = module.other_ways(user_home(), cwd)
    mine = next((config for config in configs if config.ours), None)
    if mine is None and ways:
        yield Check(label, GOOD, f"called by {', '.join(ways)}")
    elif mine is None:
        yield Check(label, WARNING, "not installed", f"run: {command()} install {name}")
    else:
        yield _check_content(home, module, mine)
        yield from _check_twice(home, module, configs, ways)
        yield from _check_trust(home, module, mine.project)


def _configs(home: str, cwd: str, module: Harness) -> list[Config]:
    """The user's config file and that of the working folder, each once. Raises ConfigError for one that is not understood."""
    found: dict[str, Config] = {}
    for project in ("", cwd):
        path = module.config_file(user_home(), project)
        real = os.path.realpath(path)
        if not path or real in found:
            continue
        try:
            text = (read_config(real) or b"").decode("utf-8", "replace")
            found[real] = Config(project, path, text, jsonc.count(text, recognise_ours(home)))
        except ValueError as error:
            raise ConfigError(f"{path} is not understood ({error})") from error
    return list(found.values())


def _check_content(home: str, module: Harness, config: Config) -> Check:
    label = f"{module.NAME} hooks"
    again = f"run: {command()} install {module.NAME}" + (" --project" if config.project else "")
    expected = expected_config(home, module.NAME)
    is_ours = recognise_ours(home)
    wanted = Counter(one for one in jsonc.strings(expected) if is_ours(one))
    there = Counter(one for one in jsonc.strings(jsonc.load(config.text)) if is_ours(one))
    missing = sum((wanted - there).values())
    if missing:
        return Check(label, BROKEN, f"{config.path}: {missing} of {wanted.total()} handlers are missing", again)
    if jsonc.merge(config.text, expected) != config.text:
        return Check(label, BROKEN, f"{config.path}: the handlers are of another version", again)
    if any(count > wanted[one] for one, count in there.items() if one in wanted):
        return Check(label, WARNING, f"{config.path}: handlers stand there twice", again)
    return Check(label, GOOD, f"{wanted.total()} handlers in {config.path}")


def _check_twice(home: str, module: Harness, configs: list[Config], ways: list[str]) -> Iterator[Check]:
    """Calls of ours that come by more than one way: each block would be delivered twice."""
    is_ours = recognise_ours(home)
    pattern = re.compile(rf"\bhook {re.escape(module.NAME)} \w")
    more = ways + [f"{config.path} too" for config in [config for config in configs if config.ours][1:]]
    for config in configs:
        if any(pattern.search(one) and not is_ours(one) for one in jsonc.strings(jsonc.load(config.text))):
            more.append(f"handlers of another copy in {config.path}")
    if more:
        yield Check(f"{module.NAME} hooks", WARNING, f"called twice: also by {', '.join(more)}", "keep one of them")


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
