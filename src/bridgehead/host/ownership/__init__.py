"""Ownership: which process has a session or a task, and how a request reaches it.

A session and a running task live in the process that made them, and their ids begin with its name. `owners`
finds a process by its name, `forwarding` sends it a request, `routing` decides which requests to forward, and
`nonces` accepts a sealed state only once.
"""
