"""OAuth: the access tokens of an authorisation server, what they open, and where a client gets one."""

import os
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from bridgehead.host.auth.authenticator import FAILURES_PER_MINUTE
from bridgehead.host.auth.jwks import FRESH_SECONDS, RETRY_SECONDS, USABLE_SECONDS
from tests.support.clock import Clock
from tests.support.host_authority import AUDIENCE, authority, guarded
from tests.support.host_command import run
from tests.support.host_server import bearer, hosting
from tests.support.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")


async def test_a_good_token_is_let_in_under_the_name_of_its_subject(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (host, issuer):
        token = bearer(issuer.token())
        for _ in range(3):
            assert (await host.try_call("/mcp", "alpha_echo", token)).status == 200

        assert host.far["alpha"].visitors == ["oauth:alice"] * 3
        assert issuer.asked == [issuer.metadata_path, "/realm/keys"]


async def test_issuers_that_publish_the_openid_way_are_found_too(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (host, issuer):
        issuer.metadata_path = "/realm/.well-known/openid-configuration"
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token()))).status == 200


async def test_where_the_keys_are_can_be_set(tmp_path: Path) -> None:
    async with authority() as issuer:
        settings = {
            "BRIDGEHEAD_OAUTH_ISSUER": "https://issuer.example/",
            "BRIDGEHEAD_OAUTH_AUDIENCE": AUDIENCE,
            "BRIDGEHEAD_OAUTH_JWKS_URL": f"{issuer.issuer}/keys",
        }
        async with hosting(tmp_path, settings, clock=Clock(time.time(), runs=True)) as host:
            token = issuer.token(iss="https://issuer.example/")
            assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == 200
            assert issuer.asked == ["/realm/keys"]


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": "https://other.example"}, "token_invalid"),
        ({"aud": None}, "token_invalid"),
        ({"iss": "https://evil.example"}, "token_invalid"),
        ({"exp": 1_000_000_000}, "token_expired"),
        ({"exp": None}, "token_invalid"),
        ({"sub": None}, "token_invalid"),
        ({"nbf": 9_000_000_000}, "token_invalid"),
    ],
)
async def test_a_token_for_something_else_is_refused(
    tmp_path: Path, claims: dict[str, Any], reason: str
) -> None:
    async with guarded(tmp_path) as (host, issuer):
        response = await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(**claims)))

        assert response.status == 401
        assert 'error="invalid_token"' in response.headers["www-authenticate"]
        assert host.logged("authentication failed")[0]["reason"] == reason


