"""Python looks for circles seldom while much is read, and as before after it, also where it was told not to look at all."""

from __future__ import annotations

import gc

import pytest

from obsmem.system.collecting import SELDOM, seldom


def test_it_looks_as_before_when_the_work_is_done_or_failed() -> None:
    before = gc.get_threshold()
    with seldom():
        assert gc.get_threshold() == (SELDOM, *before[1:])
    assert gc.get_threshold() == before
    with pytest.raises(ValueError), seldom():
        raise ValueError
    assert gc.get_threshold() == before


def test_whoever_looks_never_goes_on_never_looking() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with seldom():
            assert gc.get_threshold()[0] == 0
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
