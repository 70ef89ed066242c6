"""Results: the form in which a method hands back what it has to say."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

Body = tuple[bytes, dict[str, Any] | None]
"""An encoded result object, and the `_meta` that is to go into it."""
Outcome = Body | Coroutine[Any, Any, Body]

EMPTY_BODY: Body = (b"{}", None)
