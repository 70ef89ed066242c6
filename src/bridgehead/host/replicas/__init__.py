"""Replicas: hosts on several machines that act as one, coordinated through Redis."""
