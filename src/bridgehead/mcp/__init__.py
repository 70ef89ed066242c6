"""The protocol engine: MCP itself, for servers. Knows no bridge.

Declare a `Bridge` with its tools, resources and prompts; serve it with `bridgehead.mcp.stdio.run` or as the
ASGI application of `bridgehead.mcp.http`; put several together with `bridgehead.mcp.combined`; test them with
`bridgehead.mcp.memory`. This package imports nothing else of the project and could be lifted out of it.
"""

from .bridge import Bridge, Implementation
from .call_hook import CallHook, Invocation, Outcome, observe_calls
from .content import (
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
from .context import Context
from .errors import Dialect, ProtocolError, ToolError
from .limits import Limits
from .questions import (
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
from .resources import ResourceItem
from .tools import Answer, Arguments, CallResult, Encoded, NoArguments

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
