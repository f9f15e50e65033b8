"""What a harness's hooks run. Always exits 0, prints a valid answer or nothing, and never waits longer than its limit.

Invariants: at a turn's end and at a prompt no database, no transcript, no model is touched: a look at the transcript's
size and at small files, the same system calls whatever the transcript's length. Standard library only, and little of
it: what is imported at the top costs every turn of every session. Inside a worker nothing happens at all, nor where
another harness runs the hooks of this one.
"""

from __future__ import annotations

import os
import time

from obsmem.harnesses import PROMPTS, REGISTRY, TURN_ENDS, is_foreign, load_hooks
from obsmem.system.files import remove
from obsmem.system.paths import data_home, session_folder
from obsmem.system.state import OPEN_FILE, SEEN_FILE, WARNING_FILE, read_state, switched_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from obsmem.core.hooks import HookEvent
    from obsmem.harnesses.base import Hooks

PAYLOAD_LIMIT = 16 << 20  # bytes; a stop payload can carry the whole last answer
LIMITS = {
    "turn_end": 5,
    "prompt": 2,
    "session_start": 15,
    "before_compact": 50,
    "session_end": 1,
    "status": 4,
    "tool_result": 8,
}  # seconds, whole hook
COMPACT_SECONDS = 20.0  # the maintainer before a compaction is killed then
ALARM = 14  # SIGALRM; the module signal costs more than the rest of this hook
_about: list[str] = []  # the folder of the session that this hook is about, for the log


def run(arguments: list[str], script: str) -> int:
    """Run ``hook <harness> <event> [--part k/n]``. The exit status is always 0."""
    started = time.monotonic()
    home = data_home()
    name = " ".join(arguments[:2])
    _about.clear()
    try:
        outcome = _run(home, arguments, script)
    except BaseException as error:
        # Failing open is the contract: an agent must not feel that its memory is broken. The log tells.
        outcome = type(error).__name__
    if outcome:
        from obsmem.system import log  # not at the top, nor is what else most turns do not need

        ms = int((time.monotonic() - started) * 1000)
        log.write(home, "hook", name=name, outcome=outcome, ms=ms, **log.session_field(_about))
    return 0


def _run(home: str, arguments: list[str], script: str) -> str:
    harness, event = arguments[0], arguments[1]
    if harness not in REGISTRY:
        return "unknown-harness"
    if event == TURN_ENDS[harness][0]:
        _set_alarm(LIMITS["turn_end"])
        return _end_turn(home, harness, script)
    if event == PROMPTS.get(harness, ("",))[0]:
        _set_alarm(LIMITS["prompt"])
        return _answer_prompt(home, harness, event)
    module = load_hooks(harness)
    kind = module.EVENTS.get(event, "other")
    _set_alarm(LIMITS.get(kind, 5))
    if kind == "status":
        return _show_status(home, module)
    payload = read_payload()
    what = module.read_event(event, payload)
    if what.kind == "other" or is_foreign(harness, payload, os.environ) or switched_off(home, what.cwd):
        return ""
    folder = session_folder(home, harness, what.transcript, what.session_id)
    _about.append(folder)
    if read_state(folder).off:
        return "off"
    work = [harness, "--transcript", what.transcript, "--session", what.session_id, "--cwd", what.cwd]
    text = outcome = ""
    if what.kind == "tool_result":
        from obsmem.interfaces.hook_reduce import shorten_output

        text, outcome = shorten_output(home, script, module, what, payload, folder)
        _print(text)
        return outcome
    if what.kind in ("before_compact", "session_start") and what.source != "resume":
        remove(os.path.join(folder, SEEN_FILE))  # what was given may not stand in the context any more
    if what.kind == "before_compact":
        from obsmem.system import process
        from obsmem.system.focus import keep_focus

        keep_focus(folder, what.focus)
        announced = ["--announced", f"{what.source}:{what.held}"] if what.source or what.held else []
        status = process.run(home, script, ["maintain", *work, "--before-compact", *announced], COMPACT_SECONDS)
        outcome = "killed" if status is None else f"exit-{status}"
        if module.KEEPS_BLOCK:
            from obsmem.system.blockfile import keep

            text = "\n".join(keep(folder))
    elif what.kind == "session_end":
        outcome = _start_maintainer(home, script, folder, [*work, "--ended"])
    elif what.kind == "session_start":
        from obsmem.interfaces.hook_delivery import block_for_start

        text, outcome = block_for_start(home, script, module, what, folder, work, _part(arguments))
    _answer(module, what, text)
    return outcome


def _show_status(home: str, module: Hooks) -> str:
    """Print the status line, with the user's own before it."""
    from obsmem.interfaces.hook_statusline import status_lines

    text = status_lines(home, module, read_input())
    if text:
        _print(text + "\n")
    return ""


def _start_maintainer(home: str, script: str, folder: str, work: list[str]) -> str:
    """Start a maintainer in a free seat; where none is free, those who have one see the wish."""
    from obsmem.system import process, seats

    name = seats.name_of(folder)
    seats.wish(home, name, work)
    seat = seats.take_seat(home, name)
    if seat is None:
        return "waiting"
    try:
        pid = process.start(home, script, ["maintain", *work, "--seat", str(seat)])
    except BaseException:
        seats.leave_seat(home, seat)
        raise
    seats.hand_on(home, seat, name, pid)
    return "started"


