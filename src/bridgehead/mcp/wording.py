"""Wording: texts about a bridge's tools name only the tools this client has, by their offered names.

A tool may be offered under a longer name (`prefixed`), or not at all (`combined.hide_tools`). So in
descriptions, instructions, prompts, pages, errors, notes and next steps, names get their prefix, and a
sentence that names a tool which is not offered is left out. What a tool or resource returns is content and is
never changed. `Tool.name` stays the declared name, so hooks, metrics and filters see one name everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from . import jsonrpc
from .bridge import Bridge
from .calls.context import Context
from .errors import Dialect, Failure, ProtocolError, ToolError
from .features.prompts import Prompt, PromptArgument, PromptItem, PromptResult
from .features.resources import Resource, Template
from .features.results import Answer
from .features.tools import Tool, ToolItem
from .revisions import Revision
from .values.content import BlobResource, PromptMessage, Text, TextResource

# A paragraph, an item of a list, or a line after a line that ends a sentence. Other lines continue the one
# before.
_BLOCK_END = re.compile(r"\n\s*\n|\n(?=[ \t]*(?:[-*]|\d+\.)[ \t])|(?<=[.!?:])\n(?=\S)")
_LIST_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)[ \t]")


def reword_bridge(bridge: Bridge[Any], wording: Wording) -> None:
    """Apply a wording to all texts of a bridge and its parts."""
    bridge.instructions = wording.reword(bridge.instructions or "") or None
    bridge.tools = {wording.offer(name): _WordedTool(tool, wording) for name, tool in bridge.tools.items()}
    bridge.prompts = {name: _WordedPrompt(prompt, wording) for name, prompt in bridge.prompts.items()}
    bridge.resources = {uri: _WordedResource(resource, wording) for uri, resource in bridge.resources.items()}
    bridge.templates = {uri: _WordedTemplate(template, wording) for uri, template in bridge.templates.items()}
    if bridge.bridges == (bridge,):
        bridge.dialect = _WordedDialect(bridge.dialect, wording)
    else:
        bridge.dialects = {
            part: _WordedDialect(bridge.dialects.get(part, part.dialect), wording) for part in bridge.bridges
        }


class _Piece(Struct):
    """A sentence, or a clause before a semicolon, with the characters between it and the next piece."""

    text: str
    end: str
    rank: int
    """What ends here: 0 a clause, 1 a sentence, 2 a line or paragraph."""


class Wording:
    """Replaces tool names in texts by the offered ones, and removes sentences that name hidden tools."""

    def __init__(self, names: Mapping[str, str | None]) -> None:
        """Take the offered name of each tool by its declared one; None for a tool that is not offered."""
        self._offered = {name: offered for name, offered in names.items() if offered is not None}
        self._hidden = names.keys() - self._offered.keys()
        alternatives = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        # Whole words, and neither `ns.read_file` nor `read_file.js`. Code in a fence is content.
        name = rf"(?<![\w./-])(?:{alternatives})(?![\w-]|\.\w)"
        self._pattern = re.compile(rf"(?P<fence>`{{3,}}).*?(?P=fence)|(?P<name>{name})", re.DOTALL)
        # After a full stop comes a capital, or a tool's name. `1.` before an item ends no sentence.
        self._piece_end = re.compile(
            rf"""(?P<clause>;\s+)|(?<!\s\d)[.!?]["'”)]*(?P<sentence>\s+)(?=[A-Z0-9“"'`(<]|{name})"""
        )

    def offer(self, declared: str) -> str:
        """Return the name by which clients call a tool."""
        return self._offered.get(declared, declared)

    def reword(self, text: str, content: Iterable[str] = (), *, keep_first: bool = False) -> str:
        """Return a text with tool names reworded, except inside the pieces of `content`.

        With `keep_first` the first sentence stays even if it names a hidden tool: it says what happened.
        """
        pattern = self._pattern
        kept: list[str] = [re.escape(piece) for piece in content if pattern.search(piece)]
        if kept:
            pattern = re.compile("|".join([*sorted(kept, key=len, reverse=True), pattern.pattern]), re.DOTALL)
        if self._hidden and any(self._is_hidden(match) for match in pattern.finditer(text)):
            text = self._leave_out(text, pattern, keep_first=keep_first)
        return pattern.sub(self._rename, text)

    def rename(self, text: str) -> str:
        """Return a page with the offered names; nothing is left out, since that would break its code."""
        return self._pattern.sub(self._rename, text)

    def _rename(self, match: re.Match[str]) -> str:
        return self._offered.get(match["name"], match[0])

    def _is_hidden(self, match: re.Match[str]) -> bool:
        if match["name"] not in self._hidden:
            return False
        # A name such as `search` is also a word: it names the tool only in backticks.
        text, start, end = match.string, match.start(), match.end()
        return "_" in match[0] or (text[start - 1 : start] == "`" and text[end : end + 1] == "`")

    def _leave_out(self, text: str, names: re.Pattern[str], *, keep_first: bool) -> str:
        """Return a text without the sentences, clauses and items of lists that name a hidden tool."""
        matches = list(names.finditer(text))
        hidden = [match.start() for match in matches if self._is_hidden(match)]
        content = [match.span() for match in matches if match["name"] is None]

        def ends(pattern: re.Pattern[str], start: int, end: int) -> list[re.Match[str]]:
            matches = pattern.finditer(text, start, end)
            return [match for match in matches if not any(a <= match.start() < b for a, b in content)]

        kept: list[_Piece] = []
        starts_sentence = False
        position = 0
        for block in [*ends(_BLOCK_END, 0, len(text)), None]:
            block_end = len(text) if block is None else block.start()
            is_item = _LIST_ITEM.match(text, position) is not None
            cuts = [] if is_item else ends(self._piece_end, position, block_end)
            for cut in [*cuts, None]:
                if cut is None:
                    stop, after, rank = block_end, block_end if block is None else block.end(), 2
                elif cut["clause"]:
                    stop, after, rank = cut.start(), cut.end(), 0
                else:
                    stop, after, rank = cut.start("sentence"), cut.end(), 1
                piece = _Piece(text[position:stop], text[stop:after], rank)
                is_first = position == 0
                if (is_first and keep_first) or not any(position <= start < stop for start in hidden):
                    # A tool's name has no capital: with one, it would be another name.
                    if starts_sentence and not names.match(piece.text):
                        piece.text = piece.text[:1].upper() + piece.text[1:]
                    kept.append(piece)
                    starts_sentence = False
                elif kept and kept[-1].rank < rank:
                    # The removed piece may have ended a sentence or line: the piece before it takes over that
                    # ending.
                    if kept[-1].rank == 0:
                        kept[-1].text += "."
                    kept[-1].end, kept[-1].rank = piece.end, rank
                elif rank == 0 and not (kept and kept[-1].rank == 0):
                    starts_sentence = True
                position = after
        return "".join(piece.text + piece.end for piece in kept).rstrip()

    def reword_all(self, value: Any, *, keep_first: bool = False) -> Any:
        """Return a JSON value with its strings reworded, except `content`; emptied items are removed."""
        if isinstance(value, str):
            return self.reword(value, keep_first=keep_first)
        if isinstance(value, list | tuple):
            return [reworded for item in value if (reworded := self.reword_all(item)) != "" or item == ""]
        if isinstance(value, dict):
            return {
                # A failure may carry the part of an answer that had arrived.
                key: item if key == "content" else self.reword_all(item, keep_first=key == "message")
                for key, item in value.items()
            }
        return value

    def reword_schema(self, schema: Any) -> Any:
        """Return a JSON Schema with its descriptions reworded; allowed values stay."""
        if isinstance(schema, list | tuple):
            return [self.reword_schema(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        reworded = {
            key: self.reword(item)
            if key == "description" and isinstance(item, str)
            else self.reword_schema(item)
            for key, item in schema.items()
        }
        if reworded.get("description") == "":
            del reworded["description"]
        return reworded


class _WordedTool(Tool):
    """A tool reworded for the bridge that offers it."""

    def __init__(self, tool: Tool, wording: Wording) -> None:
        # Copies the tool without calling the parent's constructor; cached properties are not copied.
        vars(self).update(vars(tool))
        vars(self).pop("input_schema", None)
        self._declared = tool
        self._wording = wording
        self.description = tool.description and wording.reword(tool.description, keep_first=True)
        self.reword_returned = _reword_answers(tool.reword_returned, wording)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the input, as listed."""
        schema: dict[str, Any] = self._wording.reword_schema(self._declared.input_schema)
        return schema

    def item(self, revision: Revision) -> ToolItem:
        """Return the tool as it is listed for a revision."""
        item = self._declared.item(revision)
        return replace(
            item,
            name=self._wording.offer(item.name),
            # Not self.description: a client of the contract may be shown another one.
            description=item.description and self._wording.reword(item.description, keep_first=True),
            input_schema=self._wording.reword_schema(item.input_schema),
            output_schema=self._wording.reword_schema(item.output_schema),
        )


def _reword_answers(inner: Callable[[Any], Any] | None, wording: Wording) -> Callable[[Any], Any]:
    """Return a function that rewords what a tool returned; `inner` is one to run first."""

    def reword(value: Any) -> Any:
        value = value if inner is None else inner(value)
        if isinstance(value, Answer) and (value.notes or value.next):
            # A note is kept even if it names a hidden tool; a next step that names one is dropped.
            notes = tuple(wording.reword(note, keep_first=True) for note in value.notes)
            steps = tuple(reworded for step in value.next if (reworded := wording.reword(step)))
            return replace(value, notes=notes, next=steps)
        return value

    return reword


class _WordedPrompt(Prompt):
    """A prompt reworded for the bridge that offers it."""

    def __init__(self, prompt: Prompt, wording: Wording) -> None:
        vars(self).update(vars(prompt))
        self._declared = prompt
        self._wording = wording
        self.description = prompt.description and wording.reword(prompt.description, keep_first=True)

    def item(self, revision: Revision) -> PromptItem:
        """Return the prompt as it is listed for a revision."""
        item = replace(self._declared.item(revision), description=self.description)
        if item.arguments is None:
            return item
        arguments = [
            PromptArgument(
                argument.name,
                argument.description and (self._wording.reword(argument.description) or None),
                argument.required,
            )
            for argument in item.arguments
        ]
        return replace(item, arguments=arguments)

    async def messages(self, arguments: Any, context: Context[Any]) -> PromptResult:
        """Make the messages. The client's arguments in them stay as they are, and so does code in fences."""
        result = await self._declared.messages(arguments, context)
        values = [value for value in msgspec.structs.asdict(arguments).values() if isinstance(value, str)]
        messages = [
            PromptMessage(
                message.role,
                replace(message.content, text=self._wording.reword(message.content.text, values)),
            )
            if isinstance(message.content, Text)
            else message
            for message in result.messages
        ]
        return replace(result, messages=messages, description=self.description)


class _WordedResource(Resource):
    """A resource reworded for the bridge that offers it. Of its contents, only an app's page is changed."""

    def __init__(self, resource: Resource, wording: Wording) -> None:
        vars(self).update(vars(resource))
        self._declared = resource
        self._wording = wording
        self.item = _reword_item(resource.item, wording)

    async def read(self, context: Context[Any]) -> list[TextResource | BlobResource]:
        """Read it."""
        contents = await self._declared.read(context)
        if not self.is_app:
            return contents
        return [
            replace(item, text=self._wording.rename(item.text)) if isinstance(item, TextResource) else item
            for item in contents
        ]


class _WordedTemplate(Template):
    """A resource template reworded for the bridge that offers it."""

    def __init__(self, template: Template, wording: Wording) -> None:
        vars(self).update(vars(template))
        self.item = _reword_item(template.item, wording)


def _reword_item(item: Any, wording: Wording) -> Any:
    if item.description is None:
        return item
    return replace(item, description=wording.reword(item.description, keep_first=True))


class _WordedDialect(Dialect):
    """Wraps a dialect; names tools as the bridge that offers them does."""

    def __init__(self, dialect: Dialect, wording: Wording) -> None:
        self._dialect = dialect
        self._wording = wording

    def for_revision(self, revision: Revision) -> Dialect:
        """Return the dialect for clients of a revision."""
        return _WordedDialect(self._dialect.for_revision(revision), self._wording)

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
        message = self._wording.reword(failure.message, keep_first=True)
        if failure.message.startswith("{"):  # a contract may ask for JSON, which has to stay JSON
            with suppress(msgspec.DecodeError):
                reworded = self._wording.reword_all(msgspec.json.decode(failure.message))
                message = jsonrpc.encode(reworded).decode()
        if isinstance(failure, ToolError):
            structured = self._wording.reword_all(msgspec.to_builtins(failure.structured))
            return ToolError(message, structured, note=self._wording.reword(failure.note))
        data = self._wording.reword_all(msgspec.to_builtins(failure.data))
        return ProtocolError(failure.code, message, data)
