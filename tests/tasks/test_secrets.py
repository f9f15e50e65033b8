"""Secrets that stand in a transcript stay in the archive's raw bytes and get nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from obsmem.core.errors import ConfigError
from obsmem.tasks.cards import cards_of
from obsmem.tasks.deliver import leave_block
from obsmem.tasks.resolve import find
from obsmem.tasks.words import index_words
from tests.tasks.talk import Talk, entries, fresh, opened, raw_files, session_of, utc, watch

SECRETS = [
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "AKIA" + "QX7M2ZL4KJ6WP3NV",
    "hunter2-" + "Zq9vX3kLw7",
]


def conversation() -> Talk:
    token, key, password = SECRETS
    talk = Talk()
    talk.user(f"Never print the token {token} and use password={password} for the staging server, please.")
    talk.run(
        f"curl -H 'Authorization: Bearer {token}' https://example.org", f"error: AWS key {key} refused", failed=True
    )
    talk.run(f"export DB_PASSWORD='{password}' && make deploy", f"DB_PASSWORD='{password}' accepted\n3 passed in 1s")
    talk.agent(f"I decided to keep {token} in the vault because {key} must not be in the repository.")
    talk.user(f'Is "{token}" gone? I will check src/deploy.py for "{key}".')
    talk.agent("Yes. Next I will remove it from the history.")
    return talk


def leaks(files: dict[str, bytes]) -> list[tuple[str, str]]:
    return [(os.path.basename(path), s) for path, data in files.items() for s in SECRETS if s.encode() in data]


def test_no_secret_leaves_the_archive(tmp_path: Path) -> None:
    with opened() as store:
        stored = session_of(store, conversation().write(tmp_path))
        assert watch(store, stored).notes > 3
        index_words(store, fresh(store, stored))
        leave_block(store, fresh(store, stored), utc)
        store.memory.back_up(os.path.join(store.home, "backups"))
        assert cards_of(store, stored)
        assert leaks(raw_files()) == []
        whole = " ".join(one.text for one in entries(store, stored))
        assert all(secret in whole for secret in SECRETS)
    assert leaks(raw_files()) == []


def test_no_secret_is_kept_for_later_where_a_turn_is_read_in_pieces(tmp_path: Path) -> None:
    talk = conversation()
    path = tmp_path / f"{talk.session}.jsonl"
    for end in range(1, len(talk.records) + 1):
        path.write_bytes(b"".join(talk.lines()[:end]))
        with opened() as store:
            session_of(store, path)
        assert leaks(raw_files()) == []
    with opened() as store:
        piecewise = cards_of(store, session_of(store, path))
        store.rebuild_index()
        whole = cards_of(store, session_of(store, path))
    assert [fact for card in piecewise for fact in card.facts] == [fact for card in whole for fact in card.facts]


def test_a_side_files_secret_gets_nowhere_either(tmp_path: Path) -> None:
    from tests.tasks.test_forget import with_side_file

    path, side = with_side_file(tmp_path)
    side.write_text(f"line 0\nDB_PASSWORD='{SECRETS[2]}'\n3 failed in 2s\n", encoding="utf-8")
    with opened() as store:
        stored = session_of(store, path)
        watch(store, stored)
        leave_block(store, fresh(store, stored), utc)
        assert leaks(raw_files()) == []


@pytest.mark.parametrize("secret", SECRETS)
def test_the_exact_words_can_be_had_by_whoever_asks_for_them_raw(secret: str, tmp_path: Path) -> None:
    from obsmem.memory.recall import render

    with opened() as store:
        stored = session_of(store, conversation().write(tmp_path))
        seq = next(one.seq for one in entries(store, stored) if secret in one.text)
        found = find(store, f"{stored.session.handle}.{seq}")
        assert secret not in render(found, 4000, utc)
        assert secret in render(found, 4000, utc, raw=True)


def test_a_users_own_pattern_is_masked_everywhere_too(tmp_path: Path) -> None:
    """Customer numbers are nobody's secret but this user's; a pattern in the config names them."""
    number = "KD-" + "4471-2290"
    talk = Talk()
    talk.user(f"The parcel of customer {number} is lost, never mail {number} twice.")
    talk.run(f"lookup {number}", f"error: {number} has no address", failed=True)
    talk.agent(f"I decided to write to {number} because there is no address.")
    with opened(mask=[r"KD-\d{4}-\d{4}"]) as store:
        stored = session_of(store, talk.write(tmp_path))
        assert watch(store, stored).notes
        leave_block(store, fresh(store, stored), utc)
        assert [name for name, data in raw_files().items() if number.encode() in data] == []


def test_a_pattern_that_is_none_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"'mask' in .*regular expression"), opened(mask=["("]):
        pass
