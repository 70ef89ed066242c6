"""Logs: structured lines on standard error, as JSON for machines or plain for people.

    log = logs.logger("bitburner.link")
    log.info("game connected", origin=origin, generation=3)

Built on the standard library's logging, which is loaded with the first line that is logged. A value given to
`hide` never appears in a line, wherever it came from.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import logging

ROOT = "bridgehead"
LEVELS = ("debug", "info", "warn", "error")
FORMATS = ("json", "pretty")
HIDDEN = "***"

_hidden: set[str] = set()


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

    def _log(self, level: int, event: str, fields: dict[str, object]) -> None:
        logger = self._logger
        if logger is None:
            import logging

            logger = self._logger = logging.getLogger(self._name)
        if logger.isEnabledFor(level):
            logger.log(level, event, extra={"fields": fields})


def logger(name: str) -> Logger:
    """Return the logger of one part of the product."""
    return Logger(name)


def hide(secret: str) -> None:
    """Keep a value out of every line from now on."""
    if secret:
        _hidden.add(secret)


def scrubbed(text: str) -> str:
    """Take every hidden value out of a text that leaves the process another way."""
    for secret in _hidden:
        text = text.replace(secret, HIDDEN)
    return text


def configure(level: str = "info", form: str = "json", stream: TextIO | None = None) -> None:
    """Send everything from a level on to a stream, in one of the formats; may be called again."""
    import logging

    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_formatter(form))
    root = logging.getLogger(ROOT)
    root.handlers[:] = [handler]
    root.setLevel({"warn": "WARNING"}.get(level, level.upper()))
    root.propagate = False


def _formatter(form: str) -> logging.Formatter:
    import logging

    write = _json_line if form == "json" else _pretty_line

    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return scrubbed(write(record, self))

    return Formatter()


def _fields(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, Any]:
    fields: dict[str, Any] = dict(getattr(record, "fields", {}))
    if record.exc_info:
        fields["traceback"] = formatter.formatException(record.exc_info)
    return fields


def _level(record: logging.LogRecord) -> str:
    return {"WARNING": "warn", "CRITICAL": "error"}.get(record.levelname, record.levelname.lower())


def _json_line(record: logging.LogRecord, formatter: logging.Formatter) -> str:
    import msgspec

    entry = {
        "time": _stamp(record.created),
        "level": _level(record),
        "logger": record.name,
        "event": record.getMessage(),
        **_fields(record, formatter),
    }
    return msgspec.json.encode(entry, enc_hook=str).decode()


def _pretty_line(record: logging.LogRecord, formatter: logging.Formatter) -> str:
    fields = "".join(f" {name}={_flat(value)}" for name, value in _fields(record, formatter).items())
    return f"{_stamp(record.created)[11:23]} {_level(record):5} {record.getMessage()}{fields}"


def _flat(value: object) -> str:
    text = str(value)
    return repr(text) if not text or any(c.isspace() or ord(c) < ord(" ") for c in text) else text


def _stamp(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
