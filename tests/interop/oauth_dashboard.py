"""Somebody who signs in to a dashboard: `python -m tests.interop.oauth_dashboard URL look|act`.

Prints, as JSON, who they are, whether they may act, and how a code that comes again or elsewhere is answered.
"""

import json
import re
import sys
from html import unescape
from urllib.parse import urljoin

import httpx2

SECONDS = 30.0
_MOST_REDIRECTS = 12


def follow(browser: httpx2.Client, url: str) -> str:
    """Follow redirects from the host to the issuer and back, up to the page that goes on by itself."""
    for _ in range(_MOST_REDIRECTS):
        response = browser.get(url)
        if response.is_redirect:
            url = urljoin(url, response.headers["location"])
            continue
        onward = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', response.text)
        assert onward is not None, (url, response.status_code, response.text[:500])
        return urljoin(url, unescape(onward.group(1)))
    raise AssertionError("there is no end of redirects")


def main(host: str, asked: str) -> None:
    with httpx2.Client(timeout=SECONDS) as browser, httpx2.Client(timeout=SECONDS) as stranger:
        html = {"accept": "text/html"}
        for one in (browser, stranger):
            assert "Sign in with" in one.get(host, headers=html).text
        last = follow(browser, f"{host}/dashboard/oauth/start?to={asked}")
        elsewhere = stranger.get(last)
        entered = browser.get(last)
        assert entered.status_code == 303, (entered.status_code, entered.text[:1000])
        page = browser.get(host, headers=html).text
        clients = browser.get(f"{host}/dashboard/clients").text
        again = browser.get(last)
    who = re.search(r'class="who">([^<]+)<', page)
    told = {
        "asked": asked,
        "who": who.group(1) if who else "",
        "acts": "Sign in again to act" not in clients,
        "again": again.status_code,
        "stranger": elsewhere.status_code,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
