"""Errors: how failures look to a client, by the protocol revision it speaks.

The contract is written for 2024-11-05 and has JSON-RPC errors only: -1 for problems with the files, -32602
with `Invalid params` for wrong arguments. Clients of that revision get exactly that. Many newer clients end
the conversation at a JSON-RPC error or hide its text from the model, so they get a result with `isError` and
the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bridgehead.mcp import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    Dialect,
    Failure,
    ProtocolError,
    Revision,
    ToolError,
)
from bridgehead.runtime.callers import word_error
from bridgehead.runtime.errors import BridgeError, InvalidArgument

CONTRACT_REVISION = "2024-11-05"
APPLICATION_ERROR = -1
_INVALID = "Invalid params"
_NOT_LOADED = "Error loading instruction: "


class AocDialect(Dialect):
    """Failures as clients of newer revisions can read them."""

    def for_revision(self, revision: Revision) -> Dialect:
        """Keep to the contract for clients of its revision."""
        return ContractDialect() if revision.name == CONTRACT_REVISION else self

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Refuse arguments with the contract's words."""
        return ToolError(_invalid_arguments(tool, problem))

    def translate(self, error: Exception) -> Failure | None:
        """Turn failures into tool errors, which the model can read."""
        if isinstance(error, InvalidArgument):
            return ToolError(f"{_INVALID}: {error}")
        if isinstance(error, BridgeError):
            return ToolError(_word(error))
        return _reword(error) if isinstance(error, ProtocolError) else super().translate(error)


def _word(error: BridgeError) -> str:
    return word_error(error)


class ContractDialect(Dialect):
    """Failures in the words and codes of the contract."""

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Refuse arguments with the code for parameters."""
        return ProtocolError(INVALID_PARAMS, _invalid_arguments(tool, problem))

    def translate(self, error: Exception) -> Failure | None:
        """Give each failure its code and prefix."""
        if isinstance(error, InvalidArgument):
            return ProtocolError(INVALID_PARAMS, f"{_INVALID}: {error}")
        if isinstance(error, BridgeError):
            return ProtocolError(APPLICATION_ERROR, _word(error))
        if isinstance(error, ProtocolError):
            return _reword(error)
        return None

    def bug(self, reference: str) -> Failure:
        """Report a bug with the code for internal errors; its details are only in the log."""
        return ProtocolError(
            INTERNAL_ERROR, f"Internal error (reference {reference}). The server's log has the details."
        )


def _invalid_arguments(tool: str, problem: str) -> str:
    # The engine's general wording of a range; between 1 and 2 there is no integer.
    problem = problem.replace("phase must be between 1 and 2", "phase must be 1 or 2")
    return f"{_INVALID} for {tool}: {problem}."


def _reword(error: ProtocolError) -> ProtocolError:
    """Put the contract's words and codes on an error of the engine."""
    # A missing resource is -32002 in newer revisions of the protocol; the contract knows only -1.
    if error.code == RESOURCE_NOT_FOUND:
        return ProtocolError(APPLICATION_ERROR, _NOT_LOADED + error.message, error.data)
    if error.code == INVALID_PARAMS and not error.message.startswith(_INVALID):
        return ProtocolError(INVALID_PARAMS, f"{_INVALID}: {error.message}", error.data)
    return error


def not_loaded(error: BridgeError) -> ProtocolError:
    """Make the error for a resource that cannot be read, with the contract's prefix."""
    return ProtocolError(APPLICATION_ERROR, _NOT_LOADED + _word(error))


@contextmanager
def contract_errors() -> Iterator[None]:
    """Raise failures with the contract's codes, for resources and prompts: only tools have `isError`."""
    try:
        yield
    except BridgeError as error:
        raise ContractDialect().translate(error) or error from error
