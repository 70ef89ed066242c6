"""Tests of the protocol engine, one noun a file, as in `bridgehead.mcp`."""
