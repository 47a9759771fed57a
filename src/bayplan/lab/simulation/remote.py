"""Simulations on a cluster: a Job and its ConfigMaps are created, awaited, read and deleted."""

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
from bayplan.lab.measurement import RunMeasurements
from bayplan.lab.simulation.pool import RunFailure, run_simulation
from bayplan.lab.simulation.runspec import RunSpec, SimulationInputs, decode, encode

LABELS = {"app.kubernetes.io/name": "bayplan", "app.kubernetes.io/component": "simulate"}
FOLDER, FILE = "/inputs", "inputs.json.zst"
RESULT = "result.json.zst"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
TTL_SECONDS = 3600
ATTEMPTS = 3
"""How often each run may be tried, on average, before the Job fails."""


@dataclass(frozen=True, slots=True)
class SimulationJob:
    """The Job of a simulation: its namespace, name, image and size."""

    namespace: str
    name: str
    image: str
    runs: int
    parallelism: int
    service_account: str = ""
    """An existing service account; empty to create one."""
    memory: str = "1Gi"

    @property
    def account(self) -> str:
        """The service account of the pods."""
        return self.service_account or self.name

    def result(self, index: int) -> str:
        """Return the name of the ConfigMap for the result of a run."""
        return f"{self.name}-{index}"


def job_object(job: SimulationJob) -> Untyped:
    """Return the Job, suspended until all other objects exist."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job.name, "namespace": job.namespace, "labels": LABELS},
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": job.runs,
            "parallelism": job.parallelism,
            "backoffLimit": job.runs * (ATTEMPTS - 1),
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": {"metadata": {"labels": LABELS}, "spec": _pod(job)},
        },
    }


def _pod(job: SimulationJob) -> Untyped:
    inputs = f"{FOLDER}/{FILE}"
    return {
        "restartPolicy": "Never",
        "serviceAccountName": job.account,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "simulate",
                "image": job.image,
                "command": ["bayplan"],
                "args": [
                    "simulate-worker",
                    f"--inputs={inputs}",
                    f"--namespace={job.namespace}",
                    f"--results={job.name}",
                    "--index=$(INDEX)",
                ],
                "env": [{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}],
                "resources": {"requests": {"cpu": "1", "memory": job.memory}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "inputs", "mountPath": FOLDER, "readOnly": True}],
            }
        ],
        "volumes": [{"name": "inputs", "configMap": {"name": job.name}}],
    }


def job_objects(job: SimulationJob, uid: str, inputs: bytes) -> list[Untyped]:
    """Return the objects that the Job owns: inputs, ConfigMaps for results, and their RBAC."""
    data = {FILE: base64.b64encode(inputs).decode()}
    objects = [_config_map(job, uid, job.name, {"binaryData": data})]
    objects += [_config_map(job, uid, job.result(index), {}) for index in range(job.runs)]
    return objects if job.service_account else [*_account(job, uid), *objects]


def _config_map(job: SimulationJob, uid: str, name: str, content: Untyped) -> Untyped:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(job, uid, name), **content}


def _account(job: SimulationJob, uid: str) -> list[Untyped]:
    """Return a service account that may only patch the results."""
    group = "rbac.authorization.k8s.io"
    meta = _meta(job, uid, job.name)
    rule = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [job.result(index) for index in range(job.runs)],
        "verbs": ["patch"],
    }
    subject = {"kind": "ServiceAccount", "name": job.name, "namespace": job.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": job.name},
            "subjects": [subject],
        },
    ]


def _meta(job: SimulationJob, uid: str, name: str) -> Untyped:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": uid}
    labels: Untyped = {**LABELS}
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }


MAX_BYTES = 768 << 10
"""A ConfigMap holds a mebibyte, including base64 and metadata."""
MAX_UNPACKED = 256 << 20


class PackingError(ValueError):
    """Data that is too large or cannot be unpacked."""


def pack(data: bytes, what: str) -> bytes:
    """Compress data; raise PackingError if it is still too large for a ConfigMap."""
    packed = zstandard.ZstdCompressor(level=10).compress(data)
    if len(packed) > MAX_BYTES:
        raise PackingError(
            f"{what}: {len(packed):,} bytes compressed, more than a ConfigMap holds ({MAX_BYTES:,})"
        )
    return packed


def unpack(packed: bytes) -> bytes:
    """Decompress data; raise PackingError if it is damaged or too large."""
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 <= size <= MAX_UNPACKED:
            raise PackingError("too large")
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as problem:
        raise PackingError(f"cannot be unpacked: {problem}") from None


def pack_inputs(inputs: SimulationInputs) -> bytes:
    """Encode and compress the inputs of all runs."""
    return pack(msgspec.json.encode(inputs), "the cluster files and the trace")


def unpack_inputs(packed: bytes) -> SimulationInputs:
    """Decode the inputs of all runs; raise PackingError if they are not valid."""
    try:
        return msgspec.json.decode(unpack(packed), type=SimulationInputs)
    except msgspec.DecodeError as problem:
        raise PackingError(f"not inputs of a simulation: {problem}") from None


def read_result(config_map: Untyped) -> bytes | None:
    """Return the result in a ConfigMap; None if it has none yet."""
    data = config_map.get("binaryData")
    text = data.get(RESULT) if isinstance(data, dict) else None
    if not isinstance(text, str):
        return None
    try:
        return unpack(base64.b64decode(text, validate=True))
    except binascii.Error as problem:
        raise PackingError(f"not base64: {problem}") from None


def packed_result(inputs: SimulationInputs, index: int) -> bytes:
    """Run one simulation and return its compressed result; IndexError for an unknown index."""
    return pack(encode(run_simulation(inputs.runs()[index])), "the result of a run")


async def store_result(
    client: Client, namespace: str, results: str, index: int, data: bytes
) -> None:
    """Store the result of a run in its ConfigMap."""
    content = {"binaryData": {RESULT: base64.b64encode(data).decode()}}
    await client.patch(CONFIG_MAPS, namespace, f"{results}-{index}", change=merge(content))


JOBS = untyped_kind("Job")
POLL_SECONDS = 2.0
GRACE_SECONDS = 10.0
Done = Callable[[int], None]
"""Called with the number of runs that are done."""
RemoteResults = tuple[list[tuple[RunSpec, RunMeasurements]], list[RunFailure]]


async def run_on_cluster(
    client: Client, job: SimulationJob, inputs: bytes, runs: list[RunSpec], done: Done
) -> RemoteResults:
    """Run all simulations; raise ClientError if the cluster refuses."""
    async with _created_objects(client, job, inputs):
        failure = await _wait_for_end(client, job, done)
        return await _read_results(client, job, runs, failure)


@asynccontextmanager
async def _created_objects(
    client: Client, job: SimulationJob, inputs: bytes
) -> AsyncIterator[None]:
    """Create the Job and its objects, and delete them afterwards."""
    try:
        created = await client.create(job_object(job), JOBS)
        meta = created["metadata"]
        uid = str(meta["uid"]) if isinstance(meta, dict) else ""
        for owned in job_objects(job, uid, inputs):
            await client.create(owned)
        resume = merge({"spec": {"suspend": False}})
        await client.patch(JOBS, job.namespace, job.name, change=resume)
        yield
    finally:
        await asyncio.shield(_clean_up(client, job))


async def _clean_up(client: Client, job: SimulationJob) -> None:
    """Delete the Job and its objects; if that fails, its TTL deletes them in an hour."""
    with suppress(NotFoundError, TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            options = deletion(propagation="Background")
            await client.delete(JOBS, job.namespace, job.name, options=options)


async def _wait_for_end(client: Client, job: SimulationJob, done: Done) -> str:
    """Wait for the end of the Job; return why it failed, if it did."""
    while True:
        found = await client.get(JOBS, job.namespace, job.name)
        status = found.get("status")
        status = status if isinstance(status, dict) else {}
        done(int(status.get("succeeded") or 0))
        ended = _end_of(status)
        if ended is not None:
            return ended
        await client.clock.sleep(POLL_SECONDS)


def _end_of(status: Untyped) -> str | None:
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("status") == "True":
            if condition.get("type") == "Complete":
                return ""
            if condition.get("type") == "Failed":
                return f"{condition.get('reason')}: {condition.get('message')}"
    return None


async def _read_results(
    client: Client, job: SimulationJob, runs: list[RunSpec], failure: str
) -> RemoteResults:
    results: list[tuple[RunSpec, RunMeasurements]] = []
    failures: list[RunFailure] = []
    for index, run in enumerate(runs):
        try:
            found = await client.get(CONFIG_MAPS, job.namespace, job.result(index))
            data = read_result(found)
            if data is None:
                failures.append(RunFailure(run, failure or "its pod left no result"))
            else:
                results.append((run, decode(data)))
        except (PackingError, msgspec.DecodeError, ClientError) as problem:
            failures.append(RunFailure(run, f"its result cannot be used: {problem}"))
    return results, failures
