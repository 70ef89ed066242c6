"""The host: one HTTP process that serves one or more bridges to a team.

`app.py` is the application: it finds out who asks (`auth/`), and hands the request to the view of the bridges
that this caller may use (`views.py`); health, metrics and the rest of what an operator needs are pages beside
it. `workers/` runs it, in one process or in several. Of a bridge it knows what `runtime.manifest` says.
"""