def _answer_prompt(home: str, harness: str, event: str) -> str:
    """Give what a delivery still owes to the model, and a warning, which files say; where there is none, nothing is loaded."""
    _, session_key, transcript_key, folder_key, nothing, _ = TURN_ENDS[harness]
    payload = read_payload()
    if is_foreign(harness, payload, os.environ):
        return ""
    session_id, transcript, cwd = (_text(payload.get(key)) for key in (session_key, transcript_key, folder_key))
    folder = session_folder(home, harness, transcript, session_id)
    _about.append(folder)
    owed = os.path.exists(os.path.join(folder, PROMPTS[harness][1]))
    warned = os.path.exists(os.path.join(folder, WARNING_FILE))
    if not (owed or warned) or switched_off(home, cwd) or read_state(folder).off:
        _print(nothing)
        return ""
    from obsmem.interfaces.hook_delivery import told_at_prompt

    module = load_hooks(harness)
    what = module.read_event(event, payload)
    text, notice = told_at_prompt(module, what, folder)
    _answer(module, what, text, notice)
    return "given" if text else ""


def _answer(module: Hooks, what: HookEvent, text: str, notice: str = "") -> None:
    from obsmem.core.hooks import HookAnswer
    from obsmem.system.notice import take_notice  # not at the top: a turn's end has nothing to tell

    if what.kind == "session_start" and module.SHOWS_NOTICES:
        notice = take_notice(data_home(), module.NAME)
    _print(module.answer(what, HookAnswer(text, notice)))


def _print(text: str) -> None:
    """Write UTF-8 to standard output, whatever the locale, and at once: a reader that has gone must not be noticed when
    Python ends, which would change the exit status."""
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(1, data) :]


def _end_turn(home: str, harness: str, script: str) -> str:
    """Start the maintainer if enough has been said since it last read, or a delivery is open; do nothing else."""
    _, session_key, transcript_key, folder_key, answer, databases = TURN_ENDS[harness]
    payload = read_payload()
    if is_foreign(harness, payload, os.environ):
        return ""
    _print(answer)
    session_id, transcript, cwd = (_text(payload.get(key)) for key in (session_key, transcript_key, folder_key))
    if not transcript or switched_off(home, cwd):
        return ""  # a payload that names no transcript (an ephemeral session, a broken one) leaves nothing to read
    folder = session_folder(home, harness, transcript, session_id)
    _about.append(folder)
    state = read_state(folder)
    if state.off:
        return ""
    # A database is as large before a turn as after it: its maintainer looks each time.
    if not transcript.endswith(databases):
        try:
            grown = os.stat(transcript).st_size - state.read
        except OSError:
            return ""
        # A file that shrank was rewritten: look at it whole.
        enough = grown < 0 or grown * state.rate >= state.after
        # A block that was made for a compaction: the maintainer looks whether it arrived.
        if not enough and not os.path.exists(os.path.join(folder, OPEN_FILE)):
            return ""
    work = [harness, "--transcript", transcript, "--session", session_id, "--cwd", cwd]
    return _start_maintainer(home, script, folder, work)


def read_payload() -> dict[str, object]:
    """The hook's JSON from standard input."""
    return parse_payload(read_input())


def read_input() -> bytes:
    """What stands on standard input, bounded."""
    pieces, size = [], 0
    while size < PAYLOAD_LIMIT:
        piece = os.read(0, 1 << 16)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def parse_payload(data: bytes) -> dict[str, object]:
    """A harness's JSON: BOMs skipped, {} where it is no object."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    value = parse_json(text) if text else None
    return value if isinstance(value, dict) else {}


class _Scanning:
    """What the scanner of ``_json`` asks of a decoder."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012


def parse_json(text: str) -> object:
    """Parse JSON with the C scanner alone: importing ``json`` costs more than a turn-end hook's whole work."""
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return json.loads(text)
    try:
        value, _ = make_scanner(_Scanning)(text, 0)  # type: ignore[arg-type]
    except StopIteration:
        return None
    return value


def _text(value: object) -> str:
    """A payload's text; the first of a list (some harnesses name several working folders)."""
    if isinstance(value, list):
        value = value[0] if value else ""
    return value if isinstance(value, str) else ""


def _part(arguments: list[str]) -> tuple[int, int]:
    """(k, n) of ``--part k/n``; (1, 1) without it."""
    if "--part" in arguments[:-1]:
        number, _, of = arguments[arguments.index("--part") + 1].partition("/")
        if number.isdigit() and of.isdigit():
            return max(int(number), 1), int(of)
    return 1, 1


def _set_alarm(seconds: int) -> None:
    """End this process quietly after ``seconds``, whatever it hangs on (a standard input that is never closed)."""
    try:
        import _signal  # type: ignore[import-not-found]
    except ImportError:
        return
    if hasattr(_signal, "alarm"):
        _signal.signal(ALARM, lambda number, frame: os._exit(0))
        _signal.alarm(seconds)
