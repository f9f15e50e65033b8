"""How the output of builds, package managers and linters is shortened: steps that only say that something goes on.

Invariant: a warning or an error is never such a step.
"""

from __future__ import annotations

from obsmem.core import late
from obsmem.core.reduce_rule import Rule, Words, fold_middle
from obsmem.core.reduce_sheet import Sheet

ASSETS_KEPT = (6, 3)

# Tool -> what its lines of progress look like.
_PROGRESS = {
    "cargo": r"\s*(?:Compiling|Checking|Downloading|Downloaded|Fresh|Locking|Documenting|Packaging|Verifying|Installed|Building|Dirty) \S+ v\d[^\n]*|"
    r"\s+(?:Downloading|Downloaded|Updating|Blocking|Downloading) (?:crates|\d+ crates?|git repository|waiting|crates\.io)[^\n]*|\s+Running `[^\n]*`|\s+Adding \S+ v\d[^\n]*",
    "make": r"make(?:\[\d+\])?: (?:Entering|Leaving) directory [^\n]*|\[ *\d+%\] (?:[A-Z][a-z]+ing|Built|No)\b[^\n]*|\[\d+/\d+\] (?:[A-Z][a-z]+ing\b|CXX|CC|AR|LD|ACTION|STAMP|SOLINK|[^\x00-\x7f])[^\n]*|\s+(?:CC|CXX|LD|AR|AS|GEN|HOSTCC|HOSTLD|UPD|CALL|LINK|MOC|OBJCOPY|CCLD|RANLIB|STRIP|WRAP|CHK|SYNC)(?: \[M\])?\s+\S+",
    "compiler": r"(?:libtool: (?:compile|link): |/bin/sh \S*libtool )?(?:\S*/)?(?:\w+-)*(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|javac|rustc|nvcc)(?:-\d+)? (?:[^\n]* )?-[cIoWDOlLfmg][^\n]*|ar \w+ \S+\.a [^\n]*|ranlib \S+|a - \S+",
    "configure": r"checking [^\n]*\.\.\.[^\n]*|config\.status: creating \S+|-- (?:Check for|Checking|Detecting|Looking for|Performing Test|Found) [^\n]*",
    "npm": r"npm (?:http|timing|verb|sill|info)\b[^\n]*|npm notice(?: [\d.]+ ?[kM]?B \S+)?|Progress: resolved [^\n]*|\+{4,}|info (?:fetch|No lockfile)[^\n]*|\S+ (?:fetch GET|http fetch)[^\n]*",
    "pip": r"\s*(?:Collecting|Downloading|Using cached|Requirement already satisfied|Obtaining dependency|Installing build|Getting requirements|Preparing metadata|Building wheel|Building wheels|Created wheel"
    r"|Stored in directory|Attempting uninstall|Found existing installation|Uninstalling|Successfully uninstalled|Looking in indexes|Building editable|Downloaded|Prepared)\b[^\n]*|\s*[━╸╺]{8,}[^\n]*",
    "docker": r"#\d+ (?:sha256:|transferring|extracting|resolve|\.\.\.|DONE|CACHED)[^\n]*|[0-9a-f]{12}: (?:Pulling|Waiting|Verifying|Download|Extracting|Pull complete|Already exists|Pushed|Pushing|Layer|Preparing|Mounted)[^\n]*",
    "apt": r"(?:Get|Hit|Ign):\d+ [^\n]*|(?:Selecting previously|Preparing to unpack|Unpacking|Setting up|Processing triggers|\(Reading database)[^\n]*",
    "java": r"> Task :\S+(?: (?:UP-TO-DATE|NO-SOURCE|FROM-CACHE|SKIPPED))?|\[INFO\] *(?:Download(?:ing|ed)\b[^\n]*|-+)?|Download(?:ing|ed)? (?:from|https?:)[^\n]*",
    "go": r"go: (?:downloading|extracting|finding) [^\n]*",
    "transfer": r"(?:remote: )?(?:Counting|Compressing|Receiving|Resolving|Unpacking|Updating|Writing|Checking out) (?:objects|deltas|files)\b[^\n]*\d+%[^\n]*|remote: Enumerating objects: \d+, done\.|Delta compression using [^\n]*|(?: *\d+ +[\d.]+[kMG]? +){2}[^\n]*\d+:\d\d[^\n]*",
    "formatter": r"\S+\.\w{1,5} \d+ms(?: \(unchanged\))?|unchanged \S+|\S+\.\w+: (?:ok|OK|No issues found)\.?",
    "steps": r"[^\n]{0,120}?\b\d{1,3}(?:\.\d+)?% ?(?:\|[█▏▎▍▌▋▊▉ #]|\[|[█▏▎▍▌▋▊▉░▒▓#=>.-]{3,})[^\n]*|[^\n]{1,80} \[[=#>. *-]{8,}\] +\d+/\d+|(?:modules? transformed|transforming|rendering chunks|computing gzip size)[^\n]*\.\.\.|transforming \(\d+\) [^\n]*|[ⓘ⠀-⣿] [^\n]*",
}  # fmt: skip
_STEP = late.pattern("(?:" + "|".join(_PROGRESS.values()) + ")$")
_SIGN = late.pattern(
    r"(?:Compiling|Downloaded|Checking) [\w-]+ v\d|^npm (?:notice|http|info)|\[ *\d+%\] (?:Building|Linking)|^make(?:\[\d+\])?: |^(?:Get|Hit):\d+ "
    r"|^Collecting \S|^Requirement already|^#\d+ (?:sha256|transferring|extracting)|: Pull complete|^> Task :|go: downloading |\[[=#>. -]{8,}\]"
    r"|Receiving objects:|^(?:\S*/)?(?:\w+-)*(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+) .*-[co] |^checking for |^\[\d+/\d+\] |Progress: resolved|━━━",
    8,  # re.MULTILINE
)
_ASSET = late.pattern(r"(?:\S+\s+)?\S+\.\w{1,8}\s+[\d.,]+ ?[kM]?i?B\b[^\n]*$")
_FINDING = late.pattern(
    r"[Ww]arn|WARN|[Ee]rror|ERR|[Ff]ail|FAIL|fatal|deprecat|nvalid|ould not|annot|ot found|nable to"
)

