"""Where a request may go: addresses, plain http, redirects, proxies and certificates."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.errors import ConfigError
from obsmem.workers import http_forms, http_wire
from tests.workers.http_worker import ASK, KEY, FakeTime, failure, worker
from tests.workers.model_site import (
    Played,
    Site,
    completion,
    site,
)


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("https://api.example.com", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/v1/", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/chat/completions", "https://api.example.com/chat/completions"),
        ("https://api.example.com/api", "https://api.example.com/api/v1/chat/completions"),
        ("https://api.example.com/v1beta/openai/", "https://api.example.com/v1beta/openai/chat/completions"),
        ("https://api.example.com/api/paas/v4", "https://api.example.com/api/paas/v4/chat/completions"),
        ("https://a.example.com/x/chat/completions?v=1#y", "https://a.example.com/x/chat/completions?v=1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
    ],
)
def test_an_address_may_stop_before_the_version_or_the_endpoint(given: str, whole: str) -> None:
    assert http_wire.endpoint(given, http_forms.ENDPOINTS["openai"], True) == whole


@pytest.mark.parametrize(
    "url",
    ["ftp://x/v1", "localhost:11434", "/v1", "http://", "http://x:port", "https://user:word@x", "https://a b", ""],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match="url") as caught:
        worker(url)
    assert "word" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize("options", [{"key_env": "A_KEY"}, {"key_command": "echo x"}, {"headers": {"x-token": "t"}}])
@pytest.mark.parametrize("host", ["api.example.com", "192.168.1.7:8080", "gpu-box", "127.0.0.1.example.com"])
def test_a_key_never_goes_over_plain_http_to_another_machine(options: dict[str, Any], host: str) -> None:
    with pytest.raises(ConfigError, match="unencrypted"):
        worker(f"http://{host}/v1", **options)
    worker(f"https://{host}/v1", **options)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.9.9.9:80"])
def test_a_key_may_go_over_plain_http_to_this_machine(host: str) -> None:
    worker(f"http://{host}/v1", key_env="A_KEY")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("10.0.0.5", True), ("gpu-box", True), ("box.local", True), ("8.8.8.8", False), ("api.example.com", False)],
)
def test_without_a_key_plain_http_goes_no_further_than_a_private_network(host: str, allowed: bool) -> None:
    if allowed:
        worker(f"http://{host}:8080")
        return
    with pytest.raises(ConfigError, match="unencrypted"):
        worker(f"http://{host}:8080")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with (
        site(completion()) as other,
        site(Played(status, "", {"location": f"{other.url}/v1/chat/completions"})) as first,
    ):
        error = failure(worker(first, key_env="A_KEY"))
    assert (error.fault, len(first.seen), other.seen) == ("settings", 1, [])
    assert "redirects" in str(error)


def test_a_proxy_of_the_environment_is_used_for_another_host_and_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with site(completion()) as proxy, site(completion()) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        worker("http://model.internal:8080").ask(ASK)
        assert [seen.path for seen in proxy.seen] == ["http://model.internal:8080/v1/chat/completions"]
        worker(server).ask(ASK)
        assert (len(proxy.seen), len(server.seen)) == (1, 1)


def test_a_proxy_that_refuses_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch, time: FakeTime) -> None:
    with site(completion()) as proxy:  # it knows no CONNECT
        monkeypatch.setenv("https_proxy", proxy.url)
        error = failure(worker("https://model.internal", time))
    assert error.fault == "unavailable"
    assert "proxy" in str(error)


def encrypted(folder: Path, server: Site) -> str:
    """Put a server behind a certificate that nobody has signed; its address."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([program, *words], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server.url.replace("http:", "https:")


def test_a_certificate_is_always_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: FakeTime) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    server = Site([completion()])
    url = encrypted(tmp_path, server)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        error = failure(worker(url, time, key_env="A_KEY"))
        assert (error.fault, server.seen) == ("settings", [])
        assert "certificate is not trusted" in str(error)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        assert worker(url, time, key_env="A_KEY").ask(ASK).items
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_without_encryption_behind_https_is_unavailable(time: FakeTime) -> None:
    with site(completion()) as server:
        error = failure(worker(server.url.replace("http:", "https:"), time))
    assert (error.fault, server.seen) == ("unavailable", [])
    assert "no encrypted connection" in str(error)
