"""The application: each path leads where it should, and the rest leads nowhere."""

from bridgehead.mcp.http.application import Application
from tests.support.http_server import Server


async def test_a_path_that_leads_nowhere_says_so(server: Server) -> None:
    for path in ("/", "/mcp/", "/MCP", "/messages/x"):
        response = await server.http.request("POST", path, {"Content-Type": "application/json"}, b"{}")
        assert f"There is nothing at {path}" in await server.refused(response, 404)


async def test_the_end_of_its_streams_leaves_the_application_serving(server: Server) -> None:
    assert isinstance(server.app, Application)
    stream = await server.listen(await server.session())
    server.app.end_streams()

    assert await stream.messages() == []
    assert await server.is_alive()
