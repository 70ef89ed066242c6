"""Failures: what a call that did not return is answered with, in the words of its bridge's dialect.

A tool error becomes a result; a protocol error is raised; a bug leaves its traceback in the log, and a
reference to it for the client. Imported when something fails.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

from ..errors import INTERNAL_ERROR, Dialect, Failure, ProtocolError, ToolError
from ..features.tools import InvalidArguments, encode_result, error_result
from .context import Context

_LONGEST_LOGGED = 300
"""Characters of a refusal's words, in which what the client sent may be repeated."""
_log = logging.getLogger("bridgehead.mcp")


def give_failure(context: Context[Any], error: BaseException) -> tuple[bytes, dict[str, Any] | None]:
    """Return the result that tells of a failure, and its `_meta`; raises `ProtocolError` where it is none."""
    try:
        dialect = context.dialect.for_revision(context.revision)
        return _report(context, _translate(dialect, error), error)
    except ProtocolError:
        raise
    except Exception as another:  # noqa: BLE001  (what was to be said cannot be said)
        return _report(context, None, another)


def _translate(dialect: Dialect, error: BaseException) -> Failure | None:
    """Put what ended a call into the words of the bridge's dialect; None is a bug."""
    if isinstance(error, InvalidArguments):
        return dialect.invalid_arguments(error.tool, str(error))
    return dialect.translate(error) if isinstance(error, Exception) else None


def _report(
    context: Context[Any], failure: Failure | None, cause: BaseException
) -> tuple[bytes, dict[str, Any] | None]:
    """Report a failure as the bridge's dialect has it; a bug (no failure) leaves only its reference."""
    if failure is None:
        failure = context.dialect.bug(_log_bug(context, cause))
    elif isinstance(failure, ProtocolError):
        _log.info("%s refused: %s", context.method, failure.message[:_LONGEST_LOGGED])
    if isinstance(failure, ToolError) and context.method == "tools/call":
        return encode_result(error_result(failure), context.revision)
    if isinstance(failure, ToolError):
        failure = ProtocolError(INTERNAL_ERROR, failure.message)
    raise failure from cause


def _log_bug(context: Context[Any], error: BaseException) -> str:
    reference = secrets.token_hex(4)
    _log.error("bug %s in %s (request %r)", reference, context.method, context.request_id, exc_info=error)
    return reference
