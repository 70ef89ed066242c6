"""The benchmark of the mercury bridge: what it adds to a call, beside others that do the same work."""
