"""Simulations on a cluster: Jobs and ConfigMaps made, waited for, gathered, and removed."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import msgspec
import zstandard

from bayplan.client import Client, Untyped, untyped_kind
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.resources import CONFIG_MAPS
from bayplan.client.verbs.writes import deletion, merge
from bayplan.lab.measuring import Measured
from bayplan.lab.simulating.orders import Inputs, Order, decode, encode
from bayplan.lab.simulating.pool import Failure, carry_out

LABELS = {"app.kubernetes.io/name": "bayplan", "app.kubernetes.io/component": "simulate"}
FOLDER, FILE = "/inputs", "inputs.json.zst"
RESULT = "result.json.zst"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
TTL_SECONDS = 3600
TRIES = 3
"""How often each run may fail, on average, before all is given up."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where it runs, and as what."""

    namespace: str
    name: str
    image: str
    runs: int
    parallelism: int
    service_account: str = ""
    """One that is there already; empty to have one made."""
    memory: str = "1Gi"

    @property
    def account(self) -> str:
        """The account of the pods."""
        return self.service_account or self.name

    def result(self, index: int) -> str:
        """The ConfigMap that waits for the result of a run."""
        return f"{self.name}-{index}"


def job(place: Place) -> Untyped:
    """The Job; it waits until everything else is there."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": place.name, "namespace": place.namespace, "labels": LABELS},
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": place.runs,
            "parallelism": place.parallelism,
            "backoffLimit": place.runs * (TRIES - 1),
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": {"metadata": {"labels": LABELS}, "spec": _pod(place)},
        },
    }


def _pod(place: Place) -> Untyped:
    inputs = f"{FOLDER}/{FILE}"
    return {
        "restartPolicy": "Never",
        "serviceAccountName": place.account,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "simulate",
                "image": place.image,
                "command": ["bayplan"],
                "args": [
                    "simulate-worker",
                    f"--inputs={inputs}",
                    f"--namespace={place.namespace}",
                    f"--results={place.name}",
                    "--index=$(INDEX)",
                ],
                "env": [{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}],
                "resources": {"requests": {"cpu": "1", "memory": place.memory}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "inputs", "mountPath": FOLDER, "readOnly": True}],
            }
        ],
        "volumes": [{"name": "inputs", "configMap": {"name": place.name}}],
    }


def belongings(place: Place, uid: str, inputs: bytes) -> list[Untyped]:
    """Everything beside the Job, which owns it: inputs, places for results, and who may fill these
    in.
    """
    data = {FILE: base64.b64encode(inputs).decode()}
    made = [_config_map(place, uid, place.name, {"binaryData": data})]
    made += [_config_map(place, uid, place.result(index), {}) for index in range(place.runs)]
    return made if place.service_account else [*_account(place, uid), *made]


def _config_map(place: Place, uid: str, name: str, content: Untyped) -> Untyped:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(place, uid, name), **content}


def _account(place: Place, uid: str) -> list[Untyped]:
    """An account that may fill in the results, and nothing else."""
    group = "rbac.authorization.k8s.io"
    meta = _meta(place, uid, place.name)
    rule = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [place.result(index) for index in range(place.runs)],
        "verbs": ["patch"],
    }
    subject = {"kind": "ServiceAccount", "name": place.name, "namespace": place.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": place.name},
            "subjects": [subject],
        },
    ]


def _meta(place: Place, uid: str, name: str) -> Untyped:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": place.name, "uid": uid}
    labels: Untyped = {**LABELS}
    return {
        "name": name,
        "namespace": place.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }


MOST_BYTES = 768 << 10
"""A ConfigMap takes a mebibyte, of which base64 and metadata have their share."""
MOST_UNPACKED = 256 << 20


class PackingError(ValueError):
    """Something that is too large, or cannot be unpacked."""


def pack(data: bytes, what: str) -> bytes:
    """Compressed; PackingError if it is too large even so."""
    packed = zstandard.ZstdCompressor(level=10).compress(data)
    if len(packed) > MOST_BYTES:
        raise PackingError(
            f"{what} take {len(packed):,} bytes, compressed, and a ConfigMap takes {MOST_BYTES:,}"
        )
    return packed


def unpack(packed: bytes) -> bytes:
    """As it was; PackingError if it is damaged or absurdly large."""
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 <= size <= MOST_UNPACKED:
            raise PackingError("larger than any input or result is")
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as problem:
        raise PackingError(f"cannot be unpacked: {problem}") from None


def pack_inputs(inputs: Inputs) -> bytes:
    """All that the runs need."""
    return pack(msgspec.json.encode(inputs), "the cluster files and the trace")


def unpack_inputs(packed: bytes) -> Inputs:
    """All that the runs need; PackingError if it is something else."""
    try:
        return msgspec.json.decode(unpack(packed), type=Inputs)
    except msgspec.DecodeError as problem:
        raise PackingError(f"no inputs of simulations: {problem}") from None


def result_in(config_map: Untyped) -> bytes | None:
    """The result that a ConfigMap has; None if it has none yet."""
    data = config_map.get("binaryData")
    text = data.get(RESULT) if isinstance(data, dict) else None
    if not isinstance(text, str):
        return None
    try:
        return unpack(base64.b64decode(text, validate=True))
    except binascii.Error as problem:
        raise PackingError(f"no base64: {problem}") from None


def packed_result(inputs: Inputs, index: int) -> bytes:
    """The result of one of the runs; IndexError if there is no such run."""
    return pack(encode(carry_out(inputs.orders()[index])), "the result of a run")


async def hand_in(client: Client, namespace: str, results: str, index: int, data: bytes) -> None:
    """Fill in the ConfigMap of a run."""
    content = {"binaryData": {RESULT: base64.b64encode(data).decode()}}
    await client.patch(CONFIG_MAPS, namespace, f"{results}-{index}", change=merge(content))


JOBS = untyped_kind("Job")
POLL_SECONDS = 2.0
GRACE_SECONDS = 10.0
Done = Callable[[int], None]
"""Told how many runs are done."""
Gathered = tuple[list[tuple[Order, Measured]], list[Failure]]


async def run_on_cluster(
    client: Client, place: Place, inputs: bytes, orders: list[Order], done: Done
) -> Gathered:
    """Have all runs made; ClientError if the cluster does not let us."""
    async with _created(client, place, inputs):
        said = await _finished(client, place, done)
        return await _gathered(client, place, orders, said)


@asynccontextmanager
async def _created(client: Client, place: Place, inputs: bytes) -> AsyncIterator[None]:
    """The Job and all that it needs, while the context lasts."""
    try:
        made = await client.create(job(place), JOBS)
        meta = made["metadata"]
        uid = str(meta["uid"]) if isinstance(meta, dict) else ""
        for one in belongings(place, uid, inputs):
            await client.create(one)
        going = merge({"spec": {"suspend": False}})
        await client.patch(JOBS, place.namespace, place.name, change=going)
        yield
    finally:
        await asyncio.shield(_cleaned_up(client, place))


async def _cleaned_up(client: Client, place: Place) -> None:
    """Delete the Job, with which everything goes; if that fails, it goes by itself in an hour."""
    with suppress(NotFoundError, TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            options = deletion(propagation="Background")
            await client.delete(JOBS, place.namespace, place.name, options=options)


async def _finished(client: Client, place: Place, done: Done) -> str:
    """Wait for the Job's end; returns why it failed, if it did."""
    while True:
        found = await client.get(JOBS, place.namespace, place.name)
        status = found.get("status")
        status = status if isinstance(status, dict) else {}
        done(int(status.get("succeeded") or 0))
        ended = _ended(status)
        if ended is not None:
            return ended
        await client.clock.sleep(POLL_SECONDS)


def _ended(status: Untyped) -> str | None:
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, dict) and one.get("status") == "True":
            if one.get("type") == "Complete":
                return ""
            if one.get("type") == "Failed":
                return f"{one.get('reason')}: {one.get('message')}"
    return None


async def _gathered(client: Client, place: Place, orders: list[Order], said: str) -> Gathered:
    results: list[tuple[Order, Measured]] = []
    failures: list[Failure] = []
    for index, order in enumerate(orders):
        try:
            found = await client.get(CONFIG_MAPS, place.namespace, place.result(index))
            data = result_in(found)
            if data is None:
                failures.append(Failure(order, said or "its pod left no result"))
            else:
                results.append((order, decode(data)))
        except (PackingError, msgspec.DecodeError, ClientError) as problem:
            failures.append(Failure(order, f"its result cannot be used: {problem}"))
    return results, failures
