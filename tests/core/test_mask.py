"""Secrets go, whatever their kind; what only looks like one stays. Keys are put together here so that no scanner trips."""

import random
import re
import string

import pytest

from obsmem.core.mask import mask
from obsmem.core.mask_kinds import KINDS, WARM, kinds_in

ALNUM = string.ascii_letters + string.digits


def fake(length: int, alphabet: str = ALNUM) -> str:
    """A random value with at least one small letter, capital and digit where the alphabet has them."""
    random.seed(length)
    head = "".join(c for c in "a7Q" if c in alphabet)
    return head + "".join(random.choice(alphabet) for _ in range(length - len(head)))


HEX = "0123456789abcdef"
SECRETS = {
    "aws": "AK" + "IA" + fake(16, string.ascii_uppercase + "234567"),
    "aws secret": "aws_secret_access_key = " + fake(40),
    "github": "gh" + "p_" + fake(36),
    "github oauth": "gh" + "o_" + fake(36),
    "github fine": "github" + "_pat_" + fake(22) + "_" + fake(59),
    "gitlab": "glp" + "at-" + fake(20),
    "slack": "xo" + "xb-" + fake(12, string.digits) + "-" + fake(24),
    "slack webhook": "https://hooks.slack.com/services/" + "T" + fake(8) + "/B" + fake(8) + "/" + fake(24),
    "google": "AI" + "za" + fake(35),
    "openai": "s" + "k-" + fake(48),
    "openai project": "sk-" + "proj-" + fake(60),
    "anthropic": "sk-" + "ant-api03-" + fake(80),
    "stripe": "sk_" + "live_" + fake(24),
    "npm": "np" + "m_" + fake(36),
    "pypi": "pyp" + "i-AgEIcHlwaS5vcmc" + fake(60),
    "hugging face": "h" + "f_" + fake(34),
    "sendgrid": "S" + "G." + fake(22) + "." + fake(43),
    "twilio": "S" + "K" + fake(32, HEX),
    "jwt": "ey" + "J" + fake(30) + ".ey" + "J" + fake(60) + "." + fake(43),
    "pem": "-----BEGIN RSA PRIVATE"
    + " KEY-----\n"
    + fake(64)
    + "\n"
    + fake(64)
    + "\n-----END RSA PRIVATE"
    + " KEY-----",
    "pem cut": "-----BEGIN PRIVATE" + " KEY-----\n" + fake(64) + "\n" + fake(64),
    "url": "postgres://admin:" + fake(12) + "@db.internal:5432/app",
    "bearer": "Authorization: Bearer " + fake(40),
    "basic": "curl -H 'authorization: Basic " + fake(24) + "=='",
    "telegram": fake(9, string.digits) + ":AA" + fake(33),
    "discord": "M" + "T" + fake(24) + "." + fake(6) + "." + fake(38),
    "azure": "AccountName=x;Account" + "Key=" + fake(86) + "==;EndpointSuffix=core",
    "digitalocean": "dop" + "_v1_" + fake(64, HEX),
    "doppler": "d" + "p.pt." + fake(43),
    "vault": "hv" + "s." + fake(24),
    "databricks": "da" + "pi" + fake(32, HEX),
    "shopify": "shp" + "at_" + fake(32, HEX),
    "env": "DB_PASSWORD=" + "correct" + "horsebattery",
    "env digits": "export API_KEY=" + fake(20),
    "json": '{"client_secret": "' + fake(24) + '"}',
    "escaped json": '{\\"password\\": \\"' + fake(10) + '\\"}',
    "yaml": "password: hun" + "ter2hunter",
    "python": "PASSWORD = 'open" + "sesame'",
    "option": "mysql --password " + fake(16),
    "query": "GET /x?page=2&access_token=" + fake(20) + "&y=1",
}


def secret_of(text: str) -> str:
    """The longest run without separators: what must be gone."""
    return max(re.split(r"[\s:=/@\"'\\;&]+", text), key=len)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_goes_and_its_kind_stays(name: str) -> None:
    text = f"before {SECRETS[name]} after"
    masked = mask(text)
    assert secret_of(SECRETS[name])[5:] not in masked
    assert "…[masked " in masked
    assert masked.startswith("before ") and masked.endswith(" after")
    assert mask(masked) == masked


def test_the_prefix_that_names_the_kind_stays() -> None:
    assert mask("gh" + "p_" + fake(36)) == "ghp_…[masked github token]"
    assert mask("AK" + "IA" + "IOSFODNN7EXAMPLE").startswith("AKIA…[masked")
    assert all(0 <= kind.keep <= 4 for kind in KINDS)


