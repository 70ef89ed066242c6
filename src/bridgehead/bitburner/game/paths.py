"""Paths: the game's rules for the names of files and servers, checked before a request is sent.

The only module that knows these rules. They cover both generations of the game; where one is stricter (`.css`
came with 3.x), the game itself refuses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from bridgehead.runtime.errors import InvalidArgument

if TYPE_CHECKING:
    from wcmatch.glob import WcMatcher

HOME = "home"
SCRIPTS = (".js", ".jsx", ".ts", ".tsx", ".script")
"""In the order in which the game tries them for an import without one."""
TEXTS = (".txt", ".json", ".css")
EXTENSIONS = SCRIPTS + TEXTS
DEFINITIONS = ("@ns", "@nsdefs")
"""Names by which TypeScript imports the game's definitions; they are no files."""
FORBIDDEN = frozenset("*?[]!\\~|#\"' ")
_TOP = (".", "..")
_MAX_KEPT = 1000
"""Longer names are not cached: a thousand of a megabyte each would take a gigabyte."""
_MAX_ALTERNATIVES = 1000
"""Limit of the patterns that braces may expand to."""
_MAX_GLOBSTARS = 3
"""Each `**/` tries every folder of a path: with eight of them, a path of 40 folders took 27 s."""


def validate_filename(text: str) -> str:
    """Return a file's name as the game stores it; raises for a name that the game would refuse."""
    return _validate_once(text) if len(text) <= _MAX_KEPT else _validate(text)


def _validate(text: str) -> str:
    if not text.strip():
        raise _refused(text, "it is empty", "Name a file, such as scripts/hack.js.")
    bad = sorted(FORBIDDEN.intersection(text))
    if bad:
        shown = " ".join("space" if character == " " else character for character in bad)
        raise _refused(text, f"the game does not allow this in a name: {shown}", "Leave these out.")
    parts = _canonical(text)
    if "" in parts:
        raise _refused(text, "a folder or the file has no name", "Write one slash between two names.")
    _check_extension(text, parts[-1])
    return "/".join(parts)


_validate_once = lru_cache(maxsize=1024)(_validate)


def _canonical(text: str) -> list[str]:
    """Resolve `.` and `..` as the game does: in relative paths, and never above the top."""
    if text.startswith("/"):
        parts = text[1:].split("/")
        if any(part in _TOP for part in parts):
            raise _refused(text, "the game refuses . and .. behind a leading slash", "Leave the slash out.")
        return parts
    resolved: list[str] = []
    for part in text.split("/"):
        if part == ".." and not resolved:
            raise _refused(text, "it leads out of the server", "Name a file inside of it.")
        if part == "..":
            resolved.pop()
        elif part != ".":
            resolved.append(part)
    return resolved or [""]


def _check_extension(text: str, name: str) -> None:
    # Programs are protected by this: in 2.x, deleteFile of NUKE.exe succeeds, and the player loses it.
    stem, dot, extension = name.rpartition(".")
    if not stem or dot + extension not in EXTENSIONS:
        allowed = " ".join(EXTENSIONS)
        raise _refused(
            text, f"the game's files end in one of {allowed} (lower case)", "Use one of these endings."
        )


def validate_server(text: str) -> str:
    """Return a server's name: its host name, case-sensitive, or its IP address."""
    if not text.strip():
        raise InvalidArgument(
            "The server's name is empty.", next_step="Leave it out for home, or ask list_servers."
        )
    if min(text) < " ":
        raise InvalidArgument(
            f"{text!r} cannot be a server's name: it has control characters.",
            next_step="list_servers tells the names.",
        )
    return text


def is_script(name: str) -> bool:
    """Return whether the game can run a file, so that it has a RAM cost."""
    return name.endswith(SCRIPTS)


def validate_script(text: str) -> str:
    """Return the name of a script; other files are refused."""
    name = validate_filename(text)
    if not is_script(name):
        reason = f"text files cost nothing, only scripts have a RAM cost ({' '.join(SCRIPTS)})"
        raise _refused(text, reason, "Name a script.")
    return name


def make_uri(on: str, name: str) -> str:
    """Return the URI of a file as a resource."""
    return f"bitburner://{quote(on, safe='')}/{quote(name)}"


def guess_mime_type(name: str) -> str:
    """Return the media type of a file, by its extension."""
    kinds = {"json": "application/json", "css": "text/css", "txt": "text/plain"}
    return kinds.get(name.rpartition(".")[2], "text/javascript")


def matches(name: str, glob: str | None) -> bool:
    """Return whether a name fits a pattern with `*`, `**`, `?`, `[…]` and `{a,b}`.

    A pattern without a slash matches the name in any folder, as in a .gitignore; with one, the whole path.
    """
    return not glob or bool(_compile_glob(glob).match(name))


@lru_cache(maxsize=256)
def _compile_glob(glob: str) -> WcMatcher[str]:
    """Compile a pattern; cached, because a sync matches the same ones against each file."""
    import bracex
    from wcmatch import glob as wildcards

    flags = wildcards.GLOBSTAR | wildcards.BRACE | wildcards.DOTGLOB | wildcards.CASE | wildcards.FORCEUNIX
    if "/" not in glob:
        flags |= wildcards.MATCHBASE
    if glob.count("**/") > _MAX_GLOBSTARS:
        raise InvalidArgument(
            f"glob has more than {_MAX_GLOBSTARS} **/.", next_step="Use one; it means any number of folders."
        )
    try:
        # wcmatch has a limit too, but no public name for its error; it expands braces by this function.
        bracex.expand(glob, keep_escapes=True, limit=_MAX_ALTERNATIVES)
    except bracex.ExpansionLimitException:
        raise InvalidArgument(
            f"glob stands for more than {_MAX_ALTERNATIVES} patterns.", next_step="Use fewer braces."
        ) from None
    return wildcards.compile(glob.lstrip("/"), flags=flags, limit=0)


def _refused(text: str, problem: str, advice: str) -> InvalidArgument:
    return InvalidArgument(f"{text!r} is not a file name of the game: {problem}.", next_step=advice)
