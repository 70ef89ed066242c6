"""A server of the same shape on the official Python SDK: the same tools by name and input, doing nothing."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bitburner", version="1.0.0", log_level="WARNING")


@server.tool(description="List the files on a server.")
async def list_files(server: str = "home") -> list[str]:
    return []


@server.tool(description="Read a file.")
async def read_file(
    filename: str, server: str = "home", start_line: int | None = None, end_line: int | None = None
) -> str:
    return filename


@server.tool(description="All files of a server with their contents.")
async def get_all_files(
    server: str = "home", glob: str | None = None, max_bytes: int | None = None
) -> list[dict[str, str]]:
    return []


@server.tool(description="Write a whole file.")
async def write_file(filename: str, content: str, server: str = "home", if_match: str | None = None) -> str:
    return "OK"


@server.tool(description="Delete a file.")
async def delete_file(filename: str, server: str = "home") -> str:
    return "OK"


@server.tool(description="Replace an exact text in a file.")
async def edit_file(filename: str, old_text: str, new_text: str, count: int = 1, server: str = "home") -> str:
    return "OK"


@server.tool(description="Bring back what a file held before.")
async def restore_file(
    filename: str | None = None, server: str = "home", version: str | None = None, *, list_only: bool = False
) -> str:
    return "OK"


@server.tool(description="Find lines by a regular expression.")
async def search_files(
    pattern: str,
    server: str = "home",
    glob: str | None = None,
    *,
    ignore_case: bool = False,
    max_matches: int = 100,
) -> list[str]:
    return []


@server.tool(description="The RAM cost of a script.")
async def calculate_ram(filename: str, server: str = "home") -> float:
    return 1.6


@server.tool(description="The definition file.")
async def get_netscript_definitions() -> str:
    return ""


@server.tool(description="Find functions and types of the API.")
async def search_definitions(query: str, limit: int = 8) -> list[str]:
    return []


@server.tool(description="The game's servers.")
async def list_servers() -> list[dict[str, str]]:
    return []


@server.tool(description="When a file was created and modified.")
async def get_file_metadata(filename: str | None = None, server: str = "home") -> list[dict[str, str]]:
    return []


@server.tool(description="Keep the save file.")
async def backup_save() -> str:
    return ""


@server.tool(description="Whether a game is connected.")
async def connection_status() -> dict[str, str]:
    return {}


if __name__ == "__main__":
    server.run("stdio")
