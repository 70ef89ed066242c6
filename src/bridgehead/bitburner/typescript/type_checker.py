"""Type checker: diagnostics of one script against the game's definitions, from TypeScript.

Prepares the text, keeps one language server, and maps positions back. The definitions and an empty file for
each language are on disk in a folder of its own; the script itself is never written, and its imports are
hidden, so that a script cannot make TypeScript read files of this machine.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tempfile
from pathlib import Path

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError

from ..game import paths
from ..netscript.definitions import Definitions
from ..netscript.scripts import Script, TooMuchWork
from ..settings import BitburnerSettings
from .component import program_path
from .language_server import LanguageServer, Position, ServerFailed

log = logs.logger("bitburner.typescript")

MAX_DEPTH = 500
"""Deepest nesting of a script that is sent: 2,000 nested brackets keep TypeScript busy for minutes."""
_MAX_FAILURES = 3
"""Failures in a row after which the checker is off until the bridge restarts."""
_OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "target": "esnext",
    "module": "esnext",
    "moduleResolution": "bundler",
    "moduleDetection": "force",
    "strict": False,
    "strictNullChecks": False,
    "noImplicitAny": False,
    "jsx": "react",
    "allowImportingTsExtensions": True,
    "allowUmdGlobalAccess": True,
    "skipLibCheck": True,
    "lib": ["esnext", "dom", "dom.iterable"],
    "types": [],
    "paths": {name: ["./ns.d.ts"] for name in paths.DEFINITIONS},
}
# Globals that the game's page has in addition to a browser's.
_PAGE = """
declare var React: any, ReactDOM: any, _: any, sprintf: any, vsprintf: any, find: any;
declare var setImmediate: any, clearImmediate: any, Bitburner: any, MathJax: any;
declare var MonacoEnvironment: any, webpackChunkbitburner: any;
declare namespace JSX { interface IntrinsicElements { [name: string]: any } type Element = any; }
"""
_EXTENSIONS = ("js", "jsx", "ts", "tsx")
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_MODULE = re.compile(r"(\b(?:from|import|require)\s*\(?\s*)([\"'`])([^\"'`\n]*)\2")
_REFERENCE = re.compile(r"^(\s*)///", re.MULTILINE)


class Diagnostic(Struct, frozen=True):
    """A diagnostic at offsets in bytes of the script's own text."""

    code: int
    message: str
    start: int
    end: int


class TypeChecker:
    """Checks scripts one after the other; does nothing without the installed component."""

    def __init__(self, settings: BitburnerSettings) -> None:
        self._settings = settings
        self._program: Path | None = None
        self._lock = asyncio.Lock()
        self._server: LanguageServer | None = None
        self.folder: Path | None = None
        self._definitions = ""
        self._failures = 0

    async def diagnose(
        self, source: str, filename: str, definitions: Definitions, definitions_text: str
    ) -> list[Diagnostic] | None:
        """Return TypeScript's diagnostics; None if it is not installed or gives no answer in time."""
        extension = filename.rpartition(".")[2]
        if extension not in _EXTENSIONS or self._failures >= _MAX_FAILURES or not self._is_installed():
            return None
        prepared = await asyncio.to_thread(_prepare, source, filename, definitions)
        if prepared is None:
            return None
        try:
            # One at a time: the server answers one file after the other anyway.
            async with self._lock:
                server = await self._open(definitions_text)
                diagnostics = await server.diagnose(prepared.text, extension)
        except (ServerFailed, OSError) as problem:
            self._failures += 1
            self._server = None
            log.warn("type check failed", problem=str(problem), filename=filename)
            return None
        self._failures = 0
        return prepared.map_back(
            [
                (diagnostic.code, diagnostic.message, diagnostic.range.start, diagnostic.range.end)
                for diagnostic in diagnostics
            ]
        )

    def _is_installed(self) -> bool:
        # Checked for each script, so that a new installation works at once. On the event loop: the check
        # takes 2 µs, a thread for it 100 µs.
        try:
            if self._program is None:
                self._program = program_path(self._settings)
            return self._server is not None or self._program.exists()
        except (BridgeError, OSError):
            return False

    async def _open(self, definitions_text: str) -> LanguageServer:
        if self._server is not None and self._definitions is definitions_text:
            return self._server
        await self._stop()
        self.folder = await asyncio.to_thread(_make_folder, definitions_text)
        self._server = await LanguageServer.start(program_path(self._settings), self.folder)
        self._definitions = definitions_text
        return self._server

    async def _stop(self) -> None:
        if self._server is not None:
            await self._server.kill()
            self._server = None
        if self.folder is not None:
            await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
            self.folder = None

    async def close(self) -> None:
        """End the process and remove its folder."""
        await self._stop()


