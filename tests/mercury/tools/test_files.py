"""Files by reference: read within the client's roots, and never outside of them."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mcp.revisions import NEWEST_HANDSHAKE, Revision
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from bridgehead.mercury.tools import files
from tests.mercury.process import environment, error_of
from tests.support.checked import STATELESS, CheckedClient, connect

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, STREAM, BATCH, APPLY = (
    *("mercury_chat_completion", "mercury_chat_stream"),
    *("mercury_batch", "mercury_apply_edit"),
)
ASK = {"messages": [{"role": "user", "content": "What is this?"}]}
OUTSIDE = "root:x:0:0"
Opened = Callable[..., AbstractAsyncContextManager[CheckedClient]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that the client has opened, and what lies beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(OUTSIDE)
    folder = tmp_path / "a root"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "one.py").write_bytes(b"ONE = 1\n")
    (folder / "two.py").write_bytes(b"TWO = '```'\n")
    return folder


@pytest.fixture
def opened(api: Simulator, root: Path, tmp_path: Path) -> Opened:
    """Connect a client that has opened a folder."""

    @asynccontextmanager
    async def connected(
        revision: Revision = NEWEST_HANDSHAKE,
        *,
        offers: bool = True,
        roots: Sequence[str] = (),
        **settings: str,
    ) -> AsyncIterator[CheckedClient]:
        given = environment(api.url, tmp_path, **{"MERCURY_FILES": "1", **settings})
        uris = roots or ("https://example.org/x", root.as_uri())
        answer = {"roots": [{"uri": uri, "name": "code"} for uri in uris]}
        bridge = make_bridge(MercurySettings(given))
        capabilities: dict[str, Any] = {"roots": {}} if offers else {}
        async with connect(
            bridge, revision=revision, capabilities=capabilities, answering=lambda *_: answer
        ) as client:
            yield client

    return connected


def prompts(api: Simulator, path: str = "/chat/completions") -> list[str]:
    return [request.body["messages"][-1]["content"] for request in api.requests.to(path)]


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_files_are_put_into_the_last_message(opened: Opened, api: Simulator, tool: str) -> None:
    async with opened() as client:
        result = await client.call(tool, {**ASK, "files": ["src/one.py", "./two.py"]})

    assert not result.get("isError")
    (said,) = prompts(api)
    assert said == "What is this?\n\nsrc/one.py:\n```\nONE = 1\n\n```\n\n./two.py:\n````\nTWO = '```'\n\n````"


async def test_a_client_of_the_stateless_era_is_asked_for_its_roots_first(
    opened: Opened, api: Simulator, root: Path
) -> None:
    asked = {**ASK, "files": ["src/one.py"]}
    async with opened(STATELESS) as client:
        first = await client.call(CHAT, asked)
        responses = {key: {"roots": [{"uri": root.as_uri()}]} for key in first["inputRequests"]}
        again = {"inputResponses": responses, "requestState": first["requestState"]}
        result = await client.call(CHAT, asked, **again)

    assert not result.get("isError")
    assert "ONE = 1" in prompts(api)[0]


async def test_a_batch_and_an_edit_take_files_too(opened: Opened, api: Simulator) -> None:
    async with opened() as client:
        await client.call(BATCH, {"prompts": ["a", "b"], "files": ["src/one.py"]})
        await client.call(APPLY, {"file": "src/one.py", "update": "ONE = 2"})

    assert all(said.endswith("src/one.py:\n```\nONE = 1\n\n```") for said in prompts(api))
    assert prompts(api, "/edit/completions")[0].startswith("<|original_code|>\nONE = 1\n")


async def test_a_file_that_changed_is_read_again(opened: Opened, api: Simulator, root: Path) -> None:
    async with opened(CACHE_COMPLETIONS="1") as client:
        for text in ("first", "first", "second"):
            (root / "two.py").write_text(text)
            await client.call(CHAT, {**ASK, "files": ["two.py"]})

    assert ["first" in said for said in prompts(api)] == [True, False]


async def test_a_root_is_a_folder_of_this_machine_by_its_usual_name(
    opened: Opened, api: Simulator, root: Path
) -> None:
    # Asking another machine for a file would tell it who asks, on Windows with a proof of the password.
    for uri in (
        "file:////localhost/C$",
        f"file://server{root.as_posix()}",
    ):
        async with opened(roots=[uri]) as client:
            error = error_of(await client.call(CHAT, {**ASK, "files": ["two.py"]}))

        assert error["code"] == "FILE_NOT_READABLE"
    assert not api.requests.to("/chat/completions")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../outside/secret.txt",
            "src/../../outside/secret.txt",
            "..\\outside\\secret.txt",
            "",
            "/",
            "src//one.py",
        ),
        *("/etc/passwd", "~/.bashrc", "C:\\secret.txt", "file:secret.txt", "linked.txt", "linked/secret.txt"),
        *("inner.py", "pipe", "src", "missing.py", "two.py/x", "two.py\0", "SRC/ONE.PY", "binary", "large"),
        # What leads elsewhere on Windows: devices, streams, a drive's folder, a share.
        *("CON", "src/nul", "aux.js", "COM1.txt", "two.py::$DATA", "two.py:x", "C:two.py"),
        *("\\\\localhost\\share\\x", "//localhost/share/x", "\\\\?\\C:\\x"),
    ],
)
@pytest.mark.parametrize("tool", [CHAT, BATCH])
async def test_nothing_else_is_read(
    opened: Opened, api: Simulator, root: Path, tmp_path: Path, tool: str, name: str
) -> None:
    (root / "binary").write_bytes(b"\xff\xfe\x00")
    (root / "large").write_text("x" * (files.MAX_FILE_BYTES + 1))
    with suppress(OSError, AttributeError):  # Windows has no such pipe, and lets few users make a link
        (root / "linked.txt").symlink_to(tmp_path / "outside" / "secret.txt")
        (root / "linked").symlink_to(tmp_path / "outside")
        (root / "inner.py").symlink_to(root / "two.py")
        os.mkfifo(root / "pipe")
    asked = {"prompts": ["a"]} if tool == BATCH else ASK
    async with opened() as client:
        error = error_of(await client.call(tool, {**asked, "files": ["two.py", name]}))

    assert (error["type"], error["code"]) == ("validation_error", "FILE_NOT_READABLE")
    assert OUTSIDE not in str(client.sent)
    assert not api.requests.to("/chat/completions")


async def test_a_whole_path_inside_of_a_root_is_read(opened: Opened, api: Simulator, root: Path) -> None:
    async with opened() as client:
        result = await client.call(CHAT, {**ASK, "files": [str(root / "src" / "one.py")]})

    assert not result.get("isError")
    assert "ONE = 1" in prompts(api)[0]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs the files of Linux")
@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///", "proc/self/environ"),
        ("file:///", "/proc/self/environ"),
        ("file:///", "proc/1/cmdline"),
        ("file:///", "sys/kernel/uevent_seqnum"),
        ("file:///", "dev/null"),
        ("file:///proc", "self/environ"),
        ("file:///proc/self", "environ"),
    ],
)
async def test_a_root_opens_no_file_of_the_system(
    opened: Opened, api: Simulator, uri: str, name: str
) -> None:
    async with opened(roots=[uri]) as client:
        error = error_of(await client.call(CHAT, {**ASK, "files": [name]}))

    assert error["code"] == "FILE_NOT_READABLE"
    assert "a file of the system" in error["message"]
    assert not api.requests.to("/chat/completions")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
async def test_a_whole_path_may_name_a_root_that_is_a_link_either_way(
    opened: Opened, api: Simulator, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(root)
    async with opened(roots=[(tmp_path / "link").as_uri()]) as client:
        for path in (tmp_path / "link" / "two.py", root / "two.py"):
            await client.call(CHAT, {**ASK, "files": [str(path)]})

    assert ["TWO = " in prompt for prompt in prompts(api)] == [True, True]


async def test_a_link_as_root_opens_no_file_of_the_system(
    opened: Opened, api: Simulator, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/proc/self")
    async with opened(roots=[(tmp_path / "link").as_uri()]) as client:
        error = error_of(await client.call(CHAT, {**ASK, "files": ["environ"]}))

    assert "a file of the system" in error["message"]


async def test_on_windows_a_stream_of_a_file_is_not_read(
    opened: Opened, api: Simulator, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_WALKS", False)
    with suppress(OSError):
        (root / "src" / "one.py:hidden").write_text("hidden")
    async with opened() as client:
        error = error_of(await client.call(CHAT, {**ASK, "files": ["src/one.py:hidden"]}))
        result = await client.call(CHAT, {**ASK, "files": ["src/one.py"]})

    assert "a part of a file is not a file" in error["message"]
    assert not result.get("isError")


async def test_without_the_setting_or_without_roots_no_file_is_read(opened: Opened, api: Simulator) -> None:
    async with opened(MERCURY_FILES="") as client:
        off = error_of(await client.call(CHAT, {**ASK, "files": ["two.py"]}))
    async with opened(offers=False) as client:
        without = error_of(await client.call(CHAT, {**ASK, "files": ["two.py"]}))

    assert "MERCURY_FILES=1" in off["message"]
    assert "offers no roots" in without["message"]
    assert not api.requests.to("/chat/completions")
