"""The measured servers: each file is the same one-tool echo server, as its library wants it written.

Every one is started as `FILE stdio` or `FILE http PORT` and listens on loopback only.
"""
