"""What becomes of a tool's output before the model sees it. Loaded only where a harness lets a hook replace one.

Invariants: the whole output is on the disk before less of it is given, else it is given as it is; what anybody asked to see
whole, what our own commands print, and what nobody may read is left alone; an output that is too short to gain anything
costs no more than a look at one small file.
"""

from __future__ import annotations

import os
import sys
import time

from obsmem.interfaces.hook import parse_json
from obsmem.system.files import read_bytes
from obsmem.system.shortening import FORGOTTEN_FILE, note_outcome, note_seen, read_settings, seen_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from obsmem.core.hooks import HookEvent, ToolOutput
    from obsmem.core.reduce import Reduced
    from obsmem.harnesses.base import Hooks
    from obsmem.system.shortening import Settings

PROJECT_FILE = ".observational-memory.yaml"  # that of obsmem.system.config, which hooks do not load
LARGEST = 2 << 20  # bytes of an output that is looked at: a rule reads about a megabyte in a second
OWN_NAMES = ("observational", "recall")  # in a command: what it prints was asked for
REPEAT = "repeat"  # the rule by which an output that stands in the context already is pointed to


def shorten_output(
    home: str, script: str, module: Hooks, what: HookEvent, payload: Mapping[str, Any], folder: str
) -> tuple[str, str]:
    """(the hook's answer, its outcome for the log); ('', …) leaves an output as it is. Raises OSError where the whole output
    cannot be kept; then it must be left so, too."""
    settings = read_settings(home, parse_json)
    if not settings.reduce or os.path.exists(os.path.join(folder, FORGOTTEN_FILE)):
        return "", ""
    output = module.read_output(payload)
    if output is None or output.size < settings.minimum or not output.call_id:
        return "", ""
    from obsmem.system.excluded import is_excluded

    if is_excluded(settings.never, what.transcript, what.cwd) or _off_in_project(what.cwd):
        return "", ""
    data = _whole(output)
    if data is None:
        return "", "left-unread"
    shortened, outcome = _shorten(settings, _recalling(home, script), module.NAME, what, output, folder, data)
    return (module.replace_output(payload, shortened), outcome) if shortened else ("", outcome)


def _off_in_project(folder: str) -> bool:
    """True if the configuration of the project in a folder, or above it, switches memory off: nothing would be archived."""
    while folder:
        text = read_bytes(os.path.join(folder, PROJECT_FILE))
        if text:
            return any(line.replace(b" ", b"").startswith(b"off:true") for line in text.lower().split(b"\n"))
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return False


def _whole(output: ToolOutput) -> bytes | None:
    """All that was printed; None where it cannot be had, or is too long."""
    if not output.path:
        return output.text.encode("utf-8", "surrogatepass") if output.size <= LARGEST else None
    try:
        size = os.stat(output.path).st_size
        if size > LARGEST or size < output.size:
            return None
        with open(output.path, "rb") as file:
            return file.read(LARGEST + 1)
    except OSError:
        return None


def _recalling(home: str, script: str) -> str:
    """What prints a whole output when its id is put behind it."""
    from obsmem.system.launcher import quoted, recall_path

    path = recall_path(home)
    if os.path.exists(path):
        return quoted(path)
    return f"{quoted(sys.executable)} {quoted(script)} recall"


def _shorten(
    settings: Settings, recalling: str, harness: str, what: HookEvent, output: ToolOutput, folder: str, data: bytes
) -> tuple[str, str]:
    from obsmem.core import late
    from obsmem.core.ids import raw_id
    from obsmem.core.reduce import footer, is_bypassed

    id_, digest = raw_id(harness, what.session_id, output.call_id), late.sha256(data).hex()
    now = int(time.time())
    about = {
        "id": id_,
        "call": output.call_id,
        "at": now * 1000,
        "head": _head(output.command),
        "exit": output.exit_code,
    }
    reduced: Reduced | None = None
    if is_bypassed(output.command):
        why = "marker"
    elif any(name in output.command for name in OWN_NAMES):
        why = "own"
    else:
        reduced, why = _reduced(settings, output, folder, data, digest)
    text = reduced.text + footer(reduced, id_, recalling) if reduced is not None else ""
    kept = len(text.encode("utf-8", "surrogatepass"))
    if reduced is None or kept >= len(data):
        note_seen(folder, digest, id_)
        note_outcome(folder, {**about, "why": why or "no gain", "whole": len(data)})
        return "", f"left-{(why or 'no gain').replace(' ', '-')}"
    from obsmem.system.raw_files import save_raw

    about.update({"rule": reduced.rule, "whole": len(data), "kept": kept, "folded": reduced.folded_lines})
    save_raw(folder, id_, {**about, "command": output.command, "cwd": what.cwd, "session": what.session_id}, data)
    if reduced.rule != REPEAT:  # what is pointed to is an output, never another pointer
        note_seen(folder, digest, id_)
    return text, f"reduced-{reduced.rule}"


def _reduced(
    settings: Settings, output: ToolOutput, folder: str, data: bytes, digest: str
) -> tuple[Reduced | None, str]:
    """What is given in place of an output, or None and why not."""
    from obsmem.core.reduce import Reduced, Rules, is_excluded, reduce
    from obsmem.core.reduce_commands import effective_words

    text = data.decode("utf-8", "replace")
    earlier, then = seen_before(folder, digest) if not output.exit_code and REPEAT not in settings.off else ("", 0)
    rules = Rules(settings.minimum, frozenset(settings.off), settings.excluded)
    if earlier and not is_excluded(output.command, effective_words(output.command), settings.excluded):
        clock = time.strftime("%H:%M", time.localtime(then))
        words = f"[the same output, byte for byte, as at {clock}: it stands above in this conversation]"
        return Reduced(words, REPEAT, len(data), len(words), text.count("\n")), ""
    found = reduce(output.command, text, output.exit_code, rules)
    return found, "" if found is not None else "no rule"


def _head(command: str) -> str:
    """The program that a command runs, with its first word: what figures are counted by. No other argument."""
    from obsmem.core.reduce_commands import effective_words

    for words in effective_words(command):
        more = words[1] if len(words) > 1 and words[1].isalpha() else ""
        return f"{os.path.basename(words[0])} {more}".strip()[:40]
    return ""