async def test_a_signature_must_be_the_issuers(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (host, issuer):
        stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        good = issuer.token()
        claims = jwt.decode(good, options={"verify_signature": False})
        forged = [
            issuer.token(signer=stranger),
            jwt.encode(claims, "", "none", {"kid": "first"}),
            jwt.encode(claims, "a shared secret that nobody shares", "HS256", {"kid": "first"}),
            issuer.token(algorithm="RS512"),  # the key says that it is for RS256
            good[:-4] + "AAAA",
            "a.b.c",
            "..",
            f"{'x' * 20_000}.y.z",
        ]
        for token in forged:
            assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == 401, token[:80]
        assert host.far["alpha"].visitors == []


async def test_what_was_checked_a_moment_ago_still_expires(tmp_path: Path) -> None:
    clock = Clock(time.time(), runs=True)
    async with guarded(tmp_path, clock) as (host, issuer):
        token = bearer(issuer.token(exp=time.time() + 5))
        assert (await host.try_call("/mcp", "alpha_echo", token)).status == 200

        clock.advance(45)
        response = await host.try_call("/mcp", "alpha_echo", token)

        assert "has expired" in await host.refused(response, 401)


@pytest.mark.parametrize(
    ("claims", "alpha", "beta", "write"),
    [
        ({"scope": "bridgehead"}, 200, 200, True),
        ({"scope": "openid bridgehead:alpha"}, 200, 403, True),
        ({"scope": "bridgehead:read"}, 200, 200, False),
        ({"scope": "bridgehead:alpha:read bridgehead:beta"}, 200, 200, False),
        ({"scope": None, "scp": ["bridgehead:beta"]}, 403, 200, False),
        ({"scope": "profile"}, 403, 403, False),
        ({"scope": None}, 403, 403, False),
    ],
)
async def test_scopes_say_what_is_open(
    tmp_path: Path, claims: dict[str, Any], alpha: int, beta: int, *, write: bool
) -> None:
    async with guarded(tmp_path) as (host, issuer):
        token = bearer(issuer.token(**claims))
        found = [
            (await host.try_call(f"/{name}/mcp", f"{name}_echo", token)).status for name in ("alpha", "beta")
        ]
        assert found == [alpha, beta]
        if alpha == 200:
            assert ("alpha_write" in await host.tools("/alpha/mcp", token)) == write


async def test_who_lacks_a_scope_is_told_which(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (host, issuer):
        response = await host.try_call("/alpha/mcp", "alpha_echo", bearer(issuer.token(scope="")))

    told = response.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in told
    assert 'scope="bridgehead:alpha"' in told


async def test_a_client_without_a_token_is_told_where_to_get_one(tmp_path: Path) -> None:
    async with guarded(tmp_path, BRIDGEHEAD_PUBLIC_URL="https://team.example") as (host, issuer):
        refused = await host.try_call("/alpha/mcp", "alpha_echo")
        whole = await host.page("/.well-known/oauth-protected-resource")

        where = "https://team.example/.well-known/oauth-protected-resource/alpha/mcp"
        assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]
        assert whole["resource"] == AUDIENCE
        assert whole["authorization_servers"] == [issuer.issuer]
        assert "bridgehead:alpha:read" in whole["scopes_supported"]


@pytest.mark.parametrize(
    ("path", "scope", "supported"),
    [
        ("/mcp", "bridgehead", 11),
        ("/alpha/mcp", "bridgehead:alpha", 3),
        ("/metrics", "bridgehead:metrics", 0),
    ],
)
async def test_each_path_names_its_own_scope_and_resource(
    tmp_path: Path, path: str, scope: str, supported: int
) -> None:
    async with guarded(tmp_path, BRIDGEHEAD_PUBLIC_URL="https://team.example/") as (host, _):
        refused = await host.get(path)
        assert f', scope="{scope}"' in refused.headers["www-authenticate"]
        if supported:
            metadata = await host.page(f"/.well-known/oauth-protected-resource{path}")
            assert metadata["resource"] == f"https://team.example{path}"
            assert len(metadata["scopes_supported"]) == supported
            assert scope in metadata["scopes_supported"]


@pytest.mark.parametrize(
    ("audience", "alpha", "beta"),
    [
        ("https://team.example/mcp", 200, 200),
        ("https://team.example/alpha/mcp", 200, 403),
        (["https://other.example", "https://team.example/beta/mcp"], 403, 200),
        ("https://team.example/gamma/mcp", 401, 401),
        ("https://team.example.evil.example/mcp", 401, 401),
    ],
)
async def test_a_token_for_the_address_of_one_bridge_opens_that_one(
    tmp_path: Path, audience: Any, alpha: int, beta: int
) -> None:
    async with guarded(tmp_path) as (host, issuer):
        token = bearer(issuer.token(aud=audience))
        found = [
            (await host.try_call(f"/{name}/mcp", f"{name}_echo", token)).status for name in ("alpha", "beta")
        ]
        assert found == [alpha, beta]


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "RS512"])
@pytest.mark.parametrize("header", [{}, None])
async def test_a_key_is_found_without_its_id_or_algorithm_where_only_one_fits(
    tmp_path: Path, algorithm: str, header: dict[str, Any] | None
) -> None:
    async with guarded(tmp_path) as (host, issuer):
        issuer.names_algorithms = False
        issuer.add_key("curve", "ec")
        token = issuer.token(algorithm=algorithm, header=header)
        assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == 200


