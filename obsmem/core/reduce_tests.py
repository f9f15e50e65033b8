"""How the output of test runners is shortened: what passed becomes a count, what failed stays whole.

Invariant: a line is folded only where its runner says in that line, or around it, that the test passed or was skipped.
"""

from __future__ import annotations

from obsmem.core import late
from obsmem.core.reduce_rule import Rule, Words, fold_middle, folded_by
from obsmem.core.reduce_sheet import Sheet

PACKAGES_KEPT = 5

_PYTEST_PASSED = late.pattern(
    r"(?P<a>[^\s:]+\.(?:py|txt|md|rst))::.+ (?:PASSED|SKIPPED|XFAIL)\b[^\n]*$"
    r"|\[gw\d+\](?: \[ *\d+%\])? (?:PASSED|SKIPPED|XFAIL) (?P<b>[^\s:]+)::[^\n]*$"
    r"|(?P<c>[^\s:]+\.(?:py|txt|md|rst)) [.sx]+(?: +\[ *\d+%\])?$"
)
_PYTEST_DOTS = late.pattern(
    r"(?:[.sx]{2,}(?: +\[ *\d+%\])?|\[gw\d+\] node down|gw\d+ \[\d+\].*|scheduling tests via .*)$"
)
_PYTEST_COVERED = late.pattern(r"\S+\.py +\d+ +0(?: +\d+ +0)? +100%$")
_PYTEST_SIGN = late.pattern(r"^=+ (?:test session starts|[^\n]* in [\d.]+s[^\n]*) =+$|^\d+ passed[^\n]* in [\d.]+s", 8)
_UNITTEST_PASSED = late.pattern(r".*\.\.\. (?:ok|skipped\b.*|expected failure)$")
_UNITTEST_SIGN = late.pattern(r"^Ran \d+ tests? in [\d.]+s", 8)
_CARGO_PASSED = late.pattern(
    r"test [^\n]+ \.\.\. (?:ok|ignored)\b[^\n]*$|\s+(?:PASS|SKIP|SLOW) \[[^\]]*\][^\n]*$|bench: +[^\n]*$"
)
_CARGO_SIGN = late.pattern(r"^test result: |^running \d+ tests?$|^[ \t]+Nextest run ID", 8)
_GO_STEP = late.pattern(r"\s*=== (?:RUN|PAUSE|CONT|NAME)\s+(\S+)")
_GO_PASSED = late.pattern(r"\s*--- (?:PASS|SKIP): (\S+)")
_GO_FAILED = late.pattern(r"\s*--- FAIL: (\S+)")
_GO_EVENT = late.pattern(
    r'\{.*"Action":"(?:run|pause|cont|pass|skip|output|start)".*"Package":"([^"]*)"(?:,"Test":"([^"]*)")?'
)
_GO_EVENT_FAILED = late.pattern(r'\{.*"Action":"fail".*"Package":"([^"]*)"(?:,"Test":"([^"]*)")?')
_GO_PACKAGE = late.pattern(r"(?:ok  \t\S+\t|\?   \t\S+\t|\s+\S+\t\s*coverage: 0\.0%)")
_GO_SIGN = late.pattern(r"^(?:=== RUN |--- (?:PASS|FAIL): |ok  \t|\?   \t|FAIL\t|(?:PASS|FAIL)$)", 8)
_JS_PASSED = late.pattern(r"\s*(?:[✓✔√]|○ skipped|↓) ?\S?.*$|PASS \S+.*$|\s*\(pass\) .*$|\s*ok \d+ .*$")
_JS_CHECK = late.pattern(r"(\s*)[✓✔√] ?(\S.*)$")
_JS_FAILED = late.pattern(r"\s*(?:[✗✕✖✘×❌❯●]|FAIL\b|not ok|\(fail\)|\d+\) )")
_JS_SIGN = late.pattern(
    r"^(?:Tests:? +.*\d+ (?:passed|failed)|Test Suites: |[ \t]+Test Files +\d|[ \t]+\d+ passing|ℹ tests \d|# tests \d|[ \t]*\d+ pass$)",
    8,
)
_TAP_PASSED = late.pattern(r"\s*(?:ok \d+\b.*|# Subtest: .*|(?:---|\.\.\.|duration_ms: .*|type: '\w+')\s*)$")
_TAP_SIGN = late.pattern(r"^TAP version \d+$|^1\.\.\d+$", 8)


