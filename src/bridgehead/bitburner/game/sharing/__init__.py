"""Sharing: how several processes of one user work with the one connection that a game makes."""
