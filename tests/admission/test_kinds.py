"""Kinds as they are shipped: Volcano's manifests work unchanged, and every field is explained."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from bayplan.client import Client, connect, merge, untyped
from bayplan.client.errors import InvalidError, NotFoundError
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.admission.manifests import CRDS, documents, install_kinds
from tests.kubectl import needs_kubectl, runner

GROUP = "scheduling.volcano.sh"
QUEUES = untyped(GROUP, "v1beta1", "queues", "Queue", namespaced=False)
PODGROUPS = untyped(GROUP, "v1beta1", "podgroups", "PodGroup")
QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec:
  parent: root
  reclaimable: false
  priority: 10
  capability: {cpu: 40, memory: 80Gi, nvidia.com/gpu: "8"}
  deserved: {cpu: "20"}
  guarantee: {resource: {cpu: 1500m}}
  type: batch
  affinity:
    nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [gpu]}
  extendClusters: [{name: other, weight: 1, capacity: {cpu: 1}}]
"""
PODGROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: train, namespace: default}
spec:
  minMember: 4
  minTaskMember: {master: 1, worker: 3}
  minResources: {cpu: 4, memory: 4Gi}
  priorityClassName: high
  networkTopology: {mode: soft, highestTierAllowed: 2}
  subGroupPolicy:
  - name: workers
    labelSelector: {matchLabels: {role: worker}}
    matchLabelKeys: [shard]
    networkTopology: {highestTierName: rack}
"""


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """The administrator of a server that knows the kinds."""
    path = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as made:
        await install_kinds(made)
        yield made


async def test_fields_that_only_volcano_reads_are_kept(client: Client) -> None:
    for text, resource in ((QUEUE, QUEUES), (PODGROUP, PODGROUPS)):
        sent = yaml.safe_load(text)
        made = await client.create(sent, resource)
        assert _within(sent["spec"], made["spec"])


async def test_what_is_not_said_gets_volcanos_defaults(client: Client) -> None:
    queue = await client.create({"metadata": {"name": "q"}, "spec": {}}, QUEUES)
    assert queue["spec"] == {"weight": 1, "dequeueStrategy": "traverse"}
    named = {"name": "g", "namespace": "default"}
    group = await client.create({"metadata": named, "spec": {}}, PODGROUPS)
    assert group["spec"] == {"queue": "default"}


async def test_a_queues_status_is_written_apart_and_a_groups_is_not(client: Client) -> None:
    await client.create({"metadata": {"name": "q"}, "spec": {}}, QUEUES)
    change = merge({"status": {"state": "Open", "allocated": {"cpu": "1500m"}}})
    assert "status" not in await client.patch(QUEUES, "q", change=change)
    queue = await client.patch(QUEUES, "q", change=change, subresource="status")
    assert queue["status"] == {"state": "Open", "allocated": {"cpu": "1500m"}}
    named = {"name": "g", "namespace": "default"}
    made = await client.create(
        {"metadata": named, "spec": {}, "status": {"phase": "Pending"}}, PODGROUPS
    )
    assert made["status"] == {"phase": "Pending"}
    with pytest.raises(NotFoundError):
        await client.patch(PODGROUPS, "default", "g", change=change, subresource="status")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"weight": 0}, "spec.weight"),
        ({"weight": 65536}, "spec.weight"),
        ({"parent": "Not A Name"}, "spec.parent"),
        ({"priority": -1}, "spec.priority"),
        ({"capability": {"cpu": "much"}}, "spec.capability"),
        ({"dequeueStrategy": "lifo"}, "spec.dequeueStrategy"),
    ],
)
async def test_what_a_queue_cannot_say_is_refused(
    client: Client, spec: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidError, match=field):
        await client.create({"metadata": {"name": "q"}, "spec": spec}, QUEUES)


@needs_kubectl
async def test_kubectl_applies_and_shows_them_as_volcanos(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=path)):
        kubectl = runner(path, tmp_path)
        await kubectl("apply", "-f", str(CRDS))
        await kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=300s")
        await kubectl("apply", "-f", "-", stdin=f"{QUEUE}---{PODGROUP}")
        assert (await kubectl("get", "q")).out.split() == ["NAME", "PARENT", "research", "root"]
        heading, row = (await kubectl("get", "pg", "-o", "wide")).out.splitlines()
        assert heading.split() == ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE", "QUEUE"]
        assert (row.split()[0], row.split()[-1]) == ("train", "default")
        assert "unchanged" in (await kubectl("apply", "-f", "-", stdin=QUEUE)).out


@needs_kubectl
async def test_kubectl_explains_them(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=path)):
        kubectl = runner(path, tmp_path)
        await kubectl("apply", "-f", str(CRDS))
        await kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=300s")
        for kind in ("queue", "podgroup", "nodegroup"):
            for place in (kind, f"{kind}.spec", f"{kind}.status"):
                told = (await kubectl("explain", place)).out
                assert "<no description>" not in told
                assert "<empty>" not in told
        told = (await kubectl("explain", "podgroup.spec")).out
        assert "How many pods must start together." in told
        told = (await kubectl("explain", "queue.spec.capability", "--recursive")).out
        assert "The most that it may have" in told


@pytest.mark.parametrize("definition", documents(CRDS), ids=lambda one: one["metadata"]["name"])
def test_every_field_and_column_is_described(definition: dict[str, Any]) -> None:
    for version in definition["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        assert list(_undescribed(schema, version["name"])) == [f"{version['name']}.metadata"]
        assert all(column.get("description") for column in version["additionalPrinterColumns"])


def _undescribed(schema: dict[str, Any], place: str) -> Iterator[str]:
    """Where nothing is said; API servers refuse a definition that describes metadata."""
    if not schema.get("description"):
        yield place
    for name, field in schema.get("properties", {}).items():
        yield from _undescribed(field, f"{place}.{name}")
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        for name, field in (inner or {}).get("properties", {}).items():
            yield from _undescribed(field, f"{place}[].{name}")


def _within(said: object, found: object) -> bool:
    """Whether everything that was said is found, with defaults beside it."""
    if isinstance(said, dict):
        held = cast("dict[str, object]", found)
        return all(_within(value, held.get(key)) for key, value in said.items())
    if isinstance(said, list):
        return all(_within(*pair) for pair in zip(said, cast("list[object]", found), strict=True))
    return said == found
