"""export --bundle, import and remote as a user types them: what they print, refuse and mask, and what forget says of copies."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from obsmem.tasks.store import open_store
from tests.interfaces.conftest import Run
from tests.tasks.talk import SESSION, Talk, opened, session_of, turns, watch

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
OTHER = "5e551011-0000-4000-8000-0000000000b7"


class Machines:
    """Two data folders, and commands run with one of them."""

    def __init__(self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._run, self._patch = folder, run, monkeypatch
        self.bare = folder / "bare.git"
        subprocess.run(["git", "init", "-q", "--bare", str(self.bare)], check=True, timeout=60)

    def use(self, name: str) -> None:
        """Be on a machine from now on."""
        self._patch.setenv("OBSERVATIONAL_MEMORY_HOME", str(self.folder / name))

    def run(self, *words: str) -> Any:
        """Run a command there."""
        return self._run(*words)

    def value(self, *words: str) -> Any:
        """What it gives to a program."""
        output = self._run(*words, "--json")
        assert output.status == 0, output.err
        return json.loads(output.out)

    def held(self) -> str:
        """Everything that the newest state of the repository holds."""
        tree = self.folder / "tree"
        subprocess.run(["rm", "-rf", str(tree)], check=True, timeout=60)
        command = ["git", "clone", "-q", "-b", "main", str(self.bare), str(tree)]
        subprocess.run(command, check=True, timeout=60, capture_output=True)
        return "".join(gzip.decompress(path.read_bytes()).decode() for path in sorted(tree.rglob("*.omb")))


@pytest.fixture
def machines(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """Machine a holds two sessions, one of them with a secret; b holds none."""
    made = Machines(run, tmp_path, monkeypatch)
    made.use("a")
    talk = turns(3)
    talk.user(f"Deploy the lighthouse with {KEY}, please.")
    with opened() as store:
        watch(store, session_of(store, talk.write(tmp_path / "t")))
        other = Talk(OTHER)
        other.user("Paint the harbour blue.")
        session_of(store, other.write(tmp_path / "t"))
    yield made


def handles() -> list[str]:
    """The sessions here, by the harness's id: that with the secret, the other one."""
    with open_store(readonly=True) as store:
        known = {one.session.id: one.session.handle for one in store.archive.sessions()}
    return [known[SESSION], known[OTHER]]


@pytest.mark.parametrize("command", ["export", "import", "remote"])
def test_help_names_every_word_and_option(run: Run, command: str) -> None:
    output = run(command, "--help")
    wanted = {
        "export": ("SESSION", "--folder DIR", "--bundle FILE", "--raw", "--yes", "--json"),
        "import": ("FILE|FOLDER", "--workspace DIR", "--json"),
        "remote": ("add", "status", "push", "pull", "remove", "URL|SESSION", "--workspace DIR", "--json"),
    }
    assert output.status == 0 and all(word in output.out for word in wanted[command]), output.out


def test_a_bundle_is_masked_and_taken_in_once(machines: Machines, tmp_path: Path) -> None:
    first, other = handles()
    path = tmp_path / "out.omb"
    said = machines.run("export", first, other, first, "--bundle", str(path))
    assert said.status == 0 and f"{path}: 2 sessions" in said.out and "secrets masked" in said.out
    text = gzip.decompress(path.read_bytes()).decode()
    assert KEY not in text and "lighthouse" in text and "harbour" in text
    told = machines.value("export", first, other, "--bundle", str(path))
    assert told == {"path": str(path), "sessions": 2, "bytes": path.stat().st_size, "masked": True}
    machines.use("b")
    came = machines.run("import", str(path))
    assert came.status == 0 and "2 new sessions" in came.out and "fingerprint" in came.out
    again = machines.value("import", str(path))
    assert (again["sessions"], again["entries"], again["memory"], again["left_out"]) == (0, 0, 0, [])
    assert "lighthouse" in machines.run("search", "--everywhere", "lighthouse").out
    machines.use("a")
    assert machines.value("import", str(path))["fingerprint"] == again["fingerprint"]


def test_secrets_stay_in_only_where_that_was_agreed_to(machines: Machines, tmp_path: Path) -> None:
    first, other = handles()
    path = tmp_path / "out.omb"
    refused = machines.run("export", first, "--bundle", str(path), "--raw")
    assert refused.status == 1 and "github token 1" in refused.err and not path.exists() and KEY not in refused.err
    assert machines.run("export", other, "--bundle", str(path), "--raw").status == 1, "asked although none was found"
    agreed = machines.run("export", first, "--bundle", str(path), "--raw", "--yes")
    assert agreed.status == 0 and "secrets left in" in agreed.out and "github token 1" in agreed.err
    assert KEY in gzip.decompress(path.read_bytes()).decode()
    assert machines.value("export", first, "--bundle", str(path), "--raw", "--yes")["masked"] is False