def _make_folder(definitions: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bridgehead-typescript-")).resolve()
    (folder / "ns.d.ts").write_text(definitions, encoding="utf-8")
    # Without exports the types are global, as in the game's editor: JSDoc in scripts uses them without
    # import.
    (folder / "globals.d.ts").write_text(_EXPORT.sub("", definitions) + _PAGE, encoding="utf-8")
    files = [f"script.{extension}" for extension in _EXTENSIONS]
    for name in files:
        (folder / name).write_text("", encoding="utf-8")
    project = {
        "compilerOptions": _OPTIONS,
        "typeAcquisition": {"enable": False},
        "files": ["globals.d.ts", *files],
    }
    (folder / "tsconfig.json").write_text(json.dumps(project), encoding="utf-8")
    return folder


class _Prepared(Struct):
    """The text to send, and where it is longer than the script."""

    source: str
    text: str
    insertions: list[tuple[int, int]]
    """Offsets in the sent text, in characters, each with the length of what was inserted there."""

    def map_back(self, diagnostics: list[tuple[int, str, Position, Position]]) -> list[Diagnostic]:
        lines = self.text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)

        def offset(place: Position) -> int:
            if place.line >= len(lines):
                return len(self.source.encode())
            # LSP counts UTF-16 units.
            units = lines[place.line].encode("utf-16-le", "surrogatepass")[: 2 * place.character]
            at = starts[place.line] + len(units.decode("utf-16-le", "replace"))
            shift = sum(min(length, at - where) for where, length in self.insertions if where < at)
            return len(self.source[: at - shift].encode("utf-8", "replace"))

        return [
            Diagnostic(code, message, offset(start), offset(end)) for code, message, start, end in diagnostics
        ]


def _prepare(source: str, filename: str, definitions: Definitions) -> _Prepared | None:
    """Type the parameters that are ns and hide imports; None if TypeScript might hang on the script."""
    is_typescript = filename.endswith((".ts", ".tsx"))
    pieces: list[tuple[int, str]] = []
    script: Script | None = None
    try:
        script = Script(source, filename, definitions)
        if script.tree.problem is not None or script.tree.depth > MAX_DEPTH:
            return None
        for node in script.list_untyped_ns():
            if is_typescript:
                pieces.append((node.end, ": NS"))
            elif node.parent is not None and node.parent.type == "arrow_function":  # ns => …
                pieces += [(node.start, "(/** @type {NS} */ "), (node.end, ")")]
            else:
                pieces.append((node.start, "/** @type {NS} */ "))
    except TooMuchWork:
        return None
    finally:
        if script is not None:
            script.tree.close()
    text, insertions, last = "", [], 0
    encoded = source.encode("utf-8", "replace")
    for place, inserted in sorted(pieces):
        text += encoded[last:place].decode("utf-8", "replace")
        insertions.append((len(text), len(inserted)))
        text += inserted
        last = place
    text += encoded[last:].decode("utf-8", "replace")
    text = _REFERENCE.sub(r"\1// ", text)
    text = _MODULE.sub(
        lambda match: (
            match[0]
            if match[3] in paths.DEFINITIONS
            else f"{match[1]}{match[2]}{'#' * len(match[3])}{match[2]}"
        ),
        text,
    )
    return _Prepared(source, text, insertions)
