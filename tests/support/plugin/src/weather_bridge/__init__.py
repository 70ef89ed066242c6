"""A bridge of another distribution: the weather, as somebody outside of this project would offer it."""
