"""The embedded API server: writes and reads a second, how fast news travels, memory.

The server runs as its own process (`bayplan apiserver`), the load comes from this one over TLS.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import uvloop
import yaml

from bench.measure import Result

CLIENTS = 64
NODES = 5_000
PODS = 20_000
WATCHERS = 100
PATCHES = 5_000
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Target(NamedTuple):
    """A running server."""

    host: str
    port: int
    token: str
    ca: str
    pid: int
    ready_seconds: float
    kubeconfig: Path = Path()


class Connection:
    """One keep-alive HTTP connection, as thin as it can be."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._head = (
            f"Host: {target.host}\r\nAuthorization: Bearer {target.token}\r\n"
            "Accept: application/json\r\n"
        )

    async def open(self) -> None:
        """Connect."""
        context = ssl.create_default_context(cadata=self._target.ca)
        self.reader, self.writer = await asyncio.open_connection(
            self._target.host, self._target.port, ssl=context, limit=2**26
        )

    async def request(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json"
    ) -> tuple[int, bytes]:
        """One request's status and body."""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}"
        if body:
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        status = int(answer[9:12])
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return status, await self.reader.readexactly(length)

    async def watch(self, path: str) -> AsyncIterator[tuple[float, bytes]]:
        """Events with the moment at which they arrived."""
        self.writer.write(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())
        await self.reader.readuntil(b"\r\n\r\n")
        pending = b""
        while True:
            size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
            chunk = await self.reader.readexactly(size + 2)
            *lines, pending = (pending + chunk[:-2]).split(b"\n")
            now = time.perf_counter()
            for line in lines:
                yield now, line

    def close(self) -> None:
        """Disconnect."""
        self.writer.close()


def node(number: int) -> bytes:
    return json.dumps(
        {
            "metadata": {
                "name": f"node-{number:05d}",
                "labels": {
                    "kubernetes.io/hostname": f"node-{number:05d}",
                    "topology.kubernetes.io/zone": f"zone-{number % 3}",
                    "node.kubernetes.io/instance-type": "m5.large",
                },
            },
            "status": {
                "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "allocatable": {"cpu": "7900m", "memory": "31Gi", "pods": "110"},
                "conditions": [
                    {
                        "type": name,
                        "status": status,
                        "reason": "Bench",
                        "message": "as it should be",
                    }
                    for name, status in (
                        ("Ready", "True"),
                        ("MemoryPressure", "False"),
                        ("DiskPressure", "False"),
                    )
                ],
                "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "bench"},
            },
        }
    ).encode()


def pod(number: int) -> bytes:
    return json.dumps(
        {
            "metadata": {"name": f"pod-{number:06d}", "labels": {"app": f"app-{number % 50}"}},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example/app:1.0",
                        "ports": [{"containerPort": 8080}],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "resources": {
                            "requests": {"cpu": "100m", "memory": "128Mi"},
                            "limits": {"memory": "256Mi"},
                        },
                    }
                ],
            },
        }
    ).encode()


@asynccontextmanager
async def server() -> AsyncIterator[Target]:
    with tempfile.TemporaryDirectory() as folder:
        config = f"{folder}/kubeconfig"
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("bayplan")),
            *("apiserver", "--data", f"{folder}/data.db", "--kubeconfig", config),
            stdout=asyncio.subprocess.PIPE,
        )
        if process.stdout is None or not await process.stdout.readline():
            raise RuntimeError("the server did not start")
        ready = time.perf_counter() - started
        try:
            yield target_of(config, process.pid, ready)
        finally:
            process.terminate()
            await process.wait()


def target_of(path: str, pid: int, ready: float) -> Target:
    config = yaml.safe_load(Path(path).read_text("utf-8"))
    cluster = config["clusters"][0]["cluster"]
    host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Target(host, int(port), config["users"][0]["user"]["token"], ca, pid, ready, Path(path))


async def spread(
    connections: list[Connection], count: int, send: Callable[[Connection, int], Awaitable[int]]
) -> float:
    """Send `count` requests over all connections; returns requests a second."""
    numbers = iter(range(count))

    async def worker(connection: Connection) -> None:
        for number in numbers:
            status = await send(connection, number)
            if status >= 300:
                raise RuntimeError(f"request {number} was answered with {status}")

    started = time.perf_counter()
    await asyncio.gather(*map(worker, connections))
    return count / (time.perf_counter() - started)


