"""Reserving money of a budget as an admission does: in a file, or in the Redis of all replicas."""

import math

from bridgehead.mercury.calling.budget import Budget, Reservation
from bridgehead.runtime.stores.joint import Joint
from bridgehead.runtime.stores.ledger import SharedLedger


async def reserve(
    budget: Budget, ledger: SharedLedger | None, client: str, amount: float
) -> Reservation | None:
    """Commit money; raises where there is too little."""
    if ledger is None:
        return await budget.reserve(client, amount)
    claim = budget.claim(client, amount)
    assert claim is not None
    await Joint(ledger.redis, [claim]).obtain(math.inf)
    return Reservation.of(claim)
