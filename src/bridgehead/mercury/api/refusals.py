"""Refusals: convert the API's responses other than 200 to errors with a code."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from bridgehead.mcp import UNDECODABLE

from ..errors import MercuryError, format_seconds
from . import wire
from .tolerance import BOM, quote_bytes, read_tolerantly

UNAUTHORISED, PAYMENT_REQUIRED, FORBIDDEN, NOT_FOUND, TIMED_OUT, TOO_MANY = 401, 402, 403, 404, 408, 429
NOT_ALLOWED, SERVER_ERROR = 405, 500
_UNAVAILABLE = (502, 503, 504)
_TRANSIENT = frozenset({TIMED_OUT, SERVER_ERROR, *_UNAVAILABLE})
_FIRST_REFUSAL = 400
_CONTEXT_PHRASES = (
    *("context_length_exceeded", "context length", "context window", "contextwindow", "context size"),
    *("context_size", "prompt is too long", "input is too long", "maximum model length"),
    *("exceeds the maximum number of tokens", "maximum prompt length", "`max_new_tokens` must be <="),
)
_LONGEST_QUOTE = 500
"""Limit of characters quoted from the API's message."""


def refused(
    status: int,
    body: bytes,
    retry_after: float | None,
    *,
    path: str,
    model: str = "",
    api: str = "Mercury API",
) -> MercuryError:
    """Return the error for a response whose status is not a success; `api` names who sent it."""
    reason = read_refusal(body)
    if reason.message is None and body.startswith(b"{"):  # an unknown form: quote it
        reason.message = quote_bytes(body)
    quote = _quote(reason)
    if status == TOO_MANY:
        when = "in a minute" if retry_after is None else f"in {format_seconds(retry_after)}"
        return MercuryError(
            "RATE_LIMITED",
            f"The {api} limits the rate (429): {quote}",
            status=status,
            retry_after=retry_after,
            next_step=f"Try again {when}, with fewer calls at once or smaller max_tokens.",
        )
    if status == FORBIDDEN and is_page(body):
        # Not the API's JSON: a firewall or a proxy answered, so the key was not checked.
        message = f"Something in front of the {api} refused the request (403): {quote}"
        return MercuryError("FORBIDDEN", message, status=status)
    if status in (UNAUTHORISED, FORBIDDEN):
        # 403 counts as 401, so that the key cools down like any refused one.
        message = f"The {api} does not accept the key ({status}): {quote}"
        return MercuryError("INVALID_API_KEY", message, status=UNAUTHORISED)
    if status == PAYMENT_REQUIRED:
        message = f"The account at the {api} cannot pay for this (402): {quote}"
        return MercuryError("BILLING_REQUIRED", message, status=status)
    if status >= SERVER_ERROR or status == TIMED_OUT:
        when = "a little later" if retry_after is None else f"in {format_seconds(retry_after)}"
        return MercuryError(
            "SERVICE_UNAVAILABLE" if status in _UNAVAILABLE else "SERVICE_ERROR",
            f"The {api} failed ({status}): {quote}",
            status=status,
            is_transient=status in _TRANSIENT,
            is_outage=status >= SERVER_ERROR,
            retry_after=retry_after,
            next_step=f"Nothing is wrong with the call: try it again {when}.",
        )
    if status < _FIRST_REFUSAL:
        return MercuryError(
            "BAD_RESPONSE",
            f"The {api} answered with a redirect ({status}).",
            status=status,
            next_step="Check MERCURY_API_URL: redirects are not followed.",
        )
    words = f"{reason.param} {reason.code} {reason.type} {reason.message}".lower()
    # vLLM, LiteLLM, llama.cpp and Gemini have no code of their own for this, only a message or a type.
    if any(phrase in words for phrase in _CONTEXT_PHRASES):
        return _context_exceeded(quote, api)
    is_about_model = "model" in words or bool(model and model.lower() in words)
    if status == NOT_ALLOWED or (status == NOT_FOUND and (path in words or not is_about_model)):
        # A 404 is about the endpoint if it names the path or does not mention the model. OpenAI, Groq and
        # LiteLLM answer so for paths that they do not serve.
        message = f"The {api} has nothing at {path} ({status}): {quote}"
        return MercuryError("NOT_FOUND", message, status=status)
    if status == NOT_FOUND:
        return unknown_model(model, (), api, quote)
    where = f" (at {reason.param})" if reason.param else ""
    message = f"The {api} refused the request ({status}){where}: {quote}"
    # LiteLLM sets no `param` for an unknown model.
    is_model_refused = reason.param == "model" or "invalid model name" in words
    code = "MODEL_NOT_SUITABLE" if is_model_refused else "INVALID_REQUEST"
    return MercuryError(code, message, status=status)