async def writes(connections: list[Connection]) -> AsyncIterator[Result]:
    pods = "/api/v1/namespaces/default/pods"

    async def create_node(connection: Connection, number: int) -> int:
        return (await connection.request("POST", "/api/v1/nodes", node(number)))[0]

    async def create_pod(connection: Connection, number: int) -> int:
        return (await connection.request("POST", pods, pod(number)))[0]

    async def patch_pod(connection: Connection, number: int) -> int:
        body = b'{"metadata":{"annotations":{"bench":"1"}}}'
        path, kind = f"{pods}/pod-{number:06d}", "application/merge-patch+json"
        return (await connection.request("PATCH", path, body, kind))[0]

    async def bind(connection: Connection, number: int) -> int:
        name = f"pod-{number:06d}"
        target = {"kind": "Node", "name": f"node-{number % NODES:05d}"}
        body = json.dumps({"metadata": {"name": name}, "target": target}).encode()
        return (await connection.request("POST", f"{pods}/{name}/binding", body))[0]

    for name, count, send in (
        ("create-nodes", NODES, create_node),
        ("create-pods", PODS, create_pod),
        ("patch-pods", PATCHES, patch_pod),
        ("bind-pods", PODS, bind),
    ):
        yield Result(f"apiserver/{name}", await spread(connections, count, send), "1/s")


async def lists(connection: Connection) -> AsyncIterator[Result]:
    for name, count in (("nodes", NODES), ("pods", PODS)):
        taken = []
        for _ in range(5):
            started = time.perf_counter()
            await connection.request("GET", f"/api/v1/{name}")
            taken.append(time.perf_counter() - started)
        yield Result(f"apiserver/list-{name}/{count}", statistics.median(taken), "s")


async def fan_out(target: Target, writer: Connection, events: int = 200) -> list[Result]:
    """How long after a write's request its event is with each watcher."""
    sent: dict[int, float] = {}
    delays: list[float] = []

    async def follow(watcher: Connection) -> None:
        seen = 0
        async for moment, line in watcher.watch(f"{CONFIG_MAPS}?watch=1"):
            number = int(json.loads(line)["object"]["metadata"]["name"].removeprefix("cm-"))
            delays.append(moment - sent[number])
            seen += 1
            if seen == events:
                return

    watchers = [Connection(target) for _ in range(WATCHERS)]
    await asyncio.gather(*(watcher.open() for watcher in watchers))
    tasks = [asyncio.create_task(follow(watcher)) for watcher in watchers]
    for number in range(events):
        await asyncio.sleep(0.01)
        sent[number] = time.perf_counter()
        body = json.dumps({"metadata": {"name": f"cm-{number}"}}).encode()
        await writer.request("POST", CONFIG_MAPS, body)
    await asyncio.gather(*tasks)
    for watcher in watchers:
        watcher.close()
    delays.sort()
    name = f"apiserver/watch-fan-out/{WATCHERS}"
    return [
        Result(f"{name}/p50", delays[len(delays) // 2], "s"),
        Result(f"{name}/p99", delays[int(len(delays) * 0.99)], "s"),
    ]


def memory(pid: int) -> Result:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    used = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return Result(f"apiserver/memory/{NODES}-nodes-{PODS}-pods", used / 1024, "MiB")


async def measured() -> AsyncIterator[Result]:
    async with server() as target:
        yield Result("apiserver/ready", target.ready_seconds, "s")
        connections = [Connection(target) for _ in range(CLIENTS)]
        await asyncio.gather(*(connection.open() for connection in connections))
        async for result in writes(connections):
            yield result
        yield memory(target.pid)
        async for result in lists(connections[0]):
            yield result
        for result in await fan_out(target, connections[0]):
            yield result
        for connection in connections:
            connection.close()


def cases() -> Iterator[Result]:
    """Every figure, as it is measured."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        results = measured()
        while (result := runner.run(_next(results))) is not None:
            yield result


async def _next(results: AsyncIterator[Result]) -> Result | None:
    return await anext(results, None)
