"""Putting our handlers into harnesses, and taking them out again.

Invariants: a plan is made of everything first, and shown; the launcher is there before any config names it, and stays
while one does; a harness whose files cannot all be written is left as it was; what one harness lacks never keeps
another one from being done.
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from obsmem.core import jsonc
from obsmem.core.errors import ConfigError, ObsmemError
from obsmem.harnesses import REGISTRY, load
from obsmem.system.files import read_bytes, remove
from obsmem.system.launcher import (
    calls,
    launcher_path,
    quoted,
    recall_path,
    server_path,
    write_launcher,
    write_recall,
    write_server,
)
from obsmem.system.notice import WELCOME
from obsmem.system.paths import APP, safe_name
from obsmem.tasks.called import installed_script
from obsmem.tasks.config_files import (
    Change,
    plan_change,
    recognise_ours,
    records,
    remove_empty,
    take_back,
    undo_change,
    value_of,
    write_change,
)
from obsmem.tasks.rule_files import make_rule_file, plan_rule_file, remove_rule_files
from obsmem.tasks.skill_files import SkillFile, plan_skills, remove_skills, write_skills

# The tools of our server that only read: a rule may allow them.
MOST_CONFIG = 16 << 20  # bytes of a config file
READING_TOOLS = ["recall", "search", "file", "timeline", "get", "around", "tool", "notes", "status"]


class Plan(NamedTuple):
    """What an install would do for one harness. ``config`` is the hook config; ``recall`` says whether a rule allows it;
    ``rule_file`` is the file for the block, of the folder ``project``, where that was asked for. ``server`` is the file that
    registers the server of the agent's tools, '' where it is not to be, ``no_server`` why it cannot be; ``status_line``: ours
    stands in the user's settings; ``gone`` is a file that is to hold nothing of ours any more, '' for none."""

    harness: str
    changes: tuple[Change, ...]
    config: dict[str, Any]
    recall: bool
    rule_file: Change | None = None
    project: str = ""
    server: str = ""
    no_server: str = ""
    skills: tuple[SkillFile, ...] = ()
    status_line: bool = False
    gone: str = ""

    @property
    def all_changes(self) -> tuple[Change, ...]:
        """Those of the config files, and the rule file."""
        return self.changes + ((self.rule_file,) if self.rule_file else ())

    @property
    def is_needed(self) -> bool:
        """False where everything is in place."""
        changed = any(change.is_needed for change in self.all_changes) or any(one.is_needed for one in self.skills)
        return changed or bool(self.gone)


def user_home() -> str:
    """The home folder of whoever runs this."""
    return os.path.expanduser("~")


def detect() -> list[str]:
    """The harnesses that are on this machine: a program of theirs is found, or the folder of their config exists."""
    found = []
    for name in REGISTRY:
        module = load(name)
        path = module.config_file(user_home(), "")
        is_here = any(shutil.which(program) for program in module.PROGRAMS) or os.path.isdir(
            os.path.dirname(path) or "?"
        )
        if path and is_here:
            found.append(name)
    return found


def expected_config(home: str, harness: str) -> dict[str, Any]:
    """The hook config of a harness with this data folder's launcher in it."""
    return load(harness).hook_config(_with_launcher(home))


def shortens(home: str, harness: str, project: str = "") -> bool:
    """True if the user's or the project's config of a harness has the handler that shortens outputs."""
    module = load(harness)
    part = module.reduce_config(_with_launcher(home))
    return bool(part) and any(_has_rule(home, [(module.config_file(user_home(), at), part)]) for at in ("", project))


def _with_launcher(home: str) -> Callable[[str], str]:
    """What makes of a hook's words the command that runs it."""
    launcher = quoted(launcher_path(home))
    return lambda words: f"{launcher} {words}"


def plan_install(
    home: str,
    harness: str,
    project: str = "",
    *,
    allow_recall: bool = False,
    rule_project: str = "",
    with_server: bool = True,
    status_line: bool | None = None,
    reduce: bool = False,
) -> Plan:
    """Work out what installing changes, and change nothing. ``project`` is a folder, '' for the user's own config;
    ``rule_project`` is one whose rule file is to hold the block, '' for none; ``with_server`` registers the server.
    ``status_line`` puts ours into the user's settings, or takes it out; None leaves it as it is. ``reduce`` registers what
    shortens outputs, where the harness lets a handler do that.

    Raises ObsmemError where it cannot be done.
    """
    module = load(harness)
    path = module.config_file(user_home(), project)
    if not path:
        raise ObsmemError(f"This copy has nothing to install for {harness}. Install from a checkout of the project.")
    config = expected_config(home, harness)
    part = module.reduce_config(_with_launcher(home))
    if part and (reduce or _has_rule(home, [(path, part)])):  # once asked for, it stays so
        config = {**config, "hooks": {**config["hooks"], **part["hooks"]}}
    rules = _rules(home, harness, project, with_server=with_server)
    is_allowed = bool(rules) and (allow_recall or _has_rule(home, rules))  # once allowed, it stays so
    lines = [] if project else _status_line(home, harness)
    has_line = bool(lines) and (_has_rule(home, lines) if status_line is None else status_line)
    parts = [(path, config), *(rules if is_allowed else []), *(lines if has_line else [])]
    gone = ""
    if status_line is False and _has_rule(home, lines):
        # Where nothing else of ours stands in its file, that becomes again what it was.
        gone = next((file for file, _ in lines if file not in [name for name, _ in parts]), "")
    server, entry = module.mcp_config(user_home(), project, APP, server_path(home)) if with_server else ("", {})
    refused = ""
    try:
        changes = _changes(home, harness, [*parts, (server, entry)] if server else parts)
    except ConfigError as error:
        if not server:
            raise
        changes = _changes(home, harness, parts)  # what stands in the way of the server keeps hooks from nothing
        server, refused = "", str(error)
    rule_file = plan_rule_file(home, harness, rule_project) if rule_project else None
    skills = plan_skills(home, harness, user_home(), project)
    return Plan(harness, changes, config, is_allowed, rule_file, rule_project, server, refused, skills, has_line, gone)


