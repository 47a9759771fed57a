"""Access to the page: only GET and HEAD, only known host names, only with the token.

A page of another site can make a browser on this machine send requests here under that site's own
name (DNS rebinding), so the Host header must be a known name: an address, localhost, or a
configured one. If the server listens on other than local addresses, a token is needed; it comes
once in the address and is then a cookie that no script can read and no other site can send.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from aiohttp import web

from bayplan.ui.server.headers import SECURITY

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ALLOWED = ("GET", "HEAD")
TOKEN_BYTES = 24
MAX_HOST = 300


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def refusal(status: int, text: str) -> web.Response:
    """Return an error in the format of the page."""
    body = msgspec.json.encode({"error": text})
    return web.Response(body=body, status=status, content_type="application/json")


@dataclass(frozen=True, slots=True)
class Guard:
    """The checks of every request."""

    token: str = ""
    """Empty if none is needed."""
    names: frozenset[str] = frozenset()
    """Additional host names of the page."""
    cookie: str = "bayplan"

    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests that are not allowed."""
        if request.method not in ALLOWED:
            answer = refusal(405, "only GET and HEAD are allowed")
            answer.headers["Allow"] = ", ".join(ALLOWED)
            return answer
        if not self._is_known_host(request.host):
            return refusal(421, "unknown host name; see --host-name")
        if self.token and (offered := request.query.get("token")) and request.path == "/":
            return self._authenticate(offered)
        if self.token and not self._is_authenticated(request):
            return refusal(401, "a token is required: open the address that the command printed")
        return await handler(request)

    def _is_known_host(self, host: str) -> bool:
        name = _without_port(host[:MAX_HOST]).lower()
        if name == "localhost" or name.endswith(".localhost") or name in self.names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _authenticate(self, offered: str) -> web.Response:
        if not _equal(offered, self.token):
            return refusal(401, "wrong token")
        answer = web.Response(status=303, headers={"Location": "./"})
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict")
        return answer

    def _is_authenticated(self, request: web.Request) -> bool:
        bearer = request.headers.get("Authorization", "")
        tokens = (request.cookies.get(self.cookie, ""), bearer.removeprefix("Bearer "))
        return sum(_equal(token, self.token) for token in tokens) > 0


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the security headers to every response."""
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