async def test_without_a_key_id_nobody_chooses_among_several(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (host, issuer):
        issuer.add_key("second")
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(header={})))).status == 401


@pytest.mark.parametrize(
    "odd",
    [
        b'"scope": null',
        b'"scope": 7',
        b'"exp": 1' + b"0" * 400,
        b'"exp": "soon"',
        b'"exp": [1]',
        b'"exp": 1e999',
        b'"aud": {"a": 1}',
        b'"aud": [7]',
        b'"iss": ["a"]',
        b'"sub": {}',
        b'"nbf": 1e999',
    ],
)
async def test_claims_that_no_issuer_should_make_are_a_401(tmp_path: Path, odd: bytes) -> None:
    async with guarded(tmp_path) as (host, issuer):
        good = b'"iss": "%b", "aud": "%b", "sub": "a", "exp": 9000000000, "scope": "bridgehead"' % (
            issuer.issuer.encode(),
            AUDIENCE.encode(),
        )
        response = await host.try_call("/mcp", "alpha_echo", bearer(issuer.sign(b"{%b, %b}" % (good, odd))))

        assert response.status == 401
        assert host.logged("authentication failed")[0]["reason"] == "token_invalid"


@pytest.mark.parametrize(
    ("kind", "status"),
    [("JWT", 200), ("at+jwt", 200), ("application/AT+JWT", 200), ("logout+jwt", 401), (7, 401)],
)
async def test_only_an_access_token_is_one(tmp_path: Path, kind: Any, status: int) -> None:
    async with guarded(tmp_path) as (host, issuer):
        token = issuer.token(header={"kid": "first", "typ": kind})
        assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == status


async def test_without_a_public_address_the_clients_own_is_named(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (host, _):
        refused = await host.try_call("/mcp", "alpha_echo")

    where = f"http://127.0.0.1:{host.port}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]


async def test_expired_tokens_of_an_address_are_refused_and_do_not_count_as_attacks(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (host, issuer):
        expired = bearer(issuer.token(exp=1_000_000_000))
        for _ in range(FAILURES_PER_MINUTE + 5):
            response = await host.try_call("/mcp", "alpha_echo", expired)
            assert response.status == 401
            assert "resource_metadata=" in response.headers["www-authenticate"]

        forged = [bearer("e30.e30.e30")] * (FAILURES_PER_MINUTE + 1)
        found = [(await host.try_call("/mcp", "alpha_echo", token)).status for token in forged]
        assert found[-2:] == [401, 429]


async def test_a_caller_of_an_issuer_may_not_ask_more_often_than_it_may(tmp_path: Path) -> None:
    async with guarded(tmp_path, BRIDGEHEAD_OAUTH_PER_MINUTE="2") as (host, issuer):
        found = [
            (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(jti=str(number))))).status
            for number in range(3)
        ]
        assert found == [200, 200, 429]
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(sub="bob")))).status == 200


async def test_without_oauth_there_is_no_metadata(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        assert (await host.get("/.well-known/oauth-protected-resource")).status == 404


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "jwt.py").write_text("raise ImportError('gone')")
    done = run(
        tmp_path,
        "--port",
        "0",
        BRIDGEHEAD_OAUTH_ISSUER="https://issuer.example",
        BRIDGEHEAD_OAUTH_AUDIENCE=AUDIENCE,
        PYTHONPATH=f"{tmp_path}{os.pathsep}{Path(__file__).parents[3] / 'src'}",
    )
    assert done.returncode == 2
    assert 'pip install "bridgehead[oauth]"' in done.stderr


async def test_tokens_of_the_file_are_accepted_beside_those_of_the_issuer(tmp_path: Path) -> None:
    async with authority() as issuer:
        settings = {"BRIDGEHEAD_OAUTH_ISSUER": issuer.issuer, "BRIDGEHEAD_OAUTH_AUDIENCE": AUDIENCE}
        async with hosting(
            tmp_path, settings, tokens={"bob": {}}, clock=Clock(time.time(), runs=True)
        ) as host:
            for token in (issuer.token(), host.secrets["bob"]):
                assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == 200
            assert host.far["alpha"].visitors == ["oauth:alice", "bob"]


