"""Replicas: hosts on several machines that a client cannot tell from one, agreeing through Redis."""
