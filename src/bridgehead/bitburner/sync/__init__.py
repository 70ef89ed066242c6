"""Sync: keep a folder on this machine and the files of the game in step, in both directions."""
