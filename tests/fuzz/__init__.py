"""Fuzzing guided by coverage: bytes for the HTTP server and for JSON-RPC, and a corpus of those that matter.

`make fuzz` searches for a while and adds what it finds to the corpus; `make test` tries the corpus.
"""
