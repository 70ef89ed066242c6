"""Body: what a method returns, an encoded result that `dispatch` puts into the envelope of a revision."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

Body = tuple[bytes, dict[str, Any] | None]
"""An encoded result object, and the `_meta` to put into it."""
EventualBody = Body | Coroutine[Any, Any, Body]
EMPTY_BODY: Body = (b"{}", None)
