"""The page at `/` for people: how the bridges are, who uses them, and a few actions. Server-rendered HTML."""
