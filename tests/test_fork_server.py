"""The fork server: a forked program cannot be told from one that was started anew."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import fork_server
from tests.support.fork_server import COMMAND, ROOT, ForkServer
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs start anew elsewhere")
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TZ": "Asia/Kathmandu", "A": "b c"}


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    before = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # noqa: SLF001
    one = ForkServer()
    yield one
    one.end()
    subprocess.Popen._execute_child = before  # type: ignore[attr-defined]  # noqa: SLF001


@pytest.fixture(params=["forked", "anew"])
def way(request: pytest.FixtureRequest, server: ForkServer) -> str:
    """How programs start."""
    start(str(request.param), server)
    return str(request.param)


def start(way: str, server: ForkServer) -> None:
    if way == "forked":
        server.install()
    else:
        subprocess.Popen._execute_child = fork_server._start_anew  # type: ignore[attr-defined]  # noqa: SLF001


def probe(*words: str, folder: Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.process_probe", *words],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.parametrize("has_session", [False, True])
def test_it_is_started_with_the_same(server: ForkServer, tmp_path: Path, *, has_session: bool) -> None:
    found = []
    for way in ("forked", "anew"):
        start(way, server)
        with probe("exit", "0", folder=tmp_path, start_new_session=has_session) as process:
            out, err = process.communicate("typed", PATIENCE)
        found.append((json.loads(out), err, process.returncode))

    assert found[0] == found[1]
    assert (
        found[0][0] | {"input": "typed", "parent": os.getpid(), "time zone": ["+0545", "+0545"]}
        == found[0][0]
    )


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("exit", "300"), 300 % 256, "an error\n"),
        (("exit", "No."), 1, "an error\nNo.\n"),
        (("raise", "x"), 1, "LookupError: x\n"),
    ],
)
def test_it_ends_as_it_wants_to(tmp_path: Path, words: tuple[str, ...], status: int, said: str) -> None:
    with probe(*words, folder=tmp_path) as process:
        _, err = process.communicate("", PATIENCE)

    assert process.returncode == status
    assert err.endswith(said)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    with probe("wait", folder=tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number


def test_it_has_its_streams_and_heeds_an_interrupt_as_soon_as_its_number_is_known(
    server: ForkServer, tmp_path: Path
) -> None:
    server.install()
    for _ in range(20):
        with probe("exit", "0", folder=tmp_path) as process:
            about = Path(f"/proc/{process.pid}")
            (ignored,) = re.findall(r"^SigIgn:\s*(\w+)$", about.joinpath("status").read_text(), re.MULTILINE)
            standard_input = str(about.joinpath("fd/0").readlink())
            process.communicate("", PATIENCE)

        assert standard_input.startswith("pipe:")
        assert not int(ignored, 16) & 1 << signal.SIGINT - 1


def test_the_installed_command_is_forked_too(server: ForkServer) -> None:
    server.install()
    done = subprocess.run(
        [COMMAND, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("bridgehead ")


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["-c", "pass"], {}),
        (["-P", "-m", "bridgehead"], {}),
        (["-m", "json.tool"], {}),
        (["-m", "bridgehead.bitburner.tools.matching"], {}),
        (["-m", "bridgehead"], {"env": {"PYTHONPATH": "/elsewhere"}}),
        (["-m", "bridgehead"], {"env": {"PYTHONHASHSEED": "1"}}),
        (["-m", "bridgehead"], {"env": {"LANG": "de_DE.ISO-8859-1"}}),
        (["-m", "bridgehead"], {"pass_fds": [0]}),
        (["-m", "bridgehead"], {"preexec_fn": os.getpid}),
        (["-m", "bridgehead"], {"umask": 0o77}),
    ],
    ids=str,
)
def test_what_a_fork_would_do_differently_starts_anew(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch, words: list[str], options: dict[str, Any]
) -> None:
    class StartedAnew(Exception):
        pass

    def start_anew(*_: object) -> None:
        raise StartedAnew

    server.install()
    monkeypatch.setattr(fork_server, "_start_anew", start_anew)

    with pytest.raises(StartedAnew):
        subprocess.run([sys.executable, *words], check=True, **options)
