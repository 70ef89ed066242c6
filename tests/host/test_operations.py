"""What docs/operations.md says: every setting, metric, reason and command, and nothing that is not there."""

import json
import re
import shlex
from pathlib import Path

import pytest

from bridgehead.host import command, metrics_page, token_command
from bridgehead.host.accounts import Accounts
from bridgehead.host.metering import Meter
from bridgehead.host.registry import Registry
from bridgehead.host.settings import HostSettings
from bridgehead.runtime.metrics import Metrics

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operations.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in CONSOLE for line in block.splitlines()]


def declared_metrics() -> set[str]:
    """The names of everything that the host counts."""
    metrics = Metrics()
    Meter(metrics, None)
    found = [*metrics_page.sources(Registry({}, {}), Accounts()), ((), metrics)]
    return {metric.name for _, source in found for metric in source.all}


def test_the_table_of_settings_is_what_the_code_declares() -> None:
    rows = [
        f"| `{setting.name}` | {setting.shown_default or '–'} | {setting.about} |"
        for setting in HostSettings.declared
    ]
    assert "\n".join(rows) in PAGE


def test_every_metric_is_documented_and_there() -> None:
    assert set(re.findall(r"`(bridgehead_[a-z_]+)`", PAGE)) == declared_metrics()


def test_the_dashboard_shows_only_metrics_that_are_there() -> None:
    text = (DOCS / "grafana-dashboard.json").read_text(encoding="utf-8")
    panels = json.loads(text)["panels"]
    shown = set(re.findall(r"bridgehead_[a-z_]+", json.dumps([panel["targets"] for panel in panels])))

    assert {name.removesuffix("_bucket") for name in shown} == declared_metrics()
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_every_reason_is_documented() -> None:
    sources = (DOCS.parent / "src" / "bridgehead" / "host").glob("*.py")
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    reasons = set(re.findall(r'"(token_[a-z]+)"', code))
    reasons |= set(re.findall(r'Refusal\([^()]*?(?:\([^()]*\)[^()]*?)*?, "([a-z_]+)"', code))
    table = PAGE.partition("| reason | means |")[2].partition("\n\n")[0]

    assert len(reasons) > 8
    assert reasons <= set(re.findall(r"`([a-z_]+)`", table))


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_one_that_can_be_typed(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    parsers = {"serve": command.parser, "token": token_command.parser}

    assert program == "bridgehead"
    parsers[name]().parse_args(arguments)
