"""Routes: every path that there is, and who may go there."""

from bridgehead.host.routes import ALIVE, METRICS, NO_OAUTH, READY, RESOURCE, Route, make_table

BRIDGES = ("aoc", "mercury")


def test_each_bridge_and_all_of_them_have_the_paths_of_the_protocol() -> None:
    table = make_table(BRIDGES, with_oauth=False)

    served = {path: route.bridge for path, route in table.items() if route.is_mcp}
    assert served == {
        f"{prefix}{path}": bridge
        for prefix, bridge in (("", None), ("/aoc", "aoc"), ("/mercury", "mercury"))
        for path in ("/mcp", "/sse", "/messages")
    }
    assert all(table[path].access == "token" for path in [*served, METRICS])


def test_probes_need_no_token_and_name_no_bridge_in_what_is_counted() -> None:
    table = make_table(BRIDGES, with_oauth=False)

    assert {path: route for path, route in table.items() if route.access == "probe"} == {
        ALIVE: Route(ALIVE, "probe"),
        READY: Route(READY, "probe"),
        f"{READY}/aoc": Route(READY, "probe", "aoc"),
        f"{READY}/mercury": Route(READY, "probe", "mercury"),
    }


def test_metadata_is_public_where_there_is_an_authorisation_server() -> None:
    without = make_table(BRIDGES, with_oauth=False)
    looked_for = {path: route for path, route in without.items() if path.startswith("/.well-known/")}
    assert f"{RESOURCE}/aoc/mcp" in looked_for
    assert {route.name for route in looked_for.values()} == {NO_OAUTH}  # which says how tokens are given

    public = make_table(BRIDGES, with_oauth=True)
    assert {path: route.bridge for path, route in public.items() if route.access == "public"} == {
        RESOURCE: None,
        f"{RESOURCE}/mcp": None,
        f"{RESOURCE}/aoc/mcp": "aoc",
        f"{RESOURCE}/mercury/mcp": "mercury",
    }
