"""The protocol engine: MCP itself, for servers. Knows no bridge.

Declare a `Bridge` with its tools, resources and prompts; serve it with `bridgehead.mcp.stdio.run` or as the
ASGI application of `bridgehead.mcp.http`; put several together with `bridgehead.mcp.combined`; test them with
`bridgehead.mcp.in_memory`. This package imports nothing else of the project and could be lifted out of it.
"""

from .bridge import Bridge, Implementation
from .calls.call_hook import CallHook, Invocation, Outcome, observe_calls
from .calls.context import Context
from .calls.input_requests import (
    Elicited,
    Question,
    Root,
    Sampled,
    SamplingMessage,
    elicitation,
    elicitation_by_url,
    list_roots,
    sampling,
)
from .errors import Dialect, ProtocolError, ToolError
from .features.content import (
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
from .features.resources import ResourceItem
from .features.tools import Answer, Arguments, CallResult, Encoded, NoArguments
from .limits import Limits

__all__ = [
    "Annotations",
    "Answer",
    "Arguments",
    "Audio",
    "BlobResource",
    "Bridge",
    "CallHook",
    "CallResult",
    "Content",
    "Context",
    "Dialect",
    "Elicited",
    "Embedded",
    "Encoded",
    "Icon",
    "Image",
    "Implementation",
    "Invocation",
    "Limits",
    "Link",
    "NoArguments",
    "Outcome",
    "PromptMessage",
    "ProtocolError",
    "Question",
    "ResourceItem",
    "Root",
    "Sampled",
    "SamplingMessage",
    "Text",
    "TextResource",
    "ToolError",
    "elicitation",
    "elicitation_by_url",
    "list_roots",
    "observe_calls",
    "sampling",
]
