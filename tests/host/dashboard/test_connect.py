"""Connect: each endpoint has a command that connects a client, and the command is one that works."""

import shlex
from pathlib import Path

import pytest

from bridgehead.host.dashboard.connect import CLIENTS, ServerAddress, make_command
from bridgehead.install import clients, command
from tests.host.dashboard.browsing import Browser
from tests.support.host_bridges import StandIns
from tests.support.host_server import hosting

TOKENS = {"ann": {"dashboard": True}}


def test_every_client_that_takes_an_address_is_offered() -> None:
    assert {each.id: each.title for each in clients.CLIENTS if each.url_field} == CLIENTS


async def test_each_endpoint_has_its_command_for_the_client_that_was_chosen(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS, stand_ins=StandIns("alpha")) as host:
        browser = Browser(host)
        await browser.sign_in(host.secrets["ann"])
        text = await browser.open("/dashboard/clients?client=cursor")
        base = f"http://127.0.0.1:{host.port}"

        assert f"bridgehead install cursor --url {base}/mcp" in text
        assert f"bridgehead install cursor --url {base}/alpha/mcp --name alpha" in text
        assert "--no-token" not in text
        assert "BRIDGEHEAD_TOKEN" in text
        current = [a["href"] for _, a in browser.page.elements if a.get("aria-current") == "true"]
        assert current == ["/dashboard/clients?client=cursor"]
        assert "There is no client 'emacs'." in await browser.open("/dashboard/clients?client=emacs")
        assert browser.status == 400


async def test_the_public_address_is_used_and_no_token_where_none_is_needed(tmp_path: Path) -> None:
    public = {"BRIDGEHEAD_PUBLIC_URL": "https://team.example/tools", "BRIDGEHEAD_AUTH": "off"}
    async with hosting(tmp_path, public) as host:
        text = await Browser(host).open("/dashboard/clients")

    assert "bridgehead install claude-code --url https://team.example/tools/mcp --no-token" in text
    assert "BRIDGEHEAD_TOKEN" not in text


@pytest.mark.parametrize("client", CLIENTS)
def test_the_command_is_one_that_the_installer_accepts(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    endpoint = ServerAddress("Weather", "https://team.example/weather/mcp", "weather")
    program, verb, *arguments = shlex.split(make_command(endpoint, client, needs_token=True))

    status = command.main([*arguments, "--dry-run", "--path", str(tmp_path / "config")], {})

    assert (program, verb, status) == ("bridgehead", "install", 0)
    assert "https://team.example/weather/mcp" in capsys.readouterr().out
