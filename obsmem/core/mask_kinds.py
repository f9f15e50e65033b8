"""The shapes of secrets that give themselves away by their value alone: a prefix, a length, an alphabet.

Invariant: a pattern never matches what it was replaced by (``<prefix>…[masked <kind>]``): none admits the character
``…`` inside a secret, and none accepts a prefix of four characters as a whole one. ``needles`` are plain substrings of
which a match holds at least one, so that a text without them costs a substring search and no regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from obsmem.core import late
from obsmem.core.tuples import NamedTuple


class Kind(NamedTuple):
    """One kind of secret. ``keep`` is how many leading characters (at most 4) stay because they name the kind.

    Group ``secret`` of the pattern is what goes; without such a group the whole match goes. ``mixed`` asks for a
    digit and a capital in it, which tells random keys from words joined by hyphens.
    """

    name: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    keep: int = 4
    mixed: bool = False


def _alone(text: str, letters: str = "A-Za-z0-9_-") -> str:
    """A beginning that stands in no word: "task-…" holds "sk-…". It comes first, since the engine skips to what it knows."""
    return f"{text}(?<![{letters}]{text})"


def _kind(name: str, needles: str, pattern: str, keep: int = 4, *, mixed: bool = False) -> Kind:
    return Kind(name, tuple(needles.split()), late.pattern(pattern), keep, mixed)


# Order matters where one shape is part of another: the narrower first.
KINDS: tuple[Kind, ...] = (
    _kind(
        "private key",
        "PRIVATE",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^…]{0,10000}?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+)",
    ),
    _kind(
        "jwt",
        "eyJ",
        r"(?:(?<![A-Za-z0-9_-])|(?<=%20)|(?<=\\n))eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        3,
    ),
    _kind("aws access key", "AKIA ASIA ABIA ACCA", r"(?<![A-Za-z0-9])A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _kind("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    _kind("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    _kind(
        "gitlab token",
        "glpat- gldt- glrt- glcbt- glptt-",
        r"gl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_.-]{20,}",
        2,
    ),
    _kind(
        "slack webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{20,})",
        0,
    ),
    _kind("slack token", "xox xapp-", r"(?:xox[abeoprs][.-]|xapp-\d-)[A-Za-z0-9.-]{10,}"),
    _kind("google api key", "AIza", r"AIza[A-Za-z0-9_-]{30,}"),
    _kind("google oauth secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _kind("google oauth token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{20,}"),
    _kind("anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,}", 3),
    _kind("openrouter key", "sk-or-", r"sk-or-v\d-[a-f0-9]{32,}", 3),
    _kind(
        "openai key",
        "sk-",
        _alone("sk-") + r"(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9_-]{20,})",
        3,
        mixed=True,
    ),
    _kind("stripe key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}", 3),
    _kind("webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    _kind("npm token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _kind("pypi token", "pypi-", r"pypi-[A-Za-z0-9_-]{32,}", mixed=True),
    _kind("rubygems key", "rubygems_", r"rubygems_[a-f0-9]{32,}"),
    _kind("docker token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    _kind("hugging face token", "hf_ api_org_", r"(?<![A-Za-z0-9_])(?:hf|api_org)_[A-Za-z0-9]{30,}", 3),
    _kind("replicate token", "r8_", r"(?<![A-Za-z0-9_])r8_[A-Za-z0-9]{30,}", 3),
    _kind("groq key", "gsk_", r"gsk_[A-Za-z0-9]{30,}"),
    _kind("xai key", "xai-", _alone("xai-") + r"[A-Za-z0-9]{40,}"),
    _kind("perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{32,}"),
    _kind("sendgrid key", "SG.", r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", 3),
    _kind("twilio key", "SK AC", r"(?:SK|AC)(?<![A-Za-z0-9]..)[0-9a-f]{32}(?![A-Za-z0-9])", 2),
    _kind("mailgun key", "key-", _alone("key-") + r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _kind("mailchimp key", "-us", _alone("[0-9a-f]", "A-Za-z0-9") + r"[0-9a-f]{31}-us\d{1,2}(?![A-Za-z0-9])", 0),
    _kind("telegram token", ":AA", r"(?<![A-Za-z0-9])\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", 0),
    _kind("discord webhook", "/api/webhooks/", r"/api/webhooks/\d{8,}/(?P<secret>[\w-]{20,})", 0),
    _kind(
        "discord token",
        "MT Mz MD Mj ND NT Nj Nz OD OT",
        _alone("[MNO]", r"\w.-") + r"[A-Za-z0-9]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w.-])",
        0,
        mixed=True,
    ),
    _kind(
        "azure key",
        "AccountKey= SharedAccessKey=",
        r"(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{32,}={0,2})",
        0,
    ),
    _kind(
        "signed url",
        "sig= Signature=",
        r"[?&](?:sig|X-Amz-Signature|Signature)=(?P<secret>[A-Za-z0-9%+/_~-]{32,}=*)",
        0,
    ),
    _kind("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{40,}"),
    _kind("doppler token", "dp.", r"(?<![\w.])dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{32,}", 3),
    _kind("vault token", "hvs. hvb. hvr.", r"(?<![\w.])hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    _kind("terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}", 0),
    _kind("shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _kind("databricks token", "dapi", r"(?<![A-Za-z0-9])dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    _kind("linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{30,}"),
    _kind("notion token", "ntn_ secret_", r"(?<![A-Za-z0-9_])(?:ntn|secret)_[A-Za-z0-9]{40,}"),
    _kind("grafana token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}"),
    _kind("sentry token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_-]{32,}"),
    _kind("planetscale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}"),
    _kind("supabase token", "sbp_", r"sbp_[a-f0-9]{40}"),
    _kind("fly token", "fm2_ fm1r_", r"fm(?:2|1r)_[A-Za-z0-9+/=_-]{40,}"),
    _kind("figma token", "figd_", r"figd_[A-Za-z0-9_-]{30,}"),
    _kind("postman key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _kind("atlassian token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{60,}"),
    _kind("new relic key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _kind("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    _kind("bearer token", "earer ", r"\b[Bb]earer (?P<secret>[A-Za-z0-9._~+/-]{20,}=*)", 0, mixed=True),
    _kind(
        "credentials",
        "uthorization",
        r"""\b[Aa]uthorization\\?["']?\s*[:=]\s*(?:\\?["'])?(?:[A-Za-z]+ )(?P<secret>[A-Za-z0-9._~+/-]{8,}=*)""",
        0,
    ),
    _kind("password", "://", r"://(?<=[a-z0-9+.-][a-z0-9+.-]://)[^\s:/@'\"<>]*:(?P<secret>[^\s/@'\"<>…]+)@", 0),
)

