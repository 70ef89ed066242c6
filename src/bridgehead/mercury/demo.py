"""Demo: a tour of the mercury bridge, against the simulated API, without key or network."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from bridgehead.runtime.demo_script import HOME, DemoScript
from bridgehead.runtime.manifest import Trial
from bridgehead.runtime.tool_filter import ToolFilterSettings

from .settings import MercurySettings

_KEY = "sk_only_for_this_demo"
_DELAY_MS = "12"
_STORY = [{"role": "user", "content": "Tell me how a bridge is built, in 90 words"}]


@contextmanager
def trial(folder: Path) -> Iterator[Trial]:
    """Run the simulated API."""
    with _simulated() as url:
        environment = {
            "MERCURY_API_URL": url,
            "MERCURY_API_KEY": _KEY,
            "BRIDGEHEAD_STATE_DIR": str(folder),
        }
        yield Trial(environment, "mercury_list_models", "mercury")


def show_demo(console: Console) -> bool:
    """Show the tour; return whether every step gave the expected result."""
    with tempfile.TemporaryDirectory() as state, _simulated() as url:
        environment = {
            **_plain_environment(),
            "MERCURY_API_URL": url,
            "MERCURY_API_KEY": _KEY,
            "MERCURY_MODEL": "mercury-2",
            "MERCURY_FIM_MODEL": "mercury-coder",
            "MERCURY_BUDGET_USD": "0.01",
            "BRIDGEHEAD_STATE_DIR": state,
        }
        with DemoScript(console, "mercury", environment) as guide:
            arguments = {"messages": _STORY, "max_tokens": 200}
            result = guide.call_live(
                "A completion, streamed into the terminal as it arrives.", "mercury_chat_stream", arguments
            )
            metadata = result["structuredContent"]["metadata"]
            guide.expect(metadata["usage"]["completion_tokens"] == 90)  # noqa: PLR2004 - as many as asked for
            guide.say(f"At the real prices it cost ${metadata['cost_usd']:.6f} of the day's budget.")
            result = guide.call_live(
                "The same while diffusing: the whole text is there at once, and gets clearer.",
                "mercury_chat_stream",
                {**arguments, "diffusing": True},
                is_replaced=True,
            )
            guide.expect(not result.get("isError"))

            filled = guide.call(
                "A gap in code is filled.",
                "mercury_fim_completion",
                {"prompt": "def weight(items):\n", "suffix": "\n    return total\n", "max_tokens": 100},
            )
            guide.expect(not filled.get("isError"))
            dear = guide.call(
                "A call that could cost more than the day's budget does not go out.",
                "mercury_chat_completion",
                {"messages": _STORY, "max_tokens": 50_000},
            )
            guide.expect(dear["isError"] and "BUDGET_EXCEEDED" in dear["content"][0]["text"])
    return not guide.failures


@contextmanager
def _simulated() -> Iterator[str]:
    """Run the simulated API as a separate process."""
    command = [sys.executable, "-m", "bridgehead", "mercury", "simulate", "--delay-ms", _DELAY_MS]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, text=True, env=_plain_environment(), cwd=HOME
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it was asked for
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _plain_environment() -> dict[str, Any]:
    """Return this process's environment without the bridge's settings: they are for the real API."""
    # `name.upper()`: the proxies are read in lower case too.
    ours = {setting.name for setting in (*MercurySettings.declared, *ToolFilterSettings.declared)}
    return {name: value for name, value in os.environ.items() if name.upper() not in ours}
