"""The command `python -m bench`: measure all servers in interleaved rounds and report."""

import argparse
import json
import sys
from contextlib import ExitStack

from bench import http, profile_ours, report, stdio
from bench.message import WrongAnswer
from bench.peers import HERE, HOME, Peer, line_up
from bench.process import NotRunning, Process
from bench.report import Plan
from bench.results import Results

Server = stdio.Server | http.Server


def main() -> int:
    """Measure, print, and, after a whole run, write the results."""
    options = _options()
    plan = _plan(options)
    peers, results = line_up(), Results()
    try:
        for transport in plan.transports:
            _measure(plan, peers, results, transport)
    except WrongAnswer as wrong:
        print(f"\nThe bench was stopped: {wrong}", file=sys.stderr)
        return 1
    whole = not options.quick and not options.only
    where = _profile(peers) if whole else ""
    text = report.write(plan, peers, results, where)
    print("\n" + text)
    (HOME / "last.json").write_text(json.dumps(results.samples, indent=1))
    if whole:
        (HERE / "RESULTS.md").write_text(text)
    return 0


def _profile(peers: list[Peer]) -> str:
    """Say where the time of ours goes, and what the floor under it is."""
    (ours,) = (peer.stdio[0] for peer in peers if peer.key == "ours" and peer.stdio)
    floor = (
        "The bare loop in the table is the floor: it reads a line, decodes, encodes, writes, and knows no "
        "protocol. What ours adds to it is the event loop with a task for each call, and the protocol."
    )
    try:
        return f"{profile_ours.profile(ours)}\n\n{floor}"
    except NotRunning as problem:
        return f"Our server did not run under the profiler: {problem}"


def _options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and short rounds; writes no file")
    parser.add_argument("--only", choices=("stdio", "http"), help="one transport; writes no file")
    return parser.parse_args()


def _plan(options: argparse.Namespace) -> Plan:
    """Decide how much is measured."""
    command = " ".join(["python -m bench", *sys.argv[1:]])
    transports = (options.only,) if options.only else ("stdio", "http")
    if options.quick:
        return Plan(command, transports, 2, stdio.Effort(1, 0.4, 2000, 1.0), http.Effort(0.8, 32, 1.5))
    return Plan(command, transports, 5, stdio.Effort(2, 1.0, 5000, 5.0), http.Effort(2.0, 32, 6.0))


def _measure(plan: Plan, peers: list[Peer], results: Results, transport: str) -> None:
    """Start all servers of one transport, then measure them in turns."""
    with ExitStack() as processes:
        servers = {}
        for peer in peers:
            with results.noting(peer.key, transport):
                server = _start(plan, peer, transport, processes)
                if server is not None:
                    print(f"{transport}: warming up {peer.title}", flush=True)
                    server.warm_up()
                    servers[peer] = server
        for number in range(plan.rounds):
            _round(servers, results, transport, number)


def _start(plan: Plan, peer: Peer, transport: str, processes: ExitStack) -> Server | None:
    """Start a server, if it speaks this transport."""
    if peer.problem:
        raise NotRunning(peer.problem)
    if transport == "stdio" and peer.stdio:
        return stdio.Server(peer.stdio, processes.enter_context(Process(peer.stdio)), plan.stdio)
    if transport == "http" and peer.http:
        port = http.free_port()
        return http.Server(processes.enter_context(Process((*peer.http, str(port)))), port, plan.http)
    return None


def _round(servers: dict[Peer, Server], results: Results, transport: str, number: int) -> None:
    """Measure every server once, each round beginning with another one."""
    order = list(servers)
    turn = number % len(order) if order else 0
    for peer in order[turn:] + order[:turn]:
        if (peer.key, transport) in results.problems:
            continue
        with results.noting(peer.key, transport):
            for sample in servers[peer].samples():
                results.add(peer.key, sample)
                said = ", ".join(f"{measure} {value:,.1f}" for measure, value in sample.items())
                print(f"round {number + 1}, {transport}, {peer.title}: {said}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
