"""The address of a provider, in the file that Cluster Autoscaler takes as `--cloud-config`:

    address: 127.0.0.1:8086     # or unix:/run/cloud.sock
    cacert: ca.crt              # CA of the provider; without it the connection is not encrypted
    cert: client.crt            # client certificate, if the provider requires one
    key: client.key
    grpc_timeout: 5s

Paths are relative to the file.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc
import msgspec

from bayplan.base.configfiles import FieldProblem, parse, read_text
from bayplan.base.durations import DurationError, parse_duration

DEFAULT_TIMEOUT = 5.0
VARIABLE = "BAYPLAN_CLOUD"
"""The environment variable in which `bayplan up` publishes the address of its cloud."""


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """How to reach a provider."""

    address: str
    """The gRPC target: HOST:PORT or unix:PATH."""
    timeout: float = DEFAULT_TIMEOUT
    credentials: grpc.ChannelCredentials | None = None
    """None for a connection without TLS, as on a unix socket."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    address: str
    cacert: str = ""
    cert: str = ""
    key: str = ""
    grpc_timeout: str = f"{DEFAULT_TIMEOUT:g}s"


def read_config(path: Path) -> CloudConfig:
    """Read the address of a provider from a configuration file, or take a socket; ConfigFileError
    if the file is invalid.
    """
    if path.is_socket():
        return CloudConfig(f"unix:{path}")
    document = parse(read_text(path), str(path), _File)
    try:
        return _config(document.value, path.parent)
    except FieldProblem as problem:
        raise document.error(problem) from None


def _config(file: _File, folder: Path) -> CloudConfig:
    try:
        timeout = parse_duration(file.grpc_timeout)
    except DurationError as problem:
        raise FieldProblem("grpc_timeout", str(problem)) from None
    if bool(file.cert) != bool(file.key):
        raise FieldProblem("cert", "cert and key must be set together")
    return CloudConfig(file.address, timeout, _credentials(file, folder))


def _credentials(file: _File, folder: Path) -> grpc.ChannelCredentials | None:
    if not file.cacert and not file.cert:
        return None
    ca, key, certificate = (
        read_text(folder / name) if name else None for name in (file.cacert, file.key, file.cert)
    )
    if ca is not None:
        check_certificates(ca)
    return grpc.ssl_channel_credentials(ca, key, certificate)


def check_certificates(ca: bytes) -> None:
    """Check the CA here: gRPC would accept anything, and then fail to connect."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise FieldProblem("cacert", "the file has no certificate") from None