def test_only_the_value_of_an_assignment_goes() -> None:
    assert mask('"password": "s3cr3t-pass", "user": "ann"') == '"password": "…[masked password]", "user": "ann"'
    url = "https://ann:" + fake(9) + "@host/path"
    assert mask(url) == "https://ann:…[masked password]@host/path"


INNOCENT = [
    "commit 4b6027402aa1d3f5e6c7b8a9d0e1f2a3b4c5d6e7",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "/home/ann/project/src/token/secret_store.py:120",
    "C:\\Users\\ann\\secrets\\token.json",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    "color: #ff8800; background: #1a2b3c4d",
    '"integrity": "sha512-' + "q7" * 43 + '=="',
    "tests/test_auth.py::test_password_reset_token PASSED",
    "token_count: 123456789, total_tokens=123456789",
    "max_tokens=8000 max_tokens: 80000000",
    "the secret: dependency injection makes it testable",
    "password must be at least 8 characters",
    "OPENAI_API_KEY and GITHUB_TOKEN must be set",
    "token=${GITHUB_TOKEN} password=$DB_PASSWORD secret={{ vault_secret }}",
    "api_key=<your-api-key>",
    "password: xxxxxxxxxxxx token=************",
    "API_KEY=your_api_key_here",
    "token = get_token(session, refresh=True)",
    "self.password = config.database.password1",
    "token: tokens.AccessToken2",
    "secret: Uint8Array, token: string",
    "api_key: str | None = os.environ.get('API_KEY')",
    "private_key: /etc/ssl/private/server.key",
    "password: 'Password must have 8 characters'",
    "mscorlib, Version=4.0.0.0, PublicKeyToken=b77a5c561934e089",
    "task-management-system-v2-Overview risk-assessment-Q3-2025-final-report",
    "sk-fading-circle sk-cube-grid-animation-container",
    "eyJhbGciOiJIUzI1NiJ9 is a header alone",
    "http://localhost:8080/@scope/package",
    "git@github.com:owner/repo.git",
    "Bearer authentication is described below in more detail",
    "password=password",
    "if key in tokens: secret = tokens[key_number_1]",
    'token_type: "bearer", "grant_type": "refresh_token"',
    '{"token": "keyword.control.flow"}',
    "monkey=banana12 keyboard: qwerty12",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


def test_a_users_own_pattern_is_masked_once() -> None:
    pattern = re.compile(r"[a-z]{2,}-\d+|mask\w+")
    masked = mask("see acme-1234 and masks", [pattern])
    assert masked == "see …[masked custom] and …[masked custom]"
    assert mask(masked, [pattern]) == masked


def test_a_pattern_that_matches_nothing_adds_nothing() -> None:
    assert mask("plain text", [re.compile("q*")]) == "plain text"


def test_masking_all_kinds_in_one_text_is_stable() -> None:
    text = "\n".join(SECRETS.values()) + "\nİ password=hunter22x\n"
    masked = mask(text)
    assert mask(masked) == masked
    assert "hunter22x" not in masked


def test_every_needle_is_part_of_what_its_pattern_can_match() -> None:
    """A needle that no match can hold would hide the kind for ever."""
    for kind in KINDS:
        assert kind.needles, kind.name
        assert not kind.pattern.search("…[masked " + kind.name + "]")


def test_a_needle_is_found_wherever_it_stands_however_much_was_looked_through_before() -> None:
    kinds_in("x" * WARM)  # from here on by expressions
    around = ("{}", "a{}b", "_{}_", "{}{}", " {}\n", "-{}.", "/{}=", "SK{}", "{}://", "github{}")
    for needle in (needle for kind in KINDS for needle in kind.needles):
        for text in (one.format(needle, needle) for one in around):
            assert kinds_in(text) == [kind for kind in KINDS if any(each in text for each in kind.needles)], text
    assert kinds_in("no secret: a_b-c.d/e=f") == []


def test_hostile_text_is_masked_in_bounded_time() -> None:
    for piece in (
        "eyJ",
        "sk-",
        "password=",
        "SG.",
        "a://b:",
        "-----BEGIN PRIVATE KEY-----",
        "token: a/b",
        "M",
        "xoxb-",
        "key=\\",
    ):
        text = piece * 3000
        assert mask(mask(text)) == mask(text)


def test_a_very_long_value_goes_as_a_whole() -> None:
    assert mask("api_key=" + fake(5000) + " end") == "api_key=…[masked key] end"
    assert mask('"api_key": "' + fake(5000) + '"') == '"api_key": "…[masked key]"'
