"""The command line: one parser, one table from command to function, one place where failures become sentences.

Commands: install, uninstall, setup, doctor · replay, try, demo, ingest, sync · recall, sessions, show, notes, block,
status, statusline, context, stats, usage, config · search, get, around, tool, timeline, file, reduce · handoff, rotate,
resume, run, export, import, remote · pin, unpin, pins, note · fork · explain · report, bench · mcp · forget, fsck, index,
hooks, maintain. ``hook`` is not here: it never loads this module.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from obsmem import __version__
from obsmem.core.errors import ObsmemError
from obsmem.interfaces.report import make_streams_safe

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
    Add = Callable[..., argparse.ArgumentParser]

PROGRAM = "observational-memory"
DEFAULT_RECALL_TOKENS = 2_000
NEEDS_NO_PACKAGES = ("setup", "doctor", "uninstall")  # they must run where the packages are missing
QUICK = ("recall", "search")  # what an agent waits for, and what starts and holds nothing
HANDED_OVER = "observational-memory-handed-over"
BUDGETS = range(300, 12_001)  # tokens of a block, as the configuration allows them


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit status. Failures are printed as one sentence on standard error."""
    words = sys.argv[1:] if arguments is None else arguments
    missing = [] if words[:1] and words[0] in NEEDS_NO_PACKAGES else _missing_packages()
    if missing:
        hand_over(words)
        _leave_lack(words, missing)
        sys.stderr.write(
            f"observational-memory needs the Python packages {', '.join(missing)}, which this interpreter ({sys.executable}) "
            f"does not have. Run 'setup' in place of this command, which makes an environment that has them; or "
            f"{sys.executable} -m pip install {' '.join(missing)}\n"
        )
        return 1
    make_streams_safe()
    others: list[str] = []
    if words[:1] == ["run"]:
        from obsmem.interfaces.arguments_run import split_run

        words, others = split_run(words)
    options = build_parser(words[0] if words else "").parse_args(words, argparse.Namespace(others=others))
    try:
        if options.command not in (*NEEDS_NO_PACKAGES, "mcp"):  # a server writes nothing unasked
            _record_interpreter()
        status = int(options.run(options))
        sys.stdout.flush()  # a reader that has gone away shows here, and not when Python ends
        return status
    except ObsmemError as error:
        sys.stderr.write(f"{_as_called_here(str(error))}\n")
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has seen enough
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. What was committed stays; run the command again to go on.\n")
        return 130
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        sys.stderr.write(f"The files of this machine did not let it: {what}. Mend that and run the command again.\n")
        return ObsmemError.exit_code


def recall_main() -> int:
    """The console script ``recall``."""
    return main(["recall", *sys.argv[1:]])


def leave(status: int, words: list[str]) -> int:
    """End the process at once where a command only read: Python would take a tenth of such a command's time to take apart
    what the system takes back anyway. Returns the status where it has to go the long way. Only for a script's last line."""
    if words[:1] and words[0] in QUICK:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            return status  # nobody listens any more: Python knows how to end then
        os._exit(status)
    return status


def _as_called_here(text: str) -> str:
    """A message whose hints name this program as this machine's shell finds it."""
    from obsmem.tasks.called import command

    return text.replace("'observational-memory ", f"'{command()} ")


def _record_interpreter() -> None:
    """Hooks run without packages and start their work under an interpreter that has them: this one, if the recorded one
    is gone or none was."""
    from obsmem.system.launcher import record_interpreter
    from obsmem.system.paths import data_home
    from obsmem.system.process import recorded_interpreter

    home = data_home()
    if os.path.isdir(home) and not recorded_interpreter(home):
        try:
            record_interpreter(home)
        except OSError:
            pass  # in an agent's sandbox nothing may be written; hooks find their own way


