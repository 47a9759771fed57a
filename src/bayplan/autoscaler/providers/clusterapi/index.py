"""An index of Cluster API's objects, updated with every change.

A machine is found by its provider ID, its name, or the set that owns it; a group by its id. The
cost of a lookup does not depend on the number of machines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from itertools import count

from bayplan.autoscaler.providers.clusterapi.objects import (
    ApiNames,
    Machine,
    MachineDeployment,
    MachinePool,
    MachineSet,
    Scalable,
    machine_key,
    normalized,
)
from bayplan.autoscaler.providers.clusterapi.scale import provider_errors
from bayplan.autoscaler.providers.clusterapi.templates import (
    GroupReading,
    ScalableGroup,
    describe,
    group_id,
    is_rolling_out,
    read_group,
)
from bayplan.base.suggestions import no_such
from bayplan.client import Change, Client
from bayplan.client.errors import MalformedError
from bayplan.client.events import reference_to
from bayplan.client.informers.informer import MalformedObjectHandler
from bayplan.kube.nodes import Node
from bayplan.nodegroups import GroupProblem, InvalidRequestError, NodeGroupNotFoundError, NodeRef

_SETS, _POOLS = MachineSet.__name__, MachinePool.__name__


class MachineIndex:
    """Machines and their owners; `allowed` selects the owners that can be groups."""

    def __init__(self, names: ApiNames, allowed: Callable[[Scalable], bool]) -> None:
        self._names = names
        self._allowed = allowed
        self.machines: dict[str, Machine] = {}
        self._by_id: defaultdict[str, set[str]] = defaultdict(set)
        self._of_owner: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._scalables: dict[str, Scalable] = {}
        self._readings: dict[str, GroupReading] = {}
        self._pools: dict[str, str] = {}
        self._sets: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._undecodable: dict[str, str] = {}
        self._changes = count(1)
        self._versions: dict[str, int] = {}
        """By owner, the last change of its machines; "" is all machines."""

    def machine_changed(self, change: Change[Machine]) -> None:
        """Update the index with a change of a machine."""
        for one in filter(None, (change.old, change.new)):
            self._versions[_owner(one)] = self._versions[""] = next(self._changes)
        if change.old is not None:
            self._remove_machine(change.old)
        if change.type != "deleted":
            self._add_machine(change.object)

    def scalable_changed(self, change: Change[Scalable]) -> None:
        """Update the index with a change of a MachineDeployment, MachineSet or MachinePool."""
        if change.old is not None:
            self._remove(change.old)
        if change.type != "deleted":
            self._add(change.object)
        else:
            self._versions.pop(group_id(change.object), None)

    def undecodable_handler(self, kind: str) -> MalformedObjectHandler:
        """Return the handler of objects of a kind that cannot be decoded."""

        def handler(key: str, error: MalformedError | None) -> None:
            self._undecodable.pop(f"{kind}/{key}", None)
            if error is not None:
                self._undecodable[f"{kind}/{key}"] = str(error)

        return handler

    def groups(self) -> Iterator[ScalableGroup]:
        """All node groups."""
        return (one.group for one in self._readings.values() if one.group is not None)

    def group(self, name: str) -> ScalableGroup | None:
        """The group with this id."""
        found = self._readings.get(name)
        return None if found is None else found.group

    def problems(self) -> Iterator[GroupProblem]:
        """Yield settings that cannot be read."""
        yield from (GroupProblem(name, text) for name, text in self._undecodable.items())
        for name, reading in self._readings.items():
            about = reference_to(self._scalables[name])
            yield from (GroupProblem(name, text, about) for text in reading.problems)

    def machines_of(self, group: ScalableGroup) -> list[Machine]:
        """The machines of a group; those of a MachineDeployment are of all its sets."""
        return [self.machines[key] for one in self._owners(group) for key in self._of_owner[one]]

    def members_among(
        self, group: ScalableGroup, machines: Sequence[Machine]
    ) -> tuple[list[Machine], int]:
        """Return the group's machines among these, and how many instances have no machine."""
        if not isinstance(group.resource, MachinePool):
            owners = set(self._owners(group))
            return [one for one in machines if _owner(one) in owners], 0
        listed = {normalized(one) for one in group.resource.spec.provider_id_list}
        found = [one for one in machines if normalized(one.spec.provider_id) in listed]
        return found, len(listed) - len(found)

    def is_rolling_out(self, group: ScalableGroup) -> bool:
        """Whether a MachineDeployment is being rolled out to a new revision."""
        if not isinstance(group.resource, MachineDeployment):
            return False
        return is_rolling_out([self._scalables[one] for one in self._owners(group)])

    def version(self, group: ScalableGroup) -> Hashable:
        """A value that changes whenever the group's machines may have changed."""
        if isinstance(group.resource, MachinePool):
            return group.resource.metadata.resource_version, self._versions.get("")
        return tuple((one, self._versions.get(one)) for one in self._owners(group))

    def machine(self, provider_id: str) -> Machine | None:
        """The machine with this provider ID; None also if it is ambiguous."""
        found = self._by_id.get(normalized(provider_id), set())
        exact = {key for key in found if self.machines[key].spec.provider_id == provider_id}
        matching = exact or found
        return self.machines[next(iter(matching))] if len(matching) == 1 else None

    def group_of(self, machine: Machine) -> ScalableGroup | None:
        """The group of a machine."""
        owner = _owner(machine)
        owned_by = self._scalables.get(owner)
        above = _deployment(owned_by) if isinstance(owned_by, MachineSet) else ""
        return self.group(above or owner)

    def pool_of(self, provider_id: str) -> ScalableGroup | None:
        """The MachinePool that lists this provider ID."""
        return self.group(self._pools.get(normalized(provider_id), ""))

    def _owners(self, group: ScalableGroup) -> Collection[str]:
        """Return the owners of a group's machines: itself, or the sets of a deployment."""
        owner = group_id(group.resource)
        return self._sets[owner] if isinstance(group.resource, MachineDeployment) else (owner,)

    def _add_machine(self, machine: Machine) -> None:
        self.machines[machine.key] = machine
        self._of_owner[_owner(machine)][machine.key] = None
        if machine.spec.provider_id:
            self._by_id[normalized(machine.spec.provider_id)].add(machine.key)

    def _remove_machine(self, machine: Machine) -> None:
        self.machines.pop(machine.key, None)
        self._of_owner[_owner(machine)].pop(machine.key, None)
        known = normalized(machine.spec.provider_id)
        self._by_id[known].discard(machine.key)
        if not self._by_id[known]:
            del self._by_id[known]

    def _add(self, one: Scalable) -> None:
        name = group_id(one)
        self._undecodable.pop(name, None)
        self._scalables[name] = one
        if isinstance(one, MachineSet) and (above := _deployment(one)):
            self._sets[above][name] = None
        for listed in one.spec.provider_id_list:
            self._pools[normalized(listed)] = name
        if self._allowed(one):
            self._readings[name] = self._read(one)

    def _read(self, one: Scalable) -> GroupReading:
        read = read_group(one, self._names)
        if read.group is None:
            return read
        return GroupReading(read.group, (*read.problems, *describe(read.group).problems))

    def _remove(self, one: Scalable) -> None:
        name = group_id(one)
        self._undecodable.pop(name, None)
        self._scalables.pop(name, None)
        self._readings.pop(name, None)
        self._sets[_deployment(one)].pop(name, None)
        for listed in one.spec.provider_id_list:
            if self._pools.get(normalized(listed)) == name:
                del self._pools[normalized(listed)]


