"""Tasks: tool calls that outlive their request (the extension `io.modelcontextprotocol/tasks`).

`record` is the stored form of a task, `store` keeps records, `run` is a task that this process runs, and
`manager` has all of them; `methods.tasks` answers clients. Nothing is imported before a client or a tool
needs it.
"""
