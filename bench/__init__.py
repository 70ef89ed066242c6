"""The benchmark: one echo tool, served by Bridgehead and by its peers, measured the same way."""
