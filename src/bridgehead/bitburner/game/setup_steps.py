"""Setup steps: instructions for the player to connect the game. Texts only."""

from __future__ import annotations

from ..settings import BitburnerSettings

WITHOUT_GAME = "Without the game, run `bridgehead bitburner simulate`."
"""For people, not for models."""
_EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 - nothing is bound here


def describe_next_step(settings: BitburnerSettings, address: str, problem: str, refused: str) -> str:
    """Describe what to do if no game is connected."""
    if settings.rpc_url is not None:
        trouble = f"{problem} " if problem else ""
        return f"{trouble}This bridge dials {address} by itself; check that a game is served there."
    if problem:
        return f"{problem} Once that is solved: {describe_connect_steps(settings, address)}"
    return _lead_with_refusal(refused, describe_connect_steps(settings, address))


def describe_return(generation: str, refused: str) -> str:
    """Describe how a game that is already set up reconnects."""
    if generation.startswith("3"):
        steps = (
            "It comes back by itself if its Reconnection delay (Options → Remote API) is above 0; "
            "otherwise ask the player to press Connect there."
        )
    elif generation:
        steps = (
            "Version 2 of the game does not reconnect by itself: ask the player to press Connect in "
            "Options → Remote API."
        )
    else:
        steps = (
            "A game of version 3 comes back by itself if its Reconnection delay is above 0; otherwise, and "
            "in version 2, ask the player to press Connect in Options → Remote API."
        )
    return _lead_with_refusal(refused, steps)


def _lead_with_refusal(refused: str, steps: str) -> str:
    """Put the reason of the last refusal first: it has to be solved before anything else."""
    return f"{refused} {steps}" if refused else steps


def describe_foreign_origin(origin: str) -> str:
    """Describe how to allow a page whose origin was refused."""
    return (
        f"Add {origin} to BITBURNER_ALLOWED_ORIGINS and start the bridge again, if that page is your game: "
        "it dialled in and was refused."
    )


def describe_connect(settings: BitburnerSettings, address: str) -> str:
    """Describe in one sentence how to connect the game to an address."""
    host, _, port = address.rpartition(":")
    if host in _EVERYWHERE:
        host = "(the address of this machine, or 127.0.0.1 on it)"
    scheme = " with wss on" if settings.tls_cert else ""
    return f"In Bitburner open Options → Remote API, set host {host} and port {port}{scheme}, press Connect."


def describe_connect_steps(settings: BitburnerSettings, address: str) -> str:
    """Describe the steps in the game, for the web and the desktop version."""
    return (
        f"{describe_connect(settings, address)} "
        "Web version: if the browser asks, allow access to the local network. "
        "Desktop version: the same steps, nothing to allow. "
        "Version 3 reconnects by itself with a Reconnection delay above 0; version 2 needs Connect again "
        "after each drop or restart."
    )


def describe_port_change(port: int) -> str:
    """Describe how to use another port, on both sides."""
    other = port + 1 if port < 65_000 else 12_526  # noqa: PLR2004 - any free one will do
    return (
        "Either end that program, or use another port in both places: set "
        f"BITBURNER_LISTEN=127.0.0.1:{other} for this bridge, and port {other} in the game under "
        "Options → Remote API."
    )
