"""Admission: every rule that a request passes, in its order, asked directly."""

from typing import Any

import pytest

from bridgehead.host.auth.admission import Admission
from bridgehead.host.auth.authenticator import FAILURES_PER_MINUTE, Authenticator, StoredTokenIssuer
from bridgehead.host.auth.grants import ANYONE, Grant
from bridgehead.host.auth.rejection import HostRejection
from bridgehead.host.auth.shared_throttle import SharedThrottle
from bridgehead.host.auth.throttle import Throttle
from bridgehead.host.auth.tokens import TokenFile
from bridgehead.host.request import HostRequest
from bridgehead.host.routes import EVENTS, METRICS, Route, make_table
from bridgehead.mcp.http.guard import Guard
from bridgehead.mcp.http.rejection import Rejection
from tests.host.auth.test_tokens import NOW, added, read
from tests.runtime.stores.test_redis import connected
from tests.support.clock import Clock
from tests.support.http_message import make_request
from tests.support.redis_server import RedisServer

ROUTES = make_table(("alpha", "beta"), with_oauth=True, pages=("/", "/dashboard"))
WHERE = ', resource_metadata="https://team.example"'


@pytest.fixture
def file(tmp_path: Any) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


class Gate:
    """An admission that tells of each failure."""

    def __init__(self, file: TokenFile | None = None, where: str = WHERE, **more: Any) -> None:
        self.failures: list[str] = []
        clock = Clock(NOW)
        issuers = [] if file is None else [StoredTokenIssuer(read(file), clock)]
        self.admission = Admission(
            ROUTES,
            Guard(),
            Authenticator(issuers, clock, self.failures.append, needs_token=bool(issuers)),
            Throttle(clock.monotonic),
            lambda _request: where,
            **more,
        )


def asking(path: str, **headers: str) -> HostRequest:
    given = {"host": "localhost", **headers}
    pairs = tuple((name.encode(), value.encode()) for name, value in given.items() if value)
    return HostRequest(make_request("GET", path, pairs), "id", 0.0, "127.0.0.1", "http")


def is_readable_elsewhere(request: HostRequest) -> bool:
    return b"access-control-allow-origin" in dict(request.http.extra_headers)


ORIGIN = "http://localhost:3000"


# --- where it goes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mcp", "/alpha/mcp", "/metrics", "/.well-known/oauth-protected-resource"])
def test_a_path_leads_to_its_route_and_pages_of_allowed_origins_may_read_it(path: str) -> None:
    request = asking(path, origin=ORIGIN)

    assert Gate().admission.route(request) is ROUTES[path]
    assert request.route == ROUTES[path].name
    assert is_readable_elsewhere(request)


def test_a_page_for_people_is_for_no_other_page_to_read() -> None:
    request = asking("/dashboard", origin=ORIGIN)

    assert Gate().admission.route(request) is ROUTES["/dashboard"]
    assert not is_readable_elsewhere(request)


def test_a_mistyped_page_is_for_the_dashboard_to_answer() -> None:
    request = asking("/dashboard/nowhere", origin=ORIGIN)

    assert Gate().admission.route(request) is ROUTES["/dashboard"]
    assert not is_readable_elsewhere(request)
    with pytest.raises(HostRejection):
        Gate().admission.route(asking("/dashboards"))


def test_a_path_that_leads_nowhere_is_a_404_that_the_page_may_read() -> None:
    request = asking("/nowhere", origin=ORIGIN)
    with pytest.raises(HostRejection) as rejected:
        Gate().admission.route(request)

    assert (rejected.value.response.status, rejected.value.reason, request.route) == (404, "path", "other")
    assert is_readable_elsewhere(request)


@pytest.mark.parametrize("path", ["/mcp", "/nowhere", "/dashboard"])
@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
def test_a_wrong_name_is_refused_before_anything_is_said(path: str, headers: dict[str, str]) -> None:
    request = asking(path, **headers)
    with pytest.raises(Rejection) as rejected:
        Gate().admission.route(request)

    assert rejected.value.response.status in {421, 403}
    assert not is_readable_elsewhere(request)


def test_a_probe_may_come_under_any_name() -> None:
    request = asking("/healthz", host="10.0.0.7")

    assert Gate().admission.route(request) is ROUTES["/healthz"]
    assert request.route == "/healthz"


# --- who makes it ------------------------------------------------------------------------------------------


async def test_who_shows_a_token_is_known_at_once(file: TokenFile) -> None:
    secret = added(file, "alice")
    gate = Gate(file)
    request = asking("/mcp", authorization=f"Bearer {secret}")

    grant = await gate.admission.authenticate(request)
    assert isinstance(grant, Grant)
    assert grant.name == "alice"
    assert gate.failures == []


async def test_who_guesses_too_often_is_told_to_wait(file: TokenFile) -> None:
    gate = Gate(file)
    found = []
    for _ in range(FAILURES_PER_MINUTE + 1):
        with pytest.raises(HostRejection) as rejected:
            await gate.admission.authenticate(asking("/mcp", authorization="Bearer bh_x_y"))
        found.append((rejected.value.response.status, rejected.value.reason))

    assert found == [(401, "token_unknown")] * FAILURES_PER_MINUTE + [(429, "auth_failures")]


async def test_where_nobody_is_asked_everybody_is_let_in() -> None:
    assert await Gate().admission.authenticate(asking("/mcp")) is ANYONE


