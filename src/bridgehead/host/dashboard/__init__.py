"""The dashboard at `/`, server-rendered: the state of the bridges, their callers, and a few actions."""
