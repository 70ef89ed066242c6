"""Calls: what one call asks of the API, made from its arguments. Pure.

A call is checked here for what can be known without asking: its size, its model, whether there is a key.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct

from bridgehead.mcp import Context

from . import wire
from .arguments import Chat, Completing, ResponseFormat
from .errors import InvalidCall
from .settings import MercurySettings


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
    return context.principal or str(context.client.info.get("name") or "unknown")


def call_of(settings: MercurySettings, tool: str, path: str, args: Completing, context: Context[Any]) -> Call:
    """Make a call from its arguments, which become the body of the request."""
    keep, timeout = args.cache, args.timeout_ms
    args.cache = args.timeout_ms = UNSET
    if args.model is UNSET:
        args.model = settings.model
    check_model(settings, args.model)
    body = wire.write(args.body())
    if len(body) > settings.max_request_size:
        raise _too_large(len(body), settings.max_request_size)
    most = args.max_tokens or None
    expected, diffusing = None, False
    if isinstance(args, Chat):
        most = args.max_completion_tokens or most
        expected = args.response_format or None
        diffusing = args.diffusing or False
        _check_format(expected)
    return Call(
        tool,
        path,
        args.model,
        body,
        client_of(context),
        (timeout or settings.total_timeout) / 1000,
        (timeout or settings.request_timeout) / 1000,
        keep or ("use" if settings.cache_completions else "bypass"),
        most,
        expected,
        diffusing,
    )


def check_model(settings: MercurySettings, model: str) -> None:
    """Refuse a model that the settings do not allow."""
    if settings.allowed_models and model not in settings.allowed_models:
        raise InvalidCall(
            f"The model {model!r} is not allowed on this server.",
            "MODEL_NOT_ALLOWED",
            next_step=f"Use one of: {', '.join(settings.allowed_models)}.",
        )


def _check_format(expected: ResponseFormat | None) -> None:
    if expected is not None and (expected.type == "json_schema") != bool(expected.json_schema):
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
