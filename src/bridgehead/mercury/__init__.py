"""The mercury bridge: the Mercury diffusion LLM, a paid and very fast remote API, as an MCP server."""
