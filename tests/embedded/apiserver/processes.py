"""A server as a process of its own, that can be killed or run out of room, and plain clients."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

COMMAND = str(Path(sys.executable).with_name("bayplan"))
_BLOCK = 512
"""Bytes in which the shell counts the largest file."""

ConnectionMode = Literal["keep-alive", "close", "HTTP/1.0"]
"""How a client deals with its connection."""
CONNECTION_MODES: tuple[ConnectionMode, ...] = ("keep-alive", "close", "HTTP/1.0")


class ServerGone(Exception):  # noqa: N818 - what the tests wait for
    """The server is gone."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server listens, and how to get in."""

    host: str
    port: int
    token: str
    tls: ssl.SSLContext


class Process:
    """`bayplan apiserver` with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def start(self, most_bytes: int = 0) -> ServerAddress:
        """Start it on the same data; with a bound, no file of it can become larger."""
        config = self._folder / "kubeconfig"
        data = ("--data", str(self._folder / "data.db"), "--kubeconfig", str(config))
        limit = str(most_bytes // _BLOCK) if most_bytes else "unlimited"
        self._process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", 'ulimit -f "$0" && exec "$@"', limit, COMMAND, "apiserver", *data),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        assert (await self._process.stdout.readline()).startswith(b"serving")
        return _address(yaml.safe_load(config.read_text()))

    async def kill(self) -> None:
        """End it at once."""
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def ended(self) -> int:
        """Its exit code, once it has ended by itself."""
        return await self._process.wait()


def _address(config: dict[str, Any]) -> ServerAddress:
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
    token = config["users"][0]["user"]["token"]
    return ServerAddress(host, int(port), token, ssl.create_default_context(cadata=authority))


class RawClient:
    """Sends one request after the other, as bytes; Cut when the server is gone."""

    def __init__(self, address: ServerAddress, mode: ConnectionMode = "keep-alive") -> None:
        self._address = address
        self._manner = mode
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The code and the body of the answer."""
        try:
            return await self._ask(method, path, b"" if body is None else json.dumps(body).encode())
        except (OSError, EOFError) as problem:
            raise ServerGone from problem

    async def _ask(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        reader, writer = self._streams or await self._connect()
        writer.write(self._head(method, path, len(body)) + body)
        code, headers = await read_head(reader)
        content = await reader.readexactly(int(headers["content-length"]))
        if self._manner != "keep-alive":
            self.hang_up()
        return code, json.loads(content)

    def _head(self, method: str, path: str, length: int) -> bytes:
        lines = [
            f"{method} {path} HTTP/{'1.0' if self._manner == 'HTTP/1.0' else '1.1'}",
            "Host: x",
            f"Authorization: Bearer {self._address.token}",
            "Content-Type: application/json",
            f"Content-Length: {length}",
        ]
        if self._manner == "close":
            lines.append("Connection: close")
        return "\r\n".join([*lines, "\r\n"]).encode()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self._address
        self._streams = await asyncio.open_connection(address.host, address.port, ssl=address.tls)
        return self._streams

    def hang_up(self) -> None:
        """Leave the connection."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """The code and the headers of an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = head.split("\r\n")
    return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:] if line)
