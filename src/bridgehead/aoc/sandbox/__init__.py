"""Run untrusted programs under limits and, if bubblewrap is available, in isolation."""
