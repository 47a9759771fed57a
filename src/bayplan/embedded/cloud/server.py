"""Serves the simulated cloud to other processes: on a local socket, over TLS, or both.

The server has its own certificate authority, so that its client certificates are not valid for the
API server. Over TLS a client certificate is required. The files for clients are written into a
folder: the CA certificate, a client certificate and key, and the file that Cluster Autoscaler takes
as `--cloud-config` (with `--cloud-provider=externalgrpc`), which names them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

from bayplan.client.serving.certificates import CertificateAuthority
from bayplan.embedded.apiserver.identity import write_private
from bayplan.nodegroups import Provider
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, Tls, serve

CONFIG = "cloud-config.yaml"
_LOCAL = ("127.0.0.1", "::1", "localhost")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - dialled, not listened on


@dataclass(frozen=True, slots=True)
class CloudListeners:
    """The listen addresses of the cloud."""

    socket: Path | None = None
    address: tuple[str, int] | None = None
    """Host and port for TLS; port 0 takes a free one."""


@dataclass(frozen=True, slots=True)
class ServedCloud:
    """The addresses of the served cloud, and the configuration file for clients."""

    addresses: tuple[str, ...]
    config: Path


@asynccontextmanager
async def serve_cloud(
    provider: Provider, places: CloudListeners, folder: Path, now: datetime
) -> AsyncIterator[ServedCloud]:
    """Serve while the context lasts; UnavailableError if the address cannot be used."""
    authority = CertificateAuthority.create(now)
    async with serve(provider, _places(places, authority, now)) as port:
        local = [] if places.socket is None else [f"unix:{places.socket.absolute()}"]
        secure = [] if places.address is None else [_address(places.address[0], port)]
        config = {"address": (secure or local)[0]}
        if secure:
            config |= _credentials(authority, folder, now)
        write_private(folder / CONFIG, yaml.safe_dump(config, sort_keys=False))
        yield ServedCloud((*local, *secure), folder / CONFIG)


def _places(
    places: CloudListeners, authority: CertificateAuthority, now: datetime
) -> ListenAddresses:
    if places.address is None:
        return ListenAddresses(places.socket)
    host, port = places.address
    pair = authority.server_pair([*_LOCAL, *([host] if host not in _EVERYWHERE else [])], now)
    tls = Tls(pair.certificate, pair.key, clients=authority.pair.certificate)
    return ListenAddresses(places.socket, host, port, tls)


def _address(host: str, port: int) -> str:
    host = _EVERYWHERE.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _credentials(authority: CertificateAuthority, folder: Path, now: datetime) -> dict[str, str]:
    """Write the client's certificates and key; returns their paths."""
    pair = authority.client_pair("cloud-client", (), now)
    written = {
        "cacert": ("ca.crt", authority.pair.certificate),
        "cert": ("client.crt", pair.certificate),
        "key": ("client.key", pair.key),
    }
    for name, content in written.values():
        write_private(folder / name, content.decode())
    return {field: str((folder / name).absolute()) for field, (name, _) in written.items()}
