"""Scripts: what a store runs as one step, and how it fails. Declaring one needs no client library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from ..errors import BridgeError, Unavailable


class StoreError(BridgeError):
    """A store refused a command: a fault of ours, not of the store."""

    code = "store"


class StoreUnavailable(Unavailable):
    """A store is gone, slow, full or read-only right now."""

    code = "store_unavailable"


class Script:
    """A Lua script, which Redis runs as one step. One that must not count twice carries an id.

    `passes` is a condition on its `answer`, in Lua: only then does a chain go on behind it. Where it is to
    notice that the server was restarted or replaced, it gets the id of the server's run as its last argument:
    that of the server which runs it, also where a pipeline is sent once more.
    """

    def __init__(self, text: str, *, passes: str = "true", with_run_id: bool = False) -> None:
        self.text = text
        self.passes = passes
        self.with_run_id = with_run_id

    @cached_property
    def digest(self) -> str:
        """What Redis knows it by, once it has seen it."""
        from hashlib import sha1

        return sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class Step(Struct, frozen=True):
    """A script with what it is given."""

    script: Script
    keys: Sequence[str]
    words: Sequence[Any]


# Each step sees its own keys and words as KEYS and ARGV. The first words say how many of each a step has.
_CHAIN_HEAD = """
local all_keys, all_words, answers = KEYS, ARGV, {}
local keys_before, words_before = 0, %d
local function give(step, run_id)
  local keys, words = {}, {}
  for n = 1, tonumber(all_words[2 * step - 1]) do keys[n] = all_keys[keys_before + n] end
  for n = 1, tonumber(all_words[2 * step]) do words[n] = all_words[words_before + n] end
  keys_before, words_before = keys_before + #keys, words_before + #words
  words[#words + 1] = run_id
  return keys, words
end
"""
_CHAIN_STEP = """
do
  local KEYS, ARGV = give(%d, %s)
  local answer = (function() %s
  end)()
  answers[#answers + 1] = answer
  if not (%s) then return answers end
end
"""


@lru_cache(maxsize=64)
def chain(scripts: tuple[Script, ...]) -> Script:
    """Make one script of several, which run in order until one does not pass; returns their answers."""
    needs_run_id = any(script.with_run_id for script in scripts)
    parts = [_CHAIN_HEAD % (2 * len(scripts))]
    for place, script in enumerate(scripts, 1):
        run_id = "all_words[#all_words]" if script.with_run_id else "nil"
        parts.append(_CHAIN_STEP % (place, run_id, script.text, script.passes))
    return Script("".join((*parts, "return answers")), with_run_id=needs_run_id)


def join_steps(steps: Sequence[Step]) -> Step:
    """Make one step of several."""
    counts = [len(part) for step in steps for part in (step.keys, step.words)]
    return Step(
        chain(tuple(step.script for step in steps)),
        [key for step in steps for key in step.keys],
        [*counts, *(word for step in steps for word in step.words)],
    )
