"""Where a provider is, in the file that Cluster Autoscaler takes as `--cloud-config`:

    address: 127.0.0.1:8086     # or unix:/run/cloud.sock
    cacert: ca.crt              # whom to believe; without it nothing is encrypted
    cert: client.crt            # who we are, if the provider asks
    key: client.key
    grpc_timeout: 5s

Paths are looked for beside the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc
import msgspec
import yaml

from bayplan.kube.durations import parse_duration
from bayplan.nodegroups.errors import InvalidRequestError

DEFAULT_TIMEOUT = 5.0
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """How to reach a provider."""

    address: str
    """What gRPC dials: HOST:PORT or unix:PATH."""
    timeout: float = DEFAULT_TIMEOUT
    credentials: grpc.ChannelCredentials | None = None
    """None for a connection in the clear, as on a socket of this machine."""


class _File(msgspec.Struct):
    address: str
    cacert: str = ""
    cert: str = ""
    key: str = ""
    grpc_timeout: str = f"{DEFAULT_TIMEOUT:g}s"


def read_config(path: Path) -> CloudConfig:
    """How to reach the provider behind a socket or a configuration file.

    InvalidRequestError if it is neither.
    """
    if path.is_socket():
        return CloudConfig(f"unix:{path}")
    try:
        file = msgspec.convert(yaml.load(_read(path), Loader=yaml.CSafeLoader), _File)
        timeout = parse_duration(file.grpc_timeout)
        return CloudConfig(file.address, timeout, _credentials(file, path.parent))
    except OSError as problem:
        said = f"{problem.filename}: {problem.strerror}"
        raise InvalidRequestError(said) from problem
    except (ValueError, yaml.YAMLError) as problem:
        said = " ".join(str(problem).split())[:300]
        raise InvalidRequestError(f"{path}: {said}") from problem


def _credentials(file: _File, folder: Path) -> grpc.ChannelCredentials | None:
    if not file.cacert and not file.cert:
        return None
    ca, key, certificate = (
        _read(folder / name) if name else None for name in (file.cacert, file.key, file.cert)
    )
    return grpc.ssl_channel_credentials(ca, key, certificate)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)
