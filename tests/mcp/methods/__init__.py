"""Tests of `bridgehead.mcp.methods`, one noun a file."""
