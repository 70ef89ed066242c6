"""Settings: the seed's names and defaults, checked at start, each refusal in one line."""

from pathlib import Path

import pytest

from bridgehead.bitburner.settings import Address, BitburnerSettings
from bridgehead.runtime.settings import SettingError

DEFAULTS = {
    "BITBURNER_LISTEN": "127.0.0.1:12525",
    "MCP_LOG_LEVEL": "info",
    "FILE_WRITE_MAX_BYTES": "1000000",
    "RPC_TIMEOUT_MS": "5000",
    "RPC_RECONNECT_BASE_MS": "250",
    "RPC_RECONNECT_MAX_MS": "10000",
    "RPC_RECONNECT_MAX_ATTEMPTS": "0",
}


@pytest.mark.parametrize(("name", "value"), DEFAULTS.items())
def test_defaults_are_as_promised(name: str, value: str) -> None:
    assert dict(BitburnerSettings({}).summary())[name] == value


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("12526", Address("127.0.0.1", 12526)),
        ("localhost:1", Address("localhost", 1)),
        ("[::1]:5", Address("::1", 5)),
        ("127.0.0.9:80", Address("127.0.0.9", 80)),
    ],
)
def test_an_address_can_be_written_in_these_ways(text: str, address: Address) -> None:
    assert BitburnerSettings({"BITBURNER_LISTEN": text}).listen == address
    assert address.is_loopback


def test_an_ipv6_address_is_shown_with_brackets() -> None:
    assert str(Address("::1", 5)) == "[::1]:5"


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("BITBURNER_LISTEN", "0.0.0.0:12525", "BITBURNER_ALLOW_REMOTE"),
        ("BITBURNER_LISTEN", "127.0.0.1:99999", "an address such as"),
        ("BITBURNER_LISTEN", ":80", "an address such as"),
        ("BITBURNER_LISTEN", "port", "an address such as"),
        ("BITBURNER_RPC_URL", "http://a", "a WebSocket address"),
        ("BITBURNER_RPC_URL", "ws://", "a WebSocket address"),
        ("RPC_TIMEOUT_MS", "0", "a whole number from 1"),
        ("RPC_TIMEOUT_MS", "soon", "a whole number"),
        ("RPC_RECONNECT_MAX_MS", "100", "at least RPC_RECONNECT_BASE_MS"),
        ("FILE_WRITE_MAX_BYTES", "-1", "a size"),
        ("MCP_LOG_LEVEL", "loud", "one of debug"),
        ("BITBURNER_READ_ONLY", "perhaps", "1 or 0"),
        ("BITBURNER_ALLOWED_ORIGINS", "my.example", "origins such as"),
        ("BITBURNER_ALLOWED_ORIGINS", "https://my.example/play", "origins such as"),
        ("BITBURNER_ALLOWED_ORIGINS", "https://my.example:port", "origins such as"),
        ("BITBURNER_ALLOWED_ORIGINS", "*,https://", "origins such as"),
        ("BITBURNER_TLS_CERT", "/no/such/file", "a PEM file"),
        ("BITBURNER_TLS_KEY", "/no/such/file", "left out without"),
    ],
)
def test_a_bad_setting_names_itself_and_what_would_be_right(name: str, value: str, wanted: str) -> None:
    with pytest.raises(SettingError) as refusal:
        BitburnerSettings({name: value})

    assert str(refusal.value).startswith(f"{name} is")
    assert wanted in str(refusal.value)


def test_these_are_origins() -> None:
    origins = ("https://my.example", "http://localhost:*", "http://[::1]:8000/", "app://x", "file://", "none")

    assert BitburnerSettings({"BITBURNER_ALLOWED_ORIGINS": ",".join(origins)}).allowed_origins == origins


def test_an_address_that_stands_for_all_is_dialled_at_home() -> None:
    assert str(Address("0.0.0.0", 5).near) == "127.0.0.1:5"  # noqa: S104 - nothing is bound
    assert str(Address("::", 5).near) == "[::1]:5"


def test_an_address_for_other_machines_needs_a_second_setting() -> None:
    allowed = BitburnerSettings({"BITBURNER_LISTEN": "0.0.0.0:1", "BITBURNER_ALLOW_REMOTE": "1"})

    assert not allowed.listen.is_loopback


def test_a_certificate_is_loaded_at_start(certificate: Path) -> None:
    assert BitburnerSettings({"BITBURNER_TLS_CERT": str(certificate)}).tls() is not None
