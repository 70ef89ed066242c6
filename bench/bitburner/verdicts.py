"""The command `python -m bench.bitburner.verdicts`: what a running game says of the scripts of our tests.

Start a game, set its Remote API to the address that is printed, and press Connect. Each script goes to a
server of the game that is not the player's, with the files that it imports, and is deleted afterwards. With
--write the verdicts replace those that the tests compare with; --game says which game it was.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

import msgspec

from bridgehead.bitburner.errors import RemoteFailure
from bridgehead.bitburner.game.counters import GameCounters
from bridgehead.bitburner.game.remote import Remote
from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.ram import Price, RamRefused, calculate, list_prices
from bridgehead.bitburner.session import open_session
from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock
from tests.bitburner.netscript.ram_cases import FILE, Case, Verdicts, list_cases

SERVER = "n00dles"


async def ask(remote: Remote, case: Case) -> float | None:
    """Return the game's cost of a script; None if it calculates none."""
    for name, source in case.files.items():
        await remote.push(name, source, SERVER)
    try:
        return await remote.calculate_ram(case.filename, SERVER)
    except RemoteFailure:
        return None
    finally:
        for name in case.files:
            await remote.delete(name, SERVER)


def calculate_ours(case: Case, prices: dict[str, Price]) -> float | None:
    """Return our own cost of a script; None if it is refused."""
    try:
        return calculate(case.filename, case.files, prices, server=SERVER).total_gb
    except RamRefused:
        return None


async def main() -> None:
    """Ask for every script and print where ours differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:12525")
    parser.add_argument("--game", default="unknown", help="version and commit of the game")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        settings = BitburnerSettings({"BITBURNER_LISTEN": options.listen, "BRIDGEHEAD_STATE_DIR": state})
        async with open_session(settings, GameCounters(Metrics()), SystemClock()) as session:
            print(f"Waiting for a game at {session.connection.address}.")
            await session.connection.wait_for_game(600)
            cases, remote = list_cases(), session.remote
            taken = set(await remote.list_names(SERVER)) & {
                name for one in cases.values() for name in one.files
            }
            if taken:
                raise SystemExit(f"{SERVER} has files of the same names: {', '.join(sorted(taken))}.")
            costs = {name: await ask(remote, case) for name, case in cases.items()}
            prices = list_prices(Definitions(await remote.get_definitions()))
    ours = {name: calculate_ours(case, prices) for name, case in cases.items()}
    different = [name for name in cases if ours[name] != costs[name]]
    for name in different:
        print(f"{name}: the game {costs[name]}, ours {ours[name]}")
    refused = sum(cost is None for cost in costs.values())
    print(f"{len(cases)} scripts, {refused} refused by the game, {len(different)} different")
    if options.write:
        verdicts = msgspec.json.encode(Verdicts(options.game, costs))
        Path(FILE).write_bytes(msgspec.json.format(verdicts, indent=1) + b"\n")


if __name__ == "__main__":
    asyncio.run(main())
