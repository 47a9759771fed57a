"""Cluster API played by the tests: its kinds in a server, and a controller that makes machines.

The controller does what Cluster API's own do, one step at a time and when it is told to: sets for
deployments, machines for sets, nodes for machines; and of a set that gets smaller it deletes the
machines first that are marked, then those that are no nodes yet.
"""

from __future__ import annotations

from typing import Any, cast

from bayplan.client import Client, Resource, Untyped, deletion, merge, untyped
from bayplan.client.errors import NotFoundError
from bayplan.kube.nodes import Node

GROUP = "cluster.x-k8s.io"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
NAMESPACE = "default"
MIN, MAX = (f"{GROUP}/cluster-api-autoscaler-node-group-{side}-size" for side in ("min", "max"))
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
DELETE = f"{GROUP}/delete-machine"
KINDS = ("Machine", "MachineSet", "MachineDeployment", "MachinePool")
SIZED = {f"{CAPACITY}cpu": "4", f"{CAPACITY}memory": "16Gi"}


def definition(group: str, kind: str, *versions: str) -> Untyped:
    """A kind that keeps whatever it is given, and has a size if it is one that can."""
    plural = f"{kind.lower()}s"
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    subresources: dict[str, object] = {"status": {}}
    if kind not in {"Machine", "Template"}:
        subresources["scale"] = scale
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "subresources": subresources,
                    "schema": {"openAPIV3Schema": schema},
                }
                for version in versions
            ],
        },
    }


class Capi:
    """A management cluster with Cluster API in it, and the workload cluster that it makes."""

    def __init__(self, client: Client, workload: Client | None = None, version: str = "v1beta1"):
        self.client = client
        self.workload = workload or client
        self.version = version
        self._count = 0

    async def install(self, *kinds: str, served: tuple[str, ...] = ()) -> None:
        for kind in kinds or KINDS:
            await self.client.create(definition(GROUP, kind, *(served or (self.version,))))
        await self.client.create(definition(INFRASTRUCTURE, "Template", "v1alpha9", "v1"))

    def of(self, kind: str) -> Resource[Untyped]:
        return untyped(GROUP, self.version, f"{kind.lower()}s", kind)

    async def make(
        self,
        kind: str,
        name: str,
        replicas: int | None = 0,
        annotations: dict[str, str] | None = None,
        **spec: object,
    ) -> Untyped:
        """A group of up to five machines, unless its annotations say otherwise."""
        said = {MIN: "0", MAX: "5", **(annotations or {})}
        meta = {"namespace": NAMESPACE, "name": name, "annotations": said}
        sized = {} if replicas is None else {"replicas": replicas}
        item = {"metadata": meta, "spec": {"clusterName": "c", **sized, **spec}}
        return await self.client.create(item, self.of(kind))

    async def annotate(self, kind: str, name: str, **annotations: str | None) -> None:
        said = {key.replace("__", "/"): text for key, text in annotations.items()}
        change = merge({"metadata": {"annotations": said}})
        await self.client.patch(self.of(kind), NAMESPACE, name, change=change)

    async def list(self, kind: str) -> list[Any]:
        return cast("list[Any]", (await self.client.list(self.of(kind), NAMESPACE)).items)

    async def machines(self) -> dict[str, Any]:
        return {one["metadata"]["name"]: one for one in await self.list("Machine")}

    async def replicas(self, kind: str, name: str) -> int:
        item: Any = await self.client.get(self.of(kind), NAMESPACE, name)
        return int(item["spec"]["replicas"])

    async def settle(self, *, boot: bool = True) -> None:
        """Let Cluster API do all that it would do now."""
        for one in await self.list("MachineDeployment"):
            await self._roll(one)
        for one in await self.list("MachineSet"):
            await self._fill(one)
        if boot:
            for one in await self.list("Machine"):
                await self.boot(one)

    async def boot(self, machine: Any) -> None:
        """A machine becomes a node."""
        name = machine["metadata"]["name"]
        status = machine.get("status", {})
        failed = "failureMessage" in status or status.get("phase") == "Failed"
        if "nodeRef" in status or failed:
            return
        provider_id = f"infra:///zone-a/{name}"
        change = merge({"spec": {"providerID": provider_id}})
        await self.client.patch(self.of("Machine"), NAMESPACE, name, change=change)
        notes = {f"{GROUP}/machine": name, f"{GROUP}/cluster-namespace": NAMESPACE}
        node = {"metadata": {"name": name, "annotations": notes}}
        spec = {"spec": {"providerID": provider_id}}
        await self.workload.create({"apiVersion": "v1", "kind": "Node", **node, **spec})
        await self.status(name, nodeRef={"name": name}, phase="Running")

    async def status(self, machine: str, **status: object) -> None:
        change = merge({"status": status})
        place = (NAMESPACE, machine)
        await self.client.patch(self.of("Machine"), *place, change=change, subresource="status")

    async def fail(self, machine: str, message: str, reason: str = "") -> None:
        """A machine fails for good, in the words of the version that is served."""
        said = {"failureMessage": message} | ({"failureReason": reason} if reason else {})
        if self.version == "v1beta2":
            await self.status(machine, deprecated={"v1beta1": said})
        else:
            await self.status(machine, **said)

    async def _roll(self, one: Any) -> None:
        name = f"{one['metadata']['name']}-1"
        wanted = one["spec"]["replicas"]
        try:
            await self.client.scale(self.of("MachineSet"), NAMESPACE, name, replicas=wanted)
        except NotFoundError:
            meta = {"namespace": NAMESPACE, "name": name, "ownerReferences": [_owner(one)]}
            spec = {"clusterName": "c", "replicas": wanted}
            await self.client.create({"metadata": meta, "spec": spec}, self.of("MachineSet"))

    async def _fill(self, one: Any) -> None:
        uid = one["metadata"]["uid"]
        own = [m for m in await self.list("Machine") if _is_owned(m, uid)]
        for _ in range(one["spec"]["replicas"] - len(own)):
            self._count += 1
            meta = {
                "namespace": NAMESPACE,
                "name": f"{one['metadata']['name']}-{self._count}",
                "ownerReferences": [_owner(one)],
            }
            await self.client.create({"metadata": meta, "spec": {}}, self.of("Machine"))
        for machine in sorted(own, key=_last)[: max(0, len(own) - one["spec"]["replicas"])]:
            await self._delete(machine["metadata"]["name"])

    async def _delete(self, name: str) -> None:
        await self.client.delete(self.of("Machine"), NAMESPACE, name)
        try:
            await self.workload.delete(Node, name, options=deletion(grace=0))
        except NotFoundError:
            return


def _owner(one: Any) -> dict[str, object]:
    meta = one["metadata"]
    named = {"apiVersion": one["apiVersion"], "kind": one["kind"], "name": meta["name"]}
    return {**named, "uid": meta["uid"], "controller": True}


def _is_owned(machine: Any, uid: str) -> bool:
    return any(one["uid"] == uid for one in machine["metadata"].get("ownerReferences", ()))


def _last(machine: Any) -> tuple[bool, bool, str]:
    """What goes first comes first."""
    marked = DELETE in machine["metadata"].get("annotations", {})
    return not marked, "nodeRef" in machine.get("status", {}), machine["metadata"]["name"]
