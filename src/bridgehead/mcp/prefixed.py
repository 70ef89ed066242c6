"""Prefixed: a bridge whose tools have a prefix, for clients that do not tell the tools of servers apart.

Clients list and call a tool by its key in `Bridge.tools`, which has the prefix; `Tool.name` stays the
declared name, so hooks, metrics and filters see the same name with and without a prefix. Everything that the
bridge says about its tools uses the prefixed names: descriptions, instructions, prompts, pages, errors, notes
and next steps. What a tool or resource returns is content and is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from .combined import restrict
from .errors import DeclarationError, Dialect, Failure, ProtocolError, ToolError
from .features.content import PromptMessage, Text, TextResource
from .features.prompts import Prompt, PromptArgument, PromptItem, PromptResult
from .features.resources import Resource, Template
from .features.results import Answer
from .features.signatures import MAX_NAME
from .features.tools import Tool, ToolItem

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from .bridge import Bridge
    from .calls.context import Context
    from .features.content import BlobResource
    from .revisions import Revision

_PREFIX = "[A-Za-z_][A-Za-z0-9_-]*"
_Words = TypeVar("_Words", str, "str | None")


def prefix_tools(bridge: Bridge[Any], prefix: str) -> Bridge[Any]:
    """Return the same bridge with a prefix before the name of every tool; raises `DeclarationError`.

    A tool whose name begins with the prefix already keeps its name.
    """
    if not prefix:
        return bridge
    if not re.fullmatch(_PREFIX, prefix):
        raise DeclarationError(
            f"{prefix!r} cannot begin the names of tools. "
            "Use letters, digits, _ and -, and begin with a letter or _."
        )
    # Texts may also name tools that are not offered here: a restricted bridge knows the whole one.
    names = ToolNames(prefix, {name for part in (bridge, *bridge.bridges) for name in part.tools})
    for name in bridge.tools:
        if len(names.offer(name)) > MAX_NAME:
            raise DeclarationError(
                f"With the prefix {prefix!r}, the name of the tool {name} has {len(names.offer(name))} "
                f"characters. Use a prefix of at most {MAX_NAME - max(map(len, bridge.tools))} characters."
            )
    view = restrict(bridge, lambda _tool: True)
    view.instructions = names.reword(bridge.instructions)
    view.tools = {names.offer(name): _PrefixedTool(tool, names) for name, tool in bridge.tools.items()}
    view.prompts = {name: _PrefixedPrompt(prompt, names) for name, prompt in bridge.prompts.items()}
    view.resources = {uri: _PrefixedResource(one, names) for uri, one in bridge.resources.items()}
    view.templates = {uri: _PrefixedTemplate(one, names) for uri, one in bridge.templates.items()}
    view.dialects = {part: _PrefixedDialect(part.dialect, names) for part in bridge.bridges}
    return view


class ToolNames:
    """The tools of a bridge by their declared and their prefixed names."""

    def __init__(self, prefix: str, declared: Iterable[str]) -> None:
        self._offered = {name: name if name.startswith(prefix) else prefix + name for name in declared}
        names = "|".join(map(re.escape, sorted(self._offered, key=len, reverse=True)))
        # Whole words, and neither `ns.read_file` nor `read_file.js`. Code in a fence is somebody's content.
        self._pattern = re.compile(
            rf"(?P<fence>`{{3,}}).*?(?P=fence)|(?<![\w./-])(?:{names})(?![\w-]|\.\w)", re.DOTALL
        )

    def offer(self, declared: str) -> str:
        """Return the name by which clients call a tool."""
        return self._offered[declared]

    def reword(self, text: _Words, content: Iterable[str] = ()) -> _Words:
        """Return a text of the bridge with the prefixed names, except inside the pieces of `content`."""
        if text is None:
            return None
        pattern = self._pattern
        kept: list[str] = [re.escape(piece) for piece in content if pattern.search(piece)]
        if kept:
            pattern = re.compile("|".join([*sorted(kept, key=len, reverse=True), pattern.pattern]), re.DOTALL)
        return pattern.sub(lambda match: self._offered.get(match[0], match[0]), text)

    def reword_all(self, value: Any) -> Any:
        """Return a JSON value with the prefixed names in all of its texts; names of members stay."""
        if isinstance(value, str):
            return self.reword(value)
        if isinstance(value, list | tuple):
            return [self.reword_all(item) for item in value]
        if isinstance(value, dict):
            return {key: self.reword_all(item) for key, item in value.items()}
        return value

    def reword_schema(self, schema: Any) -> Any:
        """Return a JSON Schema with the prefixed names in its descriptions; allowed values stay."""
        if isinstance(schema, list | tuple):
            return [self.reword_schema(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        return {
            key: self.reword(item)
            if key == "description" and isinstance(item, str)
            else self.reword_schema(item)
            for key, item in schema.items()
        }


class _PrefixedTool(Tool):
    """A tool as it is offered with a prefix."""

    def __init__(self, tool: Tool, names: ToolNames) -> None:
        # No call of the parent's: a copy, without what is computed from the declaration.
        vars(self).update(vars(tool))
        vars(self).pop("input_schema", None)
        self._declared = tool
        self._names = names
        self.description = names.reword(tool.description)
        self.handler = _reword_answers(tool.handler, names)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the input, as listed."""
        schema: dict[str, Any] = self._names.reword_schema(self._declared.input_schema)
        return schema

    def item(self, revision: Revision) -> ToolItem:
        """Return the tool as it is listed for a revision."""
        item = super().item(revision)
        return replace(
            item,
            name=self._names.offer(self.name),
            input_schema=self._names.reword_schema(item.input_schema),
            output_schema=self._names.reword_schema(item.output_schema),
        )


