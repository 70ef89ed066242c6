"""End signals: which signals end a server. Apart, because a stdio server needs it before anything dear."""

from __future__ import annotations

import signal


def end_signals() -> list[signal.Signals]:
    """Return the signals that end this process in good order.

    A terminal that is closed sends SIGHUP. Under `nohup` it is ignored, and stays so; Windows has none.
    """
    signals = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals
