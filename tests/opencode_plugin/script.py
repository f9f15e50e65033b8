"""Stands for our script: notes each call, and answers it as ``answers.json`` in its folder says.

``python script.py FOLDER WORDS …``; an answer's key is the last word of the call, or that and the session id.
Its value: ``stdout`` (text), ``status``, ``seconds`` (how long it hangs first).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    """Note the call, then answer."""
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    payload = json.loads(sys.stdin.read() or "null")
    record = {"words": words, "payload": payload, "pid": os.getpid(), "folder": os.getcwd()}
    record["session"] = os.environ.get("OBSERVATIONAL_MEMORY_OPENCODE_SESSION", "")
    (folder / f"call-{time.time_ns()}-{os.getpid()}.json").write_text(json.dumps(record), encoding="utf-8")
    answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    session = payload.get("sessionID", "") if isinstance(payload, dict) else ""
    name = words[2] if words[:2] == ["hook", "opencode"] else words[0]
    answer = answers.get(f"{name} {session}") or answers.get(name) or {}
    time.sleep(answer.get("seconds", 0))
    sys.stdout.write(answer.get("stdout", ""))
    return int(answer.get("status", 0))


if __name__ == "__main__":
    sys.exit(main())
