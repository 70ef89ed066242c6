"""Methods: the Remote API of a simulated game, with the error texts of both generations."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET, Struct

from ..netscript.ram import RamRefused
from .definitions import definitions
from .paths import PROGRAM, is_script, is_text, resolve
from .ram import cost
from .world import World, save

OK = "OK"


class Case(Enum):
    """Why a request is refused."""

    UNKNOWN = "the method does not exist"
    PARAMS = "a field is missing or of a wrong type"
    SERVER = "no such server"
    PATH = "not a path"
    EXTENSION = "not an extension of contents"
    MISSING = "no such file"
    NO_SCRIPT = "not a script"
    RUNNING = "the script is running"
    NO_RAM = "the script cannot be read or an import is missing"


class Refusal(Exception):
    """The game answers with an error, which is a plain text."""


class Silence(Exception):
    """The game does not answer, because the request makes its own code fail."""


_RUNNING = "Cannot delete a script that is currently running!"
_UNKNOWN = "Unknown message received"
_SECOND = {
    Case.UNKNOWN: _UNKNOWN,
    Case.PARAMS: "Message misses parameters",
    Case.SERVER: "Server hostname invalid",
    Case.PATH: "Invalid file path",
    Case.EXTENSION: "Invalid file extension",
    Case.MISSING: "File doesn't exist",
    Case.NO_SCRIPT: "Filename isn't a script filename",
    Case.RUNNING: _RUNNING,
    Case.NO_RAM: "Ram cost could not be calculated",
}
_SECOND_HERE = {
    (Case.PARAMS, "pushFile"): "Misses parameters",
    (Case.PATH, "deleteFile"): "Invalid filename",
    (Case.PATH, "calculateRam"): "Invalid filename",
}
_THIRD = {
    Case.UNKNOWN: _UNKNOWN,
    Case.PARAMS: "Invalid params: ",
    Case.SERVER: "Invalid hostname: ",
    Case.PATH: "Invalid file path: ",
    Case.EXTENSION: "Invalid file extension. Filename: ",
    Case.MISSING: "File does not exist. Filename: ",
    Case.NO_SCRIPT: "File is not a script. Filename: ",
    Case.RUNNING: _RUNNING,
    Case.NO_RAM: "Cannot calculate RAM usage of an invalid script. Filename: ",
}


def refusal(world: World, case: Case, method: str, subject: str) -> Refusal:
    """Return the refusal in the words of the world's generation; 3.x also names the subject."""
    if world.is_second:
        return Refusal(_SECOND_HERE.get((case, method), _SECOND[case]))
    text = _THIRD[case]
    return Refusal(text + subject if text.endswith(": ") else text)


class Call(Struct):
    """One request for a method, with checks that refuse it as the game does."""

    world: World
    method: str
    params: Any = UNSET

    def refuse(self, case: Case, subject: str = "") -> NoReturn:
        """Refuse in the words of the world's generation."""
        raise refusal(self.world, case, self.method, subject)

    def strings(self, *names: str) -> list[str]:
        """Return the fields with these names; refuse anything but strings."""
        if self.params is UNSET or self.params is None:
            if self.world.is_second:
                raise Silence
            raise Refusal("Missing params")
        if not self.world.is_second and not self.params and not isinstance(self.params, dict | list):
            raise Refusal("Missing params")  # 0, "" and false count as none
        fields = self.params if isinstance(self.params, dict) else {}
        values = [fields[name] for name in names if isinstance(fields.get(name), str)]
        if len(values) < len(names):
            self.refuse(Case.PARAMS, msgspec.json.encode(self.params).decode())
        return values

    def path(self, filename: str) -> str:
        """Return the path that a file name resolves to."""
        path = resolve(filename)
        if path is None:
            self.refuse(Case.PATH, filename)
        return path

    def host(self, server: str) -> str:
        """Return the host of a server's name or IP address."""
        host = self.world.host(server)
        if host is None:
            self.refuse(Case.SERVER, server)
        return host

    def place(self) -> tuple[str, str]:
        """Return host and path of a request for one text or script."""
        filename, server = self.strings("filename", "server")
        path = self.path(filename)
        if self.world.is_second:
            host = self.host(server)
            self.check_extension(path, filename)
        else:  # the third generation looks at the extension first
            self.check_extension(path, filename)
            host = self.host(server)
        return host, path

    def check_extension(self, path: str, filename: str) -> None:
        """Refuse a file type that has no contents."""
        if not is_script(path) and not is_text(path, self.world.generation):
            self.refuse(Case.EXTENSION, filename)

    @property
    def filename(self) -> str:
        """The file name as it was sent; 3.x repeats it in its errors."""
        return str(self.params["filename"])


