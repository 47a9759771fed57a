"""Queues, groups and pods of queues, and their kinds, for any API server."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.client import Client, Untyped
from bayplan.client.errors import AlreadyExistsError, NotFoundError
from bayplan.deploy.crds import QUEUEING, definition
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE, PodGroup, Queue
from tests.scheduler import running_scheduler

API = "scheduling.volcano.sh/v1beta1"
OPT_IN = {QUEUE_SCHEDULING_GATE: "true"}
GATE = [{"name": QUEUE_SCHEDULING_GATE}]


async def install_kinds(client: Client) -> None:
    """Have the cluster serve queues and groups, unless it does."""
    for name in QUEUEING:
        try:
            await client.create(definition(name))
        except AlreadyExistsError:
            continue
    for kind in (Queue, PodGroup):
        await _served(client, kind)


async def _served(client: Client, kind: type[Queue] | type[PodGroup]) -> None:
    while True:
        try:
            await client.list(kind)
        except NotFoundError:
            await client.clock.sleep(0.1)
        else:
            return


def queue(name: str, capability: Mapping[str, str] | None = None, **spec: object) -> Untyped:
    """A queue with a limit."""
    limit = {} if capability is None else {"capability": dict(capability)}
    meta = {"name": name}
    return {"apiVersion": API, "kind": "Queue", "metadata": meta, "spec": {**limit, **spec}}


def group(namespace: str, name: str, queue: str, least: int = 1, **spec: object) -> Untyped:
    """A group that needs so many pods to start."""
    return {
        "apiVersion": API,
        "kind": "PodGroup",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"queue": queue, "minMember": least, **spec},
    }


def pod(
    namespace: str,
    name: str,
    cpu: str = "1",
    *,
    queue: str = "",
    group: str = "",
    gated: bool = True,
    **spec: object,
) -> Untyped:
    """A pod of a queue or of a group, with the gate that the webhook gives it or without."""
    made = running_scheduler.pod(
        namespace, name, cpu, **({"schedulingGates": GATE} if gated else {}), **spec
    )
    meta = made["metadata"]
    assert isinstance(meta, dict)
    named = {"scheduling.volcano.sh/queue-name": queue, "scheduling.k8s.io/group-name": group}
    said = {key: value for key, value in named.items() if value}
    meta["annotations"] = {**said, **(OPT_IN if gated else {})}
    return made
