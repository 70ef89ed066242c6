"""Setting checks: whatever is set and cannot work is refused, or reported by its name."""

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.aoc.settings import AocSettings
from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.commands.doctor import examine
from bridgehead.host.registry import installed
from bridgehead.host.setting_checks import find_problems, find_unused_settings
from bridgehead.host.settings import HostSettings
from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime.settings import SettingError, closest
from tests.support.host_command import serving
from tests.support.waiting import PATIENCE

WRONG = {
    # --- names that are not ours
    "BRIDGEHED_AUTH": "on",
    "BRIDGEHEAD_DENY_TOOL": "delete_file",
    "BRIDGEHEAD_READONLY": "1",
    "BRIDGEHEAD_TOKEN_FILE": "/tokens.json",
    "BRIDGEHEAD_DATABSE_URL": "postgresql://db/bridges",
    "AOC_YEER": "2024",
    "MERCURY_API_KY": "sk-1",
    "MERCURY_BUGDET_USD": "5",
    "BITBURNER_READ_ONY": "1",
    # --- names that were ours
    "MERCURY_DECIDE_MODEL": "mercury-2",
    "MERCURY_MAX_RETRY_DELAY": "5000",
    **dict.fromkeys((*HostSettings.removed, *AocSettings.removed), "1"),
    **dict.fromkeys((*BitburnerSettings.removed, *MercurySettings.removed), "1"),
    # --- patterns for nothing
    "BRIDGEHEAD_DENY_TOOLS": "delete_fil",
    "BRIDGEHEAD_ALLOW_TOOLS": "mercury_chat_completions,speed_*",
    "BRIDGEHEAD_WEBHOOK_EVENTS": "budget.treshold",
    # --- values that cannot work
    "BRIDGEHEAD_ALLOWED_ORIGINS": "notanorigin",
    "BRIDGEHEAD_ALLOWED_HOSTS": "https://team.example",
    "BRIDGEHEAD_TRUSTED_PROXIES": "proxy",
    "BRIDGEHEAD_PUBLIC_URL": "https://team.example/?a=b",
    "BRIDGEHEAD_OAUTH_ISSUER": "http://id.example",
    "BRIDGEHEAD_WEBHOOK_SECRET": "whsec_not base64!",
    "BRIDGEHEAD_WEBHOOK_URL": "http://hooks.example",
    "BRIDGEHEAD_AUTH": "yes please",
    "BRIDGEHEAD_CONNECTIONS": "0",
    "BRIDGEHEAD_STATE_KEYS": "short",
    "MCP_SERVER_HOST": "unix:/run/bridgehead.sock",
    "MCP_SERVER_PORT": "70000",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318",
    "LOG_LEVEL": "verbose",
    "AOC_DATA_DIR": "/nowhere/at/all",
    "MERCURY_API_URL": "api.example",
}


def problems_with(environment: Mapping[str, str]) -> list[str]:
    """What a start or doctor says."""
    try:
        for settings in (HostSettings, MercurySettings, AocSettings, BitburnerSettings):
            settings(environment)
    except SettingError as problem:
        return [str(problem)]
    bridges = installed()
    unused = [str(each) for each in find_unused_settings(environment, bridges)]
    return unused + find_problems(environment, HostSettings(environment), bridges)


@pytest.mark.parametrize(("name", "value"), WRONG.items(), ids=list(WRONG))
def test_each_of_these_is_refused_or_reported_by_its_name(name: str, value: str) -> None:
    (problem,) = problems_with({name: value})

    assert problem.startswith((f"{name} ", f"{name}:")), problem
    assert value not in problem or "SECRET" not in name


def test_what_was_meant_is_said() -> None:
    assert problems_with({"AOC_YEER": "2024"}) == ["AOC_YEER is not a setting. Did you mean AOC_YEAR?"]
    assert problems_with({"BRIDGEHEAD_DENY_TOOLS": "delete_fil,write_*"}) == [
        "BRIDGEHEAD_DENY_TOOLS: no tool is called 'delete_fil'. Did you mean 'delete_file'?"
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("MERCURY_BUDGET", "MERCURY_BUDGET_USD"),
        ("MERCURY_DAILY_BUDGET_USD", "MERCURY_BUDGET_USD"),
        ("MERCURY_KEY", "MERCURY_API_KEY"),
        ("MERCURY_REQUEST_TIMEOUT", "REQUEST_TIMEOUT"),
        ("BITBURNER_PORT", "BITBURNER_LISTEN"),
        ("BITBURNER_RPC_TIMEOUT_MS", "RPC_TIMEOUT_MS"),
        ("BRIDGEHEAD_PORT", "MCP_SERVER_PORT"),
        ("BRIDGEHEAD_LOG_LEVEL", "LOG_LEVEL"),
        ("BRIDGEHED_AUTH", "BRIDGEHEAD_AUTH"),
        ("AOC_SESSION", "AOC_SESSION_FILE"),
        ("MERCURY_HOME", ""),
    ],
)
def test_whatever_begins_like_a_setting_and_is_none_is_named_with_what_was_meant(
    name: str, meant: str
) -> None:
    (unused,) = find_unused_settings({name: "2"}, installed())

    assert (unused.name, unused.meant) == (name, meant)
    assert str(unused).startswith(f"{name} is not a setting. ")


