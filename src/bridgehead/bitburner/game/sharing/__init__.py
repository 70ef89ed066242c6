"""Sharing: let several processes of one user use the single connection of a game."""
