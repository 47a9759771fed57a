"""Requests that write have connections of their own: kept, given up, and never guessed about."""

from __future__ import annotations

import pytest

from bayplan.client import Access, Client, ClientOptions, untyped
from bayplan.client.config.access import TlsSettings
from bayplan.client.errors import MalformedError, TooLargeError, UntrustedError
from bayplan.client.wire.connections import Address, ConnectionPool
from bayplan.client.wire.transport import Request, RequestLimits
from tests.client.proxies import RudeProxy
from tests.client.scripted import Scripted, json
from tests.client.tls_servers import TlsServer

CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")


def config_map(namespace: str, name: str) -> dict[str, object]:
    return {"metadata": {"namespace": namespace, "name": name}}


async def test_one_connection_serves_many_writes(access: Access, namespace: str) -> None:
    async with RudeProxy(access) as proxy, Client(proxy.access) as client:
        for number in range(5):
            await client.create(config_map(namespace, f"m{number}"), CONFIG_MAPS)
        assert proxy.connections == 1


async def test_a_connection_that_was_cut_while_idle_is_not_used(
    access: Access, namespace: str
) -> None:
    async with RudeProxy(access) as proxy, Client(proxy.access) as client:
        await client.create(config_map(namespace, "a"), CONFIG_MAPS)
        proxy.cut()
        await client.version()
        await client.create(config_map(namespace, "b"), CONFIG_MAPS)


async def test_a_server_that_closes_after_each_answer_is_asked_anew() -> None:
    made = json(config_map("here", "a"), Connection="close")
    async with Scripted(made) as server, Client(server.access) as client:
        for _ in range(3):
            await client.create(config_map("here", "a"), CONFIG_MAPS)
        assert len(server.requests) == 3


async def test_an_encoding_that_nobody_asked_for_is_not_read() -> None:
    odd = json(config_map("here", "a"), Content_Encoding="br")
    async with Scripted(odd) as server, Client(server.access) as client:
        with pytest.raises(MalformedError, match="a Content-Encoding that was not requested"):
            await client.create(config_map("here", "a"), CONFIG_MAPS)


async def test_an_answer_to_a_write_has_a_bound() -> None:
    big = json({**config_map("here", "a"), "data": {"x": "y" * 5000}})
    options = ClientOptions(limits=RequestLimits(largest_answer=1000))
    async with Scripted(big) as server, Client(server.access, options) as client:
        with pytest.raises(TooLargeError):
            await client.create(config_map("here", "a"), CONFIG_MAPS)


async def test_nothing_is_written_to_a_server_of_another_authority() -> None:
    async with TlsServer("127.0.0.1") as server, TlsServer("127.0.0.1") as other:
        tls = TlsSettings(authority=other.authority_pem)
        async with Client(Access(f"https://127.0.0.1:{server.port}", tls)) as client:
            with pytest.raises(UntrustedError, match="not to be trusted"):
                await client.create(config_map("here", "a"), CONFIG_MAPS)


async def test_a_header_of_two_lines_is_not_sent() -> None:
    async with Scripted(json({})) as server:
        host, port = server.access.server.removeprefix("http://").split(":")
        connections = ConnectionPool(lambda: Address(host, int(port)), "", 5.0)
        with pytest.raises(ValueError, match="more than one line"):
            async with connections.open(Request("POST", "/x", body=b""), [("A", "b\r\nC: d")]):
                pass
        assert server.requests == []
        connections.close()
