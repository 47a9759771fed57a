"""Serving the application over HTTPS, with a certificate that may change meanwhile.

Connections that stand keep the certificate that they began with; API servers check it only when
they connect. Stopping lets what is being answered be answered.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from bayplan.admission.app import AdmissionApp
from bayplan.client.serving.connection import BoundedConnection
from bayplan.client.serving.sockets import Uvicorn

_POLL_SECONDS = 0.005
_GRACE_SECONDS = 5
_MOST_AT_ONCE = 1024
_IDLE_SECONDS = 120


@asynccontextmanager
async def serving(
    app: AdmissionApp, listener: socket.socket, tls: ssl.SSLContext
) -> AsyncIterator[None]:
    """Answer whoever connects for as long as the context lasts."""
    server = Uvicorn(_config(app, tls))
    task = asyncio.create_task(server.serve([listener]), name="webhook")
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn tells no other way
            await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        server.should_exit = True
        await task


def _config(app: AdmissionApp, tls: ssl.SSLContext) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    config.load()
    config.ssl = tls
    return config
