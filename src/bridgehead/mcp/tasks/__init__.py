"""Tasks: tool calls that outlive their request (the extension `io.modelcontextprotocol/tasks`).

`record` is a task as it is kept, `store` where it is kept, `run` one that is being worked on here, `manager`
all of them, `methods` what clients ask. Nothing of it is imported before a client or a tool needs it.
"""
