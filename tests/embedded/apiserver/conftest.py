"""Servers for tests: each on a free port, with its data in a fresh file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.http_client import Http

TOKENS = """
ann-token,ann,u1,"dev,ops"
sa-token,system:serviceaccount:default:robot,u2
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """A server that lets everybody do everything."""
    async with ApiServer(ServerConfig(data=tmp_path / "data.db")) as running:
        yield running


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[Http]:
    """A client with the administrator's token."""
    async with Http(server) as client:
        yield client


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """A server where RBAC decides."""
    path = tmp_path / "tokens.csv"
    path.write_text(TOKENS)
    async with ApiServer(ServerConfig(tokens=path, authorization="rbac")) as running:
        yield running


@pytest.fixture
async def admin(guarded: ApiServer) -> AsyncIterator[Http]:
    async with Http(guarded) as client:
        yield client


@pytest.fixture
async def ann(guarded: ApiServer) -> AsyncIterator[Http]:
    async with Http(guarded, "ann-token") as client:
        yield client
