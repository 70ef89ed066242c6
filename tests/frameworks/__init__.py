"""Agent frameworks as clients, each in an environment of its own, with the snippet that its page shows."""
