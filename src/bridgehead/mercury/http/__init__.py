"""HTTP towards the API: one interface, and two transports behind it.

`pool` is ours: HTTP/1.1 on the event loop, with nothing between a socket and its reader, so that a cancelled
request is gone at once and a slow reader slows the sender. `http2` speaks HTTP/2 through pyreqwest.
"""
