"""Cases: bytes that clients, proxies and attackers send, by name. Every one is followed by a good request.

So a server that has lost count of where a request ends shows it: the last response is not the one to `/end`.
"""

END = b"GET /end HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_HOST = b"Host: localhost\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"


def _get(*lines: bytes, target: bytes = b"/x", version: bytes = b"HTTP/1.1", method: bytes = b"GET") -> bytes:
    return b"%b %b %b\r\n%b%b\r\n" % (
        method,
        target,
        version,
        _HOST,
        b"".join(line + b"\r\n" for line in lines),
    )


def _post(headers: bytes, body: bytes, version: bytes = b"HTTP/1.1") -> bytes:
    return b"POST /x %b\r\n%b%b\r\n%b" % (version, _HOST, headers, body)


def _length(value: bytes, body: bytes = b"abcde") -> bytes:
    return _post(b"Content-Length:%b\r\n" % value, body)


def _chunks(body: bytes, headers: bytes = _CHUNKED) -> bytes:
    return _post(headers, body)


GOOD = {
    "get": _get(),
    "post": _length(b" 5"),
    "post without body": _length(b" 0", b""),
    "chunked": _chunks(b"5\r\nabcde\r\n0\r\n\r\n"),
    "two gets": _get() + _get(target=b"/y"),
    "two posts": _length(b" 5") + _length(b" 5"),
    "head": _get(method=b"HEAD"),
    "empty lines before": b"\r\n\r\n" + _get(),
    "percent path": _get(target=b"/%78?a=%20b"),
    "absolute target": _get(target=b"http://localhost/x"),
    "no space behind the colon": _get(b"X-A:b"),
    "spaces around a value": _get(b"X-A:   b  \t "),
    "empty value": _get(b"X-A:"),
    "value above ascii": _get(b"X-A: caf\xe9"),
    "chunk extension": _chunks(b"5;a=b\r\nabcde\r\n0\r\n\r\n"),
    "trailer": _chunks(b"5\r\nabcde\r\n0\r\nX-T: 1\r\n\r\n"),
    "chunk size in capitals": _chunks(b"A\r\nabcdefghij\r\n0\r\n\r\n"),
    "chunk size with zeros": _chunks(b"0005\r\nabcde\r\n000\r\n\r\n"),
    "many small chunks": _chunks(b"1\r\na\r\n" * 50 + b"0\r\n\r\n"),
    "transfer coding in capitals": _chunks(b"5\r\nabcde\r\n0\r\n\r\n", b"Transfer-Encoding: CHUNKED\r\n"),
    "unknown method": _get(method=b"PATCH"),
    "options": _get(method=b"OPTIONS"),
    "long header": _get(b"X-A: " + b"y" * 8000),
    "sixty headers": _get(*[b"X-%d: y" % number for number in range(60)]),
}

LENGTHS = {
    "length of a minus": _length(b" -5"),
    "length with a plus": _length(b" +5"),
    "length in hex": _length(b" 0x5"),
    "length with a word": _length(b" many"),
    "length of nothing": _length(b""),
    "length with a space in it": _length(b" 5 5"),
    "length with a comma, the same": _length(b" 5, 5"),
    "length with a comma, another": _length(b" 5, 6"),
    "length twice, the same": _post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"abcde"),
    "length twice, another": _post(b"Content-Length: 5\r\nContent-Length: 6\r\n", b"abcde"),
    "length beyond sixty-four bits": _length(b" 99999999999999999999999"),
    "length with zeros": _length(b" 0005"),
    "length with a point": _length(b" 5.0"),
    "length and chunks": _post(b"Content-Length: 5\r\n" + _CHUNKED, b"5\r\nabcde\r\n0\r\n\r\n"),
    "chunks and length": _post(_CHUNKED + b"Content-Length: 5\r\n", b"5\r\nabcde\r\n0\r\n\r\n"),
    "get with a length": b"GET /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde",
}

CODINGS = {
    name: _chunks(b"5\r\nabcde\r\n0\r\n\r\n", b"Transfer-Encoding:%b\r\n" % value)
    for name, value in {
        "coding twice in one": b" chunked, chunked",
        "coding gzip and chunked": b" gzip, chunked",
        "coding chunked and gzip": b" chunked, gzip",
        "coding with a letter before": b" xchunked",
        "coding with a letter behind": b" chunkedx",
        "coding identity": b" identity",
        "coding of nothing": b"",
        "coding behind a tab": b"\tchunked",
        "coding behind a vertical tab": b" \x0bchunked",
        "coding in quotes": b' "chunked"',
        "coding with a semicolon": b" chunked;a=b",
        "coding with a null": b" chunked\x00",
        "coding with a comma before": b" ,chunked",
    }.items()
} | {
    "coding in two headers": _chunks(b"5\r\nabcde\r\n0\r\n\r\n", _CHUNKED + _CHUNKED),
    "coding and identity": _chunks(b"5\r\nabcde\r\n0\r\n\r\n", _CHUNKED + b"Transfer-Encoding: identity\r\n"),
    "coding of the old version": _post(_CHUNKED, b"5\r\nabcde\r\n0\r\n\r\n", b"HTTP/1.0"),
    "coding with a space before the colon": _chunks(
        b"5\r\nabcde\r\n0\r\n\r\n", b"Transfer-Encoding : chunked\r\n"
    ),
    "coding with an underscore": _post(b"Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", b"abcde"),
    "coding folded": _chunks(b"5\r\nabcde\r\n0\r\n\r\n", b"Transfer-Encoding:\r\n chunked\r\n"),
}

