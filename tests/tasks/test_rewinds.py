"""Cards of a session whose live path turned while it was read: right, and not made anew more often than once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from obsmem.core.model import Card
from obsmem.harnesses.base import Source
from obsmem.store import archive_write
from obsmem.store.index import Index
from obsmem.system import config
from obsmem.tasks.ingest import ingest
from obsmem.tasks.store import open_store

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "harnesses" / "claude-code" / "rewind"


def cards_after_reading(home: Path, transcript: Path) -> list[Card]:
    with open_store(str(home), config.defaults()) as store:
        stored = ingest(store, "claude-code", Source(str(transcript))).stored
        assert stored is not None
        assert stored.rewinds > 0
        return store.index.cards(stored.no, stored.session.handle)


def test_cards_are_made_anew_once_however_many_commits_follow_a_rewind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = FOLDER / "transcript.jsonl"
    whole = cards_after_reading(tmp_path / "whole", transcript)
    resets: list[str] = []
    commits: list[int] = []
    reset, commit = Index.reset, archive_write.SourceWriter.commit

    def counted_reset(self: Index, session: int, what: str) -> None:
        resets.append(what)
        reset(self, session, what)

    def counted_commit(self: archive_write.SourceWriter, *arguments: Any) -> Any:
        commits.append(self.line)
        return commit(self, *arguments)

    monkeypatch.setattr(Index, "reset", counted_reset)
    monkeypatch.setattr(archive_write.SourceWriter, "commit", counted_commit)
    monkeypatch.setattr(archive_write, "BATCH", 1)
    in_pieces = cards_after_reading(tmp_path / "pieces", transcript)
    assert len(commits) > 10
    assert resets == ["cards"]
    facts = [fact for card in in_pieces for fact in card.facts]
    assert facts == [fact for card in whole for fact in card.facts]
    assert facts
