"""Commands of the first ten minutes: install, uninstall, setup, doctor.

Invariant: nothing outside the data folder is written before it was shown and agreed to. Everything here can be imported
without the packages: ``setup`` and ``doctor`` are for where they are missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator
from typing import Any

from obsmem.core.errors import ObsmemError, UsageError
from obsmem.harnesses import REGISTRY, load
from obsmem.interfaces.report import agreed, many, say, say_json, warn
from obsmem.system import config as configuration
from obsmem.system import environment, seats
from obsmem.system.notice import is_welcome, leave_welcome
from obsmem.system.paths import data_home
from obsmem.tasks import install as installing
from obsmem.tasks.called import command
from obsmem.tasks.doctor import diagnose, exit_status
from obsmem.tasks.finding import BROKEN, GOOD
from obsmem.tasks.install import Plan
from obsmem.tasks.shortening import compile_settings
from obsmem.tasks.try_hooks import Trial, try_hooks

QUIET_SECONDS = 30.0  # a maintainer that a hook started just now is done by then
MARKS = {GOOD: "✓", BROKEN: "✗"}


def run_install(arguments: argparse.Namespace) -> int:
    """``install [HARNESS…]``: show what would change in each config, ask, write, and run each handler once."""
    home = data_home()
    project = os.getcwd() if arguments.project else ""
    for name in arguments.harness:
        load(name)  # an unknown name is refused before anything is done
    names = list(dict.fromkeys(arguments.harness)) or installing.detect()
    if not names:
        raise UsageError(
            f"No harness was found on this machine. Name one of {', '.join(REGISTRY)} to install for it all the same."
        )
    if arguments.rule and not any(load(name).rule_file("", "")[0] for name in names):
        having = ", ".join(name for name in REGISTRY if load(name).rule_file("", "")[0])
        raise UsageError(f"--rule is for {having}: the hooks of {' and '.join(names)} need no rule file.")
    _check_status_line(names, project, arguments.statusline)
    plans, failed = _plan(home, names, project, arguments)
    if not arguments.json:
        _show(plans)
    needed = [plan for plan in plans if plan.is_needed]
    if arguments.dry_run:
        return _report(
            arguments.json, [_value(plan, "planned" if plan.is_needed else "nothing to do") for plan in plans], failed
        )
    if needed and not arguments.yes and not agreed("Write these changes?"):
        warn("Nothing was written. Run it again with --yes to skip the question.")
        return 1
    done = []
    for plan in plans:
        try:
            installing.carry_out(home, plan)
        except (ObsmemError, OSError) as error:
            failed[plan.harness] = str(error)
            continue
        done.append(_finish(home, plan, project, quiet=arguments.json))
    config = configuration.load(project)
    compile_settings(home, config)
    if arguments.reduce and not arguments.json:
        for line in _about_shortening([plan.harness for plan in plans], config["reduce"] == "on"):
            say(line)
    if done and not arguments.json:
        say(f"observer: {_observer()}")
        if not arguments.no_mcp and (lack := environment.lacks_mcp()):
            say(f"no tools for the agent were registered: {lack}; then run install again")
    return _report(arguments.json, done, failed)


def _about_shortening(names: list[str], is_on: bool) -> Iterator[str]:
    """What ``--reduce`` comes to for these harnesses."""
    for name in names:
        if load(name).SHORTENS:
            yield f"{name}: outputs stay as they are: {load(name).SHORTENS}"
    if not is_on and not all(load(name).SHORTENS for name in names):
        yield f"next: write 'reduce: on' into {configuration.user_file()}, then run: {command()} config"


def _check_status_line(names: list[str], project: str, wanted: bool | None) -> None:
    """Raises UsageError where no harness named has a place for the status line that is asked for."""
    if not wanted:
        return
    if project:
        raise UsageError("--statusline goes into your own settings, not into a project's. Run it without --project.")
    if not any(load(name).STATUS_SECONDS for name in names):
        having = ", ".join(name for name in REGISTRY if load(name).STATUS_SECONDS)
        raise UsageError(
            f"--statusline is for {having}: {' and '.join(names)} can show none. "
            "'observational-memory status --watch' shows the same in a terminal of its own."
        )


def _plan(
    home: str, names: list[str], project: str, arguments: argparse.Namespace
) -> tuple[list[Plan], dict[str, str]]:
    plans, failed = [], {}
    with_server = not arguments.no_mcp and not environment.lacks_mcp()
    asked = {
        "allow_recall": arguments.allow_recall,
        "rule_project": os.getcwd() if arguments.rule else "",
        "with_server": with_server,
        "status_line": arguments.statusline,
        "reduce": arguments.reduce,
    }
    for name in names:
        try:
            plans.append(installing.plan_install(home, name, project, **asked))
        except (ObsmemError, OSError) as error:
            failed[name] = str(error)
    return plans, failed


def _show(plans: list[Plan]) -> None:
    for plan in plans:
        for change in plan.all_changes:
            if change.before != change.after:
                say(installing.difference(change))
        if plan.gone:
            say(f"everything of ours goes out of {plan.gone}")
        for one in plan.skills:
            if one.is_needed:
                say(f"a command file for {plan.harness}: {one.path}")
            elif one.foreign:
                say(f"left as it is: {one.path} ({one.foreign})")


def _finish(home: str, plan: Plan, project: str, *, quiet: bool) -> dict[str, Any]:
    """Try what was installed and say how it went."""
    is_new = plan.is_needed or is_welcome(home, plan.harness)
    trials = try_hooks(home, load(plan.harness), plan.config)
    wrong = [f"{trial.event}: {trial.wrong}" for trial in trials if trial.wrong]
    if is_new:  # after the trials, which start a session too
        leave_welcome(home, plan.harness)
    what = "installed" if plan.is_needed else "nothing to do"
    if not quiet:
        say(f"{plan.harness}: {what} ({', '.join(change.path for change in plan.all_changes)})")
        if trials:
            say(f"  {_trials(trials)}")
        for line in wrong:
            say(f"  ✗ {line}")
        if plan.server:
            say(f"  the agent's tools are registered in {plan.server}")
        elif plan.no_server:
            say(f"  ! the agent's tools are not registered: {plan.no_server}")
        for way in load(plan.harness).other_ways(installing.user_home(), os.getcwd()):
            say(f"  ! also called by {way}: keep one of the two, or each block comes twice")
        if plan.status_line:
            say("  the status line is on; 'install --no-statusline' takes it out")
        if plan.rule_file:
            say(f"  ! {plan.rule_file.path} will quote conversations: keep it out of version control")
        if step := _next_step(plan, project):
            say(f"  next: {step}")
    return {**_value(plan, what), "trials": [trial._asdict() for trial in trials], "wrong": wrong}


def _next_step(plan: Plan, project: str) -> str:
    module = load(plan.harness)
    states = {state for _, state in module.trust(installing.user_home(), project)}
    return module.NEXT_STEP if (states - {"trusted"} if states else plan.is_needed) else ""


def _trials(trials: list[Trial]) -> str:
    """``SessionStart 4 parts 0.2 s ✓  Stop 14 ms ✓``."""
    told = []
    for event in dict.fromkeys(trial.event for trial in trials):
        of = [trial for trial in trials if trial.event == event]
        milliseconds = sum(trial.ms for trial in of)
        time = f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
        parts = f" {many(len(of), 'part')}" if len(of) > 1 else ""
        told.append(f"{event}{parts} {time} {'✗' if any(trial.wrong for trial in of) else '✓'}")
    return "  ".join(told)


def _observer() -> str:
    workers = configuration.load(os.getcwd())["workers"]
    if workers == ["extractive"]:
        return f"extractive; no model; add one under 'workers' in {configuration.user_file()}"
    names = (one if isinstance(one, str) else str(one.get("kind", "?")) for one in workers)
    return f"{', '.join(names)}; extractive where they fail"


def _value(plan: Plan, what: str) -> dict[str, Any]:
    changes = [{"path": change.path, "diff": installing.difference(change)} for change in plan.all_changes]
    return {
        "harness": plan.harness,
        "outcome": what,
        "changes": changes,
        "recall_allowed": plan.recall,
        "server": plan.server,
        "no_server": plan.no_server,
        "status_line": plan.status_line,
        "skills": [{"path": one.path, "left_alone": one.foreign} for one in plan.skills],
    }


def _report(as_json: bool, done: list[dict[str, Any]], failed: dict[str, str]) -> int:
    """Say what could not be done; the exit status."""
    if as_json:
        say_json({"harnesses": done, "failed": failed})
    else:
        for one in done:
            if one["outcome"] == "nothing to do" and "trials" not in one:
                say(f"{one['harness']}: nothing to do")
    for name, why in failed.items():
        warn(f"{name}: {why}")
    return 1 if failed or any(one.get("wrong") for one in done) else 0


def run_uninstall(arguments: argparse.Namespace) -> int:
    """``uninstall [HARNESS…]``: give every config file back as it was; with ``--data`` remove what is kept, too."""
    home = data_home()
    for name in arguments.harness:
        load(name)
    done, failed = [], {}
    for name in arguments.harness or REGISTRY:
        try:
            done += [
                {"harness": name, "path": path, "what": what}
                for path, what in installing.uninstall(home, name, os.getcwd())
            ]
        except (ObsmemError, OSError) as error:
            failed[name] = str(error)
    named = installing.remove_launchers(home, os.getcwd())
    removed = bool(arguments.data and not named and not failed) and _remove_data(home, ask=not arguments.yes)
    if arguments.json:
        say_json({"files": done, "failed": failed, "still_named_in": named, "data_removed": removed})
    else:
        for one in done:
            say(f"{one['harness']}: {one['path']}: {one['what']}")
        if not done and not failed:
            say("Nothing of ours was found in any config.")
        if named:
            say(f"The launcher stays, since these still call it: {', '.join(named)}")
        if not removed and os.path.isdir(home):
            say(f"What was kept stays in {home}." + ("" if arguments.data else " 'uninstall --data' removes it too."))
    for name, why in failed.items():
        warn(f"{name}: {why}")
    return 1 if failed or (arguments.data and not removed) else 0


def _remove_data(home: str, *, ask: bool) -> bool:
    """Remove the data folder, after asking. A folder that does not look like one of ours is left alone."""
    if not os.path.isdir(home):
        return True
    known = ("archive.db", "log.txt", "interpreter", "sessions", "locks")
    if not any(os.path.exists(os.path.join(home, name)) for name in known) and os.listdir(home):
        warn(f"{home} does not look like a data folder, and was left as it is.")
        return False
    if ask and not agreed(f"Remove {home} with every transcript and note in it, for good?"):
        warn("The data folder stays. Run it again with --yes to skip the question.")
        return False
    seats.wait_until_free(home, QUIET_SECONDS)  # a maintainer that works would write into what is being removed
    shutil.rmtree(home)
    return True


def run_setup(arguments: argparse.Namespace) -> int:
    """``setup``: record an interpreter that has the packages, making an environment where this one lacks them."""
    home = data_home()
    python = environment.set_up(home)
    if arguments.json:
        say_json({"interpreter": python})
    else:
        say(f"{python} has the packages and is recorded. Next: {command()} install")
    return 0


def run_doctor(arguments: argparse.Namespace) -> int:
    """``doctor``: one line for each check, with what to do. Exit status 0 sound, 1 warnings, 5 broken."""
    checks = diagnose(data_home(), os.getcwd())
    if arguments.json:
        say_json([check._asdict() for check in checks])
    else:
        for check in checks:
            say(
                f"{MARKS.get(check.level, '!')} {check.name}: {check.what}"
                + (f" → {check.remedy}" if check.remedy else "")
            )
    return exit_status(checks)
