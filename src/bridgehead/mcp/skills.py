"""Skills: folders of instructions for agents, the extension `io.modelcontextprotocol/skills`.

A skill is a folder with a `SKILL.md` (agentskills.io); SEP-2640 says how it is listed and read. Its files are
read once, when it is declared: a host refuses a file that differs from the digest in the skill's entry.
Imported only by bridges that have skills.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from .bridge import Bridge
from .calls.context import Context
from .errors import DeclarationError
from .features.bridge_base import Extension

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
MAX_FILES = 512
MAX_BYTES = 16 * 1024 * 1024
"""Limits of the extension: every host accepts a skill within them."""
_MARKDOWN = "text/markdown"
_NAME = "(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?"
_MAX_DESCRIPTION = 1024
_FIELD = r"( *)([A-Za-z0-9_./-]+):(?: +(.*?))? *"
# Texts that a YAML parser may read as something other than a string: markers, numbers, dates, a nested field,
# a comment, booleans.
_NOT_PLAIN = r"[\[\]{}>|*&!%#`@,?:\"'.+\d-].*|.*(?:: | #).*|.*:|(?i:~|null|true|false|yes|no|on|off|y|n)"


class SkillFile(Struct, frozen=True):
    """A file of a skill, as its entry lists it."""

    uri: str
    digest: str
    size: int


class Skill(Struct, frozen=True):
    """The entry of one skill."""

    uri: str
    frontmatter: dict[str, Any]
    resources: list[SkillFile]


class SkillsExtension(Extension, frozen=True):
    """The declared extension, with the skills by the URIs of their `SKILL.md`."""

    skills: dict[str, Skill] = field(default_factory=dict)

    def merge(self, other: Extension) -> Extension:
        """Merge the skills of two bridges. A URI that both have is refused with their resources."""
        theirs = other.skills if isinstance(other, SkillsExtension) else {}
        return SkillsExtension({**self.settings, **other.settings}, self.handshake, {**self.skills, **theirs})


def add_skill(bridge: Bridge[Any], folder: str | Path, *, under: str = "") -> None:
    """Declare a skill: a folder with a `SKILL.md`, whose name is the folder's; raises `DeclarationError`.

    Its files are at `skill://NAME/…`, or at `skill://UNDER/NAME/…`. Names that begin with a dot are left out.
    """
    root = Path(folder)
    paths = sorted(
        path.relative_to(root)
        for path in root.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)
    )
    files = {path.as_posix(): (root / path).read_bytes() for path in paths}
    if "SKILL.md" not in files:
        raise DeclarationError(f"{root} is not a skill: it has no SKILL.md.")
    if len(files) > MAX_FILES or sum(map(len, files.values())) > MAX_BYTES:
        raise DeclarationError(f"{root} is too large for a skill: hosts take {MAX_FILES} files and 16 MiB.")
    frontmatter = read_frontmatter(files["SKILL.md"], root / "SKILL.md")
    if frontmatter["name"] != root.resolve().name:
        raise DeclarationError(
            f"{root / 'SKILL.md'} has the name {frontmatter['name']!r}. Name the folder like the skill."
        )
    base = (
        f"skill://{under.strip('/')}/{frontmatter['name']}/" if under else f"skill://{frontmatter['name']}/"
    )
    resources: list[SkillFile] = []
    for path, content in files.items():
        uri = base + quote(path)
        resources.append(SkillFile(uri, f"sha256:{hashlib.sha256(content).hexdigest()}", len(content)))
        is_main = path == "SKILL.md"
        bridge.resource(
            uri,
            name=frontmatter["name"] if is_main else path,
            description=frontmatter["description"] if is_main else None,
            mime_type=_MARKDOWN if path.endswith(".md") else mimetypes.guess_type(path)[0],
            size=len(content),
        )(_reader(content))
    extension = bridge.extensions.get(SKILLS_EXTENSION)
    if not isinstance(extension, SkillsExtension):
        # Only in the stateless revision, against which the extension is specified.
        extension = bridge.extensions[SKILLS_EXTENSION] = SkillsExtension({}, handshake=False, skills={})
    extension.skills[base + "SKILL.md"] = Skill(base + "SKILL.md", frontmatter, resources)


def _reader(content: bytes) -> Callable[[Context[Any]], str | bytes]:
    try:
        text: str | bytes = content.decode()  # encodes to the same bytes, as the digest requires
    except UnicodeDecodeError:
        text = content
    return lambda _context: text


def read_frontmatter(content: bytes, path: Path) -> dict[str, Any]:
    """Read the fields at the head of a SKILL.md, exactly as a YAML parser would; raises `DeclarationError`.

    Only the part of YAML that such heads need: one field a line, and one level of fields under another. A
    host compares what its own parser reads, so whatever parsers may read differently is refused.
    """
    try:
        lines = content.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise DeclarationError(f"{path} is not UTF-8.") from None
    if lines[:1] != ["---"] or "---" not in lines[1:]:
        raise DeclarationError(f"{path} has no front matter. Begin it with ---, name, description and ---.")
    fields: dict[str, Any] = {}
    inner: dict[str, Any] | None = None
    indent = ""
    for number, line in enumerate(lines[1 : lines.index("---", 1)], start=2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(_FIELD, line)
        value = None if match is None or not match[3] else _read_text(match[3])
        target = inner if match is not None and match[1] else fields
        is_parent = match is not None and not match[1] and not match[3]
        if (
            match is None
            or target is None
            or match[2] in target
            or (value is None and not is_parent)
            or (inner and match[1] and match[1] != indent)
        ):
            raise DeclarationError(
                f"{path}, line {number}: {line.strip()!r} cannot be read. Write each field once, on one "
                'line, as name: value; put a value that is not plain text in "quotes".'
            )
        indent = match[1]
        if is_parent:
            inner = fields[match[2]] = {}
        else:
            target[match[2]] = value
            inner = inner if match[1] else None
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise DeclarationError(
            f"{path} needs a name of 1 to 64 lower-case letters, digits and single hyphens."
        )
    if not isinstance(description, str) or not 0 < len(description) <= _MAX_DESCRIPTION:
        raise DeclarationError(f"{path} needs a description of 1 to {_MAX_DESCRIPTION:,} characters.")
    if {} in fields.values():
        raise DeclarationError(f"{path} has a field without a value.")
    return fields


def _read_text(value: str) -> str | None:
    """Return a scalar that every YAML parser reads as this text; None for any other."""
    if value.startswith('"'):
        try:
            return msgspec.json.decode(value, type=str)
        except msgspec.DecodeError:
            return None
    if re.fullmatch("'(?:[^']|'')*'", value):
        return value[1:-1].replace("''", "'")
    return None if re.fullmatch(_NOT_PLAIN, value) else value
