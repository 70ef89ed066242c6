"""The protocol engine: MCP itself, for servers. Independent of any bridge.

Declare a `Bridge` with its tools, resources and prompts; serve it with `stdio.run` or as the application of
`bridgehead.mcp.http`; put several together with `combine`; test them with `in_memory.connect`. Of the
project it imports only `msgspec_loader`.

The names below are public; the modules among them are loaded by importing them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bridgehead import msgspec_loader  # noqa: F401 - before anything that imports msgspec

from .bridge import Bridge
from .calls.call_hook import CallHook, Invocation, Outcome, observe_calls
from .calls.caller import Caller
from .calls.context import Context, InputRequired
from .calls.input_requests import (
    Elicited,
    InputRequest,
    Root,
    Sampled,
    SamplingMessage,
    elicitation,
    elicitation_by_url,
    list_roots,
    sampling,
)
from .calls.multi_round import NonceStore
from .calls.request_state import MemoryNonces
from .combined import combine, hide_tools, restrict
from .dispatch import Dispatcher
from .errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    OVERLOADED,
    RESOURCE_NOT_FOUND,
    DeclarationError,
    Dialect,
    Failure,
    ProtocolError,
    ToolError,
)
from .features.apps import UI_EXTENSION, shows_apps
from .features.bridge_base import Implementation
from .features.prompts import Prompt
from .features.resources import ResourceItem, TemplateItem
from .features.results import Answer, CallResult, Encoded
from .features.tools import (
    Arguments,
    InvalidArguments,
    NoArguments,
    Tool,
    ToolHints,
)
from .jsonrpc import UNDECODABLE
from .lifespan import Lifespans
from .limits import Limits
from .prefixed import prefix_tools
from .process import run_on_loop, run_to_end, shutdown_signals, socket_loop
from .revisions import NEWEST_HANDSHAKE, REVISIONS, Revision
from .skills import add_skill
from .threads import FairThreads, current_worker, work_for_all
from .turns import Turns
from .values.content import (
    Annotations,
    Audio,
    BlobResource,
    Content,
    Embedded,
    Icon,
    Image,
    Link,
    PromptMessage,
    Text,
    TextResource,
)

if TYPE_CHECKING:
    from . import http, in_memory, jsonrpc, stdio
    from .tasks.manager import Tasks
    from .tasks.record import TaskRecord
    from .tasks.store import MemoryTaskStore, TaskStore

# lazy: HTTP, 20 ms; tasks, 4 ms
_MODULES = ("http", "in_memory")
_TASKS = {
    "MemoryTaskStore": ".tasks.store",
    "TaskRecord": ".tasks.record",
    "TaskStore": ".tasks.store",
    "Tasks": ".tasks.manager",
}

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __getattr__(name: str) -> Any:
        """Import one of these on its first use (PEP 562)."""
        if name in _MODULES:
            return import_module(f".{name}", __name__)
        if name in _TASKS:
            return getattr(import_module(_TASKS[name], __name__), name)
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)


__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "NEWEST_HANDSHAKE",
    "OVERLOADED",
    "RESOURCE_NOT_FOUND",
    "REVISIONS",
    "UI_EXTENSION",
    "UNDECODABLE",
    "Annotations",
    "Answer",
    "Arguments",
    "Audio",
    "BlobResource",
    "Bridge",
    "CallHook",
    "CallResult",
    "Caller",
    "Content",
    "Context",
    "DeclarationError",
    "Dialect",
    "Dispatcher",
    "Elicited",
    "Embedded",
    "Encoded",
    "Failure",
    "FairThreads",
    "Icon",
    "Image",
    "Implementation",
    "InputRequest",
    "InputRequired",
    "InvalidArguments",
    "Invocation",
    "Lifespans",
    "Limits",
    "Link",
    "MemoryNonces",
    "MemoryTaskStore",
    "NoArguments",
    "NonceStore",
    "Outcome",
    "Prompt",
    "PromptMessage",
    "ProtocolError",
    "ResourceItem",
    "Revision",
    "Root",
    "Sampled",
    "SamplingMessage",
    "TaskRecord",
    "TaskStore",
    "Tasks",
    "TemplateItem",
    "Text",
    "TextResource",
    "Tool",
    "ToolError",
    "ToolHints",
    "Turns",
    "add_skill",
    "combine",
    "current_worker",
    "elicitation",
    "elicitation_by_url",
    "hide_tools",
    "http",
    "in_memory",
    "jsonrpc",
    "list_roots",
    "observe_calls",
    "prefix_tools",
    "restrict",
    "run_on_loop",
    "run_to_end",
    "sampling",
    "shows_apps",
    "shutdown_signals",
    "socket_loop",
    "stdio",
    "work_for_all",
]