def test_what_cannot_be_is_one_sentence(machines: Machines, tmp_path: Path) -> None:
    first, _ = handles()
    broken = tmp_path / "broken.omb"
    broken.write_bytes(b"no bundle")
    (tmp_path / "empty").mkdir()
    for status, words, said in (
        (2, ("export", first), "--folder"),
        (2, ("export", first, "--folder", "x", "--bundle", "y"), "not allowed with"),
        (2, ("export", "--bundle", "y"), "SESSION"),
        (3, ("export", "nosuch", "--bundle", str(tmp_path / "n.omb")), "No session matches"),
        (2, ("export", first, first, "--folder", str(tmp_path / "f")), "--folder takes one session"),
        (3, ("import", str(tmp_path / "nowhere")), "no file or folder"),
        (2, ("import", str(tmp_path / "empty")), "no bundle"),
        (2, ("import", str(broken)), "broken.omb"),
        (2, ("remote", "dance"), "invalid choice"),
        (2, ("remote", "add"), "takes one address"),
        (2, ("remote", "status", "x"), "take none"),
        (2, ("remote", "add", "ext::sh -c id"), "ext::sh"),
        (3, ("remote", "push"), "No remote is set"),
        (3, ("remote", "pull"), "No remote is set"),
        (3, ("remote", "status"), "No remote is set"),
    ):
        for more in ((), ("--json",)):
            output = machines.run(*words, *more)
            assert output.status == status and said in output.err and output.out == "", (words, output)
    assert not (tmp_path / "n.omb").exists()


def test_machines_exchange_by_commands(machines: Machines) -> None:
    first, _ = handles()
    assert "masked" in machines.run("remote", "add", str(machines.bare)).out
    assert machines.run("remote", "add", str(machines.bare)).status == 2, "there is one"
    assert machines.value("remote", "push", first) == {"sessions": 1, "changed": 1, "removed": 0}
    assert "lighthouse" in machines.held() and KEY not in machines.held() and "harbour" not in machines.held()
    assert "2 sessions, 1 of them changed" in machines.run("remote", "push").out
    status = machines.value("remote", "status")
    assert status["url"] == str(machines.bare) and list(status["bundles"].values()) == [2]
    assert "(this store): 2 sessions" in machines.run("remote", "status").out
    machines.use("b")
    assert machines.value("remote", "add", str(machines.bare)) == {"added": str(machines.bare)}
    assert machines.value("remote", "pull")["sessions"] == 2
    assert "0 new sessions" in machines.run("remote", "pull").out
    assert machines.value("remote", "status")["fingerprint"] == status["fingerprint"]
    assert "stays there" in machines.run("remote", "remove").out and machines.value("remote", "remove") == {
        "removed": False
    }
    assert machines.run("remote", "status").status == 3


def test_forget_says_where_copies_are_and_the_next_push_carries_it(machines: Machines, tmp_path: Path) -> None:
    first, other = handles()
    path, folder = tmp_path / "out.omb", tmp_path / "plain"
    machines.run("remote", "add", str(machines.bare))
    machines.run("remote", "push")
    machines.run("export", first, other, "--bundle", str(path))
    machines.run("export", first, "--folder", str(folder))
    (seq,) = [
        hit["id"] for hit in machines.value("search", "--everywhere", "--exact", "lighthouse", "--kind", "user")["hits"]
    ]
    entry = machines.value("forget", seq, "--yes")
    assert entry["copies"] == {"exported": [str(path), str(folder)], "remote": str(machines.bare)}
    assert "lighthouse" in machines.held()
    assert "1 of them changed" in machines.run("remote", "push").out
    assert "lighthouse" not in machines.held() and "number_2" in machines.held()
    path.unlink()
    said = machines.run("forget", first, "--yes").out
    assert str(folder) in said and str(path) not in said, "what is gone is not named"
    assert f"was sent to {machines.bare}" in said and "remote push'" in said and "history" in said
    gone = machines.run("remote", "push")
    assert "1 session forgotten here went from there" in gone.out
    assert "number_2" not in machines.held() and "harbour" in machines.held()
    assert machines.value("remote", "push") == {"sessions": 1, "changed": 0, "removed": 0}
    assert first not in (tmp_path / "a" / "copies.json").read_text(encoding="utf-8")


def test_of_what_went_nowhere_nothing_is_said_and_a_lost_store_empties_no_copy(machines: Machines) -> None:
    first, other = handles()
    machines.run("remote", "add", str(machines.bare))
    machines.run("remote", "push", first)
    before = machines.held()
    output = machines.run("forget", other, "--yes")
    assert output.status == 0 and str(machines.bare) not in output.out and "exported" not in output.out
    os.remove(machines.folder / "a" / "archive.db")
    assert machines.value("remote", "push")["removed"] == 0 and machines.held() == before
