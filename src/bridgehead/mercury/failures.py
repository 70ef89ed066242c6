"""Failures: what an answer that is no success means, for the agent that has to go on from it. Pure.

Every status of the API becomes an error of one of the four categories, with the next step.
"""

from __future__ import annotations

import re

import msgspec

from .api import wire
from .errors import ApiFailed, InvalidCall, LimitReached, MercuryError, NotAuthorised

UNAUTHORISED, PAYMENT_REQUIRED, FORBIDDEN, NOT_FOUND, TIMED_OUT, TOO_MANY = 401, 402, 403, 404, 408, 429
SERVER_ERROR = 500
TRANSIENT = frozenset({TIMED_OUT, TOO_MANY, 500, 502, 503, 504})
_LONGEST = 500
"""Characters of the API's own words that are passed on."""
MODEL_NOT_FOUND = "MODEL_NOT_FOUND"
CONTENT_SO_FAR = "`content` has what had come by then. Call again for a whole answer."
_NUMBERS = re.compile(r"(\d[\d,]*)\s*tokens", re.IGNORECASE)


def refused(status: int, body: bytes, retry_after: float | None, model: str) -> MercuryError:
    """Give the error for an answer with a status that is no success."""
    found = _error_in(body)
    said = _sentence(found.message)
    if status == TOO_MANY:
        return _limited(said, retry_after)
    if status in (UNAUTHORISED, FORBIDDEN):
        return _unauthorised(status, said)
    if status == PAYMENT_REQUIRED:
        return NotAuthorised(
            f"The Mercury account cannot pay for this (402): {said}",
            "BILLING_REQUIRED",
            status=402,
            next_step="Look at the billing page of the account; trying again does not help until then.",
        )
    if status >= SERVER_ERROR or status == TIMED_OUT:
        return _failed(status, said, retry_after)
    return _invalid(status, found, said, model)


def in_stream(found: wire.ApiError, content: str) -> MercuryError:
    """Give the error for one that the API reported in the middle of a stream or of an answer."""
    return ApiFailed(
        f"The API broke the answer off: {_sentence(found.message)}",
        "STREAM_ERROR",
        next_step=CONTENT_SO_FAR,
        is_charge_possible=True,
        content=content,
    )


def _error_in(body: bytes) -> wire.ApiError:
    try:
        refusal = wire.read_refusal(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return wire.ApiError()
    if isinstance(refusal.error, wire.ApiError):
        return refusal.error
    return wire.ApiError(refusal.error or refusal.message or "")


def _sentence(text: str) -> str:
    """Give the API's own words, shortened, as a sentence."""
    text = text[:_LONGEST].strip() or "no reason given"
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _limited(said: str, retry_after: float | None) -> MercuryError:
    when = "in a minute" if retry_after is None else f"in {retry_after:.3g} s"
    return LimitReached(
        f"The Mercury API limits the rate (429): {said}",
        "RATE_LIMITED",
        status=429,
        is_transient=True,
        retry_after=retry_after,
        next_step=f"Try again {when}, with fewer calls at once or smaller max_tokens.",
    )


def _unauthorised(status: int, said: str) -> MercuryError:
    return NotAuthorised(
        f"The Mercury API does not accept the key ({status}): {said}",
        "INVALID_API_KEY",
        status=401,
        next_step="Set a valid key (MERCURY_API_KEY or MERCURY_API_KEY_FILE); `bridgehead mercury doctor` "
        "checks it.",
    )


def _failed(status: int, said: str, retry_after: float | None) -> MercuryError:
    when = "a little later" if retry_after is None else f"in {retry_after:.3g} s"
    return ApiFailed(
        f"The Mercury API failed ({status}): {said}",
        "SERVICE_UNAVAILABLE" if status in (502, 503, 504) else "SERVICE_ERROR",
        status=status,
        is_transient=status in TRANSIENT,
        is_outage=status >= SERVER_ERROR,
        retry_after=retry_after,
        next_step=f"Nothing is wrong with the call: try it again {when}.",
    )


def _invalid(status: int, found: wire.ApiError, said: str, model: str) -> MercuryError:
    if found.code == "context_length_exceeded":
        return _too_long(said)
    if status == NOT_FOUND:
        return unknown_model(model, (), said)
    where = f" (at {found.param})" if found.param else ""
    return InvalidCall(
        f"The Mercury API refused the request ({status}){where}: {said}",
        "INVALID_REQUEST",
        status=status,
        next_step="Correct the arguments; the same call would be refused again.",
    )


def _too_long(said: str) -> MercuryError:
    numbers = sorted(int(text.replace(",", "")) for text in _NUMBERS.findall(said))
    excess = ""
    if len(numbers) > 1:
        most, asked = numbers[0], numbers[-1]
        excess = f" It has {asked:,} tokens and the model takes {most:,}: {asked - most:,} too many."
    return InvalidCall(
        f"The request is longer than the model's context.{excess} The API says: {said}",
        "CONTEXT_LENGTH_EXCEEDED",
        status=400,
        next_step="Shorten the messages or max_tokens, or use a model with a longer context "
        "(mercury_list_models has context_length).",
    )


def unknown_model(model: str, known: tuple[str, ...], said: str = "") -> MercuryError:
    """Say that there is no such model, and which there are."""
    choose = f"Use one of: {', '.join(known)}." if known else "mercury_list_models lists the models."
    return InvalidCall(
        f"There is no model {model!r} for this call{': ' + said if said else '.'}",
        MODEL_NOT_FOUND,
        status=404,
        next_step=choose,
    )
