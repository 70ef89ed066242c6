"""`bridgehead doctor URL`: a server looked at as its clients meet it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.commands.deployed_server import examine
from tests.support.certificates import certificate
from tests.support.fake_api import Answer, Request, fake_api
from tests.support.host_command import add_token, serving
from tests.support.person import Person


def examined(person: Person, url: str, **settings: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = person.run("doctor", url, "--json", **settings)
    assert done.stderr == ""
    return done.returncode, {one["what"]: one for one in json.loads(done.stdout)[url]}


def test_a_server_that_asks_for_no_token_is_followed_to_a_call(person: Person, tmp_path: Path) -> None:
    with serving(tmp_path / "host") as host:
        status, found = examined(person, f"http://127.0.0.1:{host.port}")

    assert status == 0
    assert list(found) == ["sign-in", "server", "tools", "call", "latency"]
    assert found["sign-in"]["text"] == "no token is needed"
    assert "protocol 2025-11-25" in found["server"]["text"]
    assert found["latency"]["text"].startswith("median ")
    assert [line for line in host.lines if line.get("level") != "info"] == []  # nothing for the operator


def test_a_token_is_asked_for_refused_and_taken(person: Person, tmp_path: Path) -> None:
    folder = tmp_path / "host"
    secret = add_token(folder, "alice")
    with serving(folder, BRIDGEHEAD_AUTH="on") as host:
        url = f"http://127.0.0.1:{host.port}/mcp"
        without = examined(person, url)
        wrong = examined(person, url, BRIDGEHEAD_TOKEN=f"{secret}x")
        right = examined(person, url, BRIDGEHEAD_TOKEN=secret)

    assert without[0] == 1
    assert without[1]["sign-in"]["text"] == "needs a token of the operator"
    assert "BRIDGEHEAD_TOKEN is not set" in without[1]["token"]["text"]
    assert (wrong[0], wrong[1]["token"]["verdict"]) == (1, "wrong")
    assert (right[0], "latency" in right[1]) == (0, True)


@pytest.mark.parametrize(("path", "text"), [("/nothing", "nothing is served at "), ("/", "")])
def test_a_wrong_path_is_named(person: Person, tmp_path: Path, path: str, text: str) -> None:
    with serving(tmp_path / "host") as host:
        status, found = examined(person, f"http://127.0.0.1:{host.port}{path}")

    assert status == bool(text)
    assert text in found.get("initialize", {"text": ""})["text"]


def test_a_server_that_is_not_there_is_wrong_with_what_to_do(person: Person) -> None:
    status, found = examined(person, "http://127.0.0.1:9")

    assert status == 1
    assert found["connection"]["text"] == "the connection was refused"
    assert "bridgehead serve" in found["connection"]["advice"]


def test_a_certificate_that_nobody_vouches_for_is_wrong(person: Person, tmp_path: Path) -> None:
    chain, key = certificate(tmp_path)
    with serving(tmp_path / "host", "--tls-cert", str(chain), "--tls-key", str(key)) as host:
        url = f"https://localhost:{host.port}/mcp"
        refused = examined(person, url)
        trusted = examined(person, url, SSL_CERT_FILE=str(chain))

    assert (refused[0], "certificate verify failed" in refused[1]["TLS"]["text"]) == (1, True)
    assert "TLSv1.3, the certificate is valid for " in trusted[1]["TLS"]["text"]
    assert "latency" in trusted[1]


async def test_a_server_that_hangs_up_instead_of_ending_the_session_is_right() -> None:
    async def respond(request: Request) -> Answer | None:
        if request.method != "POST":
            return None
        answer = {"jsonrpc": "2.0", "id": json.loads(request.body)["id"], "result": {}}
        return Answer(200, json.dumps(answer).encode())

    async with fake_api(respond) as api:
        found = await examine(api.url, {})

    assert found[-1].what == "latency"
    assert not [finding for finding in found if finding.verdict == "wrong"]


async def test_a_server_of_which_no_tool_was_called_is_not_said_to_work(person: Person) -> None:
    async def respond(request: Request) -> Answer:
        message = json.loads(request.body or b"{}")
        return Answer(200, json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": {}}).encode())

    async with fake_api(respond) as api:
        done = await asyncio.to_thread(person.run, "doctor", api.url)

    assert "so none was called" in done.stdout
    assert done.stdout.splitlines()[-1] == "The server answers, but no call of a tool has succeeded."


def test_a_server_without_tls_is_named_as_that(person: Person, tmp_path: Path) -> None:
    with serving(tmp_path / "host") as host:
        status, found = examined(person, f"https://127.0.0.1:{host.port}/mcp")

    assert (status, found["TLS"]["text"]) == (1, "the server does not speak TLS")
    assert "Use http://" in found["TLS"]["advice"]


async def test_an_oauth_error_is_the_reason_why_a_token_is_wrong() -> None:
    async def respond(_request: Request) -> Answer:
        return Answer(401, b'{"error": "invalid_token"}')

    async with fake_api(respond) as api:
        findings = await examine(api.url, {"BRIDGEHEAD_TOKEN": "expired"})

    assert (findings[-1].what, findings[-1].verdict, findings[-1].text) == ("token", "wrong", "invalid_token")
