"""Prompts: their declaration, listing and messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from .. import jsonrpc
from ..calls.context import Context
from ..calls.params import EMPTY, NULL
from ..coroutines import settle
from ..errors import INVALID_PARAMS, ProtocolError
from ..revisions import NEWEST_HANDSHAKE, Revision
from ..values.argument_errors import describe_strings
from ..values.content import Content, Icon, PromptMessage, Text, Wire, fit, fit_block
from ..values.custom import read_custom
from ..values.schema import describe_fields, flat_schema
from .bridge_base import BridgeBase
from .docstrings import read_docstring
from .functions import (
    check_description,
    check_function,
    check_input,
    check_item,
    check_name,
    input_type,
    make_handler,
    name_of,
)
from .results import InvalidResult
from .tools import Arguments

Messages = str | PromptMessage | Content | Sequence[str | PromptMessage | Content]


class PromptArgument(Wire, frozen=True):
    """One argument of a prompt as it is listed."""

    name: str
    description: str | None = None
    required: bool = False


class PromptItem(Wire, frozen=True):
    """A prompt as it is listed."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: tuple[Icon, ...] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PromptResult(Wire, frozen=True):
    """A prompt's messages on the wire."""

    messages: list[PromptMessage]
    description: str | None = None


class Prompt:
    """One prompt: its handler and its declaration."""

    def __init__(
        self,
        function: Callable[..., Messages | Awaitable[Messages]],
        description: str | None,
        *,
        bridge: BridgeBase,
        name: str | None = None,
        title: str | None = None,
        icons: tuple[Icon, ...] = (),
    ) -> None:
        self.function = function
        self.handler = make_handler(function)
        self.bridge = bridge
        self.name = name or name_of(function)
        if description is None:
            description, _ = read_docstring(function)
        self.description = description
        self.title = title
        self._icons = icons

    @cached_property
    def input_type(self) -> type[Struct]:
        """The struct of the arguments."""
        return input_type(self.function, f"Prompt {self.name}", Arguments)

    @property
    def argument_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, each of which is a string on the wire."""
        return flat_schema(self.input_type)

    def check(self) -> None:
        """Raise `DeclarationError` if no client could use this declaration."""
        check_name(self.name, "Prompt")
        label = f"Prompt {self.name}"
        check_function(self.function, label)
        check_description(self.description, label)
        check_input(self.input_type, label)
        check_item(self.item(NEWEST_HANDSHAKE), label)

    def item(self, revision: Revision) -> PromptItem:
        """Return the prompt as it is listed for a revision."""
        arguments = [
            PromptArgument(name, description, required)
            for name, (description, required) in describe_fields(self.input_type).items()
        ]
        return fit(
            PromptItem(self.name, self.title, self.description, arguments or None, self._icons or None),
            revision,
        )

    def arguments(self, raw: Raw) -> Any:
        """Decode the arguments, which are all strings on the wire, into the handler's struct.

        Null counts as left out, as it does for tools.
        """
        raw_arguments: Any = None
        try:
            raw_arguments = msgspec.json.decode(EMPTY if bytes(raw) == NULL else raw)
            strings = msgspec.convert(raw_arguments, dict[str, str | None])
            present = {name: value for name, value in strings.items() if value is not None}
            return msgspec.convert(present, self.input_type, strict=False, dec_hook=read_custom)
        except jsonrpc.UNDECODABLE as error:
            problem = describe_strings(raw_arguments, flat_schema(self.input_type), str(error))
            message = f"Invalid arguments for prompt {self.name}: {problem}"
            raise ProtocolError(INVALID_PARAMS, message) from error

    async def messages(self, arguments: Any, context: Context[Any]) -> PromptResult:
        """Make the messages."""
        made: Messages = await settle(self.handler(arguments, context))
        messages = [self._message(part) for part in (made if isinstance(made, list | tuple) else [made])]
        fitted = [PromptMessage(one.role, fit_block(one.content, context.revision)) for one in messages]
        return PromptResult(fitted, self.description)

    def _message(self, part: Any) -> PromptMessage:
        if isinstance(part, PromptMessage) and isinstance(part.content, Content):
            return part
        if isinstance(part, str | Content):
            return PromptMessage("user", Text(part) if isinstance(part, str) else part)
        problem = f"expected text, a PromptMessage or a list of them, got {type(part).__name__}"
        raise InvalidResult(f"Prompt {self.name}", problem)