@given(words=st.lists(st.from_regex(r"[A-Z]{1,9}", fullmatch=True), min_size=1, max_size=4))
def test_every_variable_with_our_prefix_is_a_setting_or_is_named(words: list[str]) -> None:
    declared = {each.name for each in HostSettings.declared}
    declared |= {each.name for manifest in installed().values() for each in manifest.settings.declared}
    for prefix in ("BRIDGEHEAD", "AOC", "BITBURNER", "MERCURY"):
        name = "_".join([prefix, *words])
        named = [each.name for each in find_unused_settings({name: "1"}, installed())]
        is_known = name in declared or name in ("BRIDGEHEAD_TOKEN", "BRIDGEHEAD_RUN")
        assert named == ([] if is_known or "_TEST_" in name or "_SERVICE_" in name else [name])


def test_a_setting_of_an_earlier_version_is_not_ignored_silently() -> None:
    (problem,) = problems_with({"AOC_LOCK_WAIT_MS": "100"})

    assert problem.startswith("AOC_LOCK_WAIT_MS is no longer a setting and has no effect.")


def test_a_removed_name_is_said_once_and_is_not_taken_for_another() -> None:
    classes = (HostSettings, MercurySettings, AocSettings, BitburnerSettings)
    declared = {each.name for settings in classes for each in settings.declared}
    removed = {name for settings in classes for name in settings.removed}

    said = find_unused_settings(dict.fromkeys(removed, "1"), installed())

    assert declared & removed == set()
    assert [each.name for each in said] == sorted(removed)
    assert all(each.is_removed and not each.meant for each in said)


def test_a_pattern_for_nothing_is_reported_although_a_bridge_has_wrong_settings() -> None:
    environment = {
        "BRIDGEHEAD_DENY_TOOLS": "delete_fil",
        "AOC_DATA_DIR": "/nowhere/at/all",
        "MERCURY_MAX_RETRIES": "many",
    }

    assert find_problems(environment, HostSettings(environment), installed()) == [
        "BRIDGEHEAD_DENY_TOOLS: no tool is called 'delete_fil'. Did you mean 'delete_file'?"
    ]


def test_variables_of_others_and_settings_that_work_raise_no_alarm(tmp_path: Path) -> None:
    others = {
        "PATH": "/bin",
        "HOME": "/root",
        "LOGLEVEL": "debug",
        "HTTP_PROXIES": "x",
        "BRIDGEHEAD_SERVICE_HOST": "10.0.0.7",
        "BRIDGEHEAD_PORT": "tcp://10.0.0.7:3000",
        "BRIDGEHEAD_PORT_3000_TCP_ADDR": "10.0.0.7",
        "BRIDGEHEAD_TOKEN": "bh_1_2",
        "OTEL_SERVICE_NAME": "team",
        "LC_ALL": "C",
        "BRIDGEHEAD_TEST_POSTGRES": "embedded",
        "MCP_SERVER_HOSTS": "a",
        "CACHE_TTLS": "5",
    }
    works = {
        "BRIDGEHEAD_ALLOWED_ORIGINS": "https://app.example,http://localhost:5173,chrome-extension://abc,*",
        "BRIDGEHEAD_ALLOWED_HOSTS": "team.example,[::1]:8443,10.0.0.1",
        "BRIDGEHEAD_PUBLIC_URL": "https://team.example/tools",
        "BRIDGEHEAD_WEBHOOK_EVENTS": "call.*,store.lost,weather.changed",
        "BRIDGEHEAD_WEBHOOK_SECRET": "whsec_aGVsbG8=",
        "BRIDGEHEAD_DENY_TOOLS": "*_file,mercury_*",
        "MCP_SERVER_HOST": "::1",
        "AOC_DATA_DIR": str(tmp_path),
    }

    assert problems_with(others | works) == []


def test_no_setting_is_taken_for_another() -> None:
    """A stdio server knows its own settings alone, and the environment may have those of the others."""
    classes = (HostSettings, MercurySettings, AocSettings, BitburnerSettings)
    by_class = [{each.name for each in settings.declared} for settings in classes]
    for one, other in permutations(by_class, 2):
        assert [name for name in one - other if closest(name, other)] == []


async def test_doctor_lists_what_has_no_effect(tmp_path: Path) -> None:
    environment = {"BRIDGEHEAD_STATE_DIR": str(tmp_path), "BRIDGEHED_AUTH": "on"}
    report = await examine(["host"], environment)
    wrong = [finding.text for finding in report["bridgehead"] if finding.verdict == "wrong"]

    assert wrong == ["BRIDGEHED_AUTH is not a setting. Did you mean BRIDGEHEAD_AUTH?"]


def test_a_host_says_at_its_start_what_has_no_effect(tmp_path: Path) -> None:
    with serving(tmp_path, BRIDGEHED_AUTH="on") as command:
        (line,) = [line for line in command.lines if line["event"] == "a setting has no effect"]

        assert "Did you mean BRIDGEHEAD_AUTH?" in line["problem"]


def test_a_prefix_that_is_too_long_for_a_bridge_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text(
        "from bridgehead.mcp import Bridge\n"
        "bridge = Bridge('long', '1')\n"
        "@bridge.tool('Do it.', name='t' * 60)\n"
        "async def do_it() -> str:\n"
        "    return ''\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "bridgehead", "serve", str(file), "--port", "0"],
        env={**os.environ, "BRIDGEHEAD_TOOL_PREFIX": "team_", "BRIDGEHEAD_STATE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 2
    assert "BRIDGEHEAD_TOOL_PREFIX is 'team_'" in done.stderr
    assert "at most 4 characters" in done.stderr