_BAR = late.pattern(r"[^\n]{1,80} \[[=#>. *-]{8,}\] +\d+/\d+$")
_COMMANDS_TEXT = (
    "cargo make gmake cmake ninja meson bazel npm pnpm yarn bun npx tsc eslint prettier biome vite webpack rollup esbuild next turbo nx ruff black"
    " mypy pyright flake8 pylint pip pip3 uv poetry pdm pipenv conda gcc g++ cc clang clang++ go javac gradle gradlew mvn mvnw docker docker-compose"
    " podman apt apt-get brew dnf yum apk rustup rustc configure just mise tox nox pre-commit golangci-lint dotnet swift xcodebuild composer bundle"
    " gem terraform"
)
_COMMANDS = tuple(_COMMANDS_TEXT.split())


def _fold_steps(sheet: Sheet, words: Words) -> None:
    assets: list[int] = []
    for index, line in enumerate(sheet.said):
        if not line or (_FINDING.search(line) and not _harmless(line)):
            continue
        if _STEP.match(line):
            sheet.fold(index, "steps")
        elif _ASSET.match(line):
            assets.append(index)
    if len(assets) > sum(ASSETS_KEPT) + 6:
        fold_middle(sheet, assets, *ASSETS_KEPT, "more files with their sizes")


_NAMED = late.pattern(
    r"\s*(?:Compiling|Checking|Downloading|Downloaded|Fresh|Locking|Documenting|Adding|Building|Installed|Collecting|Using cached|Requirement already satisfied:?"
    r"|go: downloading|Unpacking|Setting up|Selecting previously unselected package|Preparing to unpack) [\w@./-]+(?: \(?v?\d|[=<>~!;, (]|$)[^:]*$"
)


def _harmless(line: str) -> bool:
    """True for a step whose only error word is in the name of what is built (``Compiling thiserror v2.0``)."""
    return _NAMED.match(line) is not None or _BAR.match(line) is not None


RULES = (
    Rule(
        "builds",
        _COMMANDS,
        "steps of compilers, package managers, image builds, downloads; sizes of built files beyond 9",
        _fold_steps,
        _SIGN,
        (_NAMED, _BAR),
    ),
)
