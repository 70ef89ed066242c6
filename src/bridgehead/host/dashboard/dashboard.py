"""Dashboard: answers browsers. Identifies the visitor, collects the state of this process, runs actions.

State is collected only for a page that is requested; the history reads the counters every few seconds. The
pages are computed in `overview` and `clients` and rendered from `templates/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, quote

from bridgehead.mcp.http.message import Handler, Request, Response
from bridgehead.mcp.http.rejection import Rejection
from bridgehead.runtime import events, logs, plugins
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Report
from bridgehead.runtime.timing import Clock

from ..audit.trail import AuditStore
from ..auth.grants import Grant
from ..auth.rejection import HostRejection, reject_method, reject_path
from ..auth.tokens import Tokens, TokenStore
from ..ownership.forwarding import END_SESSION as PEER_END_SESSION
from ..ownership.forwarding import Peers
from ..registry import BridgeStatus, Registry
from ..request import HostRequest
from . import calls, clients, connect, layout, overview
from .history import QUARTER, RANGES, History, Range
from .layout import Page
from .listing import Listing
from .oauth_sign_in import OAuthSignIn, read_answer, write_landing
from .sign_in import BrowserSession, Form, SignIn, is_cross_site
from .snapshot import SnapshotCollector
from .templates import link, mount

REPORT_SECONDS = 3.0
"""Longest wait for a bridge's report on its far side."""
KEEP_SECONDS = 4.0
"""How long a report is cached."""
_NOT_FOUND = 404

log = logs.logger("host.dashboard")