def push_file(call: Call) -> str:
    """Write a file."""
    *_, content = call.strings("filename", "server", "content")
    host, path = call.place()
    call.world.write(host, path, content)
    return OK


def get_file(call: Call) -> str:
    """Read a file."""
    host, path = call.place()
    content = call.world.read(host, path)
    if content is None:
        call.refuse(Case.MISSING, call.filename)
    return content


def delete_file(call: Call) -> str:
    """Delete a file, and in the second generation a program too."""
    filename, server = call.strings("filename", "server")
    path = call.path(filename)
    if not call.world.is_second:
        call.check_extension(path, filename)
    host = call.host(server)
    world = call.world
    if world.is_second and path.endswith(PROGRAM):  # the second generation deletes programs too
        programs = world.programs.get(host, set())
        if path not in programs:
            raise Refusal(f"Program {path} does not exist")
        programs.remove(path)
        return OK
    if world.is_second and not is_script(path) and not is_text(path, 2):
        raise Refusal(f"Unhandled file extension on file path {path}")
    if path not in world.servers[host]:
        # Both generations pass on the text of the game's own delete command.
        raise Refusal(f"{'Script' if is_script(path) else 'Text file'} {path} not found.")
    if (host, path) in world.running:
        call.refuse(Case.RUNNING)
    world.delete(host, path)
    return OK


def get_file_names(call: Call) -> list[str]:
    """List the files of a server: texts, then scripts."""
    host = call.host(*call.strings("server"))
    return [*call.world.texts(host), *call.world.scripts(host)]


def get_all_files(call: Call) -> list[dict[str, str]]:
    """Return the files of a server: scripts, then texts."""
    host = call.host(*call.strings("server"))
    files = {**call.world.scripts(host), **call.world.texts(host)}
    return [{"filename": path, "content": content} for path, content in files.items()]


def calculate_ram(call: Call) -> float:
    """Return the cost of a script in GB."""
    filename, server = call.strings("filename", "server")
    path = call.path(filename)
    if not call.world.is_second:
        call.check_extension(path, filename)
    elif not is_script(path):
        call.refuse(Case.NO_SCRIPT, path)
    host = call.host(server)
    if not is_script(path):
        call.refuse(Case.NO_SCRIPT, filename)
    if path not in call.world.servers[host]:
        call.refuse(Case.MISSING, filename)
    try:
        return cost(call.world, host, path)
    except RamRefused:
        call.refuse(Case.NO_RAM, filename)


def get_all_servers(call: Call) -> list[dict[str, object]]:
    """List the servers."""
    world = call.world
    return [
        {"hostname": h, "hasAdminRights": h in world.rooted, "purchasedByPlayer": h in world.purchased}
        for h in world.servers
    ]


def get_file_metadata(call: Call) -> dict[str, object]:
    """Return the times of a file."""
    host, path = call.place()
    if path not in call.world.servers[host]:
        call.refuse(Case.MISSING, call.filename)
    return call.world.describe(host, path)


def get_all_file_metadata(call: Call) -> list[dict[str, object]]:
    """Return the times of each file of a server."""
    host = call.host(*call.strings("server"))
    paths = [*call.world.scripts(host), *call.world.texts(host)]
    return [call.world.describe(host, path) for path in paths]


METHODS: dict[str, Callable[[Call], Any]] = {
    "pushFile": push_file,
    "getFile": get_file,
    "deleteFile": delete_file,
    "getFileNames": get_file_names,
    "getAllFiles": get_all_files,
    "calculateRam": calculate_ram,
    "getDefinitionFile": lambda _call: definitions(),
    "getAllServers": get_all_servers,
    "getSaveFile": lambda call: save(call.world),
    "getFileMetadata": get_file_metadata,
    "getAllFileMetadata": get_all_file_metadata,
}
