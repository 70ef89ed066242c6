"""Install: writes the bridges into the configuration files of MCP clients, and takes them out again.

The core takes text and gives text (`jsonc`, `json_edit`, `toml_edit`, `edit`), or values and gives values
(`clients`, `entries`, `plan`); files are touched in `files` alone. Nothing of a file changes but our
own entries: comments, order, indentation, line endings and what others wrote stay byte for byte.
"""
