"""The subcommands of `bridgehead`. Each is a module with `parser()` and `main(arguments, environment)`."""

COMMANDS: dict[str, tuple[str, str]] = {
    "install": ("bridgehead.install.command", "write bridges into an MCP client's configuration"),
    "serve": ("bridgehead.host.command", "serve bridges over HTTP, to a team"),
    "token": (
        "bridgehead.host.auth.token_command",
        "add, change, rotate and revoke the tokens of a team",
    ),
    "audit": ("bridgehead.host.audit.command", "find tool calls: who called what, when, and how it ended"),
    "db": ("bridgehead.commands.db", "make and check the tables in PostgreSQL"),
    "doctor": ("bridgehead.commands.doctor", "check the installation and say how to fix what is wrong"),
    "tools": ("bridgehead.commands.tools", "list the tools of the bridges"),
    "check": ("bridgehead.commands.check", "try a bridge and list what is wrong with it"),
    "call": ("bridgehead.commands.call", "call a tool"),
    "demo": ("bridgehead.commands.demo", "show each bridge at work, offline"),
    "new": ("bridgehead.commands.new", "make a project with a bridge of your own"),
    "dev": ("bridgehead.commands.dev", "serve a bridge while you write it, and show the traffic"),
    "uninstall": ("bridgehead.commands.uninstall", "list what was made on this machine, and remove it"),
    "completion": ("bridgehead.commands.completion", "print a shell completion script"),
}
"""Command to its module and its line in the help. Modules are imported only when their command runs."""