@pytest.mark.parametrize(
    ("path", "where", "told"),
    [
        ("/mcp", WHERE, f'{WHERE}, scope="bridgehead"'),
        ("/alpha/mcp", WHERE, f'{WHERE}, scope="bridgehead:alpha"'),
        ("/metrics", WHERE, f'{WHERE}, scope="bridgehead:metrics"'),
        ("/events", WHERE, f'{WHERE}, scope="bridgehead:events"'),
        ("/nowhere", WHERE, WHERE),
        ("/mcp", "", ""),
    ],
)
async def test_who_has_no_token_is_told_where_to_get_which(
    file: TokenFile, path: str, where: str, told: str
) -> None:
    gate = Gate(file, where)

    with pytest.raises(HostRejection) as rejected:
        await gate.admission.authenticate(asking(path))

    assert (rejected.value.response.status, rejected.value.reason) == (401, "token_missing")
    assert (
        dict(rejected.value.response.headers)[b"www-authenticate"].decode()
        == f'Bearer realm="bridgehead"{told}'
    )
    assert str(rejected.value) == "A token is needed: send the header Authorization: Bearer TOKEN."
    assert gate.failures == ["token_missing"]


@pytest.mark.parametrize(
    ("has_tokens", "headers", "is_anonymous"),
    [
        (True, {}, True),
        (True, {"authorization": "Bearer x"}, False),
        (True, {"authorization": "Bearer x", "host": "10.0.0.7"}, True),
        (False, {}, False),
        (False, {"authorization": "Bearer x"}, False),
        (False, {"host": "10.0.0.7"}, True),
    ],
)
def test_a_probe_without_a_token_or_under_another_name_is_anonymous(
    file: TokenFile, headers: dict[str, str], *, has_tokens: bool, is_anonymous: bool
) -> None:
    gate = Gate(file if has_tokens else None)
    assert gate.admission.is_anonymous(asking("/readyz", **headers)) is is_anonymous


# --- how often ---------------------------------------------------------------------------------------------


async def test_each_caller_has_a_limit_of_its_own_and_without_one_there_is_none() -> None:
    admission = Gate().admission
    slow, other = Grant("slow", per_minute=1), Grant("other", per_minute=1)
    for grant in (slow, other, ANYONE, ANYONE):
        await admission.count(grant)
    with pytest.raises(HostRejection, match="slow may make 1 requests a minute") as rejected:
        await admission.count(slow)

    assert (rejected.value.response.status, rejected.value.reason) == (429, "limit")
    assert rejected.value.response.headers[1:] == ((b"retry-after", b"60"),)


async def test_where_there_are_replicas_they_are_asked(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        clock = Clock(NOW)
        shared = SharedThrottle(redis, Throttle(clock.monotonic), fails_closed=False)
        admission = Gate(shared=shared).admission

        async def count(name: str) -> None:
            await admission.count(Grant(name, per_minute=1))

        await count("slow")
        await count("other")
        with pytest.raises(HostRejection, match="slow may make 1 requests a minute"):
            await count("slow")
        await redis.close()
        await admission.count(ANYONE)  # without a limit Redis is not asked


# --- what is open to it ------------------------------------------------------------------------------------

ALPHA = frozenset({"alpha"})


@pytest.mark.parametrize(
    ("grant", "opened"),
    [
        (Grant("a", full=ALPHA), {"/mcp", "/alpha/mcp"}),
        (Grant("a", reading=ALPHA), {"/mcp", "/alpha/mcp"}),
        (Grant("a", metrics=True), {METRICS}),
        (Grant("a", events=True), {EVENTS}),
        (Grant("a"), set()),
        (ANYONE, {"/mcp", "/alpha/mcp", "/beta/mcp", METRICS, EVENTS}),
    ],
)
def test_a_grant_opens_what_it_says(grant: Grant, opened: set[str]) -> None:
    found = set()
    for path in ("/mcp", "/alpha/mcp", "/beta/mcp", METRICS, EVENTS):
        request = asking(path)
        try:
            Gate().admission.authorize(request, ROUTES[path], grant)
        except HostRejection:
            assert request.http.principal is None
        else:
            found.add(path)
            assert request.http.principal == grant.name

    assert found == opened


def test_what_is_done_is_done_on_behalf_of_the_token() -> None:
    request = asking("/mcp")
    grant = Grant("a", full=ALPHA, token_id="7f")  # noqa: S106 - the id of one, which is no secret
    Gate().admission.authorize(request, ROUTES["/mcp"], grant)

    assert (request.http.principal, request.http.token_id) == ("a", "7f")


@pytest.mark.parametrize(
    ("route", "what", "scope"),
    [
        (ROUTES["/mcp"], "any bridge", "bridgehead"),
        (ROUTES["/beta/mcp"], "beta", "bridgehead:beta"),
        (ROUTES[METRICS], "metrics", "bridgehead:metrics"),
        (ROUTES[EVENTS], "events", "bridgehead:events"),
    ],
)
def test_who_may_not_is_told_which_scope_would(route: Route, what: str, scope: str) -> None:
    with pytest.raises(HostRejection) as rejected:
        Gate().admission.authorize(asking("/"), route, Grant("a"))

    problem = rejected.value
    assert (problem.response.status, str(problem), problem.reason) == (
        403,
        f"This token does not open {what}",
        "grant",
    )
    told = dict(problem.response.headers)[b"www-authenticate"].decode()
    assert told == f'Bearer realm="bridgehead", error="insufficient_scope", scope="{scope}"{WHERE}'


async def test_a_token_that_has_just_ended_opens_nothing(file: TokenFile) -> None:
    secret = added(file, "old", expires=NOW)
    gate = Gate(file)
    with pytest.raises(HostRejection) as rejected:
        await gate.admission.authenticate(asking("/mcp", authorization=f"Bearer {secret}"))

    assert rejected.value.reason == "token_expired"
    assert b'error="invalid_token"' in dict(rejected.value.response.headers)[b"www-authenticate"]
