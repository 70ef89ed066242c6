"""Errors of the mercury bridge: the table of their codes, and their form on the wire.

An agent reads one text block with JSON, `{"error": {"type", "message", "code", "retry_after"?, "content"?}}`,
in a result with `isError`. The code that raises an error gives its code and message; the category, the usual
next step and the rules for retries and billing are in `CODES`.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, json

from bridgehead.mcp import Dialect, Failure, ToolError
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError

from .completion import Money

Category = Literal["validation_error", "auth_error", "rate_limit", "api_error"]
"""The contract's names."""


class Row(Struct, frozen=True):
    """The properties of every error with a code."""

    type: Category
    meaning: str
    next_step: str = ""
    """The default next step; an error may have a better one."""
    is_transient: bool = False
    """Whether the request is retried, because it can succeed a moment later."""
    is_outage: bool = False
    """Whether the service is down, rather than the request wrong."""
    may_be_billed: bool = False
    """Whether the service may have done the work although there is no answer: never retried."""


_TRY_AGAIN = (
    "Call again if you still want the answer; if it stays like this, check the network and MERCURY_API_URL."
)
_CONTENT_SO_FAR = "`content` has what had arrived by then. Call again for a whole answer."

CODES = {
    # --- the call is wrong: the same call fails again ------------------------------------------------------
    "INVALID_ARGUMENTS": Row(
        "validation_error", "The arguments do not fit the tool.", "Correct the arguments and call again."
    ),
    "INVALID_REQUEST": Row(
        "validation_error",
        "The API refused the request.",
        "Correct the arguments; the same call would be refused again.",
    ),
    "INVALID_SCHEMA": Row(
        "validation_error",
        "The schema in response_format is not a JSON Schema.",
        "Correct the schema; references to other documents are not followed.",
    ),
    "MODEL_NOT_FOUND": Row(
        "validation_error",
        "There is no such model; the message lists those there are.",
        "mercury_list_models lists the models.",
    ),
    "MODEL_NOT_SUITABLE": Row(
        "validation_error", "The model cannot do this; the message lists the models that can."
    ),
    "MODEL_NOT_ALLOWED": Row(
        "validation_error", "MERCURY_ALLOWED_MODELS does not list the model; the message lists those it does."
    ),
    "CONTEXT_LENGTH_EXCEEDED": Row(
        "validation_error",
        "The request is longer than the model's context; the message says by how much.",
        "Shorten the messages or max_tokens, or use a model with a longer context (mercury_list_models has "
        "context_length).",
    ),
    "FILE_NOT_READABLE": Row(
        "validation_error",
        "A file that `files` names is not there, not text, too large, or not inside of the client's roots.",
        "Correct the name, or paste the text.",
    ),
    "REQUEST_TOO_LARGE": Row(
        "validation_error",
        "The arguments have more than MAX_REQUEST_SIZE bytes.",
        "Send less, or raise MAX_REQUEST_SIZE.",
    ),
    # --- the key or the account does not allow it ----------------------------------------------------------
    "MISSING_API_KEY": Row("auth_error", "No API key is set."),
    "INVALID_API_KEY": Row(
        "auth_error",
        "The API does not accept the key.",
        "Set a valid key (MERCURY_API_KEY or MERCURY_API_KEY_FILE); `bridgehead mercury doctor` checks it.",
    ),
    "FORBIDDEN": Row(
        "auth_error",
        "Something in front of the API, such as a firewall or a proxy, refused the request.",
        "Check the network, the proxy settings and MERCURY_API_URL; the key is not the problem.",
    ),
    "BILLING_REQUIRED": Row(
        "auth_error",
        "The account cannot pay.",
        "Look at the billing page of the account; trying again does not help until then.",
    ),
    # --- too much, too fast, too expensive -----------------------------------------------------------------
    "RATE_LIMITED": Row("rate_limit", "The API limits the rate.", is_transient=True),
    "LOCAL_RATE_LIMIT": Row("rate_limit", "A limit of this server is reached (RATE_LIMIT_…)."),
    "OVER_RATE_LIMIT": Row(
        "rate_limit",
        "The call alone can use more than a limit of this server allows in a window.",
        "Give a smaller max_tokens or a shorter prompt, or raise the RATE_LIMIT settings.",
    ),
    "BUDGET_EXCEEDED": Row(
        "rate_limit",
        "The call can cost more than is left of the day's budget.",
        "Ask for less (smaller max_tokens, a cheaper model), raise MERCURY_BUDGET_USD, or wait for the next "
        "UTC day.",
    ),
    "PRICE_UNKNOWN": Row(
        "rate_limit",
        "There is a budget, and what the call can cost is not known.",
        "Use a model that mercury_list_models lists with its price, or set its price in MERCURY_ROUTES_FILE.",
    ),
    # --- the service, or the way to it, failed -------------------------------------------------------------
    "NOT_FOUND": Row(
        "api_error",
        "The API has nothing at the address of the endpoint.",
        "Check MERCURY_API_URL; not every server has every endpoint.",
    ),
    "SERVICE_ERROR": Row("api_error", "The API failed (408, 500 and others)."),
    "SERVICE_UNAVAILABLE": Row("api_error", "The API is not available (502, 503, 504)."),
    "SERVICE_DOWN": Row("api_error", "The API kept failing, so nothing is sent to it for a while."),
    "TIMEOUT": Row(
        "api_error",
        "The API did not answer in time; it may bill the call, so it is not sent again.",
        may_be_billed=True,
    ),
    "CONNECTION_FAILED": Row(
        "api_error",
        "There is no connection to the API.",
        "Check the network, the proxy settings and MERCURY_API_URL, then try again.",
        is_transient=True,
        is_outage=True,
    ),
    "CONNECTION_LOST": Row(
        "api_error",
        "The connection broke before the answer came; the API may bill the call, so it is not sent again.",
        _TRY_AGAIN,
        is_outage=True,
        may_be_billed=True,
    ),
    "STREAM_INCOMPLETE": Row(
        "api_error",
        "A stream ended before the answer was whole; `content` has what came.",
        _CONTENT_SO_FAR,
        may_be_billed=True,
    ),
    "STREAM_ERROR": Row(
        "api_error",
        "The API reported an error in the middle of an answer; `content` has what came.",
        _CONTENT_SO_FAR,
        may_be_billed=True,
    ),
    "BAD_RESPONSE": Row(
        "api_error",
        "The API's answer cannot be read.",
        "Try again; if it stays like this, check MERCURY_API_URL.",
        may_be_billed=True,
    ),
    "RESPONSE_TOO_LARGE": Row(
        "api_error",
        "The API's answer is larger than this server accepts.",
        "Ask for less (max_tokens).",
        may_be_billed=True,
    ),
    "STOPPED": Row(
        "api_error",
        "The user stopped the answer in the page that showed it; `content` has what had arrived.",
        "Ask the user before calling again.",
        may_be_billed=True,
    ),
    "EDIT_INCOMPLETE": Row(
        "api_error",
        "An edit was cut short; `content` has what came and must not replace the file.",
        "`content` has what came: do not write it over the original. Call again with a larger max_tokens, or "
        "for a smaller piece of code.",
    ),
    "FORMAT_MISMATCH": Row(
        "api_error",
        "The answer does not have the form that response_format asks for; `content` has it.",
        "`content` has the answer. Call again, or ask for a simpler form or more max_tokens.",
    ),
    "STORAGE": Row("api_error", "A file of this server cannot be used."),
    "SETTING": Row("api_error", "A setting of this server cannot be used."),
    "INTERNAL_ERROR": Row("api_error", "A bug in this server; its log has the details."),
}


