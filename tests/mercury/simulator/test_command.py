"""Command: the simulated API as a process of its own."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.mercury.simulator.raw import Raw, chat
from tests.support.waiting import PATIENCE

COMMAND = (sys.executable, "-m", "bridgehead", "mercury", "simulate")
SECONDS = PATIENCE


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run the command until the block ends, and give what it says first."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, [process.stdout.readline() for _ in range(5)]
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def port(said: list[str]) -> int:
    """Read the port out of what the command says first."""
    return int(said[0].rpartition(":")[2].split("/")[0])


def refused(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where it must not start."""
    command = [*COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_it_says_where_it_is_serves_and_ends_in_good_order(how: signal.Signals) -> None:
    with running() as (process, said):
        raw = Raw(port(said))
        answer = await raw.post(chat("in 5 words", stream=True))
        body = await answer.body()
        process.send_signal(how)
        _, errors = process.communicate(timeout=SECONDS)
        await raw.http.close()

    assert said[0] == f"http://127.0.0.1:{port(said)}/v1\n"
    assert f"MERCURY_API_URL={said[0].strip()} " in said[2]
    assert body.endswith(b"data: [DONE]\n\n")
    assert (process.returncode, errors) == (0, "")


async def test_faults_and_keys_can_be_asked_for() -> None:
    with running("--fault", "402", "--key", "sk_mine", "--delay-ms", "0") as (_, said):
        raw = Raw(port(said))
        statuses = [(await raw.post(chat(), key="sk_mine")).status, (await raw.get("/v1/models")).status]
        await raw.http.close()

    assert re.search("MERCURY_API_KEY(=| = ')sk_mine", said[2])  # PowerShell's way on Windows
    assert statuses == [402, 401]


async def test_a_share_of_mixed_faults_repeats_with_its_seed() -> None:
    with running("--fault", "mixed=0", "--seed", "3") as (_, said):
        raw = Raw(port(said))
        assert (await raw.post(chat())).status == 200
        await raw.http.close()


@pytest.mark.parametrize("fault", ["nothing", "429=2", "429=often"])
def test_a_fault_that_does_not_exist_is_refused_with_those_that_do(fault: str) -> None:
    done = refused("--fault", fault)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Usage: bridgehead mercury simulate" in done.stderr


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with running() as (_, said):
        assert "is not a whole number from 0 to 65535" in refused("--port", "65536").stderr
        done = refused("--port", str(port(said)))

    assert done.returncode == 1
    assert done.stderr == (
        f"bridgehead mercury simulate: cannot listen on port {port(said)}: Address already in use\n"
    )
    assert done.stderr.count("\n") == 1
