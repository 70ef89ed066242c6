"""Send every case to our server and to its peers, whole and cut, and say where ours differs from all of them.

Exits with 1 where the outcome of ours depends on how the bytes are cut, where it is out of step, or where it
differs from every peer without a reason in `differences.py`.
"""

import asyncio
import sys

from tests.adversary.cases import CASES, END
from tests.adversary.differences import DIFFERENCES
from tests.adversary.outcome import Outcome, cut, send
from tests.adversary.servers import OURS, PEERS, running

CUTS = 4
AT_ONCE = 16


async def outcomes(port: int) -> dict[str, Outcome]:
    """Send every case in one piece."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(data: bytes) -> Outcome:
        async with room:
            return await send(port, [data + END])

    return dict(zip(CASES, await asyncio.gather(*map(one, CASES.values())), strict=True))


async def unsteady(port: int, expected: dict[str, Outcome]) -> list[str]:
    """List the cases whose outcome depends on how they are cut."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, seed: int) -> str | None:
        async with room:
            found = await send(port, cut(CASES[name] + END, seed))
        if found.verdict == expected[name].verdict:
            return None
        return f"{name} (cut {seed}): {expected[name].verdict!r} whole, {found.verdict!r} cut"

    found = await asyncio.gather(*(one(name, seed) for name in CASES for seed in range(CUTS)))
    return [line for line in found if line]


def main() -> int:
    """Judge our server, and return the exit status."""
    with running(OURS) as port:
        ours = asyncio.run(outcomes(port))
        problems = asyncio.run(unsteady(port, ours))
    theirs = {}
    for name, command in PEERS.items():
        with running(command) as port:
            theirs[name] = asyncio.run(outcomes(port))
    for case, found in ours.items():
        peers = {name: outcome[case].verdict for name, outcome in theirs.items()}
        if not found.statuses:
            problems.append(f"{case}: closed without a status")
        is_alone = found.verdict not in peers.values()
        if is_alone and case not in DIFFERENCES:
            problems.append(f"{case}: ours {found.verdict!r}, {peers}")
        elif not is_alone and case in DIFFERENCES:
            problems.append(f"{case}: listed as a difference, but is none: {found.verdict!r}, {peers}")
    for line in problems:
        print(line)
    alone = len(DIFFERENCES)
    print(
        f"{len(CASES)} cases, {len(CASES) * CUTS} cut, {alone} listed differences, {len(problems)} problems"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
