"""The guide: the steps fit how the bridge is set up."""

from pathlib import Path

from bridgehead.bitburner.game import setup_steps
from tests.bitburner.playing import settings


def test_the_steps_name_host_and_port_and_wss_where_it_is_on(tmp_path: Path, certificate: Path) -> None:
    plain = setup_steps.describe_connect_steps(settings(tmp_path), "127.0.0.1:7")
    secure = setup_steps.describe_connect_steps(
        settings(tmp_path, BITBURNER_TLS_CERT=str(certificate)), "127.0.0.1:7"
    )

    assert "set host 127.0.0.1 and port 7, press" in plain
    assert "port 7 with wss on" in secure


def test_an_address_for_other_machines_is_not_told_as_one_to_dial(tmp_path: Path) -> None:
    steps = setup_steps.describe_connect_steps(settings(tmp_path), "0.0.0.0:7")

    assert "set host (the address of this machine" in steps


def test_another_port_is_proposed_in_both_places_and_exists() -> None:
    assert setup_steps.describe_port_change(12525).count("12526") == 2
    assert "65536" not in setup_steps.describe_port_change(65535)
