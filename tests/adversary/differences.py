"""Differences: the cases that our server judges unlike every peer, each with its reason."""

DIFFERENCES: dict[str, str] = {
    "connect": "no tunnel is made: it is a request like any other, and its target is a path that nobody has",
    "two tokens": "who sends two tokens may be two clients behind one proxy: the connection is given up",
    "two origins": "the same",
    "upgrade to a websocket": "an offer need not be taken up (RFC 9110, 7.8): the request is served as it is",
    "header of a hundred thousand": "a head has at most 64 KiB, so that a thousand connections stay cheap",
    "target of a hundred thousand": "the same; the peers that refuse it say 400 and 414",
}
