"""The audit: a line for every tool call and every refusal of a known caller, in a file or in PostgreSQL."""
