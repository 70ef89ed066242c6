"""Log settings: how much is logged and how it looks. One level under two names, because contracts differ."""

from __future__ import annotations

import sys

from . import logs
from .settings import Setting, Settings, choice

DEFAULT_LEVEL = "info"


class LogSettings(Settings):
    """What is logged."""

    log_level = Setting("LOG_LEVEL", choice(*logs.LEVELS), DEFAULT_LEVEL, "From which level on is logged.")
    mcp_log_level = Setting(
        "MCP_LOG_LEVEL",
        choice(*logs.LEVELS),
        DEFAULT_LEVEL,
        "The same under another name; where both are set and differ, LOG_LEVEL is what counts.",
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
        is_under_its_other_name = "LOG_LEVEL" not in self.given
        return self.mcp_log_level if is_under_its_other_name else self.log_level

    def configure_logs(self) -> None:
        """Log as the settings say, and say so where they disagree."""
        is_watched = "LOG_FORMAT" not in self.given and sys.stderr.isatty()
        logs.configure(self.level, "pretty" if is_watched else self.log_format)
        if {"LOG_LEVEL", "MCP_LOG_LEVEL"} <= self.given and self.log_level != self.mcp_log_level:
            logs.logger("settings").warn(
                "LOG_LEVEL and MCP_LOG_LEVEL differ; LOG_LEVEL counts",
                LOG_LEVEL=self.log_level,
                MCP_LOG_LEVEL=self.mcp_log_level,
            )