CHUNKS = {
    name: _chunks(body)
    for name, body in {
        "chunk size of a letter": b"g\r\nabcde\r\n0\r\n\r\n",
        "chunk size with a minus": b"-5\r\nabcde\r\n0\r\n\r\n",
        "chunk size with a plus": b"+5\r\nabcde\r\n0\r\n\r\n",
        "chunk size with a prefix": b"0x5\r\nabcde\r\n0\r\n\r\n",
        "chunk size behind a space": b" 5\r\nabcde\r\n0\r\n\r\n",
        "chunk size before a space": b"5 \r\nabcde\r\n0\r\n\r\n",
        "chunk size of nothing": b"\r\nabcde\r\n0\r\n\r\n",
        "chunk size that overflows": b"ffffffffffffffffff\r\nabcde\r\n0\r\n\r\n",
        "chunk size with an underscore": b"0_5\r\nabcde\r\n0\r\n\r\n",
        "chunk with no end": b"5\r\nabcde0\r\n\r\n",
        "chunk that is longer": b"5\r\nabcdefg\r\n0\r\n\r\n",
        "chunk lines of one sign": b"5\nabcde\n0\n\n",
        "chunk ends with a carriage return": b"5\rabcde\r0\r\r",
        "chunk extension with a line feed": b"5;a\nb\r\nabcde\r\n0\r\n\r\n",
        "chunk extension with a quote": b'5;a="\r\nabcde\r\n0\r\n\r\n',
        "last chunk with data": b"0\r\nabc\r\n\r\n",
        "trailer without a colon": b"5\r\nabcde\r\n0\r\nbad trailer\r\n\r\n",
        "trailer that would be a header": b"5\r\nabcde\r\n0\r\nContent-Length: 100\r\n\r\n",
    }.items()
}

HEADS = {
    "no version": b"GET /x\r\n\r\n",
    "version 0.9": _get(version=b"HTTP/0.9"),
    "version 1.0": _get(version=b"HTTP/1.0"),
    "version 1.0 kept alive": _get(b"Connection: keep-alive", version=b"HTTP/1.0"),
    "version 1.2": _get(version=b"HTTP/1.2"),
    "version 2.0": _get(version=b"HTTP/2.0"),
    "version 11": _get(version=b"HTTP/11"),
    "version in small letters": _get(version=b"http/1.1"),
    "version of another protocol": _get(version=b"RTSP/1.0"),
    "version with more behind": _get(version=b"HTTP/1.1x"),
    "two spaces": b"GET  /x HTTP/1.1\r\n" + _HOST + b"\r\n",
    "a tab for a space": b"GET\t/x\tHTTP/1.1\r\n" + _HOST + b"\r\n",
    "no target": b"GET HTTP/1.1\r\n" + _HOST + b"\r\n",
    "target without a slash": _get(target=b"x"),
    "target of a star": _get(target=b"*", method=b"OPTIONS"),
    "target with a space": _get(target=b"/a b"),
    "target with a null": _get(target=b"/a\x00b"),
    "target above ascii": _get(target=b"/caf\xc3\xa9"),
    "target with a fragment": _get(target=b"/x#y"),
    "target with two slashes": _get(target=b"//x"),
    "target that goes up": _get(target=b"/../../x"),
    "connect": _get(target=b"localhost:80", method=b"CONNECT"),
    "trace": _get(method=b"TRACE"),
    "method in small letters": _get(method=b"get"),
    "method with a sign": _get(method=b"GE(T"),
    "method that is long": _get(method=b"X" * 300),
    "preface of the second version": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "hello of tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "nulls": b"\x00" * 16,
    "words": b"this is not HTTP\r\n\r\n",
    "header without a colon": _get(b"X-A"),
    "header with a space before the colon": _get(b"X-A : b"),
    "header without a name": _get(b": b"),
    "header name with a sign": _get(b"X(A): b"),
    "header name with a null": _get(b"X\x00A: b"),
    "header name above ascii": _get(b"X\xe9A: b"),
    "header value with a null": _get(b"X-A: b\x00c"),
    "header value with a carriage return": _get(b"X-A: b\rX-B: c"),
    "header value with a bell": _get(b"X-A: b\x07c"),
    "header folded": _get(b"X-A: b\r\n c"),
    "first header folded": b"GET /x HTTP/1.1\r\n " + _HOST + b"\r\n",
    "lines end with a line feed": b"GET /x HTTP/1.1\nHost: localhost\n\n",
    "lines end with a carriage return": b"GET /x HTTP/1.1\rHost: localhost\r\r",
    "no host": b"GET /x HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /x HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    "two equal hosts": b"GET /x HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "two tokens": _get(b"Authorization: Bearer a", b"Authorization: Bearer b"),
    "two origins": _get(b"Origin: http://localhost", b"Origin: http://evil.example"),
    "upgrade to a websocket": _get(b"Connection: Upgrade", b"Upgrade: websocket"),
    "upgrade to the second version": _get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c"),
    "expect something else": _post(b"Expect: 200-ok\r\nContent-Length: 5\r\n", b"abcde"),
    "close and another": _get(b"Connection: close") + _get(target=b"/y"),
    "two hundred headers": _get(*[b"X-%d: y" % number for number in range(200)]),
    "header of a hundred thousand": _get(b"X-A: " + b"y" * 100_000),
    "target of a hundred thousand": _get(target=b"/" + b"y" * 100_000),
    "garbage behind a good one": _get() + b"garbage\r\n\r\n",
    "garbage behind two good ones": _get() + _length(b" 5") + b"\x00\x01garbage",
}

CASES: dict[str, bytes] = {**GOOD, **LENGTHS, **CODINGS, **CHUNKS, **HEADS}
