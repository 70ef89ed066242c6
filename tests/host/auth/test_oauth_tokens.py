"""The tokens of an issuer, asked directly: what is accepted, for how long, and what each opens."""

import json
import time
from base64 import urlsafe_b64encode
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import example, given
from hypothesis import strategies as st

from bridgehead.host.auth import oauth
from bridgehead.host.auth.authenticator import EXPIRED, InvalidToken
from bridgehead.host.auth.grants import Grant
from bridgehead.host.auth.oauth import INVALID, LEEWAY_SECONDS, REMEMBER_SECONDS, OAuthIssuer
from bridgehead.host.auth.rejection import HostRejection
from bridgehead.host.request import HostRequest
from bridgehead.runtime.errors import BridgeError, Unavailable
from tests.support.clock import Clock
from tests.support.http_message import make_request

ISSUER = "https://issuer.example/realm"
AUDIENCE = "https://team.example/mcp"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
KEYS: dict[str, Any] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), RSA),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


class Checked:
    """An issuer with a key for each algorithm, and what accepts its tokens."""

    def __init__(self, *, audience: str = AUDIENCE, public_url: str | None = None) -> None:
        self.clock = Clock(time.time())
        self.asked = 0
        self.is_there = True
        self.accepts = OAuthIssuer(
            ISSUER,
            audience,
            f"{ISSUER}/keys",
            bridges=iter(("alpha", "beta")),
            public_url=public_url,
            clock=self.clock,
            fetch=self._fetch,
        )

    async def _fetch(self, _url: str) -> bytes:
        self.asked += 1
        if not self.is_there:
            raise Unavailable("It is away.")
        return json.dumps({"keys": [public_key(name) for name in KEYS]}).encode()

    async def grant(self, **claims: Any) -> Grant:
        return await self.check(token(**claims))

    async def check(self, made: str) -> Grant:
        grant = self.accepts.check(made)
        return grant if isinstance(grant, Grant) else await grant


def public_key(algorithm: str) -> dict[str, Any]:
    maker = jwt.get_algorithm_by_name(algorithm)
    return {**json.loads(maker.to_jwk(KEYS[algorithm].public_key())), "kid": algorithm, "alg": algorithm}


def token(algorithm: str = "ES256", header: dict[str, Any] | None = None, **claims: Any) -> str:
    """Sign a token; claims of None are left out."""
    full = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "exp": time.time() + 600,
        "scope": "bridgehead",
        **claims,
    }
    given = {name: value for name, value in full.items() if value is not None}
    return jwt.encode(given, KEYS[algorithm], algorithm, {"kid": algorithm, **(header or {})})


async def refused(checked: Checked, made: str) -> str:
    """Return the reason for which a token is refused."""
    with pytest.raises(InvalidToken) as problem:
        await checked.check(made)
    return problem.value.reason