def _context_exceeded(quote: str, api: str) -> MercuryError:
    """Return the error for a request that is too long; the numbers are only in the API's message."""
    # vLLM may name two limits, for all tokens and for those of the input: "… context length is only 9000
    # tokens, resulting in a maximum input length of 8984 tokens".
    quote_digits = quote.replace(",", "")
    limit = min(
        map(int, re.findall(r"(?:length (?:is|of)(?: only)?|takes) (\d+)", quote_digits)), default=None
    )
    requested = max(map(int, re.findall(r"(\d+) (?:input )?tokens", quote_digits)), default=0)
    excess = ""
    if limit is not None and requested > limit:
        excess = (
            f" It has {requested:,} tokens and the model takes {limit:,}: {requested - limit:,} too many."
        )
    message = f"The request is longer than the model's context.{excess} The {api} says: {quote}"
    return MercuryError("CONTEXT_LENGTH_EXCEEDED", message, status=400)


def unknown_model(model: str, known: tuple[str, ...], api: str, quote: str = "") -> MercuryError:
    """Return the error for a model that does not exist; its next step lists `known`."""
    return MercuryError(
        "MODEL_NOT_FOUND",
        f"The {api} has no model {model!r} for this call{': ' + quote if quote else '.'}",
        status=NOT_FOUND,
        next_step=list_models(known) if known else None,
    )


def list_models(names: tuple[str, ...]) -> str:
    """Return the next step for a call that needs another model."""
    return f"Use one of: {', '.join(names)}."


def broken_off(reason: wire.ApiError, content: str | None, api: str) -> MercuryError:
    """Return the error for an answer that the API aborted."""
    kind = reason.code or reason.type
    return MercuryError(
        "STREAM_ERROR",
        f"The {api} broke the answer off{f' ({kind})' if kind else ''}: {_quote(reason)}",
        next_step=None if content else "Call again if you still want the answer.",
        content=content,
    )


def read_reason(response: wire.ErrorResponse | wire.CompletionResponse) -> wire.ApiError:
    """Return the reason in any of the known forms: the vendor's, a text, FastAPI's `detail`."""
    error, detail = response.error, response.detail
    if error is None and isinstance(detail, dict):  # the vendor's form wrapped by FastAPI
        error = detail.get("error", detail)
    if isinstance(error, dict):
        known = ((name, error.get(name)) for name in wire.ApiError.__struct_fields__)
        reason = wire.ApiError(**{name: str(value) for name, value in known if isinstance(value, str | int)})
        metadata = error.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
            # OpenRouter's own message is "Provider returned error"; this is the provider's.
            reason.message = ": ".join(filter(None, (reason.message, metadata["raw"])))
        return reason
    if isinstance(detail, list):  # FastAPI: an entry for each field that is wrong
        entries = (entry for entry in detail if isinstance(entry, dict))
        detail = "; ".join(f"{'.'.join(map(str, e.get('loc') or ()))}: {e.get('msg')}" for e in entries)
    message = error or response.message or detail
    return wire.ApiError(message if isinstance(message, str) else None)


def read_refusal(body: bytes) -> wire.ApiError:
    """Return the reason in a body, as far as it can be read."""
    try:
        return read_reason(wire.read_refusal(body))
    except UNDECODABLE:
        with suppress(*UNDECODABLE):
            return read_reason(read_tolerantly(body, wire.ErrorResponse)[0])
        with suppress(*UNDECODABLE):  # Gemini's compatible endpoint puts it into a list
            return read_reason(read_tolerantly(body, tuple[wire.ErrorResponse])[0][0])
    # Not JSON: a gateway's own text, unless it is an HTML page.
    is_text = body[:1].isalnum()
    return wire.ApiError(quote_bytes(body) if is_text else None)


def read_usage(body: bytes) -> tuple[Any, ...]:
    """Return the usage in the body of a refusal, if there is any: then it is billed all the same."""
    if b'"usage"' not in body:
        return ()
    with suppress(*UNDECODABLE):
        reported = wire.read_refusal(body).usage
        return () if reported is None else (reported,)
    return ("unreadable",)


def is_page(body: bytes) -> bool:
    """Return whether a body is HTML, or what Cloudflare sends to clients that do not accept HTML."""
    return body.removeprefix(BOM).lstrip().startswith((b"<", b"error code: "))


def _quote(reason: wire.ApiError) -> str:
    """Return the API's message, shortened, as a sentence."""
    text = (reason.message or "")[:_LONGEST_QUOTE].strip() or "no reason given"
    return text if text.endswith((".", "!", "?")) else f"{text}."
