"""Tasks: tool calls that outlive their request (the extension `io.modelcontextprotocol/tasks`).

`record` is a task as it is stored, `store` where it is stored, `run` a task that runs here, `manager` all of
them, `methods` the requests of clients. Nothing is imported before a client or a tool needs it.
"""