class Dashboard:
    """The dashboard of one process."""

    def __init__(
        self,
        registry: Registry,
        sign_in: SignIn,
        collector: SnapshotCollector,
        history: History,
        clock: Clock,
        *,
        count_rejection: Callable[[str], None],
        tokens: Tokens | None = None,
        token_store: TokenStore | None = None,
        peers: Peers | None = None,
        audit: AuditStore | None = None,
        oauth: OAuthSignIn | None = None,
        public_url: str | None = None,
    ) -> None:
        self._registry = registry
        self._sign_in = sign_in
        self._collector = collector
        self._history = history
        self._clock = clock
        self._count_rejection = count_rejection
        self._tokens = tokens
        self._token_store = token_store
        self._peers = peers
        self._audit = audit
        """None if calls are not audited."""
        self._oauth = oauth
        """None if people cannot sign in at an authorisation server."""
        self._public_url = (public_url or "").rstrip("/")
        self._paths = frozenset(layout.list_paths(with_oauth=oauth is not None))
        self._reports: dict[str, tuple[float, Report]] = {}
        self._pages = {
            layout.OVERVIEW: self._show_overview,
            layout.BRIDGE: self._show_bridge,
            layout.CLIENTS: self._show_clients,
            layout.FAILURES: self._show_failures,
            layout.CALLS: self._show_calls,
            layout.REVOKE: self._ask_to_revoke,
        }
        self._actions: dict[
            str, Callable[[HostRequest, BrowserSession, Grant, Form], Awaitable[Page | Response]]
        ] = {
            layout.REVOKE: self._revoke,
            layout.END_SESSION: self._end_session,
        }

    # --- background and other replicas ----------------------------------------------------------------------

    async def run(self) -> None:
        """Record calls and notices in the history until cancelled."""
        events.feed.join(self._history.notices)
        try:
            bridges = {name: status.metrics for name, status in self._registry.statuses.items()}
            await self._history.run(bridges)
        finally:
            events.feed.leave(self._history.notices)

    @property
    def own_answers(self) -> dict[str, Handler]:
        """Handlers of the paths that only other replicas may call."""

        async def end_session(request: Request) -> Response:
            has_ended = self._collector.end_session(request.query.decode("latin-1"))
            return Response(200, b"ended" if has_ended else b"")

        return {PEER_END_SESSION: end_session}

    # --- requests ------------------------------------------------------------------------------------------

    async def answer(self, request: HostRequest) -> Response:
        """Answer a browser. A client that does not accept HTML gets 404 at `/` and at unknown paths."""
        mount.set(request.http.mount)
        is_page = request.path != layout.OVERVIEW and request.path in self._paths
        if not is_page and b"text/html" not in request.headers.get(b"accept", b""):
            request.route = "other"
            raise reject_path(request.path)
        if request.path in layout.FILES:
            if request.method not in {"GET", "HEAD"}:
                raise reject_method(request.method, b"GET")
            return layout.serve_file(request.path)
        if self._oauth is not None and request.path == layout.OAUTH_CALLBACK:
            return layout.render_forward(write_landing(read_query(request)))
        # A link on another site led here, so the browser withheld our strict cookies. Answer with a page that
        # forwards to the same address: that request has them, so nobody has to sign in again.
        if is_cross_site(request):
            onward = link(request.path, **read_query(request))
            return layout.render_forward(layout.write_forward("Bridgehead", onward))
        session = await self._sign_in.identify(request)
        try:
            page = await (
                self._post(request, session) if request.method == "POST" else self._get(request, session)
            )
        except Rejection as rejection:
            request.reason = getattr(rejection, "reason", "") or "request"
            self._count_rejection(request.reason)
            status, message = rejection.response.status, rejection.error.message
            if session.grant is None:
                page = self._ask_to_sign_in(session, message, status)
            else:
                title = "Not found" if status == _NOT_FOUND else "Not possible"
                page = layout.write_problem(title, message, status)
        except BridgeError as failure:
            page = layout.write_problem("That did not work", str(failure), 500)
        if isinstance(page, Response):
            return page
        grant = session.grant
        return layout.render(
            page,
            visitor=grant.name if grant is not None else None,
            proof=session.proof,
            cookies=session.cookies,
            is_signed_in=grant is not None,
        )

    async def _get(self, request: HostRequest, session: BrowserSession) -> Page | Response:
        if request.method not in {"GET", "HEAD"}:
            raise reject_method(request.method, b"GET, POST")
        if self._oauth is not None and request.path in layout.OAUTH_PAGES:
            return await self._sign_in_elsewhere(self._oauth, request, session)
        grant = session.grant
        if grant is None:
            if request.path != layout.OVERVIEW:
                return layout.redirect(layout.OVERVIEW, session.cookies)
            return self._ask_to_sign_in(session)
        request.grant = grant
        _check_look(grant)
        if request.path.rstrip("/") not in {"", *self._paths}:
            raise reject_path(request.path)
        show = self._pages.get(request.path)
        return await show(request, session, grant) if show else layout.redirect(layout.OVERVIEW)

    async def _post(self, request: HostRequest, session: BrowserSession) -> Page | Response:
        form = await self._sign_in.read_form(request)
        if request.path == layout.SIGN_IN:
            return await self._open_session(request, form.get("token", "").strip())
        if request.path == layout.SIGN_OUT:
            return layout.redirect(layout.OVERVIEW, await self._sign_in.sign_out(request, session))
        grant = session.grant
        if grant is None:
            raise HostRejection(401, "Sign in first.", "token_missing")
        request.grant = grant
        _check_look(grant)
        act = self._actions.get(request.path)
        if act is None:
            raise reject_method("POST", b"GET")
        return await act(request, session, grant, form)

    def _ask_to_sign_in(self, session: BrowserSession, problem: str = "", status: int = 200) -> Page:
        issuer = "" if self._oauth is None else self._oauth.issuer_name
        return clients.write_sign_in(session.proof, problem, status, issuer=issuer)

    async def _sign_in_elsewhere(
        self, oauth: OAuthSignIn, request: HostRequest, session: BrowserSession
    ) -> Response:
        """Redirect a browser to the authorisation server, or sign it in when it comes back."""
        query = read_query(request)
        if request.path == layout.OAUTH_START:
            url = await oauth.begin(request, session.page, acts=query.get("to") == "act")
            return layout.redirect(url, session.cookies)
        if request.method != "GET":  # a HEAD would use up the code of the answer
            raise reject_method(request.method, b"GET")
        token = await oauth.finish(request, session.page, read_answer(query))
        return await self._open_session(request, token)

    async def _open_session(self, request: HostRequest, token: str) -> Response:
        if not token:
            raise HostRejection(400, "Enter a token.", "token_missing")
        request.grant, cookie = await self._sign_in.sign_in(request, token)
        log.info("signed in", client=request.grant.name, address=request.address)
        return layout.redirect(layout.OVERVIEW, (cookie,))

    # --- pages ---------------------------------------------------------------------------------------------

    async def _report(self, status: BridgeStatus) -> Report | None:
        """Return a bridge's report on its far side, cached for `KEEP_SECONDS`; None if it has none."""
        make_report, bridge = status.manifest.report, status.bridge
        if make_report is None or bridge is None or status.problem:
            return None
        # Cached, because every open page asks again every few seconds and a report may ask the far side.
        cached = self._reports.get(status.name)
        if cached is not None and self._clock.monotonic() < cached[0]:
            return cached[1]
        lifespan = self._registry.lifespans[bridge]
        if not lifespan.ready:
            return None
        report = Report()
        try:
            async with asyncio.timeout(REPORT_SECONDS):
                report = await make_report(lifespan.value)
        except Exception as failure:  # noqa: BLE001  (a page never fails for a bridge)
            log.warn("a bridge could not report on its connection", bridge=status.name, problem=repr(failure))
        self._reports[status.name] = (self._clock.monotonic() + KEEP_SECONDS, report)
        return report

    async def _show_overview(self, request: HostRequest, _session: BrowserSession, grant: Grant) -> Page:
        readable = [status for name, status in self._registry.statuses.items() if grant.may_read(name)]
        reports = await asyncio.gather(*map(self._report, readable))
        by_bridge = {
            status.name: report
            for status, report in zip(readable, reports, strict=True)
            if report is not None
        }
        shown = _read_range(request)
        return overview.write_overview(self._collector.collect(shown.name), by_bridge, grant, shown)

    async def _show_bridge(self, request: HostRequest, _session: BrowserSession, grant: Grant) -> Page:
        name = read_query(request).get("name", "")
        status = self._registry.statuses.get(name)
        if status is None or not grant.may_read(name):
            raise HostRejection(404, "There is no such bridge, or your token does not open it.", "path")
        shown = _read_range(request)
        snapshot = self._collector.collect(shown.name)
        state = next(bridge for bridge in snapshot.bridges if bridge.name == name)
        return overview.write_bridge(snapshot, state, await self._report(status), shown)

    async def _show_clients(self, request: HostRequest, session: BrowserSession, grant: Grant) -> Page:
        has_tokens = self._tokens is not None and (self._sign_in.is_needed or len(self._tokens) > 0)
        listed = self._tokens.listed if self._tokens is not None and has_tokens else None
        # Signing in again can add a right only with OAuth; the rights of one of our tokens are fixed.
        may_ask = self._oauth is not None and self._sign_in.is_needed and not (grant.admin or grant.token_id)
        query = read_query(request)
        client = query.get("client", connect.FIRST)
        if client not in connect.CLIENTS:
            message = f"There is no client {client!r}. Use one of: {', '.join(connect.CLIENTS)}."
            raise HostRejection(400, message, "request")
        return clients.write_clients(
            self._collector.collect(),
            listed,
            session.proof,
            Listing(layout.CLIENTS, query),
            connect=connect.list_commands(
                self._list_endpoints(request), client, needs_token=self._sign_in.is_needed
            ),
            owner="" if self._peers is None else self._peers.owners.name,
            may_act=grant.admin,
            may_ask=may_ask,
        )

    def _list_endpoints(self, request: HostRequest) -> list[connect.ServerAddress]:
        """Return the addresses of all bridges together and of each, as this visitor reaches the server."""
        host = request.headers.get(b"host", b"").decode("latin-1")
        base = self._public_url or f"{request.scheme}://{host}{request.http.mount}"
        known = plugins.built_in_names()
        return [
            connect.ServerAddress("All bridges", f"{base}/mcp"),
            *(
                connect.ServerAddress(
                    status.manifest.title, f"{base}/{name}/mcp", name="" if name in known else name
                )
                for name, status in self._registry.statuses.items()
            ),
        ]

    async def _show_failures(self, request: HostRequest, _session: BrowserSession, grant: Grant) -> Page:
        listing = Listing(layout.FAILURES, read_query(request))
        return clients.write_problems(self._collector.collect(), grant, listing)

    async def _show_calls(self, request: HostRequest, _session: BrowserSession, grant: Grant) -> Page:
        if self._audit is None:
            raise HostRejection(404, "Calls are not audited: BRIDGEHEAD_AUDIT_DAYS is 0.", "path")
        return await calls.write_calls(self._audit, read_query(request), grant, self._clock.now())

    # --- actions -------------------------------------------------------------------------------------------

    async def _ask_to_revoke(self, request: HostRequest, session: BrowserSession, grant: Grant) -> Page:
        _check_act(grant)
        return clients.ask_to_revoke(self._find_token(read_query(request).get("name", "")), session.proof)

    async def _revoke(
        self, request: HostRequest, _session: BrowserSession, grant: Grant, form: Form
    ) -> Response:
        _check_act(grant)
        name = self._find_token(form.get("name", ""))
        if self._token_store is not None and self._tokens is not None:
            await asyncio.to_thread(self._token_store.revoke, name)  # a store blocks
            self._tokens.refresh()  # this process at once; the others notice by themselves
        log.info("a token was revoked", token=name, client=grant.name, address=request.address)
        return layout.redirect(layout.CLIENTS)

    def _find_token(self, name: str) -> str:
        if self._tokens is None or all(token.grant.name != name for token in self._tokens.listed):
            raise HostRejection(404, "Token not found. It may have been revoked.", "path")
        return name

    async def _end_session(
        self, request: HostRequest, _session: BrowserSession, grant: Grant, form: Form
    ) -> Response:
        _check_act(grant)
        handle, owner = form.get("handle", ""), form.get("owner", "")
        has_ended = handle.isalnum() and self._collector.end_session(handle)
        # The form may reach another replica than the page's. The name only selects one that Redis knows, so a
        # form cannot choose the address or the path of our request.
        if self._peers is not None and not has_ended and handle.isalnum():
            has_ended = bool(await self._peers.ask(owner, f"{PEER_END_SESSION}?{quote(handle)}"))
        if not has_ended:
            raise HostRejection(404, "Session not found. It may have ended.", "session")
        log.info("a session was ended", session=handle, client=grant.name, address=request.address)
        return layout.redirect(layout.CLIENTS)


def read_query(request: HostRequest) -> dict[str, str]:
    """Return the parameters of the address."""
    try:
        return dict(parse_qsl(request.http.query.decode("latin-1"), max_num_fields=20))
    except ValueError:
        raise HostRejection(400, "The address has too many parameters.", "request") from None


def _read_range(request: HostRequest) -> Range:
    """Return the range of the charts that the address names."""
    name = read_query(request).get("range", QUARTER.name)
    if name not in RANGES:
        message = f"There is no range {name!r}. Use one of: {', '.join(RANGES)}."
        raise HostRejection(400, message, "request")
    return RANGES[name]


def _check_look(grant: Grant) -> None:
    if not grant.may_look:
        raise HostRejection(403, "Your token does not open the dashboard any more.", "grant")


def _check_act(grant: Grant) -> None:
    if not grant.admin:
        message = "Your token may look but not act. Ask the server's operator for one with --admin."
        raise HostRejection(403, message, "grant")
