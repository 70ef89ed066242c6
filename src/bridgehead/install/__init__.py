"""Install: writes the bridges into the configuration files of MCP clients, and removes them again.

The core is pure: text to text (`jsonc`, `json_edit`, `toml_edit`, `edit`) and values to values (`clients`,
`entries`, `plan`). Only `files` touches the disk. A file changes in our own entries alone: comments, order,
indentation, line endings and other entries stay byte for byte.
"""
