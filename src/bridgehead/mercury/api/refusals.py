"""Refusals: what a response of the API whose status is not a success means, as an error with a code."""

from __future__ import annotations

from bridgehead.mcp import UNDECODABLE

from ..errors import MercuryError, format_seconds
from . import wire

UNAUTHORISED, PAYMENT_REQUIRED, FORBIDDEN, NOT_FOUND, TIMED_OUT, TOO_MANY = 401, 402, 403, 404, 408, 429
SERVER_ERROR = 500
_UNAVAILABLE = (502, 503, 504)
_TRANSIENT = frozenset({TIMED_OUT, SERVER_ERROR, *_UNAVAILABLE})
_FIRST_REDIRECT, _FIRST_REFUSAL = 300, 400
_LONGEST_QUOTE = 500
"""Characters of the API's own words that are passed on."""


def refused(
    status: int, body: bytes, retry_after: float | None, *, path: str, model: str = ""
) -> MercuryError:
    """Return the error for a response whose status is not a success."""
    found = _read_refusal(body)
    said = _quote(found.message)
    if status == TOO_MANY:
        when = "in a minute" if retry_after is None else f"in {format_seconds(retry_after)}"
        return MercuryError(
            "RATE_LIMITED",
            f"The Mercury API limits the rate (429): {said}",
            status=status,
            retry_after=retry_after,
            next_step=f"Try again {when}, with fewer calls at once or smaller max_tokens.",
        )
    if status in (UNAUTHORISED, FORBIDDEN):
        message = f"The Mercury API does not accept the key ({status}): {said}"
        return MercuryError("INVALID_API_KEY", message, status=UNAUTHORISED)
    if status == PAYMENT_REQUIRED:
        message = f"The Mercury account cannot pay for this (402): {said}"
        return MercuryError("BILLING_REQUIRED", message, status=status)
    if status >= SERVER_ERROR or status == TIMED_OUT:
        return _service_failed(status, said, retry_after)
    if status == NOT_FOUND and not _is_about_model(found, model):
        return MercuryError(
            "NOT_FOUND", f"The Mercury API has nothing at {path} (404): {said}", status=status
        )
    return _request_refused(status, found, said, model)


def _unexpected_status(status: int) -> MercuryError:
    """Return the error for a status that is neither the success that is expected nor a refusal."""
    what = "a redirect" if status >= _FIRST_REDIRECT else "a status that the API's description does not have"
    return MercuryError(
        "BAD_RESPONSE",
        f"The Mercury API answered with {what} ({status}).",
        status=status,
        next_step="Check MERCURY_API_URL: redirects are not followed.",
    )


def _service_failed(status: int, said: str, retry_after: float | None) -> MercuryError:
    when = "a little later" if retry_after is None else f"in {format_seconds(retry_after)}"
    return MercuryError(
        "SERVICE_UNAVAILABLE" if status in _UNAVAILABLE else "SERVICE_ERROR",
        f"The Mercury API failed ({status}): {said}",
        status=status,
        is_transient=status in _TRANSIENT,
        is_outage=status >= SERVER_ERROR,
        retry_after=retry_after,
        next_step=f"Nothing is wrong with the call: try it again {when}.",
    )


def _request_refused(status: int, found: wire.ApiError, said: str, model: str) -> MercuryError:
    if status < _FIRST_REFUSAL:
        return _unexpected_status(status)
    if found.code == "context_length_exceeded":
        return _context_exceeded(said)
    if status == NOT_FOUND:
        return unknown_model(model, (), said)
    where = f" (at {found.param})" if found.param else ""
    message = f"The Mercury API refused the request ({status}){where}: {said}"
    code = "MODEL_NOT_SUITABLE" if found.param == "model" else "INVALID_REQUEST"
    return MercuryError(code, message, status=status)


def _is_about_model(found: wire.ApiError, model: str) -> bool:
    """Tell whether a 404 says that there is no such model, and not that there is no such endpoint."""
    words = f"{found.param} {found.code} {found.message}".lower()
    return "model" in words or bool(model and model.lower() in words)


def _context_exceeded(said: str) -> MercuryError:
    import re

    found = re.findall(r"(\d[\d,]*)\s*tokens", said, re.IGNORECASE)
    numbers = sorted(int(text.replace(",", "")) for text in found)
    excess = ""
    if len(numbers) > 1:
        most, asked = numbers[0], numbers[-1]
        excess = f" It has {asked:,} tokens and the model takes {most:,}: {asked - most:,} too many."
    message = f"The request is longer than the model's context.{excess} The API says: {said}"
    return MercuryError("CONTEXT_LENGTH_EXCEEDED", message, status=400)


def unknown_model(model: str, known: tuple[str, ...], said: str = "") -> MercuryError:
    """Return the error for a model that does not exist, which lists those that do."""
    return MercuryError(
        "MODEL_NOT_FOUND",
        f"There is no model {model!r} for this call{': ' + said if said else '.'}",
        status=NOT_FOUND,
        next_step=list_models(known) if known else None,
    )


def list_models(names: tuple[str, ...]) -> str:
    """Return the next step of a call that needs another model."""
    return f"Use one of: {', '.join(names)}."


def broken_off(found: wire.ApiError, content: str) -> MercuryError:
    """Return the error for one that the API reported inside of an answer."""
    return MercuryError(
        "STREAM_ERROR", f"The API broke the answer off: {_quote(found.message)}", content=content
    )


def _read_refusal(body: bytes) -> wire.ApiError:
    try:
        refusal = wire.read_refusal(body)
    except UNDECODABLE:
        return wire.ApiError()
    if isinstance(refusal.error, wire.ApiError):
        return refusal.error
    said = refusal.error or refusal.message or refusal.detail
    return wire.ApiError(said if isinstance(said, str) else "")


def _quote(text: str) -> str:
    """Return the API's own words, shortened, as a sentence."""
    text = text[:_LONGEST_QUOTE].strip() or "no reason given"
    return text if text.endswith((".", "!", "?")) else f"{text}."
