"""The page of the package index: the README as it reads there. A hook of the build, which needs nothing else.

In a checkout every link and picture is relative. On the index they lead to the repository if pyproject.toml
has its address; without one, links become their text and pictures go. What installs from a checkout becomes
what installs from the index.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURES = {".png", ".svg"}
INSTALL = """\
You need Python 3.11 or newer:

```sh
pipx install bridgehead
bridgehead demo
bridgehead install cursor aoc
```

`bridgehead demo` shows all three at work in your terminal, offline.

"""
_CHECKOUT = re.compile(r"^You need Python .*?(?=^> |^#)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"""(?P<before>\]\(|(?:src|srcset|href)=")(?!https?:|#|mailto:)(?P<path>[^)"#\s]+)""")
_RELATIVE = r"\((?!https?:|#|mailto:)[^)]*\)"
_THEMED = r'<picture>(?:(?!</picture>).)*src="(?!https?:).*?</picture>'
_PICTURE = re.compile(rf"(?:{_THEMED}|!\[[^\]]*\]{_RELATIVE})\n*")
_TEXT = re.compile(rf"\[([^\]]+)\]{_RELATIVE}")


class IndexPage(MetadataHookInterface):
    """Sets `readme`, which pyproject.toml declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the page into the metadata."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        page = index_page(text, metadata.get("urls", {}).get("Homepage", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": page}


def index_page(text: str, address: str = "") -> str:
    """Return the README for the index; `address` is that of the repository, if it is known."""
    text = _CHECKOUT.sub(INSTALL, text)
    return absolute(text, address) if address else _TEXT.sub(r"\1", _PICTURE.sub("", text))


def absolute(page: str, address: str) -> str:
    """Return a page whose relative links lead to the repository, and its pictures to their files there."""

    def replace(match: re.Match[str]) -> str:
        kind = "raw" if PurePosixPath(match["path"]).suffix in PICTURES else "blob"
        return f"{match['before']}{address}/{kind}/main/{match['path']}"

    return _LINK.sub(replace, page)
