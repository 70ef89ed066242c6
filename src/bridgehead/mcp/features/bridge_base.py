"""BridgeBase: the part of a bridge that its tools, resources and prompts use.

`Bridge` is the only subclass. It is separate because `bridge` imports the modules of those parts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ..calls.call_hook import CallHook, wrap_hook
from ..errors import Dialect
from ..revisions import Revision
from ..values.content import Icon, Wire, fit

OutputSchemas = Literal["full", "outline"]


class Implementation(Wire, frozen=True):
    """A server's name, version and looks, as clients see them."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: tuple[Icon, ...] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")

    def fit(self, revision: Revision) -> Implementation:
        """Return it without the fields that the revision does not define."""
        info = fit(self, revision)
        return info if revision.icons else replace(info, description=None, website_url=None)


class Extension(Struct, frozen=True):
    """An extension of the protocol that a bridge declares, with its settings."""

    settings: dict[str, Any]
    handshake: bool = True
    """Whether it is declared in the handshake era; some extensions exist only in the stateless one."""

    def merge(self, other: Extension) -> Extension:
        """Merge the settings of two bridges; raise if they contradict each other."""
        for key in self.settings.keys() & other.settings.keys():
            if self.settings[key] != other.settings[key]:
                message = f"two bridges give {key!r} of the same extension different values"
                raise ValueError(message)
        return Extension({**self.settings, **other.settings}, self.handshake and other.handshake)


class BridgeBase:
    """The state and the dialect that parts of a bridge run with, wherever they are offered."""

    def __init__(
        self,
        info: Implementation,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None,
        dialect: Dialect | None,
        contract_revision: str | None,
        output_schemas: OutputSchemas = "full",
        *,
        numeric_strings: bool = True,
    ) -> None:
        self.info = info
        self.lifespan = lifespan
        self.dialect = dialect or Dialect()
        self.contract_revision = contract_revision
        """Clients of this revision get exactly a published contract: no instructions, the contract's
        schemas, and only the resources of the bridge's own lister."""
        self.output_schemas: OutputSchemas = output_schemas
        """How much of their output schemas tools list."""
        self.numeric_strings = numeric_strings
        """Whether "5" is accepted for an integer argument."""
        self.call_hook: CallHook | None = None
        """Wraps every call of a part that was declared here."""

    def around_calls(self, hook: CallHook) -> None:
        """Put a hook around every tool call, resource read and prompt; the hook added last comes first.

        It acts wherever the parts of this bridge are offered, on all calls from now on.
        """
        self.call_hook = wrap_hook(hook, self.call_hook)
