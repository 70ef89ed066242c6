"""Calls: what one call asks of the API, made from its arguments. Pure.

A call is checked here for what can be known without asking: its size, its model, whether there is a key.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct

from bridgehead.mcp import Context

from ..api import wire
from ..errors import InvalidCall
from ..settings import MercurySettings
from ..tools.arguments import Chat, Completing, ResponseFormat


class Call(Struct):
    """One call, ready to be sent."""

    tool: str
    path: str
    model: str
    body: bytes
    client: str
    seconds: float
    """How long it may take, all its tries included."""
    request_seconds: float
    """How long one try may take."""
    keep: str
    """What the cache may do: use, bypass or refresh."""
    most_tokens: int | None
    expected: ResponseFormat | None = None
    diffusing: bool = False
    tries: int = 0
    """How many requests went out for it so far."""

    @property
    def key(self) -> tuple[str, bytes]:
        """What the cache knows it by: everything that is asked, and where."""
        return self.path, self.body


def client_of(context: Context[Any]) -> str:
    """Name who calls: as the transport knows it, or else as the client calls itself."""
    return context.connection.principal or str(context.client.info.get("name") or "unknown")


class Calls:
    """Makes calls as the settings allow and complete them."""

    def __init__(self, settings: MercurySettings) -> None:
        self._model = settings.model
        self._allowed_models = settings.allowed_models
        self._most_bytes = settings.max_request_size
        self._total_timeout = settings.total_timeout
        self._request_timeout = settings.request_timeout
        self._keep = "use" if settings.cache_completions else "bypass"

    def make(self, tool: str, path: str, args: Completing, context: Context[Any]) -> Call:
        """Make a call from its arguments, which become the body of the request."""
        keep, timeout = args.cache, args.timeout_ms
        args.cache = args.timeout_ms = UNSET
        model = args.model
        if model is UNSET:
            model = args.model = self._model
        if self._allowed_models and model not in self._allowed_models:
            raise _not_allowed(model, self._allowed_models)
        body = wire.write(args.body())
        if len(body) > self._most_bytes:
            raise _too_large(len(body), self._most_bytes)
        expected, diffusing, most = None, False, args.max_tokens or None
        if isinstance(args, Chat):
            most = args.max_completion_tokens or most
            diffusing = args.diffusing or False
            expected = args.response_format or None
            if expected is not None:
                _check_format(expected)
        return Call(
            tool,
            path,
            model,
            body,
            client_of(context),
            (timeout or self._total_timeout) / 1000,
            (timeout or self._request_timeout) / 1000,
            keep or self._keep,
            most,
            expected,
            diffusing,
        )


def _not_allowed(model: str, allowed: tuple[str, ...]) -> InvalidCall:
    return InvalidCall(
        f"The model {model!r} is not allowed on this server.",
        "MODEL_NOT_ALLOWED",
        next_step=f"Use one of: {', '.join(allowed)}.",
    )


def _check_format(expected: ResponseFormat) -> None:
    if (expected.type == "json_schema") != bool(expected.json_schema):
        raise InvalidCall(
            "response_format.json_schema goes with the type json_schema, and only with it.",
            "INVALID_ARGUMENTS",
            next_step="Give both or neither.",
        )


def _too_large(size: int, most: int) -> InvalidCall:
    return InvalidCall(
        f"The arguments have {size:,} bytes, and this server takes {most:,}.",
        "REQUEST_TOO_LARGE",
        next_step="Send less, or raise MAX_REQUEST_SIZE.",
    )
