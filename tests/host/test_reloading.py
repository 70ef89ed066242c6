"""Reloading: a running host takes what can change, and a bad file changes nothing."""

import signal
from pathlib import Path

from tests.support.certificates import certificate
from tests.support.host_command import serving


def test_a_reload_takes_tokens_certificate_and_log_level_and_a_bad_file_changes_nothing(
    tmp_path: Path,
) -> None:
    cert, key = certificate(tmp_path)
    settings = tmp_path / ".env"
    settings.write_text("LOG_LEVEL=info\n")
    with serving(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key), cwd=tmp_path) as host:
        certificate(tmp_path)
        settings.write_text("LOG_LEVEL=loud\n")
        host.process.send_signal(signal.SIGHUP)
        refused = host.wait_for("the settings were not reloaded; the old ones stay")
        settings.write_text("LOG_LEVEL=warn\nBRIDGEHEAD_CONNECTIONS=7\n")
        host.process.send_signal(signal.SIGHUP)
        fixed = host.wait_for("some settings take effect only after a restart")
        host.process.send_signal(signal.SIGUSR1)  # nothing that ends it
        assert host.end() == 0

    assert "LOG_LEVEL is 'loud'" in refused["problem"]
    assert fixed["settings"] == ["BRIDGEHEAD_CONNECTIONS"]
    events = [line["event"] for line in host.lines]
    assert "the certificate was renewed" in events
    assert "ended" not in events, "nothing below a warning is logged any more"


def test_a_setting_of_the_log_is_taken_alone_and_a_reload_of_nothing_changes_nothing(tmp_path: Path) -> None:
    settings = tmp_path / ".env"
    settings.write_text("BRIDGEHEAD_ACCESS_LOG=off\n")
    with serving(tmp_path, cwd=tmp_path) as host:
        host.process.send_signal(signal.SIGHUP)
        host.wait_for("reloaded")
        settings.write_text("BRIDGEHEAD_ACCESS_LOG=all\nLOG_LEVEL=debug\n")
        host.process.send_signal(signal.SIGHUP)
        host.wait_for("reloaded")
        assert host.end() == 0

    assert not [line for line in host.lines if "restart" in line["event"]]
