"""Bench: run agents on puzzles, headless and isolated, with this bridge as their only MCP server."""