# --- what is accepted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", sorted(KEYS))
async def test_every_algorithm_with_a_public_key_is_accepted(algorithm: str) -> None:
    checked = Checked()
    made = token(algorithm)
    assert checked.accepts.recognizes(made)
    assert (await checked.check(made)).name == "oauth:alice"
    assert (await checked.check(token(algorithm, jti="again"))).name == "oauth:alice"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    header=st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jku"]), JSON),
    claims=st.dictionaries(st.sampled_from(["aud", "iss", "exp", "nbf", "iat", "sub", "scope", "scp"]), JSON),
    is_signed=st.booleans(),
)
@example(header={"alg": []}, claims={}, is_signed=False)
@example(header={"alg": {}}, claims={}, is_signed=False)
async def test_any_header_and_claims_are_an_answer_and_never_an_accident(
    header: dict[str, Any], claims: dict[str, Any], *, is_signed: bool
) -> None:
    if is_signed:
        full = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": time.time() + 600, **claims}
        payload = json.dumps(full).encode()
        made = jwt.PyJWS().encode(payload, KEYS["ES256"], "ES256", {"kid": "ES256"})
    else:
        parts = (header, claims, "signature")
        made = ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().strip("=") for part in parts)
    try:
        grant = await Checked().check(made)
    except InvalidToken:
        return
    assert is_signed
    assert (grant.name or "").startswith("oauth:")


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c.d", "bh_1_2"])
def test_what_is_not_in_three_parts_is_somebody_elses(text: str) -> None:
    assert not Checked().accepts.recognizes(text)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": None},
        {"iss": None},
        {"exp": None},
        {"sub": None},
        {"iss": "https://issuer.example/other"},
        {"aud": "https://other.example/mcp"},
        {"scope": 7},
        {"scope": {"bridgehead": True}},
        {"scope": ["bridgehead", 7]},
        {"sub": ""},
    ],
)
async def test_a_token_that_lacks_a_claim_or_is_for_another_is_invalid(claims: dict[str, Any]) -> None:
    assert await refused(Checked(), token(**claims)) == INVALID


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"typ": "logout+jwt"}, "not an access token"),
        ({"typ": 7}, "not an access token"),
        ({"alg": "HS256"}, "signed in a way that is not accepted"),
        ({"kid": "unknown"}, "signed with a key that its issuer does not have"),
    ],
)
async def test_a_header_of_another_kind_is_invalid(header: dict[str, Any], words: str) -> None:
    made = hs256() if "alg" in header else token(header=header)
    with pytest.raises(InvalidToken, match=words) as problem:
        await Checked().check(made)
    assert problem.value.reason == INVALID


def hs256() -> str:
    return jwt.encode({"sub": "alice"}, "a secret that nobody shares with it", "HS256", {"kid": "ES256"})


async def test_a_header_without_a_type_is_an_access_token() -> None:
    assert (await Checked().check(token(header={"typ": None}))).name == "oauth:alice"


async def test_a_token_may_be_as_long_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    made = token(padding="x" * 10_000)  # 16 KiB is the limit
    await Checked().check(made)

    monkeypatch.setattr(oauth, "_MAX_TOKEN", len(made))
    await Checked().check(made)
    monkeypatch.setattr(oauth, "_MAX_TOKEN", len(made) - 1)
    with pytest.raises(InvalidToken, match="too long"):
        await Checked().check(made)


async def test_what_cannot_be_read_is_invalid() -> None:
    checked = Checked()
    for made in ("a.b.c", "..", "x" * 20_000 + ".y.z"):
        with pytest.raises(InvalidToken) as problem:
            await checked.accepts.check(made)
        assert problem.value.reason == INVALID


async def test_an_issuer_that_is_away_says_when_to_ask_again() -> None:
    checked = Checked()
    checked.is_there = False
    with pytest.raises(HostRejection) as rejected:
        await checked.check(token())

    assert (rejected.value.response.status, rejected.value.reason) == (503, "oauth")
    assert rejected.value.response.headers[1:] == ((b"retry-after", b"30"),)


# --- for how long ------------------------------------------------------------------------------------------


async def test_clocks_may_differ_by_half_a_minute() -> None:
    checked = Checked()
    ended = time.time() - 15
    assert (await checked.grant(exp=ended)).expires == pytest.approx(ended + LEEWAY_SECONDS)
    assert await refused(checked, token(exp=time.time() - 2 * LEEWAY_SECONDS)) == EXPIRED


async def test_a_token_that_was_checked_is_remembered_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked()
    made = token()
    await checked.check(made)
    anew = Grant("verified anew")
    monkeypatch.setattr(checked.accepts, "_verify", lambda *_: anew)

    checked.clock.advance(REMEMBER_SECONDS - 1)
    assert await checked.accepts.check(made) != anew
    checked.clock.advance(1)
    assert await checked.accepts.check(made) == anew


async def test_a_remembered_token_ends_on_the_second() -> None:
    checked = Checked()
    now = checked.clock.now()
    made = token(exp=int(now))
    grant = await checked.check(made)
    assert grant.expires == int(now) + LEEWAY_SECONDS

    checked.clock.advance(grant.expires - now - 1)
    assert await checked.accepts.check(made) == grant
    checked.clock.set(grant.expires)
    with pytest.raises(InvalidToken) as problem:
        await checked.accepts.check(made)
    assert problem.value.reason == EXPIRED


