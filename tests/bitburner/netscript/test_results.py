"""Results: what a function of the API returns is followed to where the script uses it."""

import pytest

from tests.bitburner.netscript.checking_scripts import check, in_main


@pytest.mark.parametrize(
    ("body", "message", "when"),
    [
        (
            "ns.print(ns.getPlayer().mony);",
            "Player has no mony, so this is undefined. Nearest: money",
            "maybe",
        ),
        ("const { mony } = ns.getPlayer();", "Player has no mony", "maybe"),
        ("const s = ns.getServer('x'); s.backdoor();", "Server has no backdoor, so calling it fails", "line"),
        ("const s = ns.getServer('x'); s.anything.at.all();", "Server has no anything", "line"),
        ("for (const one of ns.ps()) ns.print(one.nam);", "ProcessInfo has no nam", "maybe"),
        ("ns.ps().map((one) => one.thread);", "ProcessInfo has no thread", "maybe"),
        ("ns.print(ns.ps()[0].nam, 1);", "ProcessInfo has no nam", "maybe"),
        ("ns.print(ns.ps().slice(1).find((one) => one.pid).nam);", "ProcessInfo has no nam", "maybe"),
        (
            "ns.scan().forEech((host) => ns.print(host));",
            "string[] has no forEech, so calling it fails",
            "line",
        ),
        ("ns.getHackingLevel().toUpperCase();", "number has no toUpperCase", "line"),
        ("const won = await ns.hack('x'); ns.print(won.length);", "number has no length", "maybe"),
        ("ns.getHostname()();", "ns.getHostname returns string, which is not a function", "line"),
        ("await ns.hack(ns.scan());", "ns.hack: host takes a string", "line"),
        ("const hosts = ns.scan(); await ns.hack(hosts);", "ns.hack: host takes a string", "line"),
        ("ns.atExit(ns.tprint('bye'));", "takes a function", "line"),
        (
            "const won = ns.hack('x'); if (won > 0) ns.print(1);",
            "This is a promise, not its result",
            "maybe",
        ),
        ("if (ns.prompt('Sell?')) ns.print(1);", "This is a promise, not its result", "maybe"),
        ("ns.scan().forEach(async (host) => { await ns.hack(host); });", "forEach does not wait", "maybe"),
    ],
)
def test_a_result_that_is_used_as_something_else_is_named(body: str, message: str, when: str) -> None:
    (problem,) = check(in_main(body))

    assert message in problem.message
    assert problem.when == when


@pytest.mark.parametrize(
    "body",
    [
        "const server = ns.getServer('x'); server.note = 'mine'; ns.print(server.note);",
        "const server = ns.getServer('x'); Object.assign(server, { mine: 1 }); ns.print(server.mine);",
        "const player = ns.getPlayer(); if (player.future) ns.print(player.future);",
        "let one = ns.ps()[0]; one = { nam: 1 }; ns.print(one.nam);",
        "ns.print(ns.scan().length, ns.scan()[0].length, ns.getHostname().at(-1), ns.ps().toString());",
        "Array.prototype.last = function () { return this[0]; }; ns.print(ns.scan().last());",
        "const job = ns.asleep(5); if (job) await job;",
        "let job = null; job = ns.hack('x'); if (job) await job;",
        "ns.hack('x').then((won) => ns.print(won.toFixed(1)));",
        "await ns.hack(ns.scan()[0]); await ns.hack(ns.args[0]); ns.print(ns.scan());",
        "ns.scan().forEach(async (host) => { await ns.asleep(5); ns.print(host); });",
        "for (let one of ns.ps()) { one = { nam: 1 }; ns.print(one.nam); }",
    ],
)
def test_a_result_that_may_be_something_else_is_left_alone(body: str) -> None:
    assert check(in_main(body)) == []


@pytest.mark.parametrize(
    "body",
    [
        "const player: any = ns.getPlayer(); ns.print(player.secret);",
        "ns.print((ns.getPlayer() as any).secret);",
        "const { secret }: any = ns.getPlayer(); ns.print(secret);",
    ],
)
def test_a_type_that_the_script_states_is_believed(body: str) -> None:
    assert check(in_main(body), "a.ts") == []


def test_methods_that_an_imported_script_may_add_are_left_alone() -> None:
    source = "import './prototypes.js';\n" + in_main("ns.print(ns.scan().last());")

    assert check(source) == []