def _reword_answers(handler: Callable[[Any, Any], Any], names: ToolNames) -> Callable[[Any, Any], Any]:
    def reword(value: Any) -> Any:
        if isinstance(value, Answer) and (value.notes or value.next):
            notes, steps = (tuple(map(names.reword, texts)) for texts in (value.notes, value.next))
            return replace(value, notes=notes, next=steps)
        return value

    async def reword_later(work: Coroutine[Any, Any, Any]) -> Any:
        return reword(await work)

    def handle(arguments: Any, context: Any) -> Any:
        value = handler(arguments, context)
        return reword_later(value) if isinstance(value, CoroutineType) else reword(value)

    return handle


class _PrefixedPrompt(Prompt):
    """A prompt of a bridge whose tools have a prefix."""

    def __init__(self, prompt: Prompt, names: ToolNames) -> None:
        vars(self).update(vars(prompt))
        self._names = names
        self.description = names.reword(prompt.description)

    def item(self, revision: Revision) -> PromptItem:
        """Return the prompt as it is listed for a revision."""
        item = super().item(revision)
        if item.arguments is None:
            return item
        arguments = [
            PromptArgument(one.name, self._names.reword(one.description), one.required)
            for one in item.arguments
        ]
        return replace(item, arguments=arguments)

    async def messages(self, arguments: Any, context: Context[Any]) -> PromptResult:
        """Make the messages. The client's arguments in them stay as they are, and so does code in fences."""
        result = await super().messages(arguments, context)
        given = [value for value in msgspec.structs.asdict(arguments).values() if isinstance(value, str)]
        messages = [
            PromptMessage(each.role, replace(each.content, text=self._names.reword(each.content.text, given)))
            if isinstance(each.content, Text)
            else each
            for each in result.messages
        ]
        return replace(result, messages=messages)


class _PrefixedResource(Resource):
    """A resource of a bridge whose tools have a prefix. Of the contents, only a page names tools to call."""

    def __init__(self, resource: Resource, names: ToolNames) -> None:
        vars(self).update(vars(resource))
        self._names = names
        self.item = replace(resource.item, description=names.reword(resource.item.description))

    async def read(self, context: Context[Any]) -> list[TextResource | BlobResource]:
        """Read it."""
        contents = await super().read(context)
        if not self.is_app:
            return contents
        return [
            replace(one, text=self._names.reword(one.text)) if isinstance(one, TextResource) else one
            for one in contents
        ]


class _PrefixedTemplate(Template):
    """A resource template of a bridge whose tools have a prefix."""

    def __init__(self, template: Template, names: ToolNames) -> None:
        vars(self).update(vars(template))
        self.item = replace(template.item, description=names.reword(template.item.description))


class _PrefixedDialect(Dialect):
    """Words failures as another dialect does, with the prefixed names."""

    def __init__(self, dialect: Dialect, names: ToolNames) -> None:
        self._dialect = dialect
        self._names = names

    def for_revision(self, revision: Revision) -> Dialect:
        """Return the dialect for clients of a revision."""
        return _PrefixedDialect(self._dialect.for_revision(revision), self._names)

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Word arguments that do not fit the tool's input."""
        return self._reword(self._dialect.invalid_arguments(tool, problem))

    def translate(self, error: Exception) -> Failure | None:
        """Turn a handler's exception into a failure."""
        failure = self._dialect.translate(error)
        return None if failure is None else self._reword(failure)

    def bug(self, reference: str) -> Failure:
        """Word an unexpected error."""
        return self._reword(self._dialect.bug(reference))

    def _reword(self, failure: Failure) -> Failure:
        message = self._names.reword(failure.message)
        if isinstance(failure, ToolError):
            return ToolError(message, self._names.reword_all(msgspec.to_builtins(failure.structured)))
        return ProtocolError(failure.code, message, self._names.reword_all(msgspec.to_builtins(failure.data)))
