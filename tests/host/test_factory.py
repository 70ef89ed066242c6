"""Factory: which parts the settings make, and without which a host does not start."""

from pathlib import Path

from bridgehead.host.factory import limits_of
from bridgehead.host.settings import HostSettings
from tests.support.host_command import run


def test_an_address_that_others_can_reach_needs_a_token_to_start(tmp_path: Path) -> None:
    done = run(tmp_path, "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - that is the point

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "bridgehead token add NAME" in done.stderr


def settings(folder: Path, **more: str) -> HostSettings:
    return HostSettings({"BRIDGEHEAD_STATE_DIR": str(folder), **more})


def test_the_limits_of_the_engine_are_those_of_the_settings(tmp_path: Path) -> None:
    chosen = limits_of(
        settings(
            tmp_path,
            BRIDGEHEAD_BODY_LIMIT="64kb",
            BRIDGEHEAD_SESSIONS_PER_CLIENT="7",
            BRIDGEHEAD_TASK_SECONDS="9",
            BRIDGEHEAD_MEMORY_LIMIT="64mib",
        )
    )

    assert chosen.message_bytes == 65_536
    assert (chosen.sessions_per_caller, chosen.task_seconds) == (7, 9)
    assert (chosen.memory_bytes, chosen.bytes_per_caller) == (64 * 1024**2, 16 * 1024**2)


def test_a_caller_may_have_a_quarter_of_the_memory_and_128_mib_at_most(tmp_path: Path) -> None:
    assert limits_of(settings(tmp_path, BRIDGEHEAD_MEMORY_LIMIT="4gb")).bytes_per_caller == 128 * 1024**2
