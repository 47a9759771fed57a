"""The webhook: how long a review takes at 500 a second, and how many it can answer.

API server and webhook run as processes of their own, with a thousand queues in the cluster; the
load comes from this one, over TLS on connections that stay, as an API server's does. Reviews come
by the clock, whether or not those before them are answered, so that a slow answer is not hidden by
the wait for it: a review's time runs from the moment that it was due.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from bayplan.deploy.crds import QUEUEING, definition
from bench.apiserver import Connection, Target, server
from bench.measure import Result

RATE = 500
SECONDS = 8
CONNECTIONS = 16
QUEUES = 1000
FLOOD = 5000
_GROUP = "scheduling.volcano.sh"
_ROOT = f"/apis/{_GROUP}/v1beta1"


def _review(resource: str, obj: dict[str, Any]) -> bytes:
    group, version = ("", "v1") if resource == "pods" else (_GROUP, "v1beta1")
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "operation": "CREATE",
        "resource": {"group": group, "version": version, "resource": resource},
        "namespace": "default",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
        "object": obj,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()


def _pod() -> dict[str, Any]:
    """A pod of ordinary size that asks for the gate."""
    env = [{"name": f"SETTING_{n}", "value": "some value of ordinary length"} for n in range(20)]
    amounts = {"cpu": "500m", "memory": "512Mi"}
    container = {
        "name": "main",
        "image": "registry.example/app:1.0",
        "env": env,
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets"}],
    }
    annotations = {f"{_GROUP}/queue-allocation-gate": "true", f"{_GROUP}/queue-name": "q-1"}
    return {
        "metadata": {"generateName": "work-", "namespace": "default", "annotations": annotations},
        "spec": {"schedulerName": "bayplan", "containers": [container], "restartPolicy": "Never"},
    }


def _reviews() -> list[tuple[str, bytes]]:
    """What an API server asks while gated pods are made: twice for each, and now and then more."""
    pod = _review("pods", _pod())
    group = {"metadata": {"name": "g"}, "spec": {"queue": "q-7", "minMember": 4}}
    queue = {"metadata": {"name": "new"}, "spec": {"parent": "q-0", "capability": {"cpu": "4"}}}
    return [
        *[("/pods/mutate", pod), ("/pods/validate", pod)] * 9,
        ("/podgroups/validate", _review("podgroups", group)),
        ("/queues/validate", _review("queues", queue)),
    ]


@asynccontextmanager
async def _webhook(api: Target) -> AsyncIterator[Target]:
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("bayplan")),
        *("webhook", "--kubeconfig", str(api.kubeconfig), "--url", "https://127.0.0.1:0"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        where = await _line(process, "serving admission reviews at https://")
        await _line(process, "serving a certificate")
        host, _, port = where.rpartition(":")
        ca = await _authority(api)
        yield Target(host, int(port), "", ca, process.pid, 0.0)
    finally:
        process.terminate()
        await process.communicate()


async def _line(process: asyncio.subprocess.Process, text: str) -> str:
    if process.stderr is None:
        raise RuntimeError("the webhook's standard error is not read")
    while line := (await process.stderr.readline()).decode():
        if text in line:
            return line.split(text)[1].strip()
    raise RuntimeError("the webhook did not start")


async def _authority(api: Target) -> str:
    connection = Connection(api)
    await connection.open()
    path = "/api/v1/namespaces/kube-system/secrets/bayplan-webhook"
    _, body = await connection.request("GET", path)
    connection.close()
    return base64.b64decode(json.loads(body)["data"]["ca.crt"]).decode()


async def _fill(api: Target) -> None:
    connection = Connection(api)
    await connection.open()
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for name in QUEUEING:
        await connection.request("POST", crds, json.dumps(definition(name)).encode())
    for number in range(QUEUES):
        parent = f"q-{(number - 1) // 10 * 10}" if number % 10 else "root"
        queue = {
            "apiVersion": f"{_GROUP}/v1beta1",
            "kind": "Queue",
            "metadata": {"name": f"q-{number}"},
            "spec": {"parent": parent, "capability": {"cpu": "100"}},
        }
        status, _ = await connection.request("POST", f"{_ROOT}/queues", json.dumps(queue).encode())
        if status != 201:
            raise RuntimeError(f"queue {number} was answered with {status}")
    connection.close()


async def _steady(connections: list[Connection]) -> list[float]:
    """How long reviews took that came by the clock."""
    reviews, count = _reviews(), RATE * SECONDS
    due = iter(range(count))
    taken: list[float] = []
    began = time.perf_counter() + 0.1

    async def worker(connection: Connection) -> None:
        for number in due:
            moment = began + number / RATE
            await asyncio.sleep(max(0.0, moment - time.perf_counter()))
            path, body = reviews[number % len(reviews)]
            status, _ = await connection.request("POST", path, body)
            if status != 200:
                raise RuntimeError(f"review {number} was answered with {status}")
            taken.append(time.perf_counter() - moment)

    await asyncio.gather(*map(worker, connections))
    return sorted(taken)


async def _flooded(connections: list[Connection]) -> float:
    """Reviews a second, one after another on every connection."""
    reviews, numbers = _reviews(), iter(range(FLOOD))

    async def worker(connection: Connection) -> None:
        for number in numbers:
            path, body = reviews[number % len(reviews)]
            await connection.request("POST", path, body)

    began = time.perf_counter()
    await asyncio.gather(*map(worker, connections))
    return FLOOD / (time.perf_counter() - began)


async def _measured() -> list[Result]:
    async with server() as api:
        await _fill(api)
        async with _webhook(api) as target:
            connections = [Connection(target) for _ in range(CONNECTIONS)]
            await asyncio.gather(*(one.open() for one in connections))
            await _flooded(connections)
            taken = await _steady(connections)
            most = max([await _flooded(connections) for _ in range(3)])
            for one in connections:
                one.close()
    case = f"webhook/{RATE}-a-second"
    return [
        Result(f"{case}/p50", taken[len(taken) // 2] * 1000, "ms"),
        Result(f"{case}/p99", taken[int(len(taken) * 0.99)] * 1000, "ms"),
        Result("webhook/most", most, "1/s"),
    ]


def cases() -> Iterator[Result]:
    """Every figure, as it is measured."""
    yield from uvloop.run(_measured())
