"""Tests of `bridgehead.mcp.calls`, one noun a file."""
