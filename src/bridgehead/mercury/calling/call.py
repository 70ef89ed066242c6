"""Call: one request to the API, made from a tool's arguments. Pure.

Checks everything that can be checked without the API: the size, the model, the messages, the response format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from msgspec import UNSET, field, json

from bridgehead.mcp import Context

from ..api import wire
from ..arguments import (
    CallArguments,
    Chat,
    CompletionArguments,
    NamedFunction,
    NamedTool,
    OfferedTool,
    ResponseFormat,
)
from ..errors import MercuryError
from ..settings import MercurySettings
from .routes import MERCURY, Routes, Target

ANONYMOUS = "(no token)"
"""The name of all callers without a token."""
CONNECTION = "connection "
"""Prefix of an account that is a connection, which only this process knows."""
CacheKey = tuple[str, bytes]
"""Owner and path, and the complete body of the request."""
TOOL_CHOICES = ("auto", "none", "required")
CacheUse = Literal["use", "bypass", "refresh"]


class Call(wire.ApiRequest, kw_only=True):
    """A request to the API, with its caller, limits and options."""

    tool: str
    client: str
    """The caller's name in reports, which the client may have chosen itself."""
    account: str = ANONYMOUS
    """The owner of the rate limits that it counts against; never a name that the client chose."""
    principal: str | None = None
    """The owner of the token that it came with."""
    seconds: float
    """Time limit of the call, retries included."""
    request_seconds: float | None = None
    """Time limit of one request; None is the provider's."""
    cache: CacheUse
    is_patient: bool = False
    """Whether it waits without limit for the rate limits of this server, as part of a batch; its time
    limit starts after the wait."""
    max_tokens: int | None = None
    response_format: ResponseFormat | None = None
    is_model_named: bool = False
    """Whether the caller named a model, so that routes for calls without a model do not apply."""
    default_model: str = ""
    """The model that the settings chose and another may replace; empty if the call names one."""
    asks_diffusing: bool = False
    cache_owner: str = ""
    """The token whose cached answers it shares; empty if they are shared by all."""
    provider: str = MERCURY
    """The name of the current provider."""
    warnings: tuple[str, ...] = ()
    """Notes for the caller about the choice of the model."""
    is_limit_renamed: bool = False
    """Whether the current provider gets `max_tokens` under its newer name."""
    dropped: tuple[str, ...] = ()
    """Fields of the body that the current provider does not get."""
    tries: int = 0
    """The number of sends written so far."""
    is_counted: bool = False
    """Whether it already counts in the rate limits of its client."""
    uncertain_usd: float = 0.0
    """The worst case of its sends whose end is unknown."""
    cost_usd: float | None = None
    """What it certainly cost, if that is known."""
    left_usd: dict[str, float] = field(default_factory=dict)
    """What was left of its caller's budgets after the last send, by period."""

    def direct_to(
        self,
        target: Target,
        unknown_fields: Collection[str] = (),
        *,
        renames_limit: bool = False,
        has_fim: bool = True,
        has_stream_options: bool = True,
    ) -> None:
        """Direct the call to a provider and model; leave out the fields that the provider does not know.

        `body` is unchanged, because it is the cache key: the answer is cached under the requested model.
        """
        self.provider, self.is_diffusing = target.provider, self.asks_diffusing
        self.asks_usage = has_stream_options
        needs_completions = self.path == wire.FIM and not has_fim
        changes = self.sent_body or unknown_fields or needs_completions or renames_limit
        if target.model == self.model and not changes:
            return
        self.model = target.model
        body = {**json.decode(self.body), "model": target.model}
        if needs_completions:
            body = {**wire.FIM_DEFAULTS, **body}
        self.is_limit_renamed = renames_limit and "max_tokens" in body
        if self.is_limit_renamed:
            limit = body.pop("max_tokens")
            body["max_completion_tokens"] = max(limit, body.get("max_completion_tokens", 0))
        self.sent_path = wire.COMPLETIONS if needs_completions else ""
        dropped = tuple(sorted(name for name in unknown_fields if name in body))
        if dropped:
            body = {name: value for name, value in body.items() if name not in dropped}
            self.is_diffusing = self.asks_diffusing and "diffusing" not in dropped
        self.dropped, self.sent_body = dropped, wire.write(body)

    def has_field(self, name: str) -> bool:
        """Return whether the current provider was sent a field."""
        return name in json.decode(self.sent_body or self.body)

    @property
    def cache_key(self) -> CacheKey:
        """Owner, path and body; none of them depends on the route."""
        return f"{self.cache_owner}\0{self.path}", self.body


def identify_client(context: Context[Any]) -> str:
    """Return the caller's name: its token's or, without a token, the client's own name."""
    return context.connection.principal or str(context.client.info.get("name") or "unknown")


def identify_account(context: Context[Any]) -> str:
    """Return the owner of the rate limits of a call: its token, or else its connection.

    Never the client's own name, which it could change with every call. HTTP requests without a session have a
    connection each; without a token they share one account.
    """
    connection = context.connection
    if connection.principal is not None:
        return connection.principal
    return ANONYMOUS if connection.listener is None else f"{CONNECTION}{id(connection):x}"


