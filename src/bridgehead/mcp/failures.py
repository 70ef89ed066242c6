"""Failures: the answer to a call that raised, in the words of its bridge's dialect.

A tool error becomes a result; a protocol error is raised; a bug leaves its traceback in the log, and a
reference to it for the client. Imported when something fails.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

from .calls.context import Context
from .errors import INTERNAL_ERROR, Dialect, Failure, ProtocolError, ToolError
from .features.results import InvalidResult, encode_result, error_result
from .features.tools import InvalidArguments

_LONGEST_LOGGED = 300
"""Characters of an error logged at most: it may quote the client's input."""
_log = logging.getLogger("bridgehead.mcp")


def give_failure(context: Context[Any], error: BaseException) -> tuple[bytes, dict[str, Any] | None]:
    """Return the result that reports a failure, and its `_meta`, or raise `ProtocolError`."""
    dialect = context.dialect
    try:
        dialect = dialect.for_revision(context.revision)
        failure: Failure | None = None
        if isinstance(error, InvalidResult):
            _log.error("%s (request %r)", error, context.request_id, exc_info=error)
            failure = ToolError(str(error))
        elif isinstance(error, InvalidArguments):
            failure = dialect.invalid_arguments(error.tool, str(error))
        elif isinstance(error, Exception):
            failure = dialect.translate(error)
        return _report(context, dialect, failure, error)
    except ProtocolError:
        raise
    except Exception as bug:  # noqa: BLE001  (the dialect failed, or the failure cannot be encoded)
        return _report(context, dialect, None, bug)


def _report(
    context: Context[Any], dialect: Dialect, failure: Failure | None, cause: BaseException
) -> tuple[bytes, dict[str, Any] | None]:
    if failure is None:  # a bug: its text may hold secrets, so the client gets only the reference
        reference = secrets.token_hex(4)
        _log.error("bug %s in %s (request %r)", reference, context.method, context.request_id, exc_info=cause)
        failure = dialect.bug(reference)
    elif isinstance(failure, ProtocolError):
        _log.info("%s refused: %s", context.method, failure.message[:_LONGEST_LOGGED])
    if isinstance(failure, ToolError) and context.method == "tools/call":
        return encode_result(error_result(failure), context.revision)
    if isinstance(failure, ToolError):  # only a tool call has a result that can say so
        failure = ProtocolError(INTERNAL_ERROR, failure.message)
    raise failure from (None if failure is cause else cause)  # as its own cause it would stay in memory
