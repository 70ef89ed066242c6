"""Tools: what an agent calls, one noun a file: typed arguments, declaration, wording."""