async def test_of_many_tokens_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "_MAX_REMEMBERED", 2)
    checked = Checked()
    made = [token(jti=str(number)) for number in range(3)]
    for one in made:
        await checked.check(one)
    anew = Grant("verified anew")
    monkeypatch.setattr(checked.accepts, "_verify", lambda *_: anew)

    assert [await checked.accepts.check(one) != anew for one in made] == [False, True, True]


# --- what it opens -----------------------------------------------------------------------------------------

EVERY = frozenset({"*"})
ALPHA, BETA, NONE = frozenset({"alpha"}), frozenset({"beta"}), frozenset[str]()


@pytest.mark.parametrize(
    ("scope", "audience", "full", "reading"),
    [
        ("bridgehead", AUDIENCE, EVERY, NONE),
        ("bridgehead:read", AUDIENCE, NONE, EVERY),
        ("bridgehead", "https://team.example/alpha/mcp", ALPHA, ALPHA & NONE),
        ("bridgehead:read", "https://team.example/alpha/mcp", NONE, ALPHA),
        ("bridgehead:beta bridgehead:beta:read", "https://team.example/alpha/mcp", NONE, NONE),
        ("bridgehead:alpha bridgehead:beta", "https://team.example/alpha/mcp", ALPHA, NONE),
        ("bridgehead", ["https://team.example/alpha/mcp", AUDIENCE], EVERY, NONE),
        (
            "bridgehead",
            ["https://team.example/alpha/mcp", "https://team.example/beta/mcp"],
            ALPHA | BETA,
            NONE,
        ),
    ],
)
async def test_a_token_opens_what_both_its_scopes_and_its_audience_name(
    scope: str, audience: Any, full: frozenset[str], reading: frozenset[str]
) -> None:
    grant = await Checked().grant(scope=scope, aud=audience)
    assert (grant.full, grant.reading) == (full, reading)


PAGES = "bridgehead:metrics bridgehead:events bridgehead:dashboard bridgehead:admin"


@pytest.mark.parametrize(
    ("scope", "audience", "opened"),
    [
        (PAGES, AUDIENCE, (True, True, True, True)),
        ("bridgehead:spend", AUDIENCE, (False, False, False, False)),
        (PAGES, "https://team.example/alpha/mcp", (False, False, False, False)),
    ],
)
async def test_a_token_for_one_bridge_opens_no_page_of_the_whole_host(
    scope: str, audience: str, opened: tuple[bool, ...]
) -> None:
    grant = await Checked().grant(scope=scope, aud=audience)
    assert (grant.metrics, grant.events, grant.dashboard, grant.admin) == opened
    assert grant.may_spend == (scope == "bridgehead:spend")


async def test_scopes_may_be_a_list_under_another_name() -> None:
    assert (await Checked().grant(scope=None, scp=["bridgehead:alpha"])).full == ALPHA
    assert (await Checked().grant(scope=None)).full == NONE


@pytest.mark.parametrize("subject", ["a b", "", "a\nb", "x" * 101, "\ud800"])
def test_a_subject_that_is_no_plain_word_is_named_by_its_hash(subject: str) -> None:
    name = oauth.name_caller(subject)  # half of these no JSON can hold
    kind, _, rest = name.partition(":")
    assert (kind, len(rest)) == ("oauth", 32)
    assert name != oauth.name_caller("another subject")


def test_a_plain_subject_keeps_its_name() -> None:
    assert oauth.name_caller("x" * 100) == f"oauth:{'x' * 100}"


async def test_whose_a_task_is_stays_with_a_refreshed_token_of_issuer_subject_and_client() -> None:
    checked = Checked()
    first = (await checked.grant(client_id="cli")).owner

    assert first.startswith("oauth:")
    assert (await checked.grant(client_id="cli", jti="refreshed", exp=time.time() + 900)).owner == first
    others = [
        await checked.grant(client_id="other"),
        await checked.grant(),
        await checked.grant(client_id="cli", sub="bob"),
        await checked.grant(sub='alice","cli'),
    ]
    assert len({first, *(grant.owner for grant in others)}) == 5


