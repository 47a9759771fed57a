"""Where a provider is: its socket, or Cluster Autoscaler's own configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.base.configfiles import ConfigFileError
from bayplan.nodegroups import ProviderUnavailableError
from bayplan.nodegroups.externalgrpc.client import ExternalGrpc
from bayplan.nodegroups.externalgrpc.config import CloudConfig, read_config
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, serve
from tests.embedded.cloud.clouds import SimulatedCloud


def test_a_file_without_certificates_is_dialled_in_the_clear(tmp_path: Path) -> None:
    file = tmp_path / "cloud.yaml"
    file.write_text("address: 127.0.0.1:8086\ngrpc_timeout: 90s\n")
    assert read_config(file) == CloudConfig("127.0.0.1:8086", 90.0, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "address"),
        ("address: [1]", "cloud.yaml:1: address"),
        ("address: a:1\nkey: k", "cert: cert and key must be set together"),
        ("address: a:1\ngrpc_timeout: soon", "cloud.yaml:2: grpc_timeout"),
        ("address: a:1\ncacert: none.crt", "none.crt: No such file"),
        ("address: a:1\ncaCert: x", "caCert: unknown field"),
        ("{", "cloud.yaml"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_with_its_place(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "cloud.yaml"
    file.write_text(text)
    with pytest.raises(ConfigFileError, match=said):
        read_config(file)


async def test_a_socket_that_a_dead_process_left_behind_is_replaced(tmp_path: Path) -> None:
    socket = tmp_path / "cloud.sock"
    provider = SimulatedCloud().provider
    async with serve(provider, ListenAddresses(socket=socket)):
        assert socket.stat().st_mode & 0o077 == 0
        with pytest.raises(ProviderUnavailableError, match="in use"):
            async with serve(provider, ListenAddresses(socket=socket)):
                pass
    assert not socket.exists()
    left = tmp_path / "left.sock"
    async with serve(provider, ListenAddresses(socket=left)):
        left.rename(socket)
    async with (
        serve(provider, ListenAddresses(socket=socket)),
        ExternalGrpc(read_config(socket)) as client,
    ):
        assert await client.groups()


async def test_a_file_is_not_replaced_by_a_socket(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    with pytest.raises(ProviderUnavailableError):
        async with serve(SimulatedCloud().provider, ListenAddresses(socket=mine)):
            pass
    assert mine.read_text() == "mine"


async def test_a_provider_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    config = CloudConfig(f"unix:{tmp_path}/nobody.sock", timeout=2.0)
    async with ExternalGrpc(config) as provider:
        with pytest.raises(ProviderUnavailableError):
            await provider.groups()
