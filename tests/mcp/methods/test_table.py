"""The table of methods: each method in its era, and offered only where there is something."""

from typing import Any

import pytest

from bridgehead.mcp import Bridge
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.methods.table import METHODS
from tests.support.full_bridge import make_bridge

ONLY_HANDSHAKE = {
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
}
ONLY_STATELESS = {
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
}
ALWAYS = {"initialize", "ping", "server/discover", "subscriptions/listen"}


def test_eras_have_the_methods_that_the_protocol_gives_them() -> None:
    assert {name for name, method in METHODS.items() if not method.stateless} == ONLY_HANDSHAKE
    assert {name for name, method in METHODS.items() if not method.handshake} == ONLY_STATELESS


@pytest.mark.parametrize(
    ("bridge", "offered"),
    [(Bridge[None]("empty", "1", logging=False), ALWAYS), (make_bridge(), set(METHODS))],
)
def test_a_bridge_offers_the_methods_for_what_it_has(bridge: Bridge[Any], offered: set[str]) -> None:
    server = Dispatcher(bridge)

    assert {name for name, method in METHODS.items() if method.offered(server)} == offered
