"""Prefixed: a bridge whose tools have a prefix, for clients that do not namespace tools by server.

Clients list and call a tool by its key in `Bridge.tools`, which has the prefix.
"""

from __future__ import annotations

import re
from typing import Any

from .bridge import Bridge
from .combined import restrict
from .errors import DeclarationError
from .features.functions import MAX_NAME

_PREFIX = "[A-Za-z_][A-Za-z0-9_-]*"


def prefix_tools(bridge: Bridge[Any], prefix: str) -> Bridge[Any]:
    """Return the same bridge with a prefix before the name of every tool; raises `DeclarationError`.

    A tool whose name begins with the prefix already keeps its name.
    """
    from .wording import Wording, reword_bridge  # lazy: rewording, 2 ms

    if not prefix:
        return bridge
    if not re.fullmatch(_PREFIX, prefix):
        raise DeclarationError(
            f"{prefix!r} cannot begin the names of tools. "
            "Use letters, digits, _ and -, and begin with a letter or _."
        )
    # Hidden tools too: the first sentence of a text may still name one, and callers do.
    names = {
        name: name if name.startswith(prefix) else prefix + name for name in (*bridge.tools, *bridge.hidden)
    }
    longest = max(map(len, bridge.tools), default=0)
    for name in bridge.tools:
        if len(names[name]) > MAX_NAME:
            raise DeclarationError(
                f"With the prefix {prefix!r}, the name of the tool {name} has {len(names[name])} "
                f"characters. Use a prefix of at most {MAX_NAME - longest} characters."
            )
    view = restrict(bridge, lambda _tool: True)
    view.hidden |= {names[name]: reason for name, reason in bridge.hidden.items()}
    reword_bridge(view, Wording(names))
    return view
