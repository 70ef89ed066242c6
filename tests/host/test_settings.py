"""Host settings: what goes together, when a token is needed, and which names the host answers to."""

import pytest

from bridgehead.host.factory import limits_of
from bridgehead.host.settings import HostSettings
from bridgehead.runtime.settings import SettingError


def test_without_any_setting_it_is_a_local_server_without_tokens() -> None:
    settings = HostSettings({})

    assert (settings.host, settings.port, settings.needs_auth) == ("localhost", 3000, False)
    assert settings.body_limit == 16 * 1024 * 1024
    assert settings.hosts == {"localhost", "[localhost]", "127.0.0.1", "[::1]"}


@pytest.mark.parametrize(
    "environment",
    [
        {"MCP_SERVER_HOST": "0.0.0.0"},  # noqa: S104 - that is the point
        {"MCP_SERVER_HOST": "192.168.1.7"},
        {"MCP_SERVER_HOST": "team.example"},
        {"MCP_SERVER_HOST": "::"},
        {"BRIDGEHEAD_TRUSTED_PROXIES": "127.0.0.1"},
        {"BRIDGEHEAD_PUBLIC_URL": "https://team.example"},
        {"BRIDGEHEAD_ALLOWED_HOSTS": "team.example"},
        {"BRIDGEHEAD_TOKENS_FILE": "tokens.json"},
        {"BRIDGEHEAD_AUTH": "on"},
    ],
)
def test_what_others_can_reach_needs_tokens(environment: dict[str, str]) -> None:
    assert HostSettings(environment).needs_auth


@pytest.mark.parametrize(
    "environment",
    [
        {"MCP_SERVER_HOST": "127.0.0.1"},
        {"MCP_SERVER_HOST": "127.1.2.3"},
        {"MCP_SERVER_HOST": "::1"},
        {"MCP_SERVER_HOST": "[::1]"},
        {"BRIDGEHEAD_ALLOWED_HOSTS": "localhost"},
        {"BRIDGEHEAD_AUTH": "off", "BRIDGEHEAD_TRUSTED_PROXIES": "127.0.0.1"},
    ],
)
def test_what_only_this_machine_can_reach_needs_none(environment: dict[str, str]) -> None:
    assert not HostSettings(environment).needs_auth


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"BRIDGEHEAD_AUTH": "off", "MCP_SERVER_HOST": "0.0.0.0"}, "BRIDGEHEAD_AUTH"),  # noqa: S104 - the same
        ({"BRIDGEHEAD_TLS_KEY": "/key.pem"}, "BRIDGEHEAD_TLS_CERT"),
        ({"BRIDGEHEAD_OAUTH_ISSUER": "https://issuer.example"}, "BRIDGEHEAD_OAUTH_AUDIENCE"),
        ({"BRIDGEHEAD_OAUTH_AUDIENCE": "us"}, "BRIDGEHEAD_OAUTH_ISSUER"),
        (
            {"BRIDGEHEAD_OAUTH_ISSUER": "http://issuer.example", "BRIDGEHEAD_OAUTH_AUDIENCE": "us"},
            "BRIDGEHEAD_OAUTH_ISSUER",
        ),
        ({"BRIDGEHEAD_TRUSTED_PROXIES": "the proxy"}, "BRIDGEHEAD_TRUSTED_PROXIES"),
        ({"MCP_SERVER_PORT": "http"}, "MCP_SERVER_PORT"),
        ({"MCP_SERVER_HOST": "\udcff.example"}, "MCP_SERVER_HOST"),
        ({"MCP_SERVER_HOST": "a" * 64}, "MCP_SERVER_HOST"),
        ({"BRIDGEHEAD_MEMORY_LIMIT": "1kb"}, "BRIDGEHEAD_MEMORY_LIMIT"),
        ({"BRIDGEHEAD_MEMORY_LIMIT": "63mib"}, "BRIDGEHEAD_MEMORY_LIMIT"),
        ({"BRIDGEHEAD_REUSE_PORT": "1"}, "BRIDGEHEAD_REDIS_URL"),
        ({"BRIDGEHEAD_REUSE_PORT": "1", "BRIDGEHEAD_REDIS_URL": "redis://r"}, "BRIDGEHEAD_STATE_KEYS"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(environment: dict[str, str], named: str) -> None:
    with pytest.raises(SettingError) as refused:
        HostSettings(environment)
    assert refused.value.name == named


def test_how_long_an_unused_session_lives_is_a_setting() -> None:
    settings = HostSettings({"BRIDGEHEAD_SESSION_SECONDS": "5"})

    assert limits_of(settings).session_idle_seconds == 5.0


def test_the_host_answers_to_its_own_names_and_to_those_that_are_set() -> None:
    settings = HostSettings(
        {
            "MCP_SERVER_HOST": "10.0.0.5",
            "BRIDGEHEAD_ALLOWED_HOSTS": "mcp.example:8443",
            "BRIDGEHEAD_PUBLIC_URL": "https://Team.example/base",
        }
    )
    assert {"10.0.0.5", "mcp.example:8443", "team.example", "localhost"} <= settings.hosts
    wide = HostSettings({"MCP_SERVER_HOST": "0.0.0.0"})  # noqa: S104 - the same
    assert "0.0.0.0" not in wide.hosts  # noqa: S104 - the same


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://team.example:443/base", "https://team.example/base"),
        ("http://localhost:80", "http://localhost"),
        ("https://team.example:8443", "https://team.example:8443"),
        ("https://team.example:80", "https://team.example:80"),
    ],
)
def test_the_public_address_is_read_as_clients_write_it(written: str, read: str) -> None:
    settings = HostSettings({"BRIDGEHEAD_PUBLIC_URL": written})

    assert settings.public_url == read
    assert read.partition("://")[2].partition("/")[0] in settings.hosts


def test_the_command_line_comes_before_the_environment() -> None:
    settings = HostSettings.of(
        {"MCP_SERVER_PORT": "4000", "BRIDGEHEAD_BRIDGES": "aoc"}, port="5000", bridges=None, read_only="1"
    )
    assert (settings.port, settings.bridges, settings.read_only) == (5000, ("aoc",), True)