async def test_a_subject_that_could_break_a_line_gets_a_plain_name(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (host, issuer):
        await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(sub="a\nb")))
        (name,) = host.far["alpha"].visitors
    assert name is not None
    assert name.startswith("oauth:")
    assert "\n" not in name


# --- the issuer: new keys, an absence, a silence -----------------------------------------------------------


async def test_a_new_key_is_fetched_but_not_for_every_unknown_one(tmp_path: Path) -> None:
    clock = Clock(time.time(), runs=True)
    async with guarded(tmp_path, clock) as (host, issuer):
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token()))).status == 200
        issuer.add_key("second", "ec")
        clock.advance(RETRY_SECONDS)
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(key="second")))).status == 200

        stranger = issuer.forget_key("first")
        fetched = len(issuer.asked)
        for number in range(5):
            token = issuer.token(key=f"unknown{number}", signer=stranger)
            assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == 401
        assert len(issuer.asked) == fetched


async def test_an_issuer_that_is_away_for_a_while_locks_nobody_out(tmp_path: Path) -> None:
    clock = Clock(time.time(), runs=True)
    async with guarded(tmp_path, clock) as (host, issuer):
        far_off = time.time() + 10 * USABLE_SECONDS
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(exp=far_off)))).status == 200
        issuer.is_there = False

        clock.advance(FRESH_SECONDS + 1)
        later = issuer.token(exp=far_off, jti="later")
        assert (await host.try_call("/mcp", "alpha_echo", bearer(later))).status == 200
        clock.advance(USABLE_SECONDS)
        latest = issuer.token(exp=far_off, jti="latest")
        response = await host.try_call("/mcp", "alpha_echo", bearer(latest))

        assert "keys cannot be fetched" in await host.refused(response, 503)
        assert host.logged("the keys could not be fetched")


async def test_metadata_of_another_issuer_are_not_believed(tmp_path: Path) -> None:
    async with authority() as issuer:
        settings = {
            "BRIDGEHEAD_OAUTH_ISSUER": f"http://localhost:{issuer.port}/realm",
            "BRIDGEHEAD_OAUTH_AUDIENCE": AUDIENCE,
        }
        async with hosting(tmp_path, settings, clock=Clock(time.time(), runs=True)) as host:
            response = await host.try_call("/mcp", "alpha_echo", bearer(issuer.token()))
            assert response.status == 503
            assert "/realm/keys" not in issuer.asked


async def test_an_issuer_that_cannot_be_reached_is_said_so(tmp_path: Path) -> None:
    async with authority() as issuer:
        token = issuer.token()
    settings = {"BRIDGEHEAD_OAUTH_ISSUER": issuer.issuer, "BRIDGEHEAD_OAUTH_AUDIENCE": AUDIENCE}
    async with hosting(tmp_path, settings, clock=Clock(time.time(), runs=True)) as host:
        response = await host.try_call("/mcp", "alpha_echo", bearer(token))
        assert "keys cannot be fetched" in await host.refused(response, 503)
        (line,) = host.logged("the keys could not be fetched")
        assert "cannot be fetched" in line["problem"]


async def test_an_issuer_that_hangs_delays_nobody_whose_key_is_known(tmp_path: Path) -> None:
    clock = Clock(time.time(), runs=True)
    async with guarded(tmp_path, clock) as (host, issuer):
        far_off = time.time() + 10 * USABLE_SECONDS
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(exp=far_off)))).status == 200
        issuer.hangs = True
        clock.advance(FRESH_SECONDS + 1)

        asked = len(issuer.asked)
        for number in range(3):
            token = issuer.token(exp=far_off, jti=str(number))
            assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == 200
        assert not host.logged("the keys could not be fetched")  # nobody waited for that
        issuer.hangs = False

        await until(lambda: "/realm/keys" in issuer.asked[asked:])  # refreshed beside
