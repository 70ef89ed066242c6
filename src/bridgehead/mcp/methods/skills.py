"""Methods of the skills extension: `skills/list` and `skills/get`. The files are read as resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import jsonrpc
from ..calls.context import Context
from ..calls.params import PageParams, SubscribeParams
from ..errors import INVALID_PARAMS, ProtocolError, quote
from ..features.results import Body
from ..skills import SKILLS_EXTENSION, Skill, SkillsExtension
from .listing import cache_hints, page

if TYPE_CHECKING:
    from ..dispatch import Dispatcher


def _skills(dispatcher: Dispatcher) -> dict[str, Skill]:
    extension = dispatcher.bridge.extensions[SKILLS_EXTENSION]
    return extension.skills if isinstance(extension, SkillsExtension) else {}


def list_skills(dispatcher: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the skills."""
    return page(dispatcher, context, "skills", list(_skills(dispatcher).values()), params.cursor)


def get_skill(dispatcher: Dispatcher, _context: Context[Any], params: SubscribeParams) -> Body:
    """Return the entry of one skill, by the URI of its SKILL.md."""
    skills = _skills(dispatcher)
    if params.uri not in skills:
        message = f"No skill is served at {quote(params.uri)}"
        raise ProtocolError(INVALID_PARAMS, message, {"skills": list(skills)})
    return jsonrpc.encode(
        {"skill": skills[params.uri], **cache_hints(dispatcher, dispatcher.bridge.list_ttl_ms)}
    ), None
