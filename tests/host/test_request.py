"""CORS: which pages may call the host, and what their browsers are told."""

from pathlib import Path

from tests.support.host_server import hosting

PAGE = "https://app.example"
ALLOWED = {"BRIDGEHEAD_ALLOWED_ORIGINS": PAGE, "BRIDGEHEAD_AUTH": "off"}


async def test_a_browser_that_asks_for_an_allowed_page_is_told_what_it_may(tmp_path: Path) -> None:
    async with hosting(tmp_path, ALLOWED) as host:
        response = await host.http.request(
            "OPTIONS",
            "/alpha/mcp",
            {
                "Origin": PAGE,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,mcp-param-city",
            },
        )

    assert response.status == 204
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["access-control-allow-headers"] == "authorization,mcp-param-city"
    assert "POST" in response.headers["access-control-allow-methods"]
    assert response.headers["vary"] == "origin"


async def test_an_answer_to_an_allowed_page_can_be_read_by_it(tmp_path: Path) -> None:
    async with hosting(tmp_path, ALLOWED) as host:
        response = await host.try_call("/mcp", "alpha_echo", {"Origin": PAGE})
        stream = await host.try_call(
            "/mcp", "alpha_later", {"Origin": PAGE, "Accept": "text/event-stream, application/json"}
        )
        plain = await host.try_call("/mcp", "alpha_echo")

    for one in (response, stream):
        assert one.status == 200
        assert one.headers["access-control-allow-origin"] == PAGE
        assert "mcp-session-id" in one.headers["access-control-expose-headers"]
    assert "access-control-allow-origin" not in plain.headers


async def test_a_page_that_is_not_allowed_hears_nothing(tmp_path: Path) -> None:
    async with hosting(tmp_path, ALLOWED) as host:
        for method, headers in (
            ("OPTIONS", {"Access-Control-Request-Method": "POST"}),
            ("GET", {}),
        ):
            response = await host.http.request(method, "/mcp", {"Origin": "https://evil.example", **headers})
            assert response.status == 403
            assert "access-control-allow-origin" not in response.headers


async def test_header_names_that_are_none_are_not_repeated_to_a_browser(tmp_path: Path) -> None:
    async with hosting(tmp_path, ALLOWED) as host:
        response = await host.http.request(
            "OPTIONS",
            "/mcp",
            {
                "Origin": PAGE,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "a; b=<script>",
            },
        )

    assert response.headers["access-control-allow-headers"] == "authorization, content-type"


async def test_options_without_a_browsers_question_is_no_preflight(tmp_path: Path) -> None:
    async with hosting(tmp_path, ALLOWED) as host:
        assert (await host.http.request("OPTIONS", "/mcp")).status == 405
