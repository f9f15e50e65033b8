"""Many hooks at once: do they fail, how many maintainers run, and is anybody left?

    python -m bench.storm [--hooks 64] [--json FILE]

Turn-end hooks run as harnesses run them, all at the same time: all of one session, then spread over 16. ``/proc`` is
sampled for maintainers until every wish is served.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench import facts
from bench.corpus import PROJECT
from obsmem.system import seats
from obsmem.system.paths import HOME_VARIABLE

SCRIPT = str(PROJECT / "observational_memory.py")
HARNESS = "claude-code"
DEMO = PROJECT / "fixtures" / "demo" / HARNESS / "session.jsonl"
DEMO_SESSION = "5d0c7f6e-3a41-4b8e-9c1d-72e5a90b4f16"
MOST_SECONDS = 300.0


class Storm(NamedTuple):
    """What was seen. ``most`` maintainers alive at once, ``most_a_session`` of one session; ``left`` afterwards."""

    hooks: int
    sessions: int
    failures: int
    most: int
    most_a_session: int
    left: int
    read: int
    hook_ms: float
    seconds: float


def maintainers(home: str) -> list[str]:
    """The transcript that each living maintainer of this data folder was started for. Only on Linux."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                if SCRIPT.encode() not in words or b"maintain" not in words:
                    continue
                state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[0]
                if state != b"Z" and f"{HOME_VARIABLE}={home}".encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.append(words[words.index(b"--transcript") + 1].decode())
            except (OSError, ValueError, IndexError):
                continue
    return found


def blow(folder: str, hooks: int, sessions: int) -> Storm:
    """Run so many turn-end hooks at once over so many sessions, and watch until all is quiet."""
    home = os.path.join(folder, "home")
    payloads = [_session(folder, number) for number in range(sessions)]
    environment = {"PATH": os.environ.get("PATH", ""), HOME_VARIABLE: home, "HOME": folder}
    command = [sys.executable, "-I", "-S", SCRIPT, "hook", HARNESS, "Stop"]
    started = time.monotonic()
    running = []
    for number in range(hooks):
        with open(payloads[number % sessions], "rb") as stdin:
            running.append(
                subprocess.Popen(
                    command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
                )
            )
    most = most_a_session = 0
    hook_ms: list[float] = []
    waiting = list(running)
    while time.monotonic() - started < MOST_SECONDS:
        alive = maintainers(home)
        most = max(most, len(alive))
        most_a_session = max([most_a_session, *(alive.count(one) for one in alive)])
        ended = [process for process in waiting if process.poll() is not None]
        hook_ms += [(time.monotonic() - started) * 1000] * len(ended)
        waiting = [process for process in waiting if process not in ended]
        if not waiting and not alive and not seats.wishes(home):
            break
        time.sleep(0.002)
    seconds = time.monotonic() - started
    failures = sum(process.returncode != 0 or process.communicate()[0] != b"" for process in running)
    log = Path(home, "log.txt").read_text(encoding="utf-8")
    failures += sum(" outcome=failed" in line or "Error" in line for line in log.split("\n"))
    states = list(Path(home, "sessions", HARNESS).glob("*/block.next"))
    return Storm(
        hooks, sessions, failures, most, most_a_session, len(maintainers(home)), len(states), median(hook_ms), seconds
    )


def _session(folder: str, number: int) -> str:
    """A transcript of its own, and the payload that names it."""
    session = f"00000000-0000-4000-8000-{number:012d}"
    transcript = os.path.join(folder, f"{session}.jsonl")
    Path(transcript).write_bytes(DEMO.read_bytes().replace(DEMO_SESSION.encode(), session.encode()))
    path = os.path.join(folder, f"payload-{number}.json")
    payload = {"session_id": session, "transcript_path": transcript, "cwd": folder, "hook_event_name": "Stop"}
    Path(path).write_text(json.dumps(payload), encoding="utf-8")
    return path


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.storm", description=__doc__)
    parser.add_argument("--hooks", type=int, default=64)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    machine = facts.machine()
    facts.show_machine(machine)
    figures: dict[str, Any] = {"machine": machine}
    for sessions in (1, 16):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            storm = blow(folder, options.hooks, sessions)
        figures[f"sessions_{sessions}"] = storm._asdict()
        print(
            f"{storm.hooks} hooks at once over {sessions} sessions: {storm.failures} failures; at most {storm.most} "
            f"maintainers alive, {storm.most_a_session} a session, {storm.left} left; {storm.read} sessions have a "
            f"block after {storm.seconds:.1f} s; half of the hooks were through after {storm.hook_ms:.0f} ms"
        )
    if options.json:
        facts.write(options.json, figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
