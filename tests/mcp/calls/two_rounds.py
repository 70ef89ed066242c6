"""A tool that asks three times, one question a round: how a test gets to its second round."""

from typing import Any

from tests.support.asking import ALL, make_bridge
from tests.support.checked import STATELESS, CheckedClient, connect

bridge = make_bridge()
RED = {"action": "accept", "content": {"color": "red"}}
BLUE = {"action": "accept", "content": {"color": "blue"}}


def stateless(**options: Any) -> Any:
    """Connect a client of the stateless era that can answer everything."""
    return connect(bridge, revision=STATELESS, capabilities=ALL, **options)


async def second_round(client: CheckedClient) -> str:
    """Go to where the state holds an answer, and return the state."""
    first = await client.call("rounds")
    second = await client.call("rounds", inputResponses={"one": RED}, requestState=first["requestState"])
    assert list(second["inputRequests"]) == ["two"]
    assert second["inputRequests"]["two"]["params"]["message"] == "Two, after red"
    state: str = second["requestState"]
    return state


async def refused(client: CheckedClient, state: Any, **params: Any) -> str:
    """Answer the second question with a state that is not accepted, and return what is said to that."""
    request = {"name": "rounds", "inputResponses": {"two": BLUE}, "requestState": state, **params}
    error = await client.error("tools/call", request)
    assert error["code"] == -32602
    message: str = error["message"]
    return message
