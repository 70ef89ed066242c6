"""Messages as a client of either era writes them, and the check of everything that comes back."""

import itertools
from typing import Any

import msgspec

from tests.support import oracle

Json = dict[str, Any]

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"
SUBSCRIPTION = META + "subscriptionId"

_ids = itertools.count(1000)


def encode(message: Any) -> bytes:
    """Write a message as one line without its end."""
    return msgspec.json.encode(message)


def decode(data: bytes) -> Any:
    """Read one message, or a batch."""
    return msgspec.json.decode(data)


def request(method: str, params: Json | None = None, request_id: int | str | None = None) -> Json:
    """Make a request of the handshake era."""
    new = next(_ids) if request_id is None else request_id
    return {"jsonrpc": "2.0", "id": new, "method": method, "params": params or {}}


def stateless(
    method: str,
    params: Json | None = None,
    request_id: int | str | None = None,
    *,
    version: str = STATELESS,
    capabilities: Json | None = None,
) -> Json:
    """Make a request of the stateless era."""
    params = dict(params or {})
    params["_meta"] = {
        META + "protocolVersion": version,
        META + "clientInfo": {"name": "tests", "version": "1"},
        META + "clientCapabilities": capabilities or {},
        **params.get("_meta", {}),
    }
    return request(method, params, request_id)


def initialize(version: str = HANDSHAKE, capabilities: Json | None = None) -> Json:
    """Make the first request of the handshake era."""
    return request(
        "initialize",
        {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "tests", "version": "1"},
        },
        "hello",
    )


def notification(method: str, params: Json | None = None) -> Json:
    """Make a notification."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def cancelled(request_id: int | str) -> Json:
    """Make the notification that cancels a request."""
    return notification("notifications/cancelled", {"requestId": request_id})


def call(tool: str, arguments: Json | None = None, *, progress: int | str | None = None) -> Json:
    """Make the parameters of a tool call."""
    params: Json = {"name": tool, "arguments": arguments or {}}
    if progress is not None:
        params["_meta"] = {"progressToken": progress}
    return params


def text(answer: Json) -> str:
    """Return the text of a tool's answer."""
    (block,) = answer["result"]["content"]
    said: str = block["text"]
    return said


class Checker:
    """Holds every message of one client's connection to the official types, by what was asked for."""

    def __init__(self) -> None:
        self._asked: dict[Any, tuple[str, str]] = {}
        self.revision = HANDSHAKE

    def note_requests(self, message: Any) -> None:
        """Remember what goes out."""
        for item in message if isinstance(message, list) else [message]:
            if isinstance(item, dict) and "id" in item and "method" in item:
                self._asked[item["id"]] = (self._revision_of(item), item["method"])

    def _revision_of(self, item: Json) -> str:
        params = item.get("params")
        meta = params.get("_meta", {}) if isinstance(params, dict) else {}
        if isinstance(meta, dict) and META + "protocolVersion" in meta:
            return STATELESS
        return self.revision

    def check(self, message: Any) -> None:
        """Hold what comes in to the official types."""
        for item in message if isinstance(message, list) else [message]:
            revision, method = self._subject(item)
            if method == "initialize" and "result" in item:
                revision = self.revision = item["result"]["protocolVersion"]
            oracle.check(revision, method, item)

    def _subject(self, item: Json) -> tuple[str, str | None]:
        if "method" not in item:
            return self._asked.get(item.get("id"), (self.revision, None))
        params = item.get("params") or {}
        listening = SUBSCRIPTION in params.get("_meta", {})
        if listening or params.get("progressToken") in self._stateless_tokens:
            return STATELESS, None
        return self.revision, None

    @property
    def _stateless_tokens(self) -> set[Any]:
        return {name for name, (revision, _) in self._asked.items() if revision == STATELESS}
