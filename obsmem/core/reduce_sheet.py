"""An output as lines of which some are folded: what must stay, what may go, and the text that comes out.

Invariant: what is kept is kept byte for byte and in order; everything else is in a mark of ours, ``[… so many of what …]``.
A line that is guarded is never folded nor cut, whichever rule asks for it; in the output of a failed command no path is
folded away that is not still to be read in another line or in a mark.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from obsmem.core import late

SURROUNDINGS = 3  # lines around an error that stay with it
LABELS_SHOWN = 8  # kinds of folded things that one mark names
LEAST_GAIN = 32  # bytes that a mark must save; below, the lines are easier to read than it
LEAST_SHARE = 0.2  # of an output that must go for it to be shortened at all

# Wide on purpose: what is taken for an error only stays. Small letters; a search for words is much faster than one expression.
_ERROR_TEXT = (
    "error|errno|err:|errs|fail|fatal|exception|traceback|panic|abort|assert|denied|refused|not found|no such|cannot|can't|could not|couldn't"
    "|unable|undefined|unresolved|undeclared|unexpected|unknown|unrecogni|invalid|illegal|conflict|missing|mismatch|timed out|timeout|time out"
    "|killed|segmentation|core dumped|overflow|leak|rejected|forbidden|unauthori|not permitted|broken|corrupt|bad |wrong|usage:|critical"
    "|-->|not ok|err!|interrupted|does not|is not |incompatible|unsupported|expected"
)
_ERROR_WORDS = tuple(_ERROR_TEXT.split("|"))
_ERROR_SHAPE = late.pattern(
    r"\s*(?:[✗✕✖✘×❌❯●]|\^|\d+\) |E\s{2,}|[EF]\d{3}\b)|[^\n]{0,300}?(?:\b[EF]\d{3,4}\b|\bTS\d{4}\b|\bBUG\b)"
)
_NOTHING_WRONG = late.pattern(
    r"\b(?:0|no|zero) (?:tests? )?(?:failed|failures?|failing|errors?|fatal|warnings?|problems?|issues?|conflicts?|missing|unexpected)\b"
)
_WARNING_WORDS = ("warn", "deprecat", "caution", "vulnerab", "wrn", "severe", "alert", "emerg", "notice:")
_EXIT_WORDS = ("exit", "status", "code", "rc", "return")
_EXIT = late.pattern(
    r"\bexit(?:ed)?[ _]?(?:code|status|with)?\b[^\n]{0,20}\d|\b(?:rc|status|code) ?[=:] ?-?\d|returned -?\d"
)
_COLOUR = late.pattern(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")
_PIECE = late.pattern(r"[^\r\n]*(?:\r*\n|\r+|\Z)")
# What a log or a runner of several programs writes in front of a program's own words.
_PREFIX = late.pattern(
    r"(?:[^\t\n]{1,80}\t[^\t\n]{1,80}\t)?(?:\ufeff?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? )?"
    r"(?:\[[\w:./@-]{1,40}\] ?|[\w./@-]{1,40} (?:[–|│]|\|) )?"
)
# From the beginning of a word only: a search that began anew at each character would be slow in a line that is one long word.
_PATH = late.pattern(
    r"(?<![\w.@~+-])(?:(?:[A-Za-z]:)?[\w.@~+-]*(?:[/\\][\w.@~+-]+)+|[.~]{0,3}[\w@+-]+(?:\.[\w@+-]+)*\.[A-Za-z]\w{0,9}(?![\w@+-]))"
)


class Sheet:
    """The lines of an output. ``lines`` are the original's bytes, ends included; ``bare`` the same without colours and ends;
    ``said`` without what stands in front of a program's own words either. ``failed`` is True for the output of a command that
    failed, or of which nothing but the output says so."""

    def __init__(self, text: str, failed: bool) -> None:
        self.lines: list[str] = [piece for piece in _PIECE.findall(text) if piece]
        self.bare: list[str] = [_bare(line) for line in self.lines]
        self.said: list[str] = [line[_PREFIX.match(line).end() :] for line in self.bare]  # type: ignore[union-attr]
        self.failed = failed
        self.rule = ""  # whose rule is at work
        self._rules: dict[int, str] = {}
        self._guarded = bytearray(len(self.lines))
        self._folded: dict[int, tuple[str, int]] = {}
        self._quiet: list[int] = []
        self._cuts: dict[int, list[tuple[int, int, str]]] = {}

    def keep(self, indices: Iterable[int]) -> None:
        """Never fold these lines; one that is very long may still be cut."""
        for index in indices:
            self._guarded[index] |= 1

    def guard(self, indices: Iterable[int], around: int = 0) -> None:
        """Leave these lines whole whatever is asked later, and ``around`` lines before and after each, blank ones not counted."""
        full = [index for index, line in enumerate(self.bare) if line.strip()] if around else []
        for index in indices:
            self._guarded[index] = 3
            if around:
                at = bisect_left(full, index)
                for near in full[max(0, at - around) : at + around + 1]:
                    self._guarded[near] = 3

    def is_kept(self, index: int) -> bool:
        """True for a line that is still whole."""
        return index not in self._folded and index not in self._cuts

    def is_guarded(self, index: int) -> bool:
        """True for a line that nothing may fold."""
        return bool(self._guarded[index])

    def fold(self, index: int, label: str, count: int = 1, *, quiet: bool = False) -> None:
        """Fold a line as ``count`` of what ``label`` says (plural). A guarded or touched line stays as it is. What is folded
        ``quiet`` has no mark where it was, but one with all that is so, behind the last of it."""
        if not self._guarded[index] and self.is_kept(index):
            self._folded[index] = (label, count)
            if quiet:
                self._quiet.append(index)
            self._rules[index] = self.rule

    def cut(self, index: int, start: int, end: int, mark: str) -> None:
        """Leave out some characters of a line and say so in their place. Not where the line is guarded."""
        if self._guarded[index] < 2 and index not in self._folded and end - start > len(mark) + 4:
            self._cuts.setdefault(index, []).append((start, end, mark))
            self._rules[index] = self.rule

    @property
    def rules(self) -> list[str]:
        """Whose folds and cuts still stand, in the order in which they were made."""
        return list(dict.fromkeys(rule for index, rule in self._rules.items() if not self.is_kept(index)))

    @property
    def folded_lines(self) -> int:
        """How many lines are folded away whole."""
        return len(self._folded)

    def keep_paths(self) -> None:
        """Take back what folds the only mention of a path."""
        known: set[str] = set()
        for index, line in enumerate(self.bare):
            if index not in self._folded:
                known.update(_paths(self._cut_line(index, line) if index in self._cuts else line))
        labels = {label for label, _ in self._folded.values()}
        if len(labels) <= LABELS_SHOWN:  # else a mark may name only some of them
            known.update(path for label in labels for path in _paths(label))
        for index in sorted({*self._folded, *self._cuts}):
            paths = set(_paths(self.bare[index]))
            if not paths <= known:
                self._folded.pop(index, None)
                self._cuts.pop(index, None)
                known |= paths

    def render(self) -> str:
        """What is left, with a mark wherever something was folded. Where a mark would save next to nothing, the lines
        stay."""
        parts: list[str] = []
        run: list[int] = []
        quiet = {index: None for index in self._quiet if index in self._folded}
        for index in range(len(self.lines) + 1):
            if index in self._folded:
                run.append(index)
                continue
            if run:
                parts.append(self._close(run, parts, quiet))
                run = []
            if index < len(self.lines):
                cut = index in self._cuts
                parts.append(self._cut_line(index, self.lines[index]) if cut else self.lines[index])
        return "".join(parts)

    def _close(self, run: list[int], parts: list[str], quiet: dict[int, None]) -> str:
        whole = "".join(self.lines[index] for index in run)
        if all(index in quiet for index in run):
            last = next(reversed(quiet))
            return "" if run[-1] < last else self._mark(list(quiet)) + "\n"
        mark = self._mark(run) + "\n"
        if parts and not parts[-1].endswith("\n"):
            mark = "\n" + mark
        if len(mark.encode()) + LEAST_GAIN <= len(whole.encode("utf-8", "surrogatepass")):
            return mark
        for index in run:
            del self._folded[index]
        return whole

    def _mark(self, run: list[int]) -> str:
        counts: dict[str, int] = {}
        for index in run:
            label, count = self._folded[index]
            counts[label] = counts.get(label, 0) + count
        named = [(label, count) for label, count in counts.items() if count]
        shown = named
        if len(named) > LABELS_SHOWN:
            largest = set(sorted((label for label, _ in named), key=lambda label: -counts[label])[: LABELS_SHOWN - 1])
            shown = [pair for pair in named if pair[0] in largest]
            shown.append(("of other kinds", sum(count for label, count in named if label not in largest)))
        text = ", ".join(f"{count:,} {_number(label, count)}" for label, count in shown)
        lines = f"{len(run):,} lines" if len(run) > 1 else "1 line"
        if not text:
            text = f"{lines} of {', '.join(counts)}"
        elif sum(count for _, count in named) != len(run):
            text = f"{text} ({lines})"
        return f"[… {text} …]"

    def _cut_line(self, index: int, line: str) -> str:
        parts, at = [], 0
        for start, end, mark in sorted(self._cuts[index]):
            if start >= at:
                parts += [line[at:start], f"[… {mark} …]"]
                at = end
        return "".join(parts) + line[at:]


def _number(label: str, count: int) -> str:
    """A label in the singular where there is one of it."""
    if count != 1:
        return label
    first, _, rest = label.partition(" ")
    second, _, tail = rest.partition(" ")
    if second.endswith("s"):
        return " ".join(filter(None, (first, second[:-1], tail)))
    return label[:-1] if not rest and label.endswith("s") else label


def _bare(line: str) -> str:
    line = line.rstrip("\r\n")
    return _COLOUR.sub("", line) if "\x1b" in line else line


def _paths(line: str) -> Iterator[str]:
    # A fraction or a date is none.
    return (path for path in _PATH.findall(line) if not path.replace("/", "").isdigit())


def error_lines(lines: Sequence[str]) -> list[int]:
    """Which lines look like a part of an error."""
    words = _present(_ERROR_WORDS, lines)
    return [
        index
        for index, line in enumerate(lines)
        if line and (_is_wrong(line.lower(), words) or _ERROR_SHAPE.match(line) is not None)
    ]


def warning_lines(lines: Sequence[str]) -> list[int]:
    """Which lines look like a part of a warning."""
    words = _present(_WARNING_WORDS, lines)
    return [index for index, line in enumerate(lines) if _has_any(line.lower(), words)] if words else []


def exit_lines(lines: Sequence[str]) -> list[int]:
    """Which lines say how something ended, with a number."""
    words = _present(_EXIT_WORDS, lines)
    low = ((index, line.lower()) for index, line in enumerate(lines)) if words else ()
    return [index for index, line in low if _has_any(line, words) and _EXIT.search(line)]


def _is_wrong(low: str, words: tuple[str, ...]) -> bool:
    return _has_any(low, words) and _has_any(_NOTHING_WRONG.sub("", low), words)


def _present(words: tuple[str, ...], lines: Sequence[str]) -> tuple[str, ...]:
    text = "\n".join(lines).lower()
    return tuple(word for word in words if word in text)


def _has_any(low: str, words: tuple[str, ...]) -> bool:
    return any(word in low for word in words)
