"""Arguments: the fields that several tools have in common, each with the one sentence that describes it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Server = Annotated[str, Meta(description="Server's host name, case-sensitive")]
Filename = Annotated[str, Meta(min_length=1, description="Path on the server, such as scripts/hack.js")]
Glob = Annotated[str, Meta(description="Only files whose path fits, such as lib/*.js")]
