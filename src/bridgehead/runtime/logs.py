"""Logs: structured lines on standard error, as JSON for machines or plain for people.

    log = logs.logger("bitburner.link")
    log.info("game connected", origin=origin, generation=3)

Built on the standard library's logging, which is imported with the first line that is logged (a server's
first answer does not wait for it). A value passed to `hide` never appears in a line, wherever it came from.
A record is always one line of text.

Logging never blocks for long. A client may start a server and never read its standard error: the pipe then
fills up. Lines are dropped while the pipe is full, and counted.
"""

from __future__ import annotations

import io
import logging
import queue
import re
import select
import sys
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TextIO

from .settings import Setting, Settings, choice, hide_credentials

ROOT = "bridgehead"
LEVELS = ("debug", "info", "warn", "error")
DEFAULT_LEVEL = "info"
_NUMBERS = {"debug": 10, "info": 20, "warn": 30, "error": 40}
_LEVEL_NAMES = {"WARNING": "warn", "CRITICAL": "error"}
FORMATS = ("json", "pretty")
HIDDEN = "***"
PATIENCE_SECONDS = 0.2
"""How long a line, or the rest of a long one, may wait for room in the pipe."""
CAN_POLL_PIPES = sys.platform != "win32"
"""Whether `select` works on pipes. On Windows a thread writes instead."""
_MAX_BYTES_PER_CHARACTER = 4  # UTF-8

_hidden: set[str] = set()
"""Secrets that are hidden wherever they occur."""
_short: set[str] = set()
"""Secrets that are also ordinary words; hidden only after a word such as `Bearer` or `token`."""
_encoded: set[bytes] = set()
"""Both sets, as UTF-8."""
_context: list[Callable[[], dict[str, object]]] = []
_handlers: list[logging.Handler] = []
"""Handlers that get every line in addition to the stream."""