def hand_over(words: list[str]) -> None:
    """Run the command under the recorded interpreter, which has the packages: a launcher or a shell called us with one
    that has not. Does not return then; an interpreter option tells the other one not to hand over again."""
    from obsmem.system.paths import data_home
    from obsmem.system.process import recorded_interpreter
    from obsmem.tasks.called import installed_script

    recorded = recorded_interpreter(data_home())
    if recorded and HANDED_OVER not in sys._xoptions and os.path.isfile(installed_script()):
        call = [recorded, "-X", HANDED_OVER, installed_script(), *words]
        try:
            if sys.platform == "win32":  # there, exec ends this process before the other one
                import subprocess

                sys.exit(subprocess.call(call))
            os.execv(recorded, call)
        except OSError:
            pass  # it is not a program any more


def _leave_lack(words: list[str], missing: list[str]) -> None:
    """A hook's child has nobody to tell what is missing: the next session's start tells the user."""
    if words[:1] == ["maintain"]:
        from obsmem.system.notice import leave_lack
        from obsmem.system.paths import data_home

        try:
            leave_lack(data_home(), missing, sys.executable)
        except OSError:
            pass


def _missing_packages() -> list[str]:
    from obsmem.system.environment import NEEDED

    finders = sys.meta_path  # asked as importlib.util asks them, which a command does not need otherwise
    return [name for module, name in NEEDED.items() if not any(one.find_spec(module, None) for one in finders)]


def _lazily(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """A command whose module is imported when it runs: ``recall`` should not wait for what ``sync`` needs."""

    def run(options: argparse.Namespace) -> int:
        from importlib import import_module

        gc.disable()  # while modules load nothing is let go, and every look for it would be in vain
        command = getattr(import_module(f"obsmem.interfaces.{module}"), name)
        gc.freeze()  # nor is what they made let go later
        gc.enable()
        return int(command(options))

    return run


def _group(module: str, name: str) -> Callable[[Commands, Add], None]:
    """A group of commands whose words and options stand in a module of their own, imported when they are wanted."""

    def add_group(commands: Commands, add: Add) -> None:
        from importlib import import_module

        getattr(import_module(f"obsmem.interfaces.{module}"), name)(commands, add)

    return add_group


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal, which is asked without the module that argparse would load for every argument."""

    def __init__(self, prog: str, **given: Any) -> None:
        super().__init__(prog, **{"width": _columns() - 2, **given})


def _columns() -> int:
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    try:
        return os.get_terminal_size(1).columns or 80
    except (OSError, ValueError):
        return 80


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """The parser of all commands; with the name of a command, one that may know only those beside it: making them all takes
    longer than ``recall`` needs for its answer."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        formatter_class=_Help,
        description="Memory for coding agents: cited notes that survive a compaction, one recall away from the exact words.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", prog=PROGRAM)
    for add in _OFTEN.get(command, _ALL):
        add(commands, _add)
    return parser


def _add(commands: Commands, name: str, module: str, meaning: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=meaning, description=meaning, formatter_class=_Help)
    parser.set_defaults(run=_lazily(module, f"run_{name}"))
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _budget(text: str) -> int:
    """The tokens of a block from the command line."""
    if not text.isdigit() or int(text) not in BUDGETS:
        raise argparse.ArgumentTypeError(f"must be a number of tokens from {BUDGETS[0]} to {BUDGETS[-1]}, not {text!r}")
    return int(text)