def _status_line(home: str, harness: str) -> list[tuple[str, dict[str, Any]]]:
    """The file and the entry of our status line; nothing where a harness has no place for one."""
    command = f"{quoted(launcher_path(home))} hook {harness} statusLine"
    path, entry = load(harness).status_config(user_home(), command)
    return [(path, entry)] if path else []


def _rules(home: str, harness: str, project: str, *, with_server: bool) -> list[tuple[str, dict[str, Any]]]:
    """The files and rules that let the agent recall, and call the tools that only read, unasked."""
    module = load(harness)
    rules = [module.recall_rule(user_home(), project, quoted(recall_path(home)))]
    if with_server:
        rules.append(module.mcp_rule(user_home(), project, APP, READING_TOOLS))
    return [(path, rule) for path, rule in rules if path]


def _has_rule(home: str, rules: list[tuple[str, dict[str, Any]]]) -> bool:
    return any(jsonc.holds(value_of(path), rule, recognise_ours(home)) for path, rule in rules)


def _changes(home: str, harness: str, parts: list[tuple[str, dict[str, Any]]]) -> tuple[Change, ...]:
    additions: dict[str, list[dict[str, Any]]] = {}
    for path, part in parts:
        additions.setdefault(os.path.realpath(path), []).append(part)
    return tuple(plan_change(home, harness, path, ours) for path, ours in additions.items())


def is_registered(home: str, harness: str, project: str = "") -> bool:
    """True if the user's or the project's config of a harness names the server of this data folder."""
    module = load(harness)
    paths = {module.mcp_config(user_home(), where, APP, "")[0] for where in ("", project)}
    return any(_calls_server(home, path) for path in paths if path)


def _calls_server(home: str, path: str) -> bool:
    text = read_bytes(path, MOST_CONFIG).decode("utf-8", "replace")
    return calls(text, server_path(home))


def carry_out(home: str, plan: Plan) -> None:
    """Write what was planned, launchers first. Raises ObsmemError; then the harness is left as it was."""
    write_launcher(home, installed_script())
    write_recall(home, installed_script())
    write_server(home, installed_script())
    done = []
    try:
        for change in plan.changes:
            if change.is_needed:
                done.append((change, write_change(home, plan.harness, change)))
        if plan.rule_file and plan.rule_file.is_needed:
            make_rule_file(home, plan.harness, plan.project, plan.rule_file)
        write_skills(home, plan.harness, plan.skills)
        if plan.gone:
            take_back(home, plan.harness, plan.gone)
    except (ObsmemError, OSError):
        for change, old in reversed(done):
            undo_change(home, plan.harness, change, old)
        raise


def difference(change: Change) -> str:
    """The unified diff of a planned change."""
    old, new = (
        [] if data is None else data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        for data in (change.before, change.after)
    )
    lines = difflib.unified_diff(
        old, new, "/dev/null" if change.before is None else change.path, change.path, lineterm=""
    )
    return "\n".join(lines)


def uninstall(home: str, harness: str, project: str = "") -> list[tuple[str, str]]:
    """Take our entries out of every config file of a harness; returns (file, what was done). Raises ConfigError."""
    module = load(harness)
    paths = [module.config_file(user_home(), where) for where in dict.fromkeys(["", project])]
    for where in dict.fromkeys(["", project]):
        paths.append(module.recall_rule(user_home(), where, "")[0])
        paths.append(module.mcp_config(user_home(), where, APP, "")[0])
        paths.append(module.mcp_rule(user_home(), where, APP, [])[0])
    paths.append(module.status_config(user_home(), "")[0])
    whole = [os.path.realpath(path) for path in paths if path]
    known = records(home, harness)
    done = remove_skills(home, harness, user_home(), project)
    done += [(path, take_back(home, harness, path)) for path in dict.fromkeys([*known, *whole])]
    remove_empty({folder for record in known.values() for folder in record["folders"]})
    remove(os.path.join(home, WELCOME, safe_name(harness)))
    return [(path, what) for path, what in done if what] + remove_rule_files(home, harness)


def still_named(home: str, project: str = "") -> list[str]:
    """The config files that still call a launcher of this data folder."""
    found = []
    for name in REGISTRY:
        module = load(name)
        paths = [*records(home, name), *(module.config_file(user_home(), where) for where in ("", project))]
        paths += [module.mcp_config(user_home(), where, APP, "")[0] for where in ("", project)]
        for path in dict.fromkeys(os.path.realpath(path) for path in paths if path):
            if any(map(recognise_ours(home), jsonc.strings(value_of(path)))) or _names_in_text(home, path):
                found.append(path)
    return found


def remove_launchers(home: str, project: str = "") -> list[str]:
    """Remove the launchers unless a config file still calls one; returns those files."""
    named = still_named(home, project)
    if not named:
        remove(launcher_path(home))
        remove(recall_path(home))
        remove(server_path(home))
        try:
            os.rmdir(os.path.join(home, WELCOME))
        except OSError:
            pass
    return named


def _names_in_text(home: str, path: str) -> bool:
    """True where a file that is not understood seems to name us: then the launcher had better stay."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return recognise_ours(home)(file.read())
    except OSError:
        return False
