"""What the tests of workers share: an environment without proxies, and nothing learned from other tests' servers."""

from __future__ import annotations

import pytest

from obsmem.workers import http
from tests.workers.http_worker import FakeTime


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(http, "_LEARNED", {})
