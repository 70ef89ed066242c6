"""Replicas: several hosts, each a process of its own, that a client cannot tell from one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.host.conftest import Dial
from tests.support.host_command import Command, serving
from tests.support.http_client import HttpClient
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import call, encode, stateless

OLD, NEW = "the-old-key-of-these-replicas-0123", "the-new-key-of-these-replicas-0123"
FORM: dict[str, Any] = {"elicitation": {"form": {}}}


@contextmanager
def replicas(folder: Path, *environments: dict[str, Any], **shared: Any) -> Iterator[list[Command]]:
    """Run a host for each environment, each with a state directory of its own."""
    with ExitStack() as stack:
        hosts = []
        for number, own in enumerate(environments):
            state = folder / str(number)
            state.mkdir()
            hosts.append(stack.enter_context(serving(state, **shared, **own)))
        yield hosts


async def post(http: HttpClient, message: Any, **headers: str) -> Any:
    response = await http.request(
        "POST", "/mcp", {**JSON_POST, **mirrored(message), **headers}, encode(message)
    )
    return await response.json()


def asking(state: str | None = None) -> Any:
    params: dict[str, Any] = call("slow_ask", {"text": "Who?"})
    if state is not None:
        answer = {"action": "accept", "content": {"name": "Ada"}}
        params |= {"requestState": state, "inputResponses": {"elicitation": answer}}
    return stateless("tools/call", params, capabilities=FORM)


async def test_keys_rotate_while_questions_are_open(tmp_path: Path, dial: Dial) -> None:
    lists = [{"BRIDGEHEAD_STATE_KEYS": keys} for keys in (OLD, f"{NEW},{OLD}", NEW)]
    with replicas(tmp_path, *lists, BRIDGEHEAD_BRIDGES="slow") as hosts:
        old, both, new = (dial(host.port) for host in hosts)
        by_old = (await post(old, asking()))["result"]["requestState"]
        by_both = (await post(both, asking()))["result"]["requestState"]

        assert "Ada" in str(await post(both, asking(by_old)))
        assert "Ada" in str(await post(new, asking(by_both)))
        refused = await post(new, asking((await post(old, asking()))["result"]["requestState"]))

    assert "was not made by this server" in refused["error"]["message"]


async def test_without_keys_each_process_has_its_own(tmp_path: Path, dial: Dial) -> None:
    with replicas(tmp_path, {}, {}, BRIDGEHEAD_BRIDGES="slow") as hosts:
        one, other = (dial(host.port) for host in hosts)
        state = (await post(one, asking()))["result"]["requestState"]

        assert "was not made by this server" in (await post(other, asking(state)))["error"]["message"]
        assert "Ada" in str(await post(one, asking(state)))
