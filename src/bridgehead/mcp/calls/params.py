"""Parameters of the requests that a client sends, one struct a method.

Unknown members are ignored, as the protocol asks; a wrong type is refused with its path. The arguments of a
tool or prompt stay raw here: the declaration decodes them into its own strict struct.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

META_PREFIX = "io.modelcontextprotocol/"
EMPTY = Raw(b"{}")
NULL = b"null"


class RequestMeta(Struct):
    """`_meta` of a request; stateless ones must have the protocol version and the capabilities."""

    progress_token: int | str | UnsetType = field(default=UNSET, name="progressToken")
    protocol_version: str | UnsetType = field(default=UNSET, name=META_PREFIX + "protocolVersion")
    client_info: dict[str, Any] | UnsetType = field(default=UNSET, name=META_PREFIX + "clientInfo")
    client_capabilities: dict[str, Any] | UnsetType = field(
        default=UNSET, name=META_PREFIX + "clientCapabilities"
    )
    log_level: str | UnsetType = field(default=UNSET, name=META_PREFIX + "logLevel")
    traceparent: str | UnsetType = UNSET
    tracestate: str | UnsetType = UNSET
    baggage: str | UnsetType = UNSET
    idempotency_key: str | UnsetType = field(default=UNSET, name="bridgehead/idempotencyKey")


class Params(Struct):
    """Common parameters of all requests."""

    meta: RequestMeta | None = field(default=None, name="_meta")

    def set_trace_parent(self, parent: str) -> None:
        """Replace the incoming trace context, so that calls to the far side name our span as their parent."""
        if self.meta is None:
            self.meta = RequestMeta()
        self.meta.traceparent = parent


class InitializeParams(Params):
    """`initialize`; every member is optional."""

    protocol_version: str | None = field(default=None, name="protocolVersion")
    capabilities: dict[str, Any] = field(default_factory=dict)
    client_info: dict[str, Any] = field(default_factory=dict, name="clientInfo")


class PageParams(Params):
    """All `*/list` methods."""

    cursor: str | None = None


class AnswerableParams(Params):
    """A request that a client may repeat with answers to our questions."""

    input_responses: dict[str, Any] | UnsetType = field(default=UNSET, name="inputResponses")
    request_state: str | UnsetType = field(default=UNSET, name="requestState")


class CallToolParams(AnswerableParams, kw_only=True):
    """`tools/call`."""

    name: str
    arguments: Raw = EMPTY


class GetPromptParams(AnswerableParams, kw_only=True):
    """`prompts/get`."""

    name: str
    arguments: Raw = EMPTY


class ReadResourceParams(AnswerableParams, kw_only=True):
    """`resources/read`."""

    uri: str


class SubscribeParams(Params, kw_only=True):
    """`resources/subscribe`, `resources/unsubscribe` and `skills/get`."""

    uri: str


class Reference(Struct):
    """The subject of a completion: a prompt by name, or a resource template by URI."""

    type: Literal["ref/prompt", "ref/resource"]
    name: str | None = None
    uri: str | None = None


class CompletedArgument(Struct):
    """The argument being typed."""

    name: str
    value: str


class CompletionContext(Struct):
    """Arguments filled in so far."""

    arguments: dict[str, str] = field(default_factory=dict)


class CompleteParams(Params, kw_only=True):
    """`completion/complete`."""

    ref: Reference
    argument: CompletedArgument
    context: CompletionContext = field(default_factory=CompletionContext)


class SetLevelParams(Params, kw_only=True):
    """`logging/setLevel`."""

    level: str


class ListenFilter(Struct, omit_defaults=True, rename="camel"):
    """The changes that a `subscriptions/listen` stream carries."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] | UnsetType = UNSET
    task_ids: list[str] | UnsetType = UNSET


class ListenParams(Params, kw_only=True):
    """`subscriptions/listen`."""

    notifications: ListenFilter


class TaskParams(Params, kw_only=True):
    """`tasks/get` and `tasks/cancel`."""

    task_id: str = field(name="taskId")


class UpdateTaskParams(TaskParams, kw_only=True):
    """`tasks/update`."""

    input_responses: dict[str, Any] = field(name="inputResponses")


class CancelledParams(Params, kw_only=True):
    """`notifications/cancelled`."""

    request_id: int | str = field(name="requestId")
    reason: str | None = None
