"""Requests stand once, whoever tells of them and however often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from obsmem.core.model import Session
from obsmem.core.pressure import Measure
from obsmem.store.archive import Archive
from obsmem.store.archive_schema import MIGRATIONS
from obsmem.store.measures import Placed, measures_of, save_measures, sessions_to_complete, spent_since
from obsmem.store.schema import open_database, transaction


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    archive = Archive(str(tmp_path / "archive.db"))
    archive.register(Session("codex", "one"))
    yield archive
    archive.close()


def save(archive: Archive, *placed: Placed) -> None:
    with transaction(archive.connection):
        save_measures(archive.connection, 1, placed)


def test_a_request_stands_at_its_first_record_with_its_largest_output(archive: Archive) -> None:
    save(archive, Placed(3, Measure(100, output=2, request="m1")), Placed(5, Measure(100, output=40, request="m1")))
    save(archive, Placed(6, Measure(100, output=7, request="m1")), Placed(7, Measure(180, output=9, request="m2")))
    found = measures_of(archive.connection, 1)
    assert [(one.seq, one.context, one.output) for one in found] == [(3, 100, 40), (7, 180, 9)]


def test_several_requests_at_one_entry_all_stand(archive: Archive) -> None:
    save(archive, Placed(3, Measure(100, request="a")), Placed(3, Measure(60, request="b", kind="side")))
    assert {(one.context, one.kind) for one in measures_of(archive.connection, 1)} == {(100, "request"), (60, "side")}
    assert archive.measures(1) == [(3, 100)]


def test_what_two_records_say_of_one_compaction_is_joined_also_over_two_commits(archive: Archive) -> None:
    save(archive, Placed(4, Measure(kind="kept", summary="none")))
    save(archive, Placed(4, Measure(16_000, kind="kept")))
    (one,) = measures_of(archive.connection, 1)
    assert (one.context, one.trigger, one.summary) == (16_000, "", "none")
    save(
        archive,
        Placed(9, Measure(kind="kept", trigger="auto")),
        Placed(9, Measure(17_000, kind="kept", trigger="auto")),
    )
    assert measures_of(archive.connection, 1)[-1][2:3] == (17_000,)
    assert measures_of(archive.connection, 1)[-1].trigger == "auto"


def test_what_was_spent_leaves_out_copies_and_what_is_no_request(archive: Archive) -> None:
    save(
        archive,
        Placed(1, Measure(100, model="m", output=10, cached=70, written=10, request="a")),
        Placed(2, Measure(100, model="m", output=10, request="b"), copied=True),
        Placed(3, Measure(50, kind="kept")),
        Placed(4, Measure(40, model="n", output=1, request="c", kind="side")),
    )
    found = {one.model: one for one in spent_since(archive.connection, 0)}
    assert (found["m"].requests, found["m"].fresh, found["m"].cached, found["m"].written, found["m"].output) == (
        1, 20, 70, 10, 10,
    )  # fmt: skip
    assert (found["n"].requests, found["n"].fresh) == (1, 40)


def test_a_store_of_an_earlier_version_keeps_its_contexts_and_asks_to_be_completed(tmp_path: Path) -> None:
    path = str(tmp_path / "archive.db")
    connection = open_database(path, MIGRATIONS[:3], journal="TRUNCATE")
    connection.execute("INSERT INTO sessions(harness, id, handle) VALUES('codex', 'one', 'abcd')")
    connection.execute("INSERT INTO measures VALUES(1, 5, 1234)")
    connection.close()
    archive = Archive(path, readonly=True)
    assert archive.measures(1) == [(5, 1234)]
    assert spent_since(archive.connection, 0) == []
    archive.close()
    archive = Archive(path)
    assert archive.measures(1) == [(5, 1234)]
    assert sessions_to_complete(archive.connection) == [1]
    assert [one.kind for one in measures_of(archive.connection, 1)] == ["old"]
    archive.close()