def _fold_pytest(sheet: Sheet, words: Words) -> None:
    for index, line in enumerate(sheet.said):
        passed = _PYTEST_PASSED.match(line)
        if passed:
            path = passed.group("a") or passed.group("b") or passed.group("c")
            dots = 1 if not passed.group("c") else line.split("[", 1)[0].strip()[len(path) :].strip().count(".")
            sheet.fold(index, f"passing tests in {path}", dots)
        elif _PYTEST_DOTS.match(line):
            sheet.fold(index, "passing tests", line.split("[", 1)[0].count("."))
        elif _PYTEST_COVERED.match(line):
            sheet.fold(index, "files covered whole")


def _fold_go(sheet: Sheet, words: Words) -> None:
    failed = {match.group(1) for line in sheet.said if (match := _GO_FAILED.match(line))}
    passed = {match.group(1) for line in sheet.said if (match := _GO_PASSED.match(line))} - failed
    failed_events = {match.groups() for line in sheet.said if (match := _GO_EVENT_FAILED.match(line))}
    packages, speaks, below = [], "", False
    for index, line in enumerate(sheet.said):
        step, done, event = _GO_STEP.match(line), _GO_PASSED.match(line), _GO_EVENT.match(line)
        if step:
            speaks, below = step.group(1), False
            if speaks not in failed:
                sheet.fold(index, "passing tests", 0)
        elif done:
            speaks, below = done.group(1), True  # what follows is its own only as far as it is indented
            sheet.fold(index, "passing tests")
        elif event and event.group(2) and event.groups() not in failed_events:
            sheet.fold(index, "passing tests", '"Action":"pass"' in line)
        elif _GO_FAILED.match(line) or (line[:1] not in (" ", "\t", "") and (below or _GO_SIGN.match(line))):
            speaks = ""
            if _GO_PACKAGE.match(line):
                packages.append(index)
        elif speaks in passed:
            sheet.fold(index, "passing tests", 0)
    if len(packages) > 3 * PACKAGES_KEPT:
        fold_middle(sheet, packages, PACKAGES_KEPT, PACKAGES_KEPT, "more packages without a failure")


def _fold_js(sheet: Sheet, words: Words) -> None:
    for index, line in enumerate(sheet.bare):
        if _JS_PASSED.match(line):
            sheet.fold(index, "passing tests", 0 if line.startswith("PASS") else 1)
    # A heading goes with the tests below it, if all of them passed.
    deepest: list[tuple[int, bool]] = []  # (indentation, all folded) of what stands below
    for index in range(len(sheet.bare) - 1, -1, -1):
        line = sheet.bare[index]
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        below = [clean for deep, clean in deepest if deep > depth]
        deepest = [pair for pair in deepest if pair[0] <= depth]
        if sheet.is_kept(index) and depth and below and all(below) and not _JS_FAILED.match(line):
            sheet.fold(index, "passing tests", 0)
        deepest.append((depth, not sheet.is_kept(index)))


RULES = (
    Rule(
        "pytest",
        ("pytest", "py.test"),
        "passing and skipped tests, counted per file; dots; files covered whole",
        _fold_pytest,
        _PYTEST_SIGN,
        (_PYTEST_PASSED, _PYTEST_DOTS),
    ),
    Rule(
        "unittest",
        ("unittest", "nose2", "manage.py test"),
        "lines that end in `... ok` or `... skipped`",
        folded_by("passing tests", _UNITTEST_PASSED),
        _UNITTEST_SIGN,
        (_UNITTEST_PASSED,),
    ),
    Rule(
        "cargo-test",
        ("cargo test", "cargo nextest", "cargo t"),
        "tests that end in `... ok` or `ignored`, `PASS` lines of nextest",
        folded_by("passing tests", _CARGO_PASSED),
        _CARGO_SIGN,
        (_CARGO_PASSED,),
    ),
    Rule(
        "go-test",
        ("go test", "gotestsum"),
        "what tests that passed said, as text or as JSON events; packages without a failure beyond 15",
        _fold_go,
        _GO_SIGN,
        (_GO_PASSED, _GO_STEP, _GO_PACKAGE),
    ),
    Rule(
        "js-test",
        ("jest", "vitest", "mocha", "bun test", "playwright test", "ava"),
        "ticked tests, `PASS` lines, headings of which all tests passed",
        _fold_js,
        _JS_SIGN,
        (_JS_PASSED,),
    ),
    Rule(
        "tap",
        ("tap", "tape", "prove", "bats"),
        "`ok` lines of the Test Anything Protocol and their details",
        folded_by("passing tests", _TAP_PASSED),
        _TAP_SIGN,
        (_TAP_PASSED,),
    ),
)
