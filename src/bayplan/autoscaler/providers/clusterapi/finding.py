"""From a node to its machine and its group."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.autoscaler.providers.clusterapi.failing import translated
from bayplan.autoscaler.providers.clusterapi.groups import Group
from bayplan.autoscaler.providers.clusterapi.ids import machine_key
from bayplan.autoscaler.providers.clusterapi.index import Index
from bayplan.autoscaler.providers.clusterapi.kinds import Machine
from bayplan.autoscaler.providers.clusterapi.words import Words
from bayplan.base.suggestions import no_such
from bayplan.client import Client
from bayplan.kube.nodes import Node
from bayplan.nodegroups import InvalidRequestError, NodeRef, NotFoundError


class Finder:
    """Looks up what nodes and names stand for."""

    def __init__(self, index: Index, words: Words, workload: Client) -> None:
        self._index = index
        self._words = words
        self._workload = workload
        self._node_ids: dict[str, str] = {}

    def group(self, name: str) -> Group:
        """The group of that id; NotFoundError if there is none."""
        found = self._index.group(name)
        if found is None:
            known = (one.group.id for one in self._index.groups())
            raise NotFoundError(no_such("node group", name, known))
        return found

    def group_of(self, node: NodeRef) -> Group | None:
        """The group whose machine the node is, or whose list it is in."""
        machine = self._machine(node)
        found = None if machine is None else self._index.group_of(machine)
        return found or (self._index.pool_of(node.provider_id) if node.provider_id else None)

    def machines(self, group: Group, nodes: Sequence[NodeRef]) -> list[Machine]:
        """The machines of some nodes, each once; an error if one is not of the group."""
        found: dict[str, Machine] = {}
        for node in nodes:
            machine, owner = self._machine(node), self.group_of(node)
            if machine is None:
                raise NotFoundError(
                    f"there is no machine of node {node.provider_id or node.name!r}"
                )
            if owner is None or owner.group.id != group.group.id:
                said = f"machine {machine.key} is not of node group {group.group.id}"
                raise InvalidRequestError(said)
            found[machine.key] = machine
        return list(found.values())

    async def provider_id(self, machine: Machine) -> str:
        """The machine's own, or its node's where the infrastructure does not tell; or empty."""
        ref, uid = machine.status.node_ref, machine.metadata.uid
        if machine.spec.provider_id or ref is None:
            return machine.spec.provider_id
        if uid not in self._node_ids:
            try:
                with translated():
                    node = await self._workload.get(Node, ref.name)
            except NotFoundError:
                return ""
            if not node.spec.provider_id:
                return ""
            if len(self._node_ids) > 2 * len(self._index.machines):
                self._node_ids.clear()  # of machines that are gone
            self._node_ids[uid] = node.spec.provider_id
        return self._node_ids[uid]

    def _machine(self, node: NodeRef) -> Machine | None:
        """By provider ID, or by the annotations that Cluster API puts on a node."""
        if key := machine_key(node.provider_id):
            return self._index.machines.get(key)
        found = self._index.machine(node.provider_id) if node.provider_id else None
        words, said = self._words, node.annotations
        return found or self._index.machines.get(
            f"{said.get(words.namespace, '')}/{said.get(words.machine, '')}"
        )
