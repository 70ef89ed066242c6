"""Logs: structured lines on standard error, as JSON for machines or plain for people.

    log = logs.logger("bitburner.link")
    log.info("game connected", origin=origin, generation=3)

Built on the standard library's logging, which is loaded with the first line that is logged. A value given to
`hide` never appears in a line, wherever it came from. A line is one line, whatever is in it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO

from .settings import Setting, Settings, choice, hide_credentials

if TYPE_CHECKING:
    import logging

ROOT = "bridgehead"
LEVELS = ("debug", "info", "warn", "error")
_NUMBERS = {"debug": 10, "info": 20, "warn": 30, "error": 40}
_LEVEL_NAMES = {"WARNING": "warn", "CRITICAL": "error"}
FORMATS = ("json", "pretty")
HIDDEN = "***"

_hidden: set[str] = set()
_short: set[str] = set()
_encoded: set[bytes] = set()
"""All of both."""
_further: list[Callable[[], dict[str, object]]] = []
_others: list[logging.Handler] = []
"""Who gets every line beside the stream."""


class Logger:
    """Writes lines with fields under one name."""

    def __init__(self, name: str) -> None:
        self._name = f"{ROOT}.{name}"
        self._logger: logging.Logger | None = None

    def debug(self, event: str, **fields: object) -> None:
        """Log what only someone who searches for a fault wants to see."""
        self._log(10, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log what happened."""
        self._log(20, event, fields)

    def warn(self, event: str, **fields: object) -> None:
        """Log what somebody should look at."""
        self._log(30, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log what failed."""
        self._log(40, event, fields)

    def is_enabled(self, level: str) -> bool:
        """Whether a line of this level is written at all; for hot paths that would make fields in vain."""
        return self._found().isEnabledFor(_NUMBERS[level])

    def info_each(self, event: str, lines: Iterable[dict[str, object]]) -> None:
        """Log the same event several times, written at once. Further fields are the caller's business.

        A field `time`, in seconds since the epoch, says when it happened, if that is not now.
        """
        logger = self._found()
        if logger.isEnabledFor(20):
            logger.info(event, extra={"lines": list(lines)})

    def _log(self, level: int, event: str, fields: dict[str, object]) -> None:
        logger = self._found()
        if logger.isEnabledFor(level):
            logger.log(level, event, extra={"fields": fields})

    def _found(self) -> logging.Logger:
        if self._logger is None:
            import logging

            self._logger = logging.getLogger(self._name)
        return self._logger


def logger(name: str) -> Logger:
    """Return the logger of one part of the product."""
    return Logger(name)


def hide(secret: str) -> None:
    """Keep a value out of every line from now on."""
    if secret:
        _hidden.add(secret)
        _encoded.add(secret.encode())


def hide_credential(secret: str) -> None:
    """Keep a short value out of every line where it stands as a credential: elsewhere it is just a word.

    Servers that take any key are given `EMPTY` or `ollama`, for example.
    """
    if secret:
        _short.add(secret)
        _encoded.add(secret.encode())


def secrets() -> set[str]:
    """Return the values that are hidden wherever they stand."""
    return _hidden


def may_show_secret(data: bytes) -> bool:
    """Tell whether a hidden value stands in some bytes, be it as a credential or not."""
    return any(map(data.__contains__, _encoded))  # a generator would cost more than the search itself


def scrubbed(text: str) -> str:
    """Take every hidden value out of a text that leaves the process in another way than the log."""
    if any(secret in text for secret in _hidden):
        for secret in sorted(_hidden, key=len, reverse=True):  # one may be the beginning of another
            text = text.replace(secret, HIDDEN)
    if any(secret in text for secret in _short):
        text = _without_credentials(text)
    text = hide_credentials(text)
    if text.isascii():
        return text
    return text.encode(errors="backslashreplace").decode()  # a file's name may hold what is no text


def _without_credentials(text: str) -> str:
    """Take short secrets out where the words before them say what they are: `Bearer …`, `API key: …`."""
    import re

    words = r"(?i:bearer|basic|authorization|api.?key|key|token|credential|secret|password)s?"
    for secret in _short:
        pattern = rf"(\b{words}\b\W{{0,4}}(?:\w+\W{{1,3}}){{0,2}}?){re.escape(secret)}(?!\w)"
        text = re.sub(pattern, rf"\g<1>{HIDDEN}", text)
    return text


def add_context(read: Callable[[], dict[str, object]]) -> None:
    """Put further fields into every line from now on, read when the line is written."""
    if read not in _further:
        _further.append(read)


def configure(level: str = "info", form: str = "json", stream: TextIO | None = None) -> None:
    """Send everything from a level on to a stream, in one of the formats; may be called again."""
    import logging

    from .log_handler import LogHandler

    stream = stream or sys.stderr
    _use_utf8(stream)
    handler = LogHandler(stream)
    handler.setFormatter(_formatter(form))
    root = logging.getLogger(ROOT)
    root.handlers[:] = [handler, *_others]
    root.setLevel({"warn": "WARNING"}.get(level, level.upper()))
    root.propagate = False


def _use_utf8(stream: TextIO) -> None:
    """Write UTF-8 to a file or a pipe, as JSON and MCP want it; Windows has another default."""
    if not isinstance(stream, io.TextIOWrapper) or stream.isatty():
        return
    if stream.encoding.replace("-", "").lower() != "utf8":
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def add_handler(handler: logging.Handler) -> None:
    """Hand every line to another handler too, from now on and however logging is configured later."""
    import logging

    _others.append(handler)
    logging.getLogger(ROOT).addHandler(handler)


def remove_handler(handler: logging.Handler) -> None:
    """Hand no more lines to a handler."""
    import logging

    _others.remove(handler)
    logging.getLogger(ROOT).removeHandler(handler)


def adopt(library: str) -> None:
    """Let a library's own logger write its lines as ours are, and not to the terminal as it likes."""
    import logging

    own, root = logging.getLogger(library), logging.getLogger(ROOT)
    # Not to other handlers: they may send with this library, and would log its failures without end.
    own.handlers[:] = [handler for handler in root.handlers if handler not in _others]
    own.propagate = False


def _formatter(form: str) -> logging.Formatter:
    import logging

    write = _json_line if form == "json" else _pretty_line

    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            head = _head(record)
            lines = getattr(record, "lines", None)
            if lines is not None:
                return "\n".join([write(*_dated(head, fields)) for fields in lines])
            fields = context_fields() | getattr(record, "fields", {})
            if record.exc_info:
                fields["traceback"] = self.formatException(record.exc_info)
            return write(head, fields)

    return Formatter()


def context_fields() -> dict[str, object]:
    """Give the further fields that a line about what happens now has."""
    fields: dict[str, object] = {}
    for read in _further:
        fields = read() | fields
    return fields


def _is_clean(text: str) -> bool:
    """Tell by one look at an encoded line that there is nothing to take out, which is so nearly always."""
    is_verbatim = text.isascii() and "\\" not in text  # so a secret in it would look like itself
    if "@" in text and "://" in text:  # an address may have a password in it
        return False
    return is_verbatim and not any(secret in text for secret in (*_hidden, *_short))


def clean(fields: dict[str, Any]) -> dict[str, Any]:
    """Give fields as plain data without secrets; done before a line is made, which might disguise them."""
    import msgspec

    cleaned: dict[str, Any] = _clean(msgspec.to_builtins(fields, enc_hook=str))
    return cleaned


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {scrubbed(str(name)): _clean(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    text = str(value)
    clean = scrubbed(text)
    return value if clean == text else clean


def _head(record: logging.LogRecord) -> dict[str, str]:
    """Give what every line begins with."""
    return {
        "time": _stamp(record.created),
        "level": _LEVEL_NAMES.get(record.levelname) or record.levelname.lower(),
        "logger": record.name,
        "event": scrubbed(record.getMessage()),
    }


def _dated(head: dict[str, str], fields: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Let a line that was kept for a while have the time of what it tells."""
    happened = fields.pop("time", None)
    return (head if happened is None else {**head, "time": _stamp(happened)}), fields


def _json_line(head: dict[str, str], fields: dict[str, Any]) -> str:
    import msgspec

    if not head.keys().isdisjoint(fields):
        fields = {f"{name}_" if name in head else name: value for name, value in fields.items()}
    try:
        line = msgspec.json.encode(head | fields, enc_hook=str).decode()
    except UnicodeEncodeError:
        line = ""
    if line and _is_clean(line):
        return line
    return msgspec.json.encode(head | clean(fields)).decode()


def _pretty_line(head: dict[str, str], fields: dict[str, Any]) -> str:
    event = head["event"]
    shown = event if event.isprintable() else repr(event)
    others = "".join(f" {name}={_flat(value)}" for name, value in clean(fields).items())
    return f"{head['time'][11:23]} {head['level']:5} {shown}{others}"


def _flat(value: object) -> str:
    text = str(value)
    return text if text and " " not in text and text.isprintable() else repr(text)


def _stamp(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


DEFAULT_LEVEL = "info"


class LogSettings(Settings):
    """What is logged."""

    log_level = Setting("LOG_LEVEL", choice(*LEVELS), DEFAULT_LEVEL, "The lowest level that is logged.")
    mcp_log_level = Setting(
        "MCP_LOG_LEVEL",
        choice(*LEVELS),
        DEFAULT_LEVEL,
        "Another name for LOG_LEVEL, which wins if both are set.",
    )
    log_format = Setting(
        "LOG_FORMAT",
        choice(*FORMATS),
        "json",
        "The format of log lines.",
        shown="json; pretty on a terminal",
    )

    @property
    def level(self) -> str:
        """The lowest level that is logged."""
        is_under_its_other_name = "LOG_LEVEL" not in self.given
        return self.mcp_log_level if is_under_its_other_name else self.log_level

    def configure_logs(self) -> None:
        """Log as the settings say, and say so where they disagree."""
        is_watched = "LOG_FORMAT" not in self.given and sys.stderr.isatty()
        configure(self.level, "pretty" if is_watched else self.log_format)
        if {"LOG_LEVEL", "MCP_LOG_LEVEL"} <= self.given and self.log_level != self.mcp_log_level:
            logger("settings").warn(
                "LOG_LEVEL and MCP_LOG_LEVEL differ; LOG_LEVEL counts",
                LOG_LEVEL=self.log_level,
                MCP_LOG_LEVEL=self.mcp_log_level,
            )
