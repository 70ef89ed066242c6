"""What the pages for operators say: every metric, reason and command, and nothing that is not there."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from bridgehead.host import command
from bridgehead.host.auth import token_command
from bridgehead.host.pages import Pages
from bridgehead.host.registry import Registry, installed
from bridgehead.host.telemetry.metrics import HostMetrics
from bridgehead.mcp import Limits, MemoryTaskStore, Tasks
from bridgehead.mcp.http.accounts import Accounts

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("serve", "secure", "monitor", "scale", "recover")
PAGE = "\n".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in NAMES)
CONSOLE = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
LINES = [line for block in CONSOLE for line in block.splitlines()]
COMMANDS = [line for line in LINES if line.startswith(("bridgehead serve", "bridgehead token"))]
ON_LINUX = {"process_resident_memory_bytes", "process_open_fds"}
METRIC = r"(?:bridgehead|process|rpc|tool|ws)_[a-z_]+"


async def counted(folder: Path) -> set[str]:
    """The names of everything that the host and the bridges count, once they have begun."""
    state = {"BRIDGEHEAD_STATE_DIR": str(folder), "AOC_DATA_DIR": str(folder)}
    registry = Registry(installed(), {**state, "BITBURNER_LISTEN": "127.0.0.1:0"})
    await registry.start()
    try:
        assert [status.problem for status in registry.statuses.values()] == ["", "", ""]
        host = HostMetrics(Accounts(Limits()))
        host.show_tasks(Tasks(Limits(), MemoryTaskStore))
        host.show_disk(folder)
        found = {metric.name for _, own in Pages(registry, host).sources() for metric in own.all}
        return found | (ON_LINUX if sys.platform != "linux" else set())
    finally:
        await registry.stop(5.0)


async def test_every_metric_is_documented_and_there(tmp_path: Path) -> None:
    tables = re.findall(r"^\| (`.*?`) \| (?:counter|gauge|histogram) \|", PAGE, re.MULTILINE)
    assert set(re.findall(METRIC, " ".join(tables))) == await counted(tmp_path)


async def test_the_dashboard_shows_every_metric_and_no_other(tmp_path: Path) -> None:
    text = (DOCS / "grafana-dashboard.json").read_text(encoding="utf-8")
    panels = json.loads(text)["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    shown = set(re.findall(METRIC, " ".join(asked)))

    webhook = {"bridgehead_webhook_events_total", "bridgehead_webhook_waiting"}
    assert {re.sub("_(bucket|count)$", "", name) for name in shown} - webhook == await counted(tmp_path)
    assert len({panel["id"] for panel in panels}) == len(panels)


async def test_the_alerts_name_only_metrics_that_are_there(tmp_path: Path) -> None:
    text = (DOCS / "prometheus-alerts.yaml").read_text(encoding="utf-8")
    named = set(re.findall(METRIC, " ".join(re.findall(r"expr: (.*)", text))))

    assert len(named) > 5
    set_up = {
        "bridgehead_tls_certificate_expiry_timestamp_seconds",
        "bridgehead_webhook_events_total",
        "bridgehead_redis_up",
        "bridgehead_database_up",
    }
    assert named - set_up <= await counted(tmp_path)


def test_every_reason_is_documented() -> None:
    ours = DOCS.parent / "src" / "bridgehead"
    sources = [*(ours / "host").rglob("*.py"), *(ours / "mcp" / "http").rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    reasons = set(re.findall(r'"(token_[a-z]+)"', code)) - {"token_id", "token_endpoint", "token_type"}
    reasons |= set(re.findall(r'self\._(?:report\(|on_reject\(|reject\(accepted, )"([a-z_]+)"', code))
    reasons |= set(re.findall(r'ClosingResponse\(\d+, "([a-z_]+)"', code))
    reasons |= set(re.findall(r'HostRejection\([^()]*?(?:\([^()]*\)[^()]*?)*?, "([a-z_]+)"', code))
    table = PAGE.partition("| reason | means |")[2].partition("\n\n")[0]

    assert reasons > {"slow_head", "idle", "peer", "path", "tls"}
    assert reasons <= set(re.findall(r"`([a-z_]+)`", table))


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_one_that_can_be_typed(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    parsers = {"serve": command.parser, "token": token_command.parser}

    assert program == "bridgehead"
    parsers[name]().parse_args(arguments)


def test_the_version_stands_in_one_place() -> None:
    root = DOCS.parent
    files = [root / "compose.yaml", root / "Dockerfile", root / "README.md", *DOCS.glob("*.md")]
    named = {
        path.name: found
        for path in files
        if (found := re.findall(r"bridgehead[:=-]+\d+\.\d+\S*", path.read_text(encoding="utf-8")))
    }

    assert named == {}, "bridgehead/__init__.py owns the version"


def test_the_base_image_is_pinned_to_a_patch_release_or_to_a_digest_of_one() -> None:
    dockerfile = (DOCS.parent / "Dockerfile").read_text(encoding="utf-8")
    (tag,) = re.findall(r"^ARG PYTHON=(\S+)$", dockerfile, re.MULTILINE)

    assert re.fullmatch(r"3\.\d+\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?", tag)
    assert all(image == "${PYTHON}" for image in re.findall(r"^FROM python:(\S+)", dockerfile, re.MULTILINE))


@pytest.mark.parametrize(
    "word",
    [
        *(
            "**Upgrade**",
            "**Roll back**",
            "| backup |",
            "To restore",
            "**Logs**",
            "MemoryMax",
            "LimitNOFILE",
        ),
        *("file descriptor", "refuses to start", "tokens.json", "usage.sqlite3", "by digest"),
    ],
)
def test_what_an_operator_needs_is_written_down(word: str) -> None:
    assert word in " ".join(PAGE.split())  # wherever its lines are broken
