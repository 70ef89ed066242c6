"""The runtime: what the bridges share, tested with real files and processes."""
