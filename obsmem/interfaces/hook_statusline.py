"""The status line: one line of what is known of a session, behind the user's own line where they have one.

Invariants: standard library only, and what the maintainer left in small files; whatever goes wrong, the user's own line is
printed as it came, or nothing; nothing is waited for longer than the harness gives; only numbers and our own words are
printed of ours.
"""

from __future__ import annotations

import os
import time

from obsmem.harnesses import is_foreign
from obsmem.interfaces.hook import parse_json, parse_payload
from obsmem.system.factsfile import Facts, Report, read_facts, write_report
from obsmem.system.files import read_bytes
from obsmem.system.paths import session_folder
from obsmem.system.state import read_state, switched_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from obsmem.harnesses.base import Hooks

RECORD = ("install", "record.json")  # below the data folder, the harness's name between them
RECORD_BYTES = 16 << 20
OWN_BYTES = 1 << 16  # of the user's own line
MOST = 1 << 40  # tokens; what says more is broken


def status_lines(home: str, module: Hooks, data: bytes) -> str:
    """What a harness shows for a payload: the user's own lines, then ours, each where there is one."""
    own = _own_lines(home, module, data)
    try:
        ours = _line_of(home, module, parse_payload(data))
    except (OSError, ValueError, TypeError, AttributeError):
        ours = ""
    return "\n".join(filter(None, (own, ours)))


def _line_of(home: str, module: Hooks, payload: Mapping[str, Any]) -> str:
    session_id, transcript, cwd = (_text(payload, key) for key in ("session_id", "transcript_path", "cwd"))
    if not (session_id or transcript) or is_foreign(module.NAME, payload, os.environ) or switched_off(home, cwd):
        return ""
    folder = session_folder(home, module.NAME, transcript, session_id)
    if read_state(folder).off:
        return ""
    report, facts = reported(payload), read_facts(folder)
    if report is not None and facts is not None:  # of a session that was forgotten nothing is kept
        write_report(folder, report)
    if facts is not None and facts.next_in and transcript.endswith(".jsonl"):
        facts.next_in = max(1, facts.next_in - _grown(transcript, folder))
    return line(facts, report, time.time())


def _grown(transcript: str, folder: str) -> int:
    """Tokens that a transcript has grown by since the maintainer read it."""
    state = read_state(folder)
    try:
        return max(0, int((os.stat(transcript).st_size - state.read) * state.rate))
    except OSError:
        return 0


def reported(payload: Mapping[str, Any]) -> Report | None:
    """What a payload says of the window; None where it says nothing that could be so."""
    window = payload.get("context_window")
    if not isinstance(window, dict):
        return None
    report = Report()
    report.size = _tokens(window.get("context_window_size"))
    usage = window.get("current_usage")
    if isinstance(usage, dict):
        kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        report.tokens = sum(_tokens(usage.get(kind)) for kind in kinds)
    elif isinstance(percent := window.get("used_percentage"), (int, float)) and 0 < percent <= 100:
        report.tokens = int(report.size * percent / 100)
    model = payload.get("model")
    name = model.get("id") if isinstance(model, dict) else ""
    report.model = name if isinstance(name, str) and name.isprintable() and len(name) < 200 else ""
    return report if report.size else None


def line(facts: Facts | None, report: Report | None, now: float) -> str:
    """The line itself; ``now`` in seconds. What the harness reported of the last request goes before what we knew then."""
    known = facts or Facts()
    parts = [_occupancy(known, report)]
    if facts is not None:
        parts.append(f"{known.notes} note{'' if known.notes == 1 else 's'}")
        if known.pins:
            parts.append(f"{known.pins} pin{'' if known.pins == 1 else 's'}")
        observed = f"observed {_age(now - known.observed / 1000)} ago" if known.observed else "not observed yet"
        parts.append(observed + (f", next in {short(known.next_in)}" if known.next_in else ""))
        parts.append(known.delivery)
    told = " · ".join(filter(None, parts))
    return f"memory: {told}" if told else ""


def _occupancy(known: Facts, report: Report | None) -> str:
    tokens, whole, of = known.tokens, known.mark or known.size, "to compaction" if known.mark else "of the window"
    if report is not None:
        tokens = report.tokens or tokens
        if report.size != known.window:  # nothing that we know is of this window
            whole, of = report.size, "of the window"
    return f"{tokens * 100 // whole} % {of} ({short(tokens)} of {short(whole)})" if whole and tokens else ""


def short(tokens: int) -> str:
    """Tokens as a status line has room for them: ``950``, ``6.2k``, ``167k``."""
    if tokens < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if tokens < 9_950 else f"{(tokens + 500) // 1000}k"


def _age(seconds: float) -> str:
    for limit, unit, divisor in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{max(0, int(seconds)) // divisor} {unit}"
    return f"{int(seconds) // 86_400} d"


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def _tokens(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(value) if 0 < value < MOST else 0


# --- the user's own line


def _own_lines(home: str, module: Hooks, data: bytes) -> str:
    """What the user's own command prints for the same payload; '' where they have none, or it took too long."""
    command = own_command(home, module.NAME)
    try:
        return _run(command, data, module.STATUS_SECONDS) if command else ""
    except (OSError, ValueError):
        return ""


def own_command(home: str, harness: str) -> str:
    """The command that stood where ours stands in a harness's settings; '' for none."""
    path = os.path.join(home, RECORD[0], harness, RECORD[1])
    try:
        known = parse_json(read_bytes(path, RECORD_BYTES).decode("utf-8", "replace"))
        raws = [one.get("own", "") for one in known.values()] if isinstance(known, dict) else []
        owns = [parse_json(raw) for raw in raws if raw]
    except (AttributeError, TypeError, ValueError):
        return ""
    return next((own for own in owns if isinstance(own, str)), "")


def _run(command: str, data: bytes, seconds: float) -> str:
    """Run a shell line on a payload. Its whole process group is killed when its time is over."""
    import subprocess  # only where the user has a line of their own, which starts a program anyway

    process = subprocess.Popen(
        command,
        shell=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        output = process.communicate(data, timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        _kill(process.pid)
        return ""
    if process.returncode:
        return ""  # nor would the harness show what a command printed that failed
    return output[:OWN_BYTES].decode("utf-8", "replace").rstrip("\r\n")


def _kill(pid: int) -> None:
    from obsmem.system.process import kill_group

    kill_group(pid)
