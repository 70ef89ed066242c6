"""A host of stand-in bridges: a real server on a real loopback socket, in the test's own event loop."""

import io
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from bridgehead.host.app import HostApplication
from bridgehead.host.auth.tokens import TokenFile, create_token
from bridgehead.host.factory import ApplicationFactory, limits_of
from bridgehead.host.replicas.replica import open_replica
from bridgehead.host.settings import HostSettings
from bridgehead.mcp.http.server import Server
from bridgehead.runtime import logs
from tests.support.clock import Clock
from tests.support.host_bridges import StandIns
from tests.support.http_client import Headers, HttpClient, Response
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import HANDSHAKE, Json, call, encode, initialize, notification, request, stateless


class Host:
    """A running host, its stand-ins, its log, and a client of it."""

    def __init__(
        self, app: HostApplication, stand_ins: StandIns, port: int, tokens: TokenFile, log: io.StringIO
    ) -> None:
        self.app = app
        self.far = stand_ins.far
        self.stand_ins = stand_ins
        self.port = port
        self.tokens = tokens
        self.http = HttpClient(port)
        self.secrets: dict[str, str] = {}
        """The tokens that were there from the start, by name."""
        self._log = log

    @property
    def log(self) -> list[Json]:
        """Every line that was logged so far."""
        return [msgspec.json.decode(line) for line in self._log.getvalue().splitlines()]

    def logged(self, event: str) -> list[Json]:
        """The lines about one event."""
        return [line for line in self.log if line["event"] == event]

    def token(self, name: str, **options: Any) -> str:
        """Make a token."""
        entry, secret = create_token(name, 1_800_000_000.0, **options)
        self.tokens.add(entry)
        return secret

    async def get(self, path: str, headers: Headers | None = None) -> Response:
        """GET a page."""
        return await self.http.request("GET", path, {"Content-Length": None, **(headers or {})})

    async def page(self, path: str, headers: Headers | None = None, status: int = 200) -> Any:
        """GET a page of JSON."""
        response = await self.get(path, headers)
        assert response.status == status, (response.status, await response.body())
        return msgspec.json.decode(await response.body())

    async def post(self, path: str, message: Any, headers: Headers | None = None) -> Response:
        """POST a message, or bytes as they are."""
        body = message if isinstance(message, bytes) else encode(message)
        return await self.http.request("POST", path, {**JSON_POST, **(headers or {})}, body)

    async def ask(
        self, path: str, method: str, params: Json | None = None, headers: Headers | None = None
    ) -> Json:
        """Ask in the stateless era, and return the result."""
        message = stateless(method, params)
        response = await self.post(path, message, {**mirrored(message), **(headers or {})})
        answer = await response.json()
        assert response.status == 200, (response.status, answer)
        result: Json = answer["result"]
        return result

    async def refused(self, response: Response, status: int) -> str:
        """Read a refusal and return its words."""
        answer = msgspec.json.decode(await response.body())
        assert response.status == status, (response.status, answer)
        assert answer["error"]["data"]["requestId"] == response.headers["x-request-id"]
        message: str = answer["error"]["message"]
        return message

    async def try_call(self, path: str, tool: str, headers: Headers | None = None) -> Response:
        """Call a tool with a text in the stateless era, whatever comes of it."""
        return await self.post_call(path, call(tool, {"text": "hello"}), headers)

    async def post_call(self, path: str, params: Json, headers: Headers | None = None) -> Response:
        """Call a tool in the stateless era, whatever comes of it."""
        message = stateless("tools/call", params)
        return await self.post(path, message, {**mirrored(message), **(headers or {})})

    async def tools(self, path: str, headers: Headers | None = None) -> list[str]:
        """List the names of the tools."""
        return [tool["name"] for tool in (await self.ask(path, "tools/list", headers=headers))["tools"]]

    async def session(self, path: str, headers: Headers | None = None) -> Headers:
        """Shake hands, and return the headers of everything that follows."""
        response = await self.post(path, initialize(), headers)
        assert response.status == 200, await response.body()
        await response.json()
        own: Headers = {
            **(headers or {}),
            "Mcp-Session-Id": response.headers["mcp-session-id"],
            "MCP-Protocol-Version": HANDSHAKE,
        }
        assert (await self.post(path, notification("notifications/initialized"), own)).status == 202
        return own

    async def in_session(self, path: str, session: Headers, method: str, params: Json | None = None) -> Json:
        """Ask in a session, and return the answer."""
        answer: Json = await (await self.post(path, request(method, params), session)).json()
        return answer


def bearer(token: str) -> Headers:
    """Make the header that shows a token."""
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def hosting(
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    stand_ins: StandIns | None = None,
    tokens: Mapping[str, Mapping[str, Any]] | None = None,
    clock: Clock | None = None,
    limits: Mapping[str, Any] | None = None,
) -> AsyncIterator[Host]:
    """Serve stand-ins; with tokens, callers need one. Their secrets are in `Host.secrets` by name.

    `limits` are limits of the engine that differ from those of the settings, by name.
    """
    stand_ins = stand_ins or StandIns("alpha", "beta")
    file = TokenFile(folder / "tokens.json")
    full = {"BRIDGEHEAD_STATE_DIR": str(folder), **(environment or {})}
    secrets = {}
    for name, options in (tokens or {}).items():
        entry, secrets[name] = create_token(name, 1_800_000_000.0, **options)
        file.add(entry)
    if tokens:
        full["BRIDGEHEAD_TOKENS_FILE"] = str(file.path)
    settings = HostSettings(full)
    log = io.StringIO()
    logs.configure("debug", "json", log)
    factory = ApplicationFactory(
        settings,
        stand_ins.manifests(),
        full,
        clock or Clock(runs=True),
        limits=msgspec.structs.replace(limits_of(settings), **(limits or {})),
        state_keys=(b"k" * 32,),
        replica=open_replica(settings),
    )
    app = factory.make()
    server = Server(
        app,
        max_connections=settings.connections,
        max_per_address=settings.connections_per_address,
        unlimited=app.proxies,
        by_address=app.metrics.connections,
        keep_alive_seconds=settings.idle_seconds,
        shutdown_seconds=2,
        on_reject=app.record_early_rejection,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await app.start()
        await server.start(listener)
        host = Host(app, stand_ins, listener.getsockname()[1], file, log)
        host.secrets = secrets
        try:
            yield host
        finally:
            server.stop_accepting()
            app.end_streams()
            await server.stop()
            await app.stop()
            await host.http.close()
            logs.configure("info", "json")