# --- which addresses are ours ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("audience", "public_url", "accepted"),
    [
        ("api", None, {"api": None}),
        ("https:api", None, {"https:api": None}),
        (
            "api",
            "https://team.example/bridges/",
            {
                "https://team.example/bridges/alpha/mcp": "alpha",
                "https://team.example/bridges/mcp": None,
                "api": None,
            },
        ),
        (
            "https://team.example/some/api",
            None,
            {
                "https://team.example/some/api/alpha/mcp": "alpha",
                "https://team.example/some/api/mcp": None,
                "https://team.example/some/api": None,
            },
        ),
        (
            "https://team.example/tools/mcp",
            None,
            {
                "https://team.example/tools/alpha/mcp": "alpha",
                "https://team.example/tools/mcp": None,
            },
        ),
    ],
)
def test_a_token_may_be_for_the_audience_or_for_an_address_of_ours(
    audience: str, public_url: str | None, accepted: dict[str, str | None]
) -> None:
    assert oauth.accepted_audiences(audience, public_url, ("alpha",)) == accepted


def asking(path: str, host: str = "127.0.0.1:8000") -> HostRequest:
    return HostRequest(make_request("GET", path, ((b"host", host.encode("latin-1")),)), "id", 0.0, "", "http")


def described(checked: Checked, path: str, bridge: str | None = None, host: str = "h") -> dict[str, Any]:
    where = f"/.well-known/oauth-protected-resource{path}"
    found: dict[str, Any] = json.loads(checked.accepts.describe_resource(asking(where, host), bridge).body)
    return found


def test_the_metadata_name_the_resource_of_a_path() -> None:
    about = described(Checked(), "/alpha/mcp", "alpha")
    assert about == {
        "resource": "https://team.example/alpha/mcp",
        "authorization_servers": [ISSUER],
        "scopes_supported": ["bridgehead:alpha", "bridgehead:alpha:read", "bridgehead:spend"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Bridgehead",
    }
    assert "bridgehead:beta" in described(Checked(), "")["scopes_supported"]


def test_the_resource_of_the_whole_host_is_its_audience_where_that_is_an_address() -> None:
    assert described(Checked(), "")["resource"] == AUDIENCE
    public = Checked(audience="api", public_url="https://team.example/x/")
    assert described(public, "")["resource"] == "https://team.example/x/mcp"
    assert described(public, "/mcp")["resource"] == "https://team.example/x/mcp"


@pytest.mark.parametrize("path", ["", "/mcp", "/alpha/mcp"])
@pytest.mark.parametrize("audience", [AUDIENCE, "https://team.example/tools/mcp", "api"])
@pytest.mark.parametrize("public_url", [None, "https://team.example/x"])
async def test_a_token_for_what_the_metadata_name_is_accepted(
    audience: str, public_url: str | None, path: str
) -> None:
    checked = Checked(audience=audience, public_url=public_url)
    if audience == "api" and public_url is None:
        with pytest.raises(HostRejection):  # nothing that could be named would be accepted
            described(checked, path)
        assert checked.accepts.challenge_details(asking("/mcp")) == ""
        return

    resource = described(checked, path)["resource"]

    assert (await checked.grant(aud=resource)).name == "oauth:alice"


def test_a_refusal_says_where_to_read_on_unless_the_host_cannot_be_told() -> None:
    accepts = Checked().accepts
    where = "http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp"
    assert accepts.challenge_details(asking("/mcp")) == f', resource_metadata="{where}"'
    assert accepts.challenge_details(asking("/mcp", 'evil"\xff')) == ""
    for path, about in (("/alpha/sse", "/alpha/mcp"), ("/messages", "/mcp"), ("/metrics", "")):
        where = f"http://127.0.0.1:8000/.well-known/oauth-protected-resource{about}"
        assert accepts.challenge_details(asking(path)) == f', resource_metadata="{where}"'


def test_without_its_cryptography_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jwt.algorithms.has_crypto", False)
    with pytest.raises(BridgeError, match="not installed"):
        Checked()
