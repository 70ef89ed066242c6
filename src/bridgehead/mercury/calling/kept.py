"""Kept: a completion that is given again, and says that it was kept and for how long.

Encoded when it is kept, so that giving it again only puts its age in.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from bridgehead.mcp import Answer, CallResult, Encoded, Text
from bridgehead.mcp.revisions import Revision

from ..api import wire
from ..completion import Completed, answer, text_of

_AGE = b'"cache_age_seconds":'
"""Comes only once outside of a text, and inside of one its quotes are escaped."""


class Kept(Struct, frozen=True):
    """A kept answer, and the two parts of the result between which its age goes."""

    completed: Completed
    since: float
    before_age: bytes
    after_age: bytes

    @property
    def size(self) -> int:
        """How many bytes its result takes."""
        return len(self.before_age) + len(self.after_age)

    def completed_at(self, now: float) -> Completed:
        """Give it with its age."""
        age = round(now - self.since, 3)
        metadata = replace(self.completed.metadata, cache_age_seconds=age)
        return replace(self.completed, metadata=metadata)

    def answer_at(self, now: float, revision: Revision) -> Encoded | Answer[Completed]:
        """Give it as a tool's answer."""
        if not revision.structured_output:
            return answer(self.completed_at(now), revision)
        return self.encoded_at(now)

    def encoded_at(self, now: float) -> Encoded:
        """Give it as the result for clients that take structured content."""
        return Encoded(b"%b%.3f%b" % (self.before_age, now - self.since, self.after_age))


def keep(completed: Completed, now: float) -> Kept:
    """Make an answer one that is kept from now on; given again, it costs nothing."""
    metadata = replace(completed.metadata, from_cache=True, cache_age_seconds=0.0, cost_usd=0.0)
    completed = replace(completed, metadata=metadata)
    result = wire.write(CallResult([Text(text_of(completed))], completed))
    before, mark, after = result.partition(_AGE)
    return Kept(completed, now, before + mark, after.removeprefix(b"0.0"))
