"""Tests of `bridgehead.mcp.stdio`, one noun a file."""
