"""The embedded API server: how many writes and reads a second, how fast news travels, how much memory.

The server runs as its own process (`bayplan apiserver`), the load comes from this one over TLS.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
import yaml

CLIENTS = 64
NODES = 5_000
PODS = 20_000
WATCHERS = 100

Case = dict[str, Any]


class Target(NamedTuple):
    """A running server."""

    host: str
    port: int
    token: str
    ca: str
    pid: int
    ready_seconds: float


class Connection:
    """One keep-alive HTTP connection, as thin as it can be."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._head = (
            f"Host: {target.host}\r\nAuthorization: Bearer {target.token}\r\n"
            "Accept: application/json\r\n"
        )

    async def open(self) -> None:
        context = ssl.create_default_context(cadata=self._target.ca)
        self.reader, self.writer = await asyncio.open_connection(
            self._target.host, self._target.port, ssl=context, limit=2**26
        )

    async def request(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json"
    ) -> tuple[int, bytes]:
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
        config = Path(folder, "kubeconfig")
        started = time.perf_counter()
        command = [str(Path(sys.executable).with_name("bayplan")), "apiserver"]
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*command, "--data", f"{folder}/data.db", "--kubeconfig", str(config)],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        ready = time.perf_counter() - started
        try:
            yield _target(yaml.safe_load(config.read_text()), process.pid, ready)
        finally:
            process.terminate()
            process.wait()


def _target(config: Any, pid: int, ready: float) -> Target:
    import base64

    cluster = config["clusters"][0]["cluster"]
    host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Target(host, int(port), config["users"][0]["user"]["token"], ca, pid, ready)


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


def rate(case: str, value: float, count: int) -> Case:
    return {"case": case, "value": round(value, 1), "unit": "1/s", "count": count}


async def writes(connections: list[Connection]) -> AsyncIterator[Case]:
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

    yield rate("apiserver create nodes", await spread(connections, NODES, create_node), NODES)
    yield rate("apiserver create pods", await spread(connections, PODS, create_pod), PODS)
    yield rate("apiserver patch pods", await spread(connections, 5_000, patch_pod), 5_000)
    yield rate("apiserver bind pods", await spread(connections, PODS, bind), PODS)


async def lists(connection: Connection) -> AsyncIterator[Case]:
    for name, path, count in (
        ("nodes", "/api/v1/nodes", NODES),
        ("pods", "/api/v1/pods", PODS),
    ):
        taken = []
        for _ in range(5):
            started = time.perf_counter()
            _, body = await connection.request("GET", path)
            taken.append(time.perf_counter() - started)
        yield {
            "case": f"apiserver list {count} {name}",
            "value": round(statistics.median(taken), 4),
            "unit": "s",
            "bytes": len(body),
        }


async def fan_out(target: Target, writer: Connection, events: int = 200) -> Case:
    """How long after a write's request its event is with each of 100 watchers."""
    sent: dict[int, float] = {}
    delays: list[float] = []

    async def follow(watcher: Connection, started: asyncio.Event) -> None:
        seen = 0
        started.set()
        async for moment, line in watcher.watch("/api/v1/namespaces/default/configmaps?watch=1"):
            number = int(json.loads(line)["object"]["metadata"]["name"].removeprefix("cm-"))
            delays.append(moment - sent[number])
            seen += 1
            if seen == events:
                return

    watchers = [Connection(target) for _ in range(WATCHERS)]
    await asyncio.gather(*(watcher.open() for watcher in watchers))
    marks = [asyncio.Event() for _ in watchers]
    tasks = [asyncio.create_task(follow(w, m)) for w, m in zip(watchers, marks, strict=True)]
    await asyncio.gather(*(mark.wait() for mark in marks))
    await asyncio.sleep(0.5)
    for number in range(events):
        sent[number] = time.perf_counter()
        body = json.dumps({"metadata": {"name": f"cm-{number}"}}).encode()
        await writer.request("POST", "/api/v1/namespaces/default/configmaps", body)
        await asyncio.sleep(0.01)
    await asyncio.gather(*tasks)
    for watcher in watchers:
        watcher.close()
    delays.sort()
    return {
        "case": f"apiserver watch fan-out to {WATCHERS} watchers",
        "value": round(delays[len(delays) // 2] * 1000, 2),
        "unit": "ms",
        "p99": round(delays[int(len(delays) * 0.99)] * 1000, 2),
        "events": len(delays),
    }


def memory(pid: int) -> Case:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("VmRSS")}
    return {
        "case": f"apiserver memory at {NODES} nodes and {PODS} pods",
        "value": round(found["VmRSS"] / 1024, 1),
        "unit": "MiB",
    }


async def _run() -> list[Case]:
    found: list[Case] = []
    async with server() as target:
        found.append(
            {
                "case": "apiserver start-up to ready",
                "value": round(target.ready_seconds, 3),
                "unit": "s",
            }
        )
        connections = [Connection(target) for _ in range(CLIENTS)]
        await asyncio.gather(*(connection.open() for connection in connections))
        found += [case async for case in writes(connections)]
        found.append(memory(target.pid))
        found += [case async for case in lists(connections[0])]
        found.append(await fan_out(target, connections[0]))
        for connection in connections:
            connection.close()
    return found


def cases() -> Iterator[Case]:
    """One line a case."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield from runner.run(_run())


if __name__ == "__main__":
    for one in cases():
        print(json.dumps(one))
