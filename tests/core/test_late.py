"""Expressions compiled at their first use, and digests without the slow library: the same as ``re`` and ``hashlib`` give."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys

import pytest

from obsmem.core import late


@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.MULTILINE | re.DOTALL])
def test_a_late_pattern_finds_what_a_compiled_one_finds(flags: int) -> None:
    text = "One two\nONE three one.four"
    expression = r"(?P<word>one)\W(\w+)$"
    made, compiled = late.pattern(expression, flags), re.compile(expression, flags)
    for _ in range(2):  # at its first use, and from then on
        assert [match.span() for match in made.finditer(text)] == [match.span() for match in compiled.finditer(text)]
        assert made.findall(text) == compiled.findall(text)
        assert made.sub("-", text) == compiled.sub("-", text)
        assert made.split(text) == compiled.split(text)
        assert (made.pattern, made.flags, made.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)


def test_bytes_have_patterns_too() -> None:
    assert late.pattern(rb"b+").findall(b"abbbc") == [b"bbb"]


def test_a_wrong_pattern_shows_when_it_is_used() -> None:
    wrong = late.pattern("(")
    with pytest.raises(re.error):
        wrong.search("(")


@pytest.mark.parametrize("size", [0, 1, 1000, late.LARGE - 1, late.LARGE])
def test_digests_are_those_of_hashlib(size: int) -> None:
    data = bytes(number * 7 % 256 for number in range(1000)) * (size // 1000 + 1)
    data = data[:size]
    assert late.sha256(data) == hashlib.sha256(data).digest()
    assert late.blake2b(data, 8) == hashlib.blake2b(data, digest_size=8).digest()


def test_a_short_digest_loads_no_library() -> None:
    code = (
        "import sys; from obsmem.core import late; print(late.sha256(b'a').hex(), late.blake2b(b'a', 8).hex(),"
        " 'hashlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    known = (hashlib.sha256(b"a").hexdigest(), hashlib.blake2b(b"a", digest_size=8).hexdigest())
    assert done.stdout.split() == [*known, "False"]
