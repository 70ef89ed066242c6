"""The host: one HTTP process that serves one or more bridges to a team.

`app` is the application: it identifies the caller (`auth/`) and passes the request to the view of the bridges
that the caller may use (`views`). `pages` has health, metrics and events for operators, `dashboard/` has
the pages for people. `process` runs the application. The host depends only on a
bridge's `runtime.manifest`.
"""