class Logger:
    """Logs events with fields under one name."""

    def __init__(self, name: str) -> None:
        self._name = f"{ROOT}.{name}"
        self._logger: logging.Logger | None = None

    def debug(self, event: str, **fields: object) -> None:
        """Log details for debugging."""
        self._log(10, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log normal operation."""
        self._log(20, event, fields)

    def warn(self, event: str, **fields: object) -> None:
        """Log something an operator should look at."""
        self._log(30, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log a failure."""
        self._log(40, event, fields)

    def is_enabled(self, level: str) -> bool:
        """Whether a line of this level would be written; lets hot paths skip building its fields."""
        return (self._logger or self._load()).isEnabledFor(_NUMBERS[level])

    def info_each(self, event: str, lines: Iterable[dict[str, object]]) -> None:
        """Log the same event several times in one write, without context fields.

        A field `time`, in seconds since the epoch, replaces the time of logging.
        """
        logger = self._logger or self._load()
        if logger.isEnabledFor(20):
            logger.info(event, extra={"lines": list(lines)})

    def _log(self, level: int, event: str, fields: dict[str, object]) -> None:
        logger = self._logger or self._load()
        if logger.isEnabledFor(level):
            logger.log(level, event, extra={"fields": fields})

    def _load(self) -> logging.Logger:
        self._logger = logging.getLogger(self._name)
        return self._logger


def logger(name: str) -> Logger:
    """Return the logger of one part of the product."""
    return Logger(name)


# --- secrets ------------------------------------------------------------------------------------------------


def hide(secret: str) -> None:
    """Keep a value out of every line from now on."""
    if secret:
        _hidden.add(secret)
        _encoded.add(secret.encode())


def hide_credential(secret: str) -> None:
    """Keep a short value out of every line in which it is used as a credential.

    Servers that take any key get `EMPTY` or `ollama`, for example; elsewhere those are just words.
    """
    if secret:
        _short.add(secret)
        _encoded.add(secret.encode())


def secrets() -> set[str]:
    """Return the values that are hidden wherever they occur."""
    return _hidden


def may_show_secret(data: bytes) -> bool:
    """Whether any hidden value occurs in the bytes, as a credential or not."""
    # `map`, because a generator would cost more than the search itself.
    return any(map(data.__contains__, _encoded))


def scrubbed(text: str) -> str:
    """Return a text without hidden values; for texts that leave the process other than by the log."""
    if any(secret in text for secret in _hidden):
        # Longest first: one secret may be the beginning of another.
        for secret in sorted(_hidden, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
    if any(secret in text for secret in _short):
        # Short secrets only where the words before them say what they are: `Bearer …`, `API key: …`.
        words = r"(?i:bearer|basic|authorization|api.?key|key|token|credential|secret|password)s?"
        for secret in _short:
            pattern = rf"(\b{words}\b\W{{0,4}}(?:\w+\W{{1,3}}){{0,2}}?){re.escape(secret)}(?!\w)"
            text = re.sub(pattern, rf"\g<1>{HIDDEN}", text)
    text = hide_credentials(text)
    if text.isascii():
        return text
    return text.encode(errors="backslashreplace").decode()  # a file's name may contain lone surrogates


def clean(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields as plain data without secrets.

    Call it before encoding: escapes in an encoded line could disguise a secret.
    """
    import msgspec

    cleaned: dict[str, Any] = _clean(msgspec.to_builtins(fields, enc_hook=str))
    return cleaned


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {scrubbed(str(name)): _clean(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    text = str(value)
    cleaned = scrubbed(text)
    return value if cleaned == text else cleaned


# --- where lines go -----------------------------------------------------------------------------------------


def add_context(read: Callable[[], dict[str, object]]) -> None:
    """Add fields to every line from now on; `read` is called when a line is written."""
    if read not in _context:
        _context.append(read)


def context_fields() -> dict[str, object]:
    """Return the fields that `add_context` adds to a line logged now."""
    fields: dict[str, object] = {}
    for read in _context:
        fields = read() | fields
    return fields


def configure(level: str = "info", form: str = "json", stream: TextIO | None = None) -> None:
    """Log to a stream from a level on, in one of the formats; replaces the previous configuration."""
    stream = stream or sys.stderr
    # JSON and MCP require UTF-8; on Windows files and pipes have another default.
    if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
        is_utf8 = stream.encoding.replace("-", "").lower() == "utf8"
        if not is_utf8:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    root = logging.getLogger(ROOT)
    root.handlers[:] = [_make_handler(stream, form), *_handlers]
    root.setLevel({"warn": "WARNING"}.get(level, level.upper()))
    root.propagate = False


def add_handler(handler: logging.Handler) -> None:
    """Send every line to another handler too, also after later calls of `configure`."""
    _handlers.append(handler)
    logging.getLogger(ROOT).addHandler(handler)


def remove_handler(handler: logging.Handler) -> None:
    """Undo `add_handler`."""
    _handlers.remove(handler)
    logging.getLogger(ROOT).removeHandler(handler)


def adopt(library: str) -> None:
    """Send a library's own log to our stream in our format, instead of wherever it would go."""
    own, root = logging.getLogger(library), logging.getLogger(ROOT)
    # Not to added handlers: they may send with this library, and would log its failures without end.
    own.handlers[:] = [handler for handler in root.handlers if handler not in _handlers]
    own.propagate = False


def _make_handler(stream: TextIO, form: str) -> logging.Handler:
    write_line = _json_line if form == "json" else _pretty_line
    # A terminal may stop in the middle of a line (Ctrl+S), whatever select said before.
    thread = None if CAN_POLL_PIPES and not stream.isatty() else _WriterThread(stream)

    def has_room(seconds: float) -> bool:
        try:
            return bool(select.select([], [stream.fileno()], [], seconds)[1])
        except (OSError, ValueError, AttributeError):
            return True  # not something that select knows, such as a StringIO

    # A class inside a function, because `logging` is imported late (see the module's docstring).
    class LogHandler(logging.StreamHandler[TextIO]):
        # Guarded by the lock that `Handler.handle` holds around `emit`.
        dropped = 0

        def format(self, record: logging.LogRecord) -> str:
            head = {
                "time": _timestamp(record.created),
                "level": _LEVEL_NAMES.get(record.levelname) or record.levelname.lower(),
                "logger": record.name,
                "event": scrubbed(record.getMessage()),
            }
            lines = getattr(record, "lines", None)
            if lines is not None:
                texts = []
                for fields in lines:
                    happened = fields.pop("time", None)
                    own = head if happened is None else {**head, "time": _timestamp(happened)}
                    texts.append(write_line(own, fields))
                return "\n".join(texts)
            fields = context_fields() | getattr(record, "fields", {})
            if record.exc_info:
                fields["traceback"] = logging.Formatter().formatException(record.exc_info)
            return write_line(head, fields)

        def emit(self, record: logging.LogRecord) -> None:
            # Before formatting, so that a log that nobody reads costs next to nothing.
            if not (has_room(0) if thread is None else thread.is_idle):
                self.dropped += 1
                return
            try:
                text = self.format(record) + self.terminator
                if self.dropped:
                    text = self._dropped_notice() + text
                if thread is None:
                    self._write(text)
                else:
                    thread.write(text)
            except RecursionError:
                raise
            except Exception:  # noqa: BLE001  (as every handler of the standard library does)
                self.handleError(record)

        def _write(self, text: str) -> None:
            # A pipe that select calls writable takes PIPE_BUF bytes without blocking (POSIX; 512 on macOS).
            room = select.PIPE_BUF
            size = room if text.isascii() else room // _MAX_BYTES_PER_CHARACTER
            for begin in range(0, len(text), size):
                if begin and not has_room(PATIENCE_SECONDS):
                    self.dropped += 1
                    return
                self.stream.write(text[begin : begin + size])
                self.flush()

        def _dropped_notice(self) -> str:
            count, self.dropped = self.dropped, 0
            values = {
                "name": "bridgehead.log",
                "levelno": logging.WARNING,
                "levelname": "WARNING",
                "msg": "log entries dropped, because nothing reads them",
                "fields": {"count": count},
            }
            return self.format(logging.makeLogRecord(values)) + self.terminator

    return LogHandler(stream)


class _WriterThread:
    """Writes one text at a time where nothing tells whether there is room: terminals, pipes on Windows."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._texts: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_written = threading.Event()
        self._is_written.set()
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)

    @property
    def is_idle(self) -> bool:
        """Whether the last text has been written."""
        return self._is_written.is_set()

    def write(self, text: str) -> None:
        """Hand a text over and wait up to `PATIENCE_SECONDS`, so that the last lines before exit arrive."""
        if self._thread.ident is None:
            self._thread.start()
        self._is_written.clear()
        self._texts.put(text)
        self._is_written.wait(PATIENCE_SECONDS)

    def _run(self) -> None:
        while True:
            text = self._texts.get()
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):
                return  # closed: `is_idle` stays False, so later lines are dropped
            self._is_written.set()


# --- formats ------------------------------------------------------------------------------------------------


def _json_line(head: dict[str, str], fields: dict[str, Any]) -> str:
    import msgspec

    if not head.keys().isdisjoint(fields):
        fields = {f"{name}_" if name in head else name: value for name, value in fields.items()}
    try:
        line = msgspec.json.encode(head | fields, enc_hook=str).decode()
    except UnicodeEncodeError:  # lone surrogates, which `clean` escapes
        line = ""
    # Fast path: nearly every line is clean, and a search of the encoded line proves it. In ASCII without
    # escapes a secret appears verbatim, and only an address can contain a password not passed to `hide`.
    is_verbatim = line.isascii() and "\\" not in line and not ("@" in line and "://" in line)
    if line and is_verbatim and not any(secret in line for secret in (*_hidden, *_short)):
        return line
    return msgspec.json.encode(head | clean(fields)).decode()


def _pretty_line(head: dict[str, str], fields: dict[str, Any]) -> str:
    def quote_if_needed(text: str) -> str:
        return text if text and " " not in text and text.isprintable() else repr(text)

    event = head["event"]
    shown = event if event.isprintable() else repr(event)
    others = "".join(f" {name}={quote_if_needed(str(value))}" for name, value in clean(fields).items())
    return f"{head['time'][11:23]} {head['level']:5} {shown}{others}"


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- settings -----------------------------------------------------------------------------------------------


class LogSettings(Settings):
    """Level and format of the log."""

    log_level = Setting("LOG_LEVEL", choice(*LEVELS), DEFAULT_LEVEL, "The lowest level that is logged.")
    mcp_log_level = Setting(
        "MCP_LOG_LEVEL",
        choice(*LEVELS),
        DEFAULT_LEVEL,
        "Another name for LOG_LEVEL. If both are set, LOG_LEVEL wins.",
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
        return self.log_level if "LOG_LEVEL" in self.configured else self.mcp_log_level

    def configure_logs(self) -> None:
        """Apply the settings; warn if LOG_LEVEL and MCP_LOG_LEVEL differ."""
        is_on_terminal = "LOG_FORMAT" not in self.configured and sys.stderr.isatty()
        configure(self.level, "pretty" if is_on_terminal else self.log_format)
        if {"LOG_LEVEL", "MCP_LOG_LEVEL"} <= self.configured and self.log_level != self.mcp_log_level:
            logger("settings").warn(
                "LOG_LEVEL and MCP_LOG_LEVEL differ; LOG_LEVEL counts",
                LOG_LEVEL=self.log_level,
                MCP_LOG_LEVEL=self.mcp_log_level,
            )