_NEEDLES = tuple((needle, kind) for kind in KINDS for needle in kind.needles)
_SIGNS = "_-./=:"
WARM = 20_000  # characters


def _scout(sign: str, needles: Sequence[str]) -> re.Pattern[str]:
    """What finds one of these: it begins with the sign that they share, which the engine skips to, and looks at the two letters
    before it, which few have, before it looks for all of it."""
    pairs: dict[str, set[str]] = {}
    wholes: list[str] = []
    for needle in needles:
        place = needle.index(sign, 2)
        pairs.setdefault(needle[place - 1], set()).add(needle[place - 2])
        wholes.append(f"(?<={re.escape(needle[: place + 1])}){re.escape(needle[place + 1 :])}")
    either = "|".join(f"[{''.join(sorted(first))}]{re.escape(second)}" for second, first in pairs.items())
    return late.pattern(f"{re.escape(sign)}(?<=(?:{either}){re.escape(sign)})(?:{'|'.join(wholes)})")


def _grouped() -> list[tuple[re.Pattern[str], list[tuple[re.Pattern[str], Kind]]]]:
    """Needles that share a sign or begin with a capital: what tells at the cost of one search that a text holds none of them,
    and what finds those of each kind."""
    groups: dict[str, dict[str, Kind]] = {}
    for kind in KINDS:
        for needle in kind.needles:
            sign = next((letter for letter in needle[2:] if letter in _SIGNS), "A" if needle[0].isupper() else needle)
            groups.setdefault(sign, {})[needle] = kind
    found = []
    for sign, held in groups.items():
        of_kind: dict[Kind, list[str]] = {}
        for needle, kind in held.items():
            of_kind.setdefault(kind, []).append(needle)
        scout = _scout(sign, list(held)) if sign in _SIGNS else _any_of(held)
        found.append((scout, [(_any_of(needles), kind) for kind, needles in of_kind.items()]))
    return found


def _any_of(needles: Iterable[str]) -> re.Pattern[str]:
    return late.pattern("|".join(map(re.escape, needles)))


class _Look:
    """Looks for needles: one after the other in the first texts, since the expressions take as long to make as that."""

    def __init__(self) -> None:
        self._left = WARM
        self._groups: list[tuple[re.Pattern[str], list[tuple[re.Pattern[str], Kind]]]] = []

    def kinds_in(self, text: str) -> list[Kind]:
        """The kinds of which a text holds a needle, in the order of KINDS."""
        if self._left > 0:
            self._left -= len(text)
            held = [kind for needle, kind in _NEEDLES if needle in text]
            return list(dict.fromkeys(held)) if held else held
        if not self._groups:
            self._groups = _grouped()
        found = [kind for scout, kinds in self._groups if scout.search(text) for one, kind in kinds if one.search(text)]
        return [kind for kind in KINDS if kind in found] if found else found


kinds_in = _Look().kinds_in
