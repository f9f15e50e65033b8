"""Makes a real session longer than anyone would wait for: exchanges appended to the file that the harness wrote.

Owns the shape of what is appended. Invariant: every record is a copy of one that this very release wrote, with its
own id, its own words, and the record before it as its parent.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def append(path: Path, exchanges: Iterable[tuple[str, str]]) -> None:
    """Append exchanges (what a person said, what the agent answered) to a session's file."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    asked = next(record for record in records if record["type"] == "user")
    answered = [record for record in records if record["type"] == "assistant"][-1]
    parent = [record for record in records if "uuid" in record and "parentUuid" in record][-1]["uuid"]
    with open(path, "a", encoding="utf-8") as file:
        for number, (question, answer) in enumerate(exchanges):
            for model, content in ((asked, question), (answered, [{"type": "text", "text": answer}])):
                record = _copy(model, parent, content, number)
                parent = record["uuid"]
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _copy(model: dict[str, Any], parent: str, content: Any, number: int) -> dict[str, Any]:
    message = {**model["message"], "content": content}
    if "id" in message:
        message["id"] = f"msg_appended_{number}"
    return {**model, "uuid": str(uuid.uuid4()), "parentUuid": parent, "message": message}
