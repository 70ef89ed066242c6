"""Sync: sync a folder on this machine with the game, in both directions."""
