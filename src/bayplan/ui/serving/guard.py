"""Who may see the page: only GET and HEAD, only under a name of ours, only with the token.

A page of another site can make a browser on this machine send requests here under that site's own
name (DNS rebinding), so the Host header must be a name that is ours: an address, localhost, or what
was said to be. Where the server listens for others than this machine a token is needed; it comes
once in the address, and is then a cookie that no script can read and no other site can send.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from aiohttp import web

from bayplan.ui.serving.headers import SECURITY

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ALLOWED = ("GET", "HEAD")
TOKEN_BYTES = 24
MOST_HOST = 300


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def refusal(status: int, text: str) -> web.Response:
    """An error as the page reads it."""
    body = msgspec.json.encode({"error": text})
    return web.Response(body=body, status=status, content_type="application/json")


@dataclass(frozen=True, slots=True)
class Guard:
    """What is asked of every request."""

    token: str = ""
    """Empty if none is needed."""
    names: frozenset[str] = frozenset()
    """Further names under which the page is served."""
    cookie: str = "bayplan"

    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what may not be asked, or by whom."""
        if request.method not in ALLOWED:
            answer = refusal(405, "this server only shows: GET and HEAD")
            answer.headers["Allow"] = ", ".join(ALLOWED)
            return answer
        if not self._is_ours(request.host):
            return refusal(421, "this name is not one of this server's; see --host-name")
        if self.token and (offered := request.query.get("token")) and request.path == "/":
            return self._let_in(offered)
        if self.token and not self._is_let_in(request):
            return refusal(401, "a token is needed: open the address that the command printed")
        return await handler(request)

    def _is_ours(self, host: str) -> bool:
        name = _without_port(host[:MOST_HOST]).lower()
        if name == "localhost" or name.endswith(".localhost") or name in self.names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _let_in(self, offered: str) -> web.Response:
        if not _equal(offered, self.token):
            return refusal(401, "that is not the token of this server")
        answer = web.Response(status=303, headers={"Location": "./"})
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict")
        return answer

    def _is_let_in(self, request: web.Request) -> bool:
        bearer = request.headers.get("Authorization", "")
        said = (request.cookies.get(self.cookie, ""), bearer.removeprefix("Bearer "))
        return sum(_equal(one, self.token) for one in said) > 0


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Say on every answer what a browser may do with it."""
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