class CallFactory:
    """Makes calls, with the defaults and limits of the settings."""

    def __init__(
        self,
        settings: MercurySettings,
        routes: Routes,
        on_refusal: Callable[[Context[Any], str, MercuryError], None],
    ) -> None:
        self._routes = routes
        self._on_refusal = on_refusal
        """Audits arguments that do not become a call; gets the context, the tool's name and the error."""
        self._models = {
            wire.FIM: settings.fim_model,
            wire.EDIT: settings.edit_model,
            wire.EMBEDDINGS: settings.embedding_target[1],
        }
        """The default models of endpoints that not every model serves; empty is the general default."""
        self._model = settings.model
        self._embedding_provider = settings.embedding_target[0]
        self._allowed_models = settings.allowed_models
        self._max_bytes = settings.max_request_size
        self._total_timeout = settings.total_timeout
        self._shares_cache = settings.cache_shared
        self._cache: CacheUse = "use" if settings.cache_completions else "bypass"

    def make(
        self, tool: str, path: str, args: CallArguments, context: Context[Any], *, stream: bool = False
    ) -> Call:
        """Make a call from its arguments, which become the body of the request.

        A `MercuryError` is audited and raised.
        """
        try:
            return self._make(tool, path, args, context, stream=stream)
        except MercuryError as error:
            self._on_refusal(context, tool, error)
            raise

    def _make(
        self, tool: str, path: str, args: CallArguments, context: Context[Any], *, stream: bool
    ) -> Call:
        # Not part of the body: calls that differ only in these share a cached answer.
        cache, timeout = args.cache, args.timeout_ms
        args.cache = args.timeout_ms = UNSET
        own_default = self._models.get(path, "")
        default_model = ""
        if args.model is UNSET:
            args.model = default_model = own_default or self._model
        if self._allowed_models and args.model not in (
            *(*self._allowed_models, *self._routes.names),
            self._models[wire.EMBEDDINGS],
        ):
            raise MercuryError(
                "MODEL_NOT_ALLOWED",
                f"The model {args.model!r} is not allowed on this server.",
                next_step=f"Use one of: {', '.join(self._allowed_models)}.",
            )
        if isinstance(args, Chat) and isinstance(args.tool_choice, str):
            args.tool_choice = _read_tool_choice(args.tool_choice, args.tools or [])
        body = wire.write(args.to_body())
        if len(body) > self._max_bytes:
            problem = f"The arguments have {len(body):,} bytes, and this server takes {self._max_bytes:,}."
            raise MercuryError("REQUEST_TOO_LARGE", problem)
        seconds = (timeout or self._total_timeout) / 1000
        call = Call(
            path,
            args.model,
            body,
            stream,
            tool=tool,
            client=identify_client(context),
            account=identify_account(context),
            principal=context.connection.principal,
            seconds=seconds,
            # A stream that keeps coming is not too slow: its first byte and its gaps have their own limits.
            request_seconds=seconds if stream or timeout else None,
            cache=cache or self._cache,
            max_tokens=(args.max_tokens or None) if isinstance(args, CompletionArguments) else None,
            is_model_named=not default_model or bool(own_default),
            default_model=default_model,
            # A cache per token: otherwise the time or price of an answer would reveal another token's calls.
            cache_owner="" if self._shares_cache else context.connection.principal or "",
        )
        if path == wire.EMBEDDINGS:
            # Few providers offer embeddings, so neither a route nor a substitute replaces the configured
            # model.
            call.provider, call.default_model = self._embedding_provider, ""
        if trace := context.trace:
            call.trace = _continue_trace(trace)
        if not isinstance(args, Chat):
            return call
        # Where both are given, only the API knows which one counts: the larger one is reserved.
        call.max_tokens = max(args.max_tokens or 0, args.max_completion_tokens or 0) or None
        call.is_diffusing = call.asks_diffusing = args.diffusing or False
        # Refuse combinations of fields that the schema cannot express; the error names the field.
        for number, message in enumerate(args.messages):
            if message.role == "tool" and not message.tool_call_id:
                raise _wrong(f"messages[{number}].tool_call_id", "a tool message needs the id of its call")
            if message.content is None and not (message.role == "assistant" and message.tool_calls):
                raise _wrong(f"messages[{number}].content", "only an assistant that calls tools may lack it")
        form = call.response_format = args.response_format or None
        if form is not None and (form.type == "json_schema") != bool(form.json_schema):
            raise MercuryError(
                "INVALID_ARGUMENTS",
                "response_format.json_schema goes with the type json_schema, and only with it.",
                next_step="Give both or neither.",
            )
        return call


_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACE_STATE = re.compile(r"[\x20-\x7e]{1,512}")


def _continue_trace(trace: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers that continue the caller's trace (W3C Trace Context); malformed ones are dropped."""
    parent, state = trace.get("traceparent", ""), trace.get("tracestate", "")
    if not _TRACE_PARENT.fullmatch(parent):
        return ()
    own = (("traceparent", parent),)
    return (*own, ("tracestate", state)) if _TRACE_STATE.fullmatch(state) else own


def _read_tool_choice(choice: str, tools: list[OfferedTool]) -> str | NamedTool:
    """Return the choice in the API's form; an agent may give just the name of a function."""
    if choice in TOOL_CHOICES:
        return choice
    names = [tool.function.name for tool in tools]
    if choice not in names:
        raise MercuryError(
            "INVALID_ARGUMENTS",
            f"tool_choice must be {', '.join(TOOL_CHOICES)} or the name of a function in tools "
            f"({', '.join(names) or 'there are none'}), not {choice!r}.",
        )
    return NamedTool(NamedFunction(choice))


def _wrong(argument: str, why: str) -> MercuryError:
    return MercuryError("INVALID_ARGUMENTS", f"{argument} is missing: {why}.")
