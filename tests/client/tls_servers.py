"""HTTPS servers with certificates of their own, and a proxy in front of them."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from aiohttp import web

from bayplan.client.serving.certificates import CertificateAuthority, KeyPair


class TlsServer:
    """Answers every GET with who asked: the certificate's user, the header, the name asked for."""

    def __init__(self, *names: str, demand_certificate: bool = False) -> None:
        self.authority = CertificateAuthority.create(datetime.now(UTC))
        self._names = list(names)
        self._demand = demand_certificate
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        self.port = 0

    @property
    def authority_pem(self) -> bytes:
        """The certificate to trust."""
        return self.authority.pair.certificate

    def user(self, name: str) -> KeyPair:
        """A client certificate."""
        return self.authority.client_pair(name, (), datetime.now(UTC))

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context()).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair = self.authority.server_pair(self._names, datetime.now(UTC))
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(file.name)
        context.load_verify_locations(cadata=self.authority_pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED if self._demand else ssl.CERT_OPTIONAL
        return context

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        shown = request.transport.get_extra_info("peercert") or {}
        subject = {key: value for part in shown.get("subject", ()) for key, value in part}
        return web.json_response(
            {
                "user": subject.get("commonName", ""),
                "authorization": request.headers.get("Authorization", ""),
                "impersonated": request.headers.getall("Impersonate-Group", []),
            }
        )


class TunnelProxy:
    """An HTTP proxy that knows CONNECT, and counts."""

    def __init__(self) -> None:
        self.tunnels: list[str] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split()[1].decode()
            self.tunnels.append(target)
            host, _, port = target.rpartition(":")
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        except (OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    finally:
        sink.transport.abort()
