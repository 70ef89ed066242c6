"""Errors of the mercury bridge, in the four categories of its contract.

What went wrong, a code for programs, whether trying again can help and when, and whether the service may have
charged for it nevertheless.
"""

from __future__ import annotations

from bridgehead.runtime.errors import BridgeError


class MercuryError(BridgeError):
    """A call failed."""

    type = "api_error"
    """The category, as the contract names it."""

    def __init__(
        self,
        message: str,
        code: str,
        *,
        next_step: str = "",
        retry_after: float | None = None,
        status: int | None = None,
        is_transient: bool = False,
        is_outage: bool = False,
        is_charge_possible: bool = False,
        content: str | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step, retry_after=retry_after)
        self.code = code
        self.status = status
        """The HTTP status that the API answered with, where it did."""
        self.is_transient = is_transient
        self.is_outage = is_outage
        """Whether it says that the service is down (and not that something is wrong with the request)."""
        self.is_charge_possible = is_charge_possible
        """Whether the service may have done the work, and charge for it, although there is no answer."""
        self.content = content
        """What had come of the answer when it failed."""


class InvalidCall(MercuryError):
    """What was asked for cannot be asked for like this."""

    type = "validation_error"


class NotAuthorised(MercuryError):
    """The key, or the account behind it, does not allow it."""

    type = "auth_error"


class LimitReached(MercuryError):
    """Too much was asked for in too short a time, or for too much money."""

    type = "rate_limit"


class ApiFailed(MercuryError):
    """The service or the way to it failed."""
