"""Refusals: the API's errors, in its words and its JSON."""

from __future__ import annotations

import msgspec

_KINDS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", "invalid_request", "The request is not valid."),
    401: ("authentication_error", "invalid_api_key", "Incorrect API key provided."),
    402: (
        "billing_error",
        "insufficient_credits",
        "Your account has no credits left. Please add some.",
    ),
    403: ("permission_error", "forbidden", "You are not allowed to do this."),
    404: ("invalid_request_error", "not_found", "There is nothing at this address."),
    405: ("invalid_request_error", "method_not_allowed", "This method is not allowed here."),
    408: ("timeout_error", "request_timeout", "The request took too long."),
    413: ("invalid_request_error", "request_too_large", "The request is too large."),
    422: ("invalid_request_error", "unprocessable", "The request cannot be processed."),
    429: ("rate_limit_error", "rate_limit_exceeded", "Rate limit reached for requests per minute."),
    500: ("server_error", "internal_error", "The server had an error while processing your request."),
    502: ("server_error", "bad_gateway", "The model server did not answer properly."),
    503: ("server_error", "overloaded", "The engine is currently overloaded, please try again later."),
    504: ("server_error", "gateway_timeout", "The model server did not answer in time."),
}
CONTEXT = "context_length_exceeded"


class Refusal(Exception):
    """An error response of the API."""

    def __init__(
        self, status: int, message: str = "", code: str | None = None, param: str | None = None
    ) -> None:
        kind, usual_code, usual_message = _KINDS.get(status, ("server_error", None, "Something went wrong."))
        super().__init__(message or usual_message)
        self.status = status
        self.type = kind
        self.code = code or usual_code
        self.param = param

    @property
    def body(self) -> bytes:
        """The error as the API writes it."""
        error = {"message": str(self), "type": self.type, "param": self.param, "code": self.code}
        return msgspec.json.encode({"error": error})


def too_long(limit: int, prompt: int) -> Refusal:
    """Refuse a prompt longer than the model's context."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {prompt} "
        "tokens. Please reduce the length of the messages."
    )
    return Refusal(400, message, CONTEXT, "messages")


def unknown_model(name: str) -> Refusal:
    """Refuse a model that does not exist."""
    message = f"The model `{name}` does not exist or you do not have access to it."
    return Refusal(404, message, "model_not_found", "model")


def injected(status: int, code: str, message: str) -> Refusal:
    """Return the error response of an injected fault."""
    if code == CONTEXT and not message:
        return too_long(32_000, 40_012)
    return Refusal(status, message, code or None)
