"""Grants: what scopes and tokens open, and nothing beyond it."""

import pytest

from bridgehead.host.auth.grants import (
    ANYONE,
    EVERYTHING,
    Grant,
    Opened,
    needed_scope,
    read_scopes,
    supported_scopes,
)

BRIDGES = ("aoc", "mercury")


@pytest.mark.parametrize(
    ("grant", "may_read", "may_write"),
    [
        (Grant("a"), (False, False), (False, False)),
        (Grant("a", frozenset({"aoc"})), (True, False), (True, False)),
        (Grant("a", frozenset({EVERYTHING})), (True, True), (True, True)),
        (Grant("a", reading=frozenset({"aoc"})), (True, False), (False, False)),
        (Grant("a", reading=frozenset({EVERYTHING})), (True, True), (False, False)),
        (Grant("a", frozenset({"mercury"}), frozenset({"aoc"})), (True, True), (False, True)),
        (ANYONE, (True, True), (True, True)),
    ],
)
def test_a_grant_opens_what_it_names(
    grant: Grant, may_read: tuple[bool, bool], may_write: tuple[bool, bool]
) -> None:
    assert tuple(map(grant.may_read, BRIDGES)) == may_read
    assert tuple(map(grant.may_write, BRIDGES)) == may_write


def test_a_star_in_a_token_file_opens_every_bridge() -> None:
    assert Grant("a", frozenset({"*"})).may_write("aoc")


def pages(grant: Grant) -> tuple[bool, bool, bool, bool]:
    """Return whether the metrics, the events, and looking and acting at the dashboard are open."""
    return grant.metrics, grant.events, grant.may_look, grant.admin


def test_a_grant_opens_no_page_and_no_spending_unless_it_says_so() -> None:
    everything = Grant("a", frozenset({EVERYTHING}))

    assert pages(everything) == (False, False, False, False)
    assert not everything.may_spend


def test_where_nobody_is_asked_everything_is_open_without_limit() -> None:
    assert pages(ANYONE) == (True, True, True, True)
    assert (ANYONE.name, ANYONE.dashboard, ANYONE.per_minute, ANYONE.expires) == (None, True, 0, None)


def test_who_may_look_at_the_dashboard_may_not_act_and_who_may_act_may_look() -> None:
    assert pages(Grant("a", dashboard=True)) == (False, False, True, False)
    assert pages(Grant("a", admin=True)) == (False, False, True, True)


@pytest.mark.parametrize(
    ("bridge", "is_mcp", "page", "scope"),
    [
        ("aoc", True, "", "bridgehead:aoc"),
        (None, True, "", "bridgehead"),
        (None, False, "/events", "bridgehead:events"),
        (None, False, "/metrics", "bridgehead:metrics"),
    ],
)
def test_who_is_refused_is_told_the_scope_that_opens_the_place(
    bridge: str | None, page: str, scope: str, *, is_mcp: bool
) -> None:
    assert needed_scope(bridge, is_mcp=is_mcp, page=page) == scope


@pytest.mark.parametrize(
    ("scopes", "full", "reading", "metrics"),
    [
        ([], set(), set(), False),
        (["openid", "profile", "bridgehead2", "aoc"], set(), set(), False),
        (["bridgehead"], {EVERYTHING}, set(), False),
        (["bridgehead:read"], set(), {EVERYTHING}, False),
        (["bridgehead:aoc"], {"aoc"}, set(), False),
        (["bridgehead:aoc:read"], set(), {"aoc"}, False),
        (["bridgehead:bitburner"], set(), set(), False),
        (["bridgehead:metrics"], set(), set(), True),
        (["bridgehead:mercury", "bridgehead:aoc:read"], {"mercury"}, {"aoc"}, False),
        (["BRIDGEHEAD", "bridgehead:", "bridgehead:aoc:write"], set(), set(), False),
    ],
)
def test_scopes_open_what_they_name(
    scopes: list[str], full: set[str], reading: set[str], *, metrics: bool
) -> None:
    assert read_scopes(scopes, BRIDGES) == Opened(
        frozenset(full), frozenset(reading), metrics, may_spend=False
    )


@pytest.mark.parametrize("scope", supported_scopes(BRIDGES))
def test_every_scope_that_is_offered_opens_something_of_its_own(scope: str) -> None:
    others = [other for other in supported_scopes(BRIDGES) if other != scope]

    assert read_scopes([scope], BRIDGES) != read_scopes([], BRIDGES)
    assert read_scopes([scope], BRIDGES) not in [read_scopes([other], BRIDGES) for other in others]


def test_all_scopes_that_are_offered_open_everything_together() -> None:
    every = frozenset({EVERYTHING, *BRIDGES})

    assert read_scopes(supported_scopes(BRIDGES), BRIDGES) == Opened(
        *(every, every),
        metrics=True,
        may_spend=True,
        events=True,
        dashboard=True,
        admin=True,
    )


def test_the_scopes_of_one_bridge_open_nothing_of_the_host() -> None:
    offered = read_scopes(supported_scopes(["aoc"], "aoc"), BRIDGES)

    assert offered == Opened(frozenset({"aoc"}), frozenset({"aoc"}), metrics=False, may_spend=True)


def test_looking_and_acting_are_scopes_of_their_own() -> None:
    looks, acts = (read_scopes([f"bridgehead:{scope}"], BRIDGES) for scope in ("dashboard", "admin"))
    assert (looks.dashboard, looks.admin, looks.full) == (True, False, frozenset())
    assert (acts.dashboard, acts.admin) == (False, True)
    assert not read_scopes(["bridgehead"], BRIDGES).dashboard


def test_spending_is_a_scope_of_its_own() -> None:
    assert read_scopes(["bridgehead:read", "bridgehead:spend"], BRIDGES).may_spend
    assert not read_scopes(["bridgehead:read"], BRIDGES).may_spend