def _count(text: str) -> int:
    """A number from 0 up."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number from 0 up, not {text!r}")
    return int(text)


def _add_installing(commands: Commands, _: Add) -> None:
    install = _add(commands, "install", "commands_install", "put the hooks into the harnesses on this machine")
    install.add_argument("harness", nargs="*", metavar="HARNESS", help="only these (all that are found by default)")
    install.add_argument("--project", action="store_true", help="into the config of the project in this folder")
    install.add_argument("--dry-run", action="store_true", help="only show what would change")
    install.add_argument("--allow-recall", action="store_true", help="let the agent run recall without asking")
    install.add_argument("--no-mcp", action="store_true", help="do not register the server of the agent's tools")
    install.add_argument(
        "--statusline",
        action=argparse.BooleanOptionalAction,
        help="show a status line, behind your own if you have one",
    )
    install.add_argument("--reduce", action="store_true", help="let long outputs be shortened (config: reduce)")
    install.add_argument("--rule", action="store_true", help="keep the block in a rule file of this folder, too")
    install.add_argument("--yes", action="store_true", help="do not ask")
    uninstall = _add(commands, "uninstall", "commands_install", "take the hooks out again; what is kept stays")
    uninstall.add_argument("harness", nargs="*", metavar="HARNESS", help="only these (all by default)")
    uninstall.add_argument("--data", action="store_true", help="remove everything that is kept, too")
    uninstall.add_argument("--yes", action="store_true", help="do not ask")
    _add(commands, "setup", "commands_install", "make an environment that has the packages, where they are missing")
    _add(commands, "doctor", "commands_install", "look over the installation, and say what to do about what is wrong")


def _add_reading(commands: Commands, _: Add) -> None:
    from obsmem.interfaces import arguments_explain

    replay = _add(
        commands, "replay", "commands_read", "run saved transcripts through the whole pipeline in a throw-away store"
    )
    replay.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a transcript, a folder of them, or -; with --policy a session of the store",
    )
    arguments_explain.add_policy(replay)
    replay.add_argument("--harness", default="", help="the harness that wrote them, where content does not tell")
    replay.add_argument(
        "--parse-only", action="store_true", help="only count: bytes, lines, entries, reasons, tokens, compactions"
    )
    replay.add_argument("--keep", action="store_true", help="use the real store")
    replay.add_argument(
        "--at", default="", metavar="N", help="stop before the N-th compaction, or after N tokens with 150000t"
    )
    replay.add_argument("--budget", type=_budget, metavar="TOKENS", help="tokens of the block")
    attempt = _add(
        commands, "try", "commands_read", "show the block that your newest session would get now; keeps nothing"
    )
    attempt.add_argument("session", nargs="?", default="", metavar="SESSION", help="part of an id, or a path")
    attempt.add_argument("--budget", type=_budget, metavar="TOKENS", help="tokens of the block")
    demo = _add(commands, "demo", "commands_demo", "show the main job on saved sessions, stage by stage; keeps nothing")
    demo.add_argument(
        "path", nargs="?", default="", metavar="PATH", help="a session or a folder of them (the demo's own by default)"
    )
    demo.add_argument("--whole", action="store_true", help="show every line of the blocks")
    ingest = _add(commands, "ingest", "commands_read", "take transcripts into the store, each from where it was left")
    ingest.add_argument("paths", nargs="+", metavar="PATH", help="a transcript or a folder of them")
    ingest.add_argument("--harness", default="", help="the harness that wrote them, where content does not tell")
    sync = _add(commands, "sync", "commands_read", "take in every session of every harness on this machine")
    sync.add_argument("--harness", default="", help="only this harness")
    sync.add_argument("--list", action="store_true", help="only list what would be taken in")
    sync.add_argument("--yes", action="store_true", help="do not ask")


def _add_session(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "session",
        nargs="?",
        default="",
        metavar="SESSION",
        help="handle, id, name, or part of one; the newest by default",
    )


def _add_recall(commands: Commands, _: Add) -> None:
    recall = _add(commands, "recall", "commands_recall", "print a note or reflection with the exact entries behind it")
    recall.add_argument("id", metavar="ID", help="a note, reflection or entry id, or an unambiguous beginning of one")
    recall.add_argument("--context", type=_count, default=0, metavar="N", help="also show N entries around each")
    recall.add_argument("--range", default="", metavar="A:B", help="characters A up to B of one entry")
    recall.add_argument("--raw", action="store_true", help="the original records, byte for byte, nothing masked")
    recall.add_argument(
        "--budget",
        type=_count,
        metavar="TOKENS",
        default=DEFAULT_RECALL_TOKENS,
        help="most tokens to print (default 2000)",
    )


def _add_showing(commands: Commands, _: Add) -> None:
    from obsmem.interfaces import arguments_pressure

    sessions = _add(commands, "sessions", "commands_show", "list the sessions in the store")
    sessions.add_argument("--all", action="store_true", help="sub-agents too")
    show = _add(commands, "show", "commands_show", "print the entries of a session")
    show.add_argument("session", metavar="SESSION", help="handle, id, name, or part of one")
    show.add_argument("range", nargs="?", default="", metavar="RANGE", help="entry numbers: 12, 12:40, 12:")
    show.add_argument("--whole", action="store_true", help="do not clip long entries")
    notes = _add(commands, "notes", "commands_show", "list the notes of a session")
    _add_session(notes)
    notes.add_argument("--dropped", action="store_true", help="only the dropped ones")
    notes.add_argument("--relevance", default="", help="only these, as in critical,high")
    block = _add(commands, "block", "commands_show", "print the block that the model would get now")
    _add_session(block)
    block.add_argument("--budget", type=_budget, metavar="TOKENS", help="tokens of the block")
    arguments_pressure.add_watching(
        _add(commands, "status", "commands_show", "how much is kept, how far behind the observer is")
    )
    arguments_pressure.add_status_line(commands, _add)
    usage = _add(commands, "usage", "commands_usage", "what models were asked, and what it took")
    usage.add_argument("--ask-again", action="store_true", help="first end whatever keeps a model from being asked")
    usage.add_argument("--days", type=int, default=7, metavar="N", help="how many days back (7)")
    config = _add(commands, "config", "commands_show", "list every configuration key with its value")
    config.add_argument("--origin", action="store_true", help="also where each value comes from and what it means")


def _add_care(commands: Commands, _: Add) -> None:
    forget = _add(commands, "forget", "commands_care", "remove a session or one record for good, from backups too")
    forget.add_argument(
        "what", metavar="SESSION|ENTRY", help="a session, an entry id, or HARNESS/SESSION-ID with --undo"
    )
    forget.add_argument("--yes", action="store_true", help="do not ask")
    forget.add_argument("--undo", action="store_true", help="allow a forgotten session to be read again")
    fsck = _add(commands, "fsck", "commands_care", "check the store")
    fsck.add_argument("--repair", action="store_true", help="mend what can be mended")
    _add(commands, "index", "commands_care", "fill the full-text index now")
    hooks = _add(
        commands, "hooks", "commands_care", "print the hook config to copy into a harness, with this machine's paths"
    )
    hooks.add_argument("harness", metavar="HARNESS", help="the harness to print it for")
    hooks.add_argument("--reduce", action="store_true", help="with what shortens long outputs (config: reduce)")
    maintain = _add(commands, "maintain", "commands_maintain", "bring one session up to date (hooks start this)")
    maintain.add_argument("harness")
    maintain.add_argument("--transcript", default="")
    maintain.add_argument("--session", default="")
    maintain.add_argument("--cwd", default="")
    maintain.add_argument("--before-compact", action="store_true")
    maintain.add_argument("--announced", default="", help="what a hook says of a compaction: auto:24000/200000")
    maintain.add_argument("--ended", action="store_true", help="the session has ended")
    maintain.add_argument("--seconds", type=float, default=0.0, help="the time there is before a compaction")
    maintain.add_argument("--seat", type=int, help="the seat that a hook took for it")
    maintain.add_argument("--drain", metavar="SESSION", default="", help="only ask the configured workers")
    maintain.add_argument("--verbose", action="store_true", help="raise failures instead of only logging them")


_SEARCH, _LOOK = _group("arguments_search", "add_search"), _group("arguments_look", "add_looking")
# Every group of commands, in the order of the help; and the commands that agents call often, each with its own group.
_ALL = (
    _add_installing, _add_reading, _add_recall, _add_showing, _SEARCH, _LOOK, _group("arguments_windows", "add_windows"),
    _group("arguments_run", "add_run"), _group("arguments_export", "add_export"), _add_care,
    *(_group(f"arguments_{module}", name) for module, name in (
        ("fix", "add_fixing"), ("fork", "add_forking"), ("reduce", "add_reducing"), ("explain", "add_explaining"),
        ("report", "add_reporting"), ("context", "add_measuring"), ("bench", "add_benching"), ("agent", "add_serving"),
    )),
)  # fmt: skip
_OFTEN = {
    "recall": (_add_recall,), "search": (_SEARCH,), "maintain": (_add_care,),
    **dict.fromkeys(("get", "around", "tool", "timeline", "file"), (_LOOK,)),
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
