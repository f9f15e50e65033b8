"""A session's report in a real browser, from its own file: what a person reads, clicks and types in it.

Invariant: in every test the browser's console stayed empty and nothing was asked of a network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from obsmem.tasks.observe import run_passes
from tests.tasks.talk import Talk, opened, session_of, turns, utc
from tests.tasks.test_explain import delivered
from tests.tasks.test_report_data import HOSTILE

from .browser import Browser, open_browser
from .world import SCRIPT

pytestmark = pytest.mark.e2e

WIDTHS = (400, 900, 1400)
LONG = 2_000  # turns of a long session: three entries each


class Page(NamedTuple):
    """A report that is open in the browser, of the session with this handle."""

    browser: Browser
    handle: str
    path: Path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests here."""
    with open_browser() as browser:
        yield browser


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own, and a configuration that nobody wrote."""
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("OBSERVATIONAL_MEMORY_CONFIG", str(tmp_path / "config.yaml"))
    return tmp_path


def shown(chromium: Browser, home: Path, handle: str, width: int = 1400) -> Page:
    """Write the report as a person does, and open it."""
    path = home / "report.html"
    command = [sys.executable, str(SCRIPT), "report", handle, "-o", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, timeout=300, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["session"] == handle
    chromium.console.clear()
    chromium.requests.clear()
    chromium.look(width, 900)
    chromium.open(path.as_uri())
    return Page(chromium, handle, path)


@pytest.fixture
def page(chromium: Browser, home: Path) -> Iterator[Page]:
    """The report of a session whose block came back after a compaction."""
    with opened() as store:
        stored, _ = delivered(store, home)
    yield shown(chromium, home, stored.session.handle)
    quiet(chromium)


def quiet(browser: Browser) -> None:
    """Nothing went wrong and nothing was asked for but the file itself."""
    browser.run("1")  # whatever was still on its way is heard now
    assert browser.console == []
    assert browser.requests and all(url.startswith("file:") for url in browser.requests)


def text(browser: Browser, selector: str) -> str:
    """What a person reads in an element."""
    return str(browser.run(f"(document.querySelector({json.dumps(selector)}) || {{}}).innerText || ''"))


def tab(browser: Browser) -> str:
    """The part that is shown."""
    return str(browser.run("currentTab()"))


def test_the_timeline_is_what_is_seen_first(page: Page) -> None:
    browser = page.browser
    assert tab(browser) == "timeline"
    assert browser.run("document.querySelectorAll('.turn').length") == 30
    assert "Compaction 1" in text(browser, ".cut-row")
    assert "Block arrived" in text(browser, ".block-row")
    assert browser.run("document.querySelectorAll('#chart .line').length") >= 1
    assert browser.run("document.querySelectorAll('#chart .cut-head').length") == 1
    assert browser.run("document.querySelectorAll('#chart .block-mark').length") >= 1
    box = browser.run("JSON.stringify(document.querySelector('#chart .tokens').getBoundingClientRect())")
    assert json.loads(box)["width"] > 800 and json.loads(box)["height"] > 150


def test_a_click_on_a_note_shows_its_exact_source_beside_it(page: Page) -> None:
    browser = page.browser
    browser.click("[data-tab=notes]")
    note = browser.run("document.querySelector('#note-cards .note:not([hidden])').dataset.entries").split(" ")[0]
    browser.click("#note-cards .note:not([hidden]) [data-open]")
    browser.wait("!document.querySelector('#source').hidden")
    exact = browser.run(f"page.entries.words(page.entries.placeOf({json.dumps(note)}))")
    assert browser.run("document.querySelector('#source-body pre').textContent") == exact
    assert note in text(browser, "#source-body h3")
    boxes = browser.run(
        "[document.querySelector('#note-cards'), document.querySelector('#source')].map((one) => one.getBoundingClientRect().x)"
    )
    assert boxes[0] < boxes[1]  # beside it
    browser.click("#source-close")
    assert browser.run("document.querySelector('#source').hidden")


def test_a_search_finds_words_in_entries_and_notes(page: Page) -> None:
    browser = page.browser
    browser.click("#query")
    browser.write('"cycle with parse_config_17"')
    # While it is typed the page already answers what is there of it.
    browser.wait("document.querySelector('#found').textContent.startsWith('1 entry')")
    browser.press("Enter")
    browser.wait("currentTab() === 'entries' && document.activeElement.id === 'list'")
    assert browser.run("document.querySelectorAll('#list .row').length") == 1
    found = browser.run("Array.from(document.querySelectorAll('#list .row mark'), (one) => one.textContent)")
    assert set(found) == {"cycle with parse_config_17"}
    browser.press("Enter")
    browser.wait("!document.querySelector('#source').hidden")
    assert browser.run("document.querySelector('#source-body pre').textContent.includes('parse_config_17')")
    assert browser.run("document.querySelectorAll('#source-body mark').length") == 1
    browser.run("document.querySelector('#query').value = 'nobody ever said this'")
    browser.run("search()")
    assert text(browser, "#found") == "0 entries, 0 notes"
    assert "take a filter" in text(browser, "#entries-state")


def test_filters_leave_what_fits(page: Page) -> None:
    browser = page.browser
    browser.click("[data-tab=entries]")
    every = browser.run("page.list.items.length")
    browser.click("#entry-filters input[value=user]")
    left = browser.run("page.list.items.map((place) => page.entries.speakerOf(place))")
    assert 0 < len(left) < every and "human" not in left
    browser.click("#only-cited")
    cited = browser.run("page.list.items.every((place) => page.citing.has(page.entries.idOf(place)))")
    assert cited is True
    browser.click("[data-tab=notes]")
    before = browser.run("document.querySelectorAll('#note-cards .note:not([hidden])').length")
    relevance = browser.run("document.querySelector('#note-cards .note:not([hidden])').dataset.relevance")
    browser.click(f"#note-filters [data-of=relevance] input[value={relevance}]")
    after = browser.run(
        "Array.from(document.querySelectorAll('#note-cards .note:not([hidden])'), (one) => one.dataset.relevance)"
    )
    assert len(after) < before and relevance not in after


def test_the_keyboard_alone_reaches_everything(page: Page) -> None:
    browser = page.browser
    browser.press("Tab")
    assert browser.run("document.activeElement.className") == "skip"
    browser.press("Tab")
    assert browser.run("document.activeElement.id") == "query"
    browser.press("Tab", "ArrowRight")
    assert tab(browser) == "entries"
    assert browser.run("document.activeElement.dataset.tab") == "entries"
    for _ in range(20):
        browser.press("Tab")
        if browser.run("document.activeElement.id") == "list":
            break
    browser.press("ArrowDown", "ArrowDown", "End", "Home", "ArrowDown")
    active = browser.run(
        "document.getElementById(document.querySelector('#list').getAttribute('aria-activedescendant'))?.ariaPosInSet"
    )
    assert active == "2"
    browser.press("Enter")
    browser.wait("document.activeElement.id === 'source'")
    assert f"Entry {page.handle}.1" in text(browser, "#source-title")
    browser.press("Escape")
    assert browser.run("document.activeElement.id") == "list"
    browser.press("/")
    assert browser.run("document.activeElement.id") == "query"


def test_whoever_hears_the_page_is_told_what_everything_is(page: Page) -> None:
    browser = page.browser
    names: dict[str, list[str]] = {}
    for part in ("timeline", "entries", "notes", "compactions", "block", "work"):
        browser.run(f"showTab({json.dumps(part)})")
        for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
            if not node.get("ignored"):
                name = str(node.get("name", {}).get("value", ""))
                names.setdefault(str(node["role"]["value"]), []).append(name)
    for role in (
        "tab",
        "tabpanel",
        "listbox",
        "button",
        "link",
        "checkbox",
        "searchbox",
        "combobox",
        "image",
        "option",
    ):
        assert names.get(role), f"nothing is a {role}"
        assert all(names[role]), f"some {role} has no name"
    assert any("tokens" in name.lower() and "compactions" in name for name in names["image"])


def test_a_source_named_anywhere_leads_to_it(page: Page) -> None:
    browser = page.browser
    browser.click("[data-tab=compactions]")
    assert "arrived" in text(browser, ".crossing")
    browser.click(".crossing h3 a.source")
    browser.wait("!document.querySelector('#source').hidden")
    assert "compaction" in text(browser, "#source-body .meta")
    browser.click("[data-tab=block]")
    assert "as it stands in the transcript" in text(browser, "#block")
    browser.click("#block ul a.source")
    browser.wait("document.querySelector('#source-body .meta').textContent.includes('brought part')")
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.run("goToNote(document.querySelector('#note-cards .note').dataset.id)")
    browser.wait("document.querySelector('#source-title').textContent.startsWith('Note')")
    assert tab(browser) == "notes"


def test_hostile_words_are_read_and_never_run(chromium: Browser, home: Path) -> None:
    talk = Talk()
    for one in HOSTILE:
        talk.user(one)
        talk.run(f"echo {one}", one, failed=True)
        talk.agent(one)
    talk.records[0]["message"]["content"] = HOSTILE[0] + " is the first thing said, and names the session"
    with opened() as store:
        stored = session_of(store, talk.write(home))
        run_passes(store, stored, utc, drain=True)
    shown(chromium, home, stored.session.handle)
    for name in ("entries", "notes", "timeline", "work", "compactions", "block"):
        chromium.click(f"[data-tab={name}]")
    for place in range(chromium.run("page.entries.count")):
        chromium.run(f"openEntry({place}, false)")
    assert chromium.run("document.title") != "owned"
    assert chromium.run("document.querySelectorAll('script').length") == chromium.run(
        "document.querySelectorAll('script[type]').length + 4"
    )
    assert chromium.run("document.querySelectorAll('img, iframe, object').length") == 0
    words = chromium.run("page.entries.find(['onerror'], () => true, () => {}).then((found) => found.size)")
    assert words >= 3
    quiet(chromium)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_every_width_holds_the_page_in_light_and_dark(page: Page, width: int, dark: bool) -> None:
    browser = page.browser
    browser.look(width, 900, dark=dark)
    for name in ("timeline", "entries", "notes", "compactions", "block", "work"):
        browser.run(f"showTab({json.dumps(name)})")
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert browser.run("document.documentElement.scrollWidth <= innerWidth"), name
    browser.run("openNote(document.querySelector('#note-cards .note'), false)")
    browser.wait("!document.querySelector('#source').hidden")
    assert browser.run("document.querySelector('#source').scrollWidth <= document.querySelector('#source').clientWidth")
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    ink, paper = browser.run(
        "['color', 'backgroundColor'].map((one) => getComputedStyle(document.body)[one].match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0))"
    )
    assert (ink > paper) == dark and abs(ink - paper) > 400


def test_paper_gets_every_part_but_what_only_works_on_a_screen(page: Page) -> None:
    browser = page.browser
    browser.look(900, 900, paper=True)
    seen = browser.run(
        "Array.from(document.querySelectorAll('[role=tabpanel], .search, #tabs, #list'), (one) => [one.id || one.className, one.getClientRects().length > 0])"
    )
    shown_parts = {name for name, visible in seen if visible}
    assert shown_parts == {"timeline", "entries", "notes", "compactions", "block", "work"}


def test_without_scripts_everything_is_there_but_entries_search_and_filters(page: Page) -> None:
    browser = page.browser
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=page.path.as_uri() + "?plain")
        browser.wait("location.search === '?plain' && document.readyState === 'complete'")
        seen = browser.run(
            "Array.from(document.querySelectorAll('[role=tabpanel], #tabs, .search, .filters, noscript p'), (one) => [one.id || one.className, one.getClientRects().length > 0])"
        )
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert {name for name, visible in seen if visible} == {
        "timeline", "entries", "notes", "compactions", "block", "work", "banner",
    }  # fmt: skip


def test_a_long_entry_is_shown_in_steps_from_what_was_looked_for(chromium: Browser, home: Path) -> None:
    talk = Talk()
    talk.user("begin " + "x" * 500_000 + " the Needle itself " + "y" * 300_000 + " end")
    talk.agent("Found.")
    with opened() as store:
        stored = session_of(store, talk.write(home))
    shown(chromium, home, stored.session.handle)
    chromium.run("openEntry(0, false)")
    assert chromium.run("document.querySelector('#source-body pre').textContent.startsWith('begin xxx')")
    assert chromium.run("document.querySelector('#source-body pre').textContent.length") == 6_000
    chromium.run("document.querySelector('#query').value = 'needle'; search()")
    chromium.run("openEntry(0, false)")
    assert chromium.run("document.querySelector('#source-body mark').textContent") == "Needle"
    assert chromium.run("document.querySelector('#source-body pre').textContent.length") == 6_000
    while chromium.run("Boolean(document.querySelector('#source-body > button:not([hidden])'))"):
        chromium.click("#source-body > button:not([hidden])")
    whole = chromium.run("page.entries.words(0)")
    assert chromium.run("document.querySelector('#source-body pre').textContent") == whole
    quiet(chromium)


def test_a_long_session_is_read_piece_by_piece(chromium: Browser, home: Path) -> None:
    talk = turns(LONG)
    with opened() as store:
        stored = session_of(store, talk.write(home))
    shown(chromium, home, stored.session.handle)
    assert chromium.run("page.entries.own") == stored.last_seq + 1 >= 3 * LONG
    assert chromium.run("page.entries.held.size") == 0  # nothing is unpacked before it is asked for
    chromium.click("[data-tab=entries]")
    assert 0 < chromium.run("document.querySelectorAll('#list .row').length") < 80
    chromium.run("document.querySelector('#list').focus()")
    chromium.press("End")
    chromium.wait(f"document.querySelector('#list [aria-selected=true]')?.ariaPosInSet === '{stored.last_seq + 1}'")
    chromium.press("Enter")
    chromium.wait("!document.querySelector('#source').hidden")
    assert f"number_{LONG - 1}" in text(chromium, "#source-body pre")
    assert chromium.run("page.entries.held.size") == 1
    quiet(chromium)