class MercuryError(BridgeError):
    """A call failed."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        next_step: str | None = None,
        retry_after: float | None = None,
        status: int | None = None,
        is_transient: bool | None = None,
        is_outage: bool | None = None,
        content: str | None = None,
    ) -> None:
        row = CODES[code]
        super().__init__(
            message, next_step=row.next_step if next_step is None else next_step, retry_after=retry_after
        )
        self.code = code
        self.type = row.type
        self.status = status
        """The HTTP status of the API's response, if there was one."""
        self.is_transient = row.is_transient if is_transient is None else is_transient
        self.is_outage = row.is_outage if is_outage is None else is_outage
        self.may_be_billed = row.may_be_billed
        self.content = content
        """The part of the answer that had arrived before the failure."""
        self.usage: tuple[Any, ...] = ()
        """What the API reported as usage with a refusal."""
        self.money = Money()
        """What the call cost although it failed."""

    def advise(self, next_step: str) -> None:
        """Replace the next step."""
        self.next_step = next_step
        self.args = (f"{self.message} {next_step}",)

    def stop_retries(self, content: str) -> None:
        """Turn it into the error of an answer that had begun, which is billed and never retried."""
        self.is_transient = False
        self.may_be_billed = True
        self.content = self.content or content or None
        self.retry_after = None
        self.advise(_CONTENT_SO_FAR if self.content else _TRY_AGAIN)


_WHOLE_SECONDS = 10


def format_seconds(seconds: float) -> str:
    """Format a duration: 0.25 s, 30 s, 3,600 s."""
    return f"{seconds:,.0f} s" if seconds >= _WHOLE_SECONDS else f"{max(seconds, 0.01):.2g} s"


# --- how an error looks ------------------------------------------------------------------------------------


class ErrorBody(Struct, omit_defaults=True):
    """The JSON of an error."""

    type: str
    message: str
    code: str
    retry_after: float | None = None
    """Seconds."""
    content: str | None = None
    """The part of the answer that had arrived."""


def describe(error: BridgeError) -> ErrorBody:
    """Return the contract's form of an error, without secrets: a broken connection may quote one."""
    message = logs.scrubbed(str(error))
    if isinstance(error, MercuryError):
        wait = None if error.retry_after is None else round(error.retry_after, 3)
        return ErrorBody(error.type, message, error.code, wait, error.content)
    return ErrorBody("api_error", message, error.code.upper(), error.retry_after)


def _fail(body: ErrorBody, note: str = "") -> Failure:
    # A message may quote invalid arguments, and those may contain a key.
    return ToolError(logs.scrubbed(json.encode({"error": body}).decode()), note=note)


class MercuryDialect(Dialect):
    """Failures in the contract's form."""

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Report arguments that do not match the tool's input schema."""
        row = CODES["INVALID_ARGUMENTS"]
        message = f"Invalid arguments for {tool}: {problem}. {row.next_step}"
        return _fail(ErrorBody(row.type, message, "INVALID_ARGUMENTS"))

    def translate(self, error: Exception) -> Failure | None:
        """Translate an exception of a handler; None means that it is a bug."""
        if isinstance(error, BridgeError):
            return _fail(describe(error), error.money.describe() if isinstance(error, MercuryError) else "")
        return super().translate(error)

    def bug(self, reference: str) -> Failure:
        """Report a bug; its details are only in the log."""
        message = f"Something is wrong with this server (reference {reference}); its log has the details."
        return _fail(ErrorBody("api_error", message, "INTERNAL_ERROR"))
