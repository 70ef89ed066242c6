"""OAuth as a whole: an identity server nobody here wrote, the official client, and our host between them."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.check import Check
from tests.interop.node import Package
from tests.interop.server_process import listening
from tests.support.ports import free_port

IDENTITY_SERVER = Package("oidc-provider", "9.13.3")
SCRIPT = Path(__file__).with_name("identity_server.mjs")


@contextmanager
def identity_server(node: str, callback: str, *options: str) -> Iterator[str]:
    """Run an identity server that knows a dashboard as a client, and give its address."""
    IDENTITY_SERVER.install()
    port = free_port()
    command = [node, str(SCRIPT), str(IDENTITY_SERVER.folder), str(port), callback, *options]
    with listening(command, port) as issuer:
        yield issuer


@contextmanager
def guarded_host(node: str) -> Iterator[str]:
    """Run an identity server, and a host that accepts its tokens; give the host's address."""
    here = free_port()
    address = f"http://127.0.0.1:{here}"
    with identity_server(node, f"{address}/dashboard/oauth/callback") as issuer:
        environment = {
            "BRIDGEHEAD_OAUTH_ISSUER": issuer,
            "BRIDGEHEAD_OAUTH_AUDIENCE": f"{address}/mcp",
            "BRIDGEHEAD_PUBLIC_URL": address,
            "BRIDGEHEAD_OAUTH_CLIENT_ID": "dashboard",
        }
        command = [sys.executable, "-m", "tests.interop.host_server", "--http", str(here)]
        with listening(command, here, environment) as found:
            yield found


def checks(address: str) -> list[Check]:
    """The whole flow, at the address of one bridge and at that of all."""
    client = (sys.executable, "-m", "tests.interop.oauth_client")
    return [
        Check(
            f"oauth: the official client at {path}",
            (*client, address + path),
            _judge(f"{address}{path}", scope),
        )
        for path, scope in (("/interop/mcp", "bridgehead:interop"), ("/mcp", "bridgehead"))
    ] + [
        Check(
            f"oauth: somebody signs in to the dashboard to {what}",
            (sys.executable, "-m", "tests.interop.oauth_dashboard", address, what),
            _judge_dashboard,
        )
        for what in ("look", "act")
    ]


def _judge_dashboard(output: str) -> None:
    told = json.loads(output)
    assert told["who"] == "oauth:alice"
    assert told["acts"] == (told["asked"] == "act")
    assert told["again"] == 400  # a code works once
    assert told["stranger"] == 403  # and only in the browser that began


def _judge(resource: str, scope: str) -> Callable[[str], None]:
    def judge(output: str) -> None:
        told = json.loads(output)
        assert told["answer"] == {"sum": 5}
        ours = [one for one in told["asked"]["scope"][0].split() if one != "offline_access"]
        assert ours == [scope]  # what is needed here, and no more
        assert told["claims"]["aud"] == resource
        assert told["claims"]["scope"] == scope

    return judge