def _owner(machine: Machine) -> str:
    """Return the id of the set or pool that owns a machine."""
    for one in machine.metadata.owner_references:
        if one.kind in {_SETS, _POOLS}:
            return f"{one.kind}/{machine.namespace}/{one.name}"
    return ""


def _deployment(one: Scalable) -> str:
    """Return the id of the MachineDeployment that owns a set."""
    owners = one.metadata.owner_references
    above = next((o.name for o in owners if o.kind == MachineDeployment.__name__), "")
    return f"{MachineDeployment.__name__}/{one.namespace}/{above}" if above else ""


class MachineFinder:
    """Looks up groups and machines of nodes."""

    def __init__(self, index: MachineIndex, names: ApiNames, workload: Client) -> None:
        self._index = index
        self._names = names
        self._workload = workload
        self._node_ids: dict[str, str] = {}

    def group(self, name: str) -> ScalableGroup:
        """Return the group with this id; NodeGroupNotFoundError if there is none."""
        found = self._index.group(name)
        if found is None:
            known = (one.group.id for one in self._index.groups())
            raise NodeGroupNotFoundError(no_such("node group", name, known))
        return found

    def group_of(self, node: NodeRef) -> ScalableGroup | None:
        """Return the group of a node's machine, or the pool that lists it."""
        machine = self._machine(node)
        found = None if machine is None else self._index.group_of(machine)
        return found or (self._index.pool_of(node.provider_id) if node.provider_id else None)

    def machines(self, group: ScalableGroup, nodes: Sequence[NodeRef]) -> list[Machine]:
        """Return the machines of nodes, each once; an error if one is not in the group."""
        found: dict[str, Machine] = {}
        for node in nodes:
            machine, owner = self._machine(node), self.group_of(node)
            if machine is None:
                raise NodeGroupNotFoundError(
                    f"there is no machine of node {node.provider_id or node.name!r}"
                )
            if owner is None or owner.group.id != group.group.id:
                message = f"machine {machine.key} is not in node group {group.group.id}"
                raise InvalidRequestError(message)
            found[machine.key] = machine
        return list(found.values())

    async def provider_id(self, machine: Machine) -> str:
        """Return the machine's provider ID, or else its node's; empty if unknown."""
        ref, uid = machine.status.node_ref, machine.metadata.uid
        if machine.spec.provider_id or ref is None:
            return machine.spec.provider_id
        if uid not in self._node_ids:
            try:
                with provider_errors():
                    node = await self._workload.get(Node, ref.name)
            except NodeGroupNotFoundError:
                return ""
            if not node.spec.provider_id:
                return ""
            if len(self._node_ids) > 2 * len(self._index.machines):
                self._node_ids.clear()  # most are of deleted machines
            self._node_ids[uid] = node.spec.provider_id
        return self._node_ids[uid]

    def _machine(self, node: NodeRef) -> Machine | None:
        """Return the machine by provider ID, or by Cluster API's annotations on the node."""
        if key := machine_key(node.provider_id):
            return self._index.machines.get(key)
        found = self._index.machine(node.provider_id) if node.provider_id else None
        names, annotations = self._names, node.annotations
        return found or self._index.machines.get(
            f"{annotations.get(names.namespace, '')}/{annotations.get(names.machine, '')}"
        )
