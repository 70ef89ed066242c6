"""Input requests: questions to the client (elicitation, sampling, roots), and how to read their answers.

An input request is a value. How it travels (a request in the handshake era, an `input_required` result in the
stateless one) is the context's business, so a tool that asks is the same code in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from ..revisions import Revision
from ..values.content import Content, Role, Wire, fit_block
from ..values.schema import form_schema

ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
ROOTS = "roots/list"


class InputRequest(Struct, frozen=True):
    """One request to the client, the capability it needs, and how to read its answer."""

    method: str
    params: dict[str, Any]
    capability: tuple[str, ...]
    read: Callable[[Any], Any]
    """Converts the client's result to the value for the tool, or raises `msgspec.ValidationError`."""

    def is_defined_in(self, revision: Revision) -> bool:
        """Whether the revision defines this kind of request."""
        if self.method == ELICIT:
            # Forms with lists came with the same revision as elicitation by URL.
            is_newer = "url" in self.capability or any(
                prop.get("type") == "array"
                for prop in self.params["requestedSchema"].get("properties", {}).values()
            )
            return revision.url_elicitation if is_newer else revision.elicitation
        return revision.sampling_tools if "tools" in self.capability else True

    def is_possible_for(self, capabilities: Mapping[str, Any]) -> bool:
        """Whether a client with these capabilities can be asked."""
        first, *rest = self.capability
        offered = capabilities.get(first)
        if not isinstance(offered, Mapping):
            return False
        if rest == ["form"]:  # an empty object means forms, as in the first revision with elicitation
            return "form" in offered or not offered
        return all(part in offered for part in rest)

    def params_in(self, revision: Revision) -> dict[str, Any]:
        """Return the parameters as the revision defines them."""
        omitted = {"elicitationId"} if revision.stateless else set()
        if not revision.sampling_tools:
            omitted |= {"tools", "toolChoice"}
        params = {name: value for name, value in self.params.items() if name not in omitted}
        if self.method == ELICIT and not revision.url_elicitation:
            schema = params["requestedSchema"]
            fields = {name: _older_field(prop) for name, prop in schema.get("properties", {}).items()}
            params["requestedSchema"] = {**schema, "properties": fields}
        if self.method == SAMPLE:
            params["messages"] = [part for message in params["messages"] for part in message.fit(revision)]
        return params

    @property
    def required_capabilities(self) -> dict[str, Any]:
        """Name the capability in the shape in which a client declares it."""
        first, *rest = self.capability
        return {first: {part: {} for part in rest if part != "form"}}


class Elicited(Struct, frozen=True):
    """The user's answer; `content` is set only if the action is accept."""

    action: Literal["accept", "decline", "cancel"]
    content: Any = None

    @property
    def accepted(self) -> bool:
        """Whether the user agreed."""
        return self.action == "accept"


class SamplingMessage(Wire, frozen=True):
    """One message for the client's model."""

    role: Role
    content: Content | tuple[Content, ...]

    def fit(self, revision: Revision) -> list[SamplingMessage]:
        """Return the message as the revision defines it; older ones have one block per message."""
        if not isinstance(self.content, tuple):
            return [SamplingMessage(self.role, fit_block(self.content, revision))]
        blocks = tuple(fit_block(block, revision) for block in self.content)
        if revision.sampling_tools:
            return [SamplingMessage(self.role, blocks)]
        return [SamplingMessage(self.role, block) for block in blocks]


class Root(Struct, frozen=True):
    """A folder or file that the client has opened to the server."""

    uri: str
    name: str | None = None


class Sampled(Struct, frozen=True, rename="camel"):
    """The answer of the client's model."""

    role: Role
    content: Any
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text blocks of the answer, joined."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(block.get("text", "") for block in blocks if isinstance(block, dict))


class _RootsResult(Struct, frozen=True):
    roots: list[Root] = field(default_factory=list)


def elicitation(message: str, form: type[Struct] | dict[str, Any]) -> InputRequest:
    """Ask the user to fill in a form: a struct with plain fields, or a JSON Schema of the same shape."""
    if not isinstance(form, dict) and not hasattr(form, "__struct_fields__") and not is_dataclass(form):
        raise TypeError(
            f"A form is a Struct, a dataclass or a JSON Schema with a field for each answer: {form}"
        )
    schema = form if isinstance(form, dict) else form_schema(form)
    params = {"message": message, "requestedSchema": schema}

    def read(result: Any) -> Elicited:
        elicited = msgspec.convert(result, Elicited)
        if not elicited.accepted:
            return Elicited(elicited.action)
        if isinstance(form, dict):
            _check_form(elicited.content, form)
            return elicited
        return Elicited("accept", msgspec.convert(elicited.content or {}, form))

    return InputRequest(ELICIT, params, ("elicitation", "form"), read)


def elicitation_by_url(message: str, url: str, elicitation_id: str) -> InputRequest:
    """Ask the user to do something at a web address, so that secrets do not pass through the client."""
    params = {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
    return InputRequest(
        ELICIT, params, ("elicitation", "url"), lambda result: msgspec.convert(result, Elicited)
    )


def sampling(messages: Sequence[SamplingMessage], *, max_tokens: int, **options: Any) -> InputRequest:
    """Ask the client's model. `options` are the protocol's own names, such as systemPrompt or temperature."""
    params = {"messages": list(messages), "maxTokens": max_tokens, **options}
    capability = ("sampling", "tools") if "tools" in options else ("sampling",)
    return InputRequest(SAMPLE, params, capability, lambda result: msgspec.convert(result, Sampled))


def list_roots() -> InputRequest:
    """Ask which folders and files the client has opened."""
    return InputRequest(ROOTS, {}, ("roots",), lambda result: msgspec.convert(result, _RootsResult).roots)


def _older_field(prop: dict[str, Any]) -> dict[str, Any]:
    """Convert a form's field to revision 2025-06-18: `enumNames`, and defaults for booleans only."""
    older = {word: value for word, value in prop.items() if word != "oneOf"}
    if prop.get("type") != "boolean":
        older.pop("default", None)
    if "oneOf" in prop:
        older["enum"] = [choice["const"] for choice in prop["oneOf"]]
        older["enumNames"] = [choice.get("title", choice["const"]) for choice in prop["oneOf"]]
    return older


_FORM_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def _check_form(content: Any, schema: dict[str, Any]) -> None:
    """Check a form's content against its flat schema: required fields, and each field's plain type."""
    if not isinstance(content, dict):
        message = "Expected `object` - at `$.content`"
        raise msgspec.ValidationError(message)
    for name in schema.get("required", ()):
        if name not in content:
            message = f"Object missing required field `{name}` - at `$.content`"
            raise msgspec.ValidationError(message)
    for name, value in content.items():
        kind = schema.get("properties", {}).get(name, {}).get("type")
        expected = _FORM_TYPES.get(kind, (object,))
        if not isinstance(value, expected) or (isinstance(value, bool) and kind in ("integer", "number")):
            message = f"Expected `{kind}` - at `$.content.{name}`"
            raise msgspec.ValidationError(message)
