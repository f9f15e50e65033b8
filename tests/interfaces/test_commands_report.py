"""report: where the page goes, what it never holds, and the rules under which a browser runs it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from obsmem.interfaces import report_html
from obsmem.interfaces.report_html import FOLDER, GENERATOR
from obsmem.system import environment
from tests.interfaces.conftest import Run
from tests.interfaces.place import ROOT
from tests.interfaces.test_no_secret_is_printed import SECRETS
from tests.interfaces.test_no_secret_is_printed import handle as handle
from tests.tasks.talk import Talk, opened, session_of, turns, watch
from tests.tasks.test_report_data import HOSTILE

_DATA = re.compile(r'<script type="application/octet-stream" id="([\w-]+)">([A-Za-z0-9+/=]*)</script>')
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def made(run: Run, *arguments: str) -> tuple[str, dict[str, Any]]:
    """The page that the command writes, and what it carries, unpacked."""
    output = run("report", *arguments, "--json")
    assert output.status == 0, output.err
    text = Path(json.loads(output.out)["path"]).read_text(encoding="utf-8")
    return text, {name: json.loads(gzip.decompress(base64.b64decode(data))) for name, data in _DATA.findall(text)}


def test_the_page_is_written_beside_where_it_is_asked_for(run: Run, handle: str, tmp_path: Path) -> None:
    output = run("report", handle)
    path = tmp_path / f"observational-memory-{handle}.html"
    assert output.status == 0 and str(path) in output.out
    assert path.stat().st_mode & 0o777 == 0o600
    assert not [one for one in os.listdir(tmp_path) if one.endswith(".tmp")]
    assert run("report", handle).status == 0  # its own page it replaces
    other = tmp_path / "elsewhere.html"
    value = json.loads(run("report", handle, "-o", str(other), "--json").out)
    assert value["path"] == str(other) and value["bytes"] == other.stat().st_size
    assert value["entries"] > 0 and value["session"] == handle


def test_nothing_that_is_no_report_is_written_over(run: Run, handle: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("<p>my own page</p>", encoding="utf-8")
    output = run("report", handle, "-o", str(mine))
    assert output.status == 2 and "is no report" in output.err
    assert mine.read_text(encoding="utf-8") == "<p>my own page</p>"
    assert run("report", handle, "-o", str(tmp_path)).status == 2


def test_no_secret_is_in_the_page_nor_in_what_it_carries(run: Run, handle: str) -> None:
    run("pin", f"Deploy with {SECRETS[0]} for {SECRETS[1]}.")
    text, data = made(run, handle)
    whole = html.unescape(text) + json.dumps(data, ensure_ascii=False)
    assert "deploy" in whole.lower()
    for secret in SECRETS:
        assert secret not in whole


def test_the_page_carries_every_entry(run: Run, handle: str) -> None:
    _, data = made(run, handle)
    shown = json.loads(run("show", handle, "--json").out)
    words = [text for name in sorted(data) if name.startswith("piece-") for text in data[name]]
    assert words == [one["text"] for one in shown]


def test_only_our_own_style_and_scripts_may_run(run: Run, handle: str) -> None:
    text, _ = made(run, handle)
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    rules = dict(one.strip().partition(" ")[::2] for one in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    scripts = _SCRIPT.findall(text)
    assert len(scripts) == len(re.findall(r"<script[^>]*>", text)) - len(_DATA.findall(text))
    assert rules["script-src"].split() == [_hash(one) for one in scripts]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert rules["style-src"] == _hash(style)
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert "unsafe" not in policy and "http:" not in policy


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_asks_for_nothing(run: Run, handle: str) -> None:
    text, _ = made(run, handle)
    body = _SCRIPT.sub("", _DATA.sub("", text))
    assert not re.findall(r"<(?:link|img|iframe|object|embed|base|form[^>]*action)\b", body)
    assert not re.findall(r"\s(?:src|srcset|on\w+|style)=", body)
    assert set(re.findall(r'href="([^"#][^"]*)"', body)) == set()


def test_hostile_words_are_escaped_and_no_markup_is_made_of_them(run: Run, tmp_path: Path) -> None:
    talk = Talk()
    for text in HOSTILE:
        talk.user(text)
        talk.run(f"echo {text}", text, failed=True)
        talk.agent(text)
    with opened() as store:
        stored = session_of(store, talk.write(tmp_path / "transcripts"))
        watch(store, stored)
        one = stored.session.handle
    text, data = made(run, one, "-o", str(tmp_path / "page.html"))
    assert len(_SCRIPT.findall(text)) == 1 + len(report_html.SCRIPTS)
    assert "<img" not in _SCRIPT.sub("", text) and "<observational-memory delivery" not in text
    assert "{{ 7 * 7 }}" in text and "49" not in re.findall(r'<bdi class="words">(.*?)</bdi>', text)
    words = [word for name in data if name.startswith("piece-") for word in data[name]]
    assert HOSTILE[0] in words and HOSTILE[2] in words
    unseen = [one for one in text + "".join(words) if one in "\x00\x07\x1b\u202e\u2066\u200b\ufeff"]
    assert unseen == []


def test_a_page_that_could_not_be_finished_leaves_the_old_one(
    run: Run, handle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    assert run("report", handle, "-o", str(path)).status == 0
    before = path.read_bytes()
    monkeypatch.setattr(report_html, "FOLDER", str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match="nowhere"):
        list(report_html._own("style.css"))
    run("report", handle, "-o", str(path))
    assert path.read_bytes() == before
    assert [one for one in os.listdir(tmp_path) if one.endswith(".tmp")] == []


def test_what_lacks_is_said_with_what_to_do(run: Run, handle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "REPORT", "a_package_that_nobody_has")
    output = run("report", handle)
    assert output.status == 1
    assert f"{sys.executable} -m pip install '{environment.REPORT_REQUIREMENT}'" in output.err
    assert len(output.err.strip().split("\n")) == 1


def test_the_page_s_files_are_packaged_and_say_what_they_are() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"obsmem.interfaces" = ["report_page/*"]' in project
    assert f'report = ["{environment.REPORT_REQUIREMENT}"]' in project
    files = sorted(os.listdir(FOLDER))
    assert {"page.html", "style.css", report_html.EARLY, *report_html.SCRIPTS} <= set(files)
    for name in files:
        text = (Path(FOLDER) / name).read_text(encoding="utf-8")
        assert text.count("\n") <= 400, name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|\|\s*safe\b", text), name
        assert name.endswith(".html") or "</script" not in text.lower(), name


def test_a_session_without_notes_or_compactions_has_a_page_too(run: Run, tmp_path: Path) -> None:
    with opened() as store:
        one = session_of(store, turns(1).write(tmp_path / "transcripts")).session.handle
    text, data = made(run, one, "-o", str(tmp_path / "page.html"))
    assert "This session was not compacted." in text and "No notes were made" in text
    assert f'content="{GENERATOR}"' in text and data["columns"]["seq"]


def test_numbers_are_short_where_they_are_seen_at_a_glance() -> None:
    assert [report_html.short_count(one) for one in (0, 999, 1_000, 12_345, 2_000_000)] == [
        "0", "999", "1k", "12.3k", "2M",
    ]  # fmt: skip
    assert report_html.numbers_text({"a": 1_000, "b": True, "c": {"d": [1, 2]}, "routine": True}) == (
        "a 1,000 · b yes · c (d (1, 2))"
    )
