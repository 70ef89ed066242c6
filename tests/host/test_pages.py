"""Health: what probes and people are told of the process and of each bridge."""

from pathlib import Path

import pytest

from bridgehead.runtime.errors import Unavailable
from bridgehead.runtime.settings import SettingError
from tests.support.host_bridges import StandIns
from tests.support.host_server import bearer, hosting
from tests.support.waiting import until

THERE = {"serves": True, "far_side": True}


async def test_the_process_says_that_it_lives_to_anyone_under_any_name(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"alice": {}}) as host:
        assert await host.page("/healthz", {"Host": "10.1.2.3:3000"}) == {"status": "ok"}
        head = host.http.head("HEAD", "/healthz", {})
        response, writer = await host.http.begin(head + host.http.head("GET", "/healthz", {}))
        await response.begin()
        assert response.status == 200
        await response.begin()  # the next answer follows at once, for this one has no body
        assert (response.status, await response.body()) == (200, b'{"status":"ok"}')
        writer.close()
        assert (await host.http.request("POST", "/healthz")).status == 405


async def test_readiness_names_each_far_side(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        well = await host.page("/readyz")
        host.far["beta"].is_there = False
        worse = await host.page("/readyz")
        one = await host.page("/readyz/alpha")
        other = await host.page("/readyz/beta", status=503)

    assert well["status"] == "ready"
    assert well["bridges"]["alpha"] == {**THERE, "says": "The far side of alpha is there."}
    assert worse["status"] == "degraded"
    assert worse["bridges"]["beta"] == {
        "serves": True,
        "far_side": False,
        "says": "The far side of beta is away.",
    }
    assert (one["far_side"], other["far_side"]) == (True, False)


async def test_a_bridge_that_is_not_served_is_not_there(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        assert (await host.get("/readyz/gamma")).status == 404


async def test_a_probe_without_a_token_hears_only_who_is_ready(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"one": {"bridges": ("alpha",)}}) as host:
        nobody = await host.page("/readyz")
        wrong = await host.page("/readyz", bearer("bh_no_good"), status=401)
        one = await host.page("/readyz", bearer(host.secrets["one"]))
        elsewhere = await host.page("/readyz", {**bearer(host.secrets["one"]), "Host": "evil.example"})

    assert nobody["bridges"] == elsewhere["bridges"] == {"alpha": THERE, "beta": THERE}
    assert "alpha" not in str(wrong)
    assert one["bridges"] == {"alpha": {**THERE, "says": "The far side of alpha is there."}, "beta": THERE}


async def test_a_bridge_with_wrong_settings_says_so_and_leaves_the_others_alone(tmp_path: Path) -> None:
    stand_ins = StandIns("alpha", "beta")
    stand_ins.unmakeable["alpha"] = SettingError("ALPHA_PORT", "many", "a number")
    async with hosting(tmp_path, stand_ins=stand_ins) as host:
        response = await host.try_call("/alpha/mcp", "alpha_echo")

        assert "ALPHA_PORT is not a valid value: expected a number." in await host.refused(response, 503)
        assert response.headers["retry-after"] == "5"
        assert all(name.startswith("beta") for name in await host.tools("/mcp"))
        told = await host.page("/readyz")
        assert told["status"] == "degraded"
        assert told["bridges"]["alpha"] == {
            "serves": False,
            "far_side": False,
            "says": "ALPHA_PORT is not a valid value: expected a number.",
        }


async def test_no_bridge_at_all_is_not_ready(tmp_path: Path) -> None:
    stand_ins = StandIns("alpha")
    stand_ins.unmakeable["alpha"] = RuntimeError("with a secret in it")
    async with hosting(tmp_path, stand_ins=stand_ins) as host:
        told = await host.page("/readyz", status=503)

    assert told["status"] == "unavailable"
    assert "secret" not in told["bridges"]["alpha"]["says"]
    assert "RuntimeError" in told["bridges"]["alpha"]["says"]


async def test_a_bridge_that_cannot_begin_is_tried_again_until_it_can(tmp_path: Path) -> None:
    stand_ins = StandIns("alpha", "beta")
    stand_ins.far["alpha"].trouble = Unavailable("The port is taken.")
    async with hosting(tmp_path, stand_ins=stand_ins) as host:
        response = await host.try_call("/alpha/mcp", "alpha_echo")
        assert await host.refused(response, 503) == "The port is taken."
        assert (await host.try_call("/beta/mcp", "beta_echo")).status == 200
        assert (await host.try_call("/mcp", "beta_echo")).status == 200
        assert "alpha_echo" in await host.tools("/mcp")

        host.far["alpha"].trouble = None
        await until(lambda: any(line["bridge"] == "alpha" for line in host.logged("a bridge has started")))

        assert (await host.try_call("/alpha/mcp", "alpha_echo")).status == 200
        assert host.logged("a bridge could not start")[0]["problem"] == "The port is taken."


async def test_a_disk_error_at_the_start_is_worded_without_its_place(tmp_path: Path) -> None:
    stand_ins = StandIns("alpha")
    stand_ins.far["alpha"].trouble = OSError(28, "No space left on device", "/secret/place")
    async with hosting(tmp_path, stand_ins=stand_ins) as host:
        told = await host.page("/readyz", status=503)

    assert told["bridges"]["alpha"]["says"] == "The bridge could not start: No space left on device."


async def test_a_far_side_that_cannot_be_asked_does_not_fail_the_page(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        del host.far["alpha"].is_there
        told = await host.page("/readyz")

    assert told["bridges"]["alpha"]["says"] == "It is unknown whether the bridge is connected: see the log."
    assert told["status"] == "degraded"


async def test_every_bridge_ends_with_the_host(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        far = host.far
    assert [one.ended for one in far.values()] == [1, 1]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/register"),
        ("GET", "/.well-known/oauth-protected-resource"),
        ("GET", "/.well-known/oauth-protected-resource/alpha/mcp"),
        ("GET", "/.well-known/oauth-authorization-server/mcp"),
        ("GET", "/.well-known/openid-configuration"),
        ("GET", "/.well-known/oauth-protected-resource/sse"),
        ("GET", "/alpha/mcp/.well-known/openid-configuration"),
    ],
)
async def test_whoever_looks_for_oauth_is_told_how_tokens_are_given(
    tmp_path: Path, method: str, path: str
) -> None:
    async with hosting(tmp_path, tokens={"alice": {}}) as host:
        response = await host.http.request(method, path)
        assert response.status == 404
        assert "its operator gives out the tokens" in (await response.json())["error_description"]


async def test_a_host_that_ends_is_not_ready(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        assert (await host.page("/readyz"))["status"] == "ready"
        host.app.end_streams()
        assert (await host.page("/readyz", status=503))["status"] == "ending"
        assert (await host.get("/readyz/alpha")).status == 503
        assert (await host.get("/healthz")).status == 200
