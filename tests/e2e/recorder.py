"""Stands between a harness and a hook command, and writes down what passes.

``python recorder.py FOLDER EVENT [COMMAND ...]`` gives its stdin to COMMAND, hands back COMMAND's stdout, stderr and
exit status unchanged, and leaves one JSON file in FOLDER. Without a COMMAND it is a hook that says nothing.
Invariant: the harness sees exactly the bytes that COMMAND wrote.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    """Run the command and record the call. Returns its exit status."""
    folder, event, command = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    payload = sys.stdin.buffer.read()
    started = time.time_ns()
    if command:
        done = subprocess.run(command, input=payload, capture_output=True, check=False)
        stdout, stderr, status = done.stdout, done.stderr, done.returncode
    else:
        stdout, stderr, status = b"", b"", 0
    record = {
        "event": event,
        "command": command,
        "payload": payload.decode("utf-8", "replace"),
        "stdout": stdout.decode("utf-8", "replace"),
        "stderr": stderr.decode("utf-8", "replace"),
        "status": status,
        "started": started,
        "ended": time.time_ns(),
        "environment": sorted(os.environ),
    }
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{started}-{os.getpid()}.new"
    unfinished.write_text(json.dumps(record, indent=1), encoding="utf-8")
    unfinished.replace(unfinished.with_suffix(".json"))
    sys.stdout.buffer.write(stdout)
    sys.stderr.buffer.write(stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
