"""A simulated world that is asked without a connection."""

import json
from typing import Any

from tests.support.game import World, answer

FILES = {"home": {"run.js": "ns.scan()", "notes.txt": "héllo"}, "n00dles": {}}


def ask(world: World, method: str, **params: Any) -> dict[str, Any]:
    """Ask for a method and return the reply."""
    said = answer(world, json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
    assert said is not None
    reply: dict[str, Any] = json.loads(said)
    assert (reply.pop("jsonrpc"), reply.pop("id")) == ("2.0", 7)
    return reply
