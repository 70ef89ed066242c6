"""Log settings: how much is logged and how it looks. One level under two names, because contracts differ."""

from __future__ import annotations

import sys

from . import logs
from .settings import Setting, Settings, choice

DEFAULT_LEVEL = "info"


class LogSettings(Settings):
    """What is logged."""

    log_level = Setting(
        "LOG_LEVEL", choice(*logs.LEVELS), None, "From which level on is logged.", shown=DEFAULT_LEVEL
    )
    mcp_log_level = Setting(
        "MCP_LOG_LEVEL",
        choice(*logs.LEVELS),
        None,
        "The same under another name; where both are set and differ, LOG_LEVEL is what counts.",
        shown=DEFAULT_LEVEL,
    )
    log_format = Setting(
        "LOG_FORMAT",
        choice(*logs.FORMATS),
        "json",
        "How a log line looks.",
        shown="json; pretty on a terminal",
    )

    @property
    def level(self) -> str:
        """From which level on is logged."""
        return self.log_level or self.mcp_log_level or DEFAULT_LEVEL

    def configure_logs(self) -> None:
        """Log as the settings say, and say so where they disagree."""
        is_watched = "LOG_FORMAT" not in self.given and sys.stderr.isatty()
        logs.configure(self.level, "pretty" if is_watched else self.log_format)
        if self.log_level and self.mcp_log_level and self.log_level != self.mcp_log_level:
            logs.logger("settings").warn(
                "LOG_LEVEL and MCP_LOG_LEVEL differ; LOG_LEVEL counts",
                LOG_LEVEL=self.log_level,
                MCP_LOG_LEVEL=self.mcp_log_level,
            )
