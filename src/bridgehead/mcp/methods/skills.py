"""Methods of the skills extension: `skills/list` and `skills/get`. The files are read as resources."""

from __future__ import annotations

from typing import Any

from .. import jsonrpc
from ..calls.context import Context
from ..calls.params import PageParams, SubscribeParams
from ..errors import INVALID_PARAMS, ProtocolError, quote
from ..features.skills import SKILLS_EXTENSION, Skill, SkillsExtension
from ..server import Body, Server
from .listing import cache_hints, page


def _skills(server: Server) -> dict[str, Skill]:
    extension = server.bridge.extensions[SKILLS_EXTENSION]
    return extension.skills if isinstance(extension, SkillsExtension) else {}


def list_skills(server: Server, context: Context[Any], params: PageParams) -> Body:
    """List the skills."""
    return page(server, context, "skills", list(_skills(server).values()), params.cursor)


def get_skill(server: Server, _context: Context[Any], params: SubscribeParams) -> Body:
    """Return the entry of one skill, by the URI of its SKILL.md."""
    skills = _skills(server)
    if params.uri not in skills:
        message = f"No skill is served at {quote(params.uri)}"
        raise ProtocolError(INVALID_PARAMS, message, {"skills": list(skills)})
    return jsonrpc.encode(
        {"skill": skills[params.uri], **cache_hints(server, server.bridge.list_ttl_ms)}
    ), None
