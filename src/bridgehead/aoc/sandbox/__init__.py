"""Programs of others, run under limits and, where the system has bubblewrap, in isolation."""
