"""Serving the application over HTTPS, with a certificate that may change meanwhile.

Connections that stand keep the certificate that they began with; API servers check it only when
they connect. Stopping lets what is being answered be answered.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bayplan.admission.app import AdmissionApp
from bayplan.client.serving.sockets import Uvicorn, https

_GRACE_SECONDS = 5
_MOST_AT_ONCE = 1024


@asynccontextmanager
async def serving(
    app: AdmissionApp, listener: socket.socket, tls: ssl.SSLContext
) -> AsyncIterator[None]:
    """Answer whoever connects for as long as the context lasts."""
    server = Uvicorn(https(app, tls, grace_seconds=_GRACE_SECONDS, most_at_once=_MOST_AT_ONCE))
    task = await server.begin(listener, "webhook")
    try:
        yield
    finally:
        server.end()
        await task
