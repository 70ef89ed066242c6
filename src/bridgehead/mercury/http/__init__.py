"""HTTP towards the API: HTTP/1.1 and HTTP/2 on the event loop, with nothing between a socket and its reader.

So a request that is cancelled is gone at once, and a slow reader slows the sender.
"""
