"""A real browser: the pages of the bridges in the official host, and what they look like."""
