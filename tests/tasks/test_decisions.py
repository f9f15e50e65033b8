"""Every kind of decision that there is a word for is taken, and written down, when the program really runs."""

from __future__ import annotations

import json
import os
import time
from io import BytesIO
from pathlib import Path
from typing import Any

from obsmem.core.decisions import (
    BLOCK,
    COMPACT,
    DECISIONS,
    DELIVER,
    DROP,
    OBSERVE,
    REDUCE,
    REFLECT,
    ROTATE,
    RUN,
    SECOND_TRY,
    THIN,
    UPGRADE,
    WAIT,
    WARN,
)  # fmt: skip
from obsmem.store.archive import StoredSession
from obsmem.system.paths import safe_name
from obsmem.system.shortening import JOURNAL_FILE, VIEW_FOLDER
from obsmem.system.shown import Streams
from obsmem.tasks.deliveries import settle
from obsmem.tasks.maintain import maintain
from obsmem.tasks.raw_outputs import take_journal
from obsmem.tasks.rotation import rotate
from obsmem.tasks.run_loop import Loop, Plan
from obsmem.tasks.store import Store
from obsmem.tasks.upgrade import upgrade
from obsmem.tasks.warn import leave_warning
from tests.tasks.growing import grow
from tests.tasks.models import Model
from tests.tasks.talk import CLAUDE, Talk, opened, session_of, turns, utc
from tests.tasks.test_models import hire as hire
from tests.tasks.test_warn import full


def kinds(store: Store, stored: StoredSession) -> set[str]:
    """The kinds of decisions about a session."""
    return {one.what for one in store.memory.decisions(stored.session.handle)}


def lived(store: Store, folder: Path) -> set[str]:
    """A session that grows, is compacted, does not get its block, and is rotated."""
    talk = turns(40)
    path = folder / "lived.jsonl"
    stored = grow(store, CLAUDE, talk.lines(), path)
    maintain(store, CLAUDE, str(path), "", "", before_compact=True)
    talk.agent("That was much.", context=120_000)
    talk.compact()
    talk.agent("I go on.", context=20_000)
    path.write_bytes(b"".join(talk.lines()))
    maintain(store, CLAUDE, str(path), "", "")
    rotate(store, stored, "notes", utc, force=True)
    assert settle(store, stored).offered
    return kinds(store, stored)


def warned_and_shortened(store: Store, folder: Path) -> set[str]:
    """A session whose window fills, of whose outputs one was left as it is, and old ones masked by a plugin."""
    stored = full(store, Talk("5e551011-0000-4000-8000-0000000000c3"), folder, 0.75)
    leave_warning(store, stored)
    os.makedirs(store.folder_of(stored), exist_ok=True)
    line = json.dumps({"why": "no rule", "whole": 9_000, "id": "abc"})
    Path(store.folder_of(stored), JOURNAL_FILE).write_text(line + "\n", encoding="utf-8")
    view = Path(store.home, VIEW_FOLDER, f"{safe_name(stored.session.id)}.json")
    view.parent.mkdir()
    view.write_text('["call_1", "call_2"]', encoding="utf-8")
    assert take_journal(store, stored) == 1
    return kinds(store, stored)


def looped(store: Store, folder: Path) -> set[str]:
    """A headless loop that has no prompt left."""
    stored = session_of(store, turns(2, "5e551011-0000-4000-8000-0000000000d4").write(folder))
    Loop(store, Plan(CLAUDE, "", (), str(folder)), utc, lambda told: None, Streams(BytesIO(), BytesIO()), stored).run(
        []
    )
    return kinds(store, stored)


def test_every_kind_is_taken_somewhere(tmp_path: Path, hire: Any) -> None:
    settings = {"observe_after_tokens": 200, "chunk_max_tokens": 600, "reflect_after_tokens": 500}
    with opened(**settings) as store:
        found = lived(store, tmp_path / "lived")
        assert {OBSERVE, WAIT, REFLECT, DROP, BLOCK, DELIVER, SECOND_TRY, ROTATE, COMPACT} <= found
        found |= warned_and_shortened(store, tmp_path / "warned")
        assert {WARN, REDUCE, THIN} <= found
        found |= looped(store, tmp_path / "looped")
        assert RUN in found
        stored = store.archive.sessions()[-1]
    with opened(workers=hire(Model()), upgrade=True, **settings) as store:
        upgrade(store, stored, utc, time.monotonic() + 60)
        found |= kinds(store, stored)
        assert UPGRADE in found
    assert found == DECISIONS.keys()
