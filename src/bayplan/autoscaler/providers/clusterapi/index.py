"""What there is of Cluster API's objects, found by what it is asked for: kept up by every change.

A machine is found by its provider ID, its own name, or the set that made it; a group by its id. All
of it costs what is asked about, however many machines there are.
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
from bayplan.autoscaler.providers.clusterapi.scaling import translated
from bayplan.autoscaler.providers.clusterapi.templates import (
    Group,
    Reading,
    describe,
    group_id,
    is_rolling_out,
    read_group,
)
from bayplan.base.suggestions import no_such
from bayplan.client import Change, Client
from bayplan.client.errors import MalformedError
from bayplan.client.events import reference_to
from bayplan.client.informers.informer import UnfitHandler
from bayplan.kube.nodes import Node
from bayplan.nodegroups import GroupProblem, InvalidRequestError, NodeRef, NotFoundError

_SETS, _POOLS = MachineSet.__name__, MachinePool.__name__


class Index:
    """Machines and what makes them; `allowed` says which of the latter can be groups."""

    def __init__(self, words: ApiNames, allowed: Callable[[Scalable], bool]) -> None:
        self._words = words
        self._allowed = allowed
        self.machines: dict[str, Machine] = {}
        self._by_id: defaultdict[str, set[str]] = defaultdict(set)
        self._of_owner: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._scalables: dict[str, Scalable] = {}
        self._readings: dict[str, Reading] = {}
        self._pools: dict[str, str] = {}
        self._sets: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._unfit: dict[str, str] = {}
        self._changes = count(1)
        self._versions: dict[str, int] = {}
        """By the set or pool that made them, the last change of machines; "" is all of them."""

    def machine_changed(self, change: Change[Machine]) -> None:
        """Take in what became of a machine."""
        for one in filter(None, (change.old, change.new)):
            self._versions[_owner(one)] = self._versions[""] = next(self._changes)
        if change.old is not None:
            self._forget(change.old)
        if change.type != "deleted":
            self._keep(change.object)

    def scalable_changed(self, change: Change[Scalable]) -> None:
        """Take in what became of a MachineDeployment, MachineSet or MachinePool."""
        if change.old is not None:
            self._drop(change.old)
        if change.type != "deleted":
            self._take(change.object)
        else:
            self._versions.pop(group_id(change.object), None)

    def unfit(self, kind: str) -> UnfitHandler:
        """What to call about objects of a kind that are not as Cluster API defines them."""

        def told(key: str, error: MalformedError | None) -> None:
            self._unfit.pop(f"{kind}/{key}", None)
            if error is not None:
                self._unfit[f"{kind}/{key}"] = str(error)

        return told

    def groups(self) -> Iterator[Group]:
        """All node groups."""
        return (one.group for one in self._readings.values() if one.group is not None)

    def group(self, name: str) -> Group | None:
        """The group of that id."""
        found = self._readings.get(name)
        return None if found is None else found.group

    def problems(self) -> Iterator[GroupProblem]:
        """What is said and cannot be read."""
        yield from (GroupProblem(name, text) for name, text in self._unfit.items())
        for name, reading in self._readings.items():
            about = reference_to(self._scalables[name])
            yield from (GroupProblem(name, text, about) for text in reading.problems)

    def machines_of(self, group: Group) -> list[Machine]:
        """The machines that a group has made; a MachineDeployment's are of all its sets."""
        return [self.machines[key] for one in self._makers(group) for key in self._of_owner[one]]

    def is_rolling_out(self, group: Group) -> bool:
        """Whether a MachineDeployment is on its way from one revision to another."""
        if not isinstance(group.resource, MachineDeployment):
            return False
        return is_rolling_out([self._scalables[one] for one in self._makers(group)])

    def version(self, group: Group) -> Hashable:
        """Something that is another one whenever the group's machines might be."""
        if isinstance(group.resource, MachinePool):
            return group.resource.metadata.resource_version, self._versions.get("")
        return tuple((one, self._versions.get(one)) for one in self._makers(group))

    def machine(self, provider_id: str) -> Machine | None:
        """The machine of that provider ID; None also if it might be several."""
        found = self._by_id.get(normalized(provider_id), set())
        exact = {key for key in found if self.machines[key].spec.provider_id == provider_id}
        meant = exact or found
        return self.machines[next(iter(meant))] if len(meant) == 1 else None

    def group_of(self, machine: Machine) -> Group | None:
        """The group that made a machine."""
        owner = _owner(machine)
        made_by = self._scalables.get(owner)
        above = _deployment(made_by) if isinstance(made_by, MachineSet) else ""
        return self.group(above or owner)

    def pool_of(self, provider_id: str) -> Group | None:
        """The MachinePool that lists that provider ID."""
        return self.group(self._pools.get(normalized(provider_id), ""))

    def _makers(self, group: Group) -> Collection[str]:
        """What makes a group's machines: itself, or the sets of a deployment."""
        owner = group_id(group.resource)
        return self._sets[owner] if isinstance(group.resource, MachineDeployment) else (owner,)

    def _keep(self, machine: Machine) -> None:
        self.machines[machine.key] = machine
        self._of_owner[_owner(machine)][machine.key] = None
        if machine.spec.provider_id:
            self._by_id[normalized(machine.spec.provider_id)].add(machine.key)

    def _forget(self, machine: Machine) -> None:
        self.machines.pop(machine.key, None)
        self._of_owner[_owner(machine)].pop(machine.key, None)
        known = normalized(machine.spec.provider_id)
        self._by_id[known].discard(machine.key)
        if not self._by_id[known]:
            del self._by_id[known]

    def _take(self, one: Scalable) -> None:
        name = group_id(one)
        self._unfit.pop(name, None)
        self._scalables[name] = one
        if isinstance(one, MachineSet) and (above := _deployment(one)):
            self._sets[above][name] = None
        for listed in one.spec.provider_id_list:
            self._pools[normalized(listed)] = name
        if self._allowed(one):
            self._readings[name] = self._read(one)

    def _read(self, one: Scalable) -> Reading:
        read = read_group(one, self._words)
        if read.group is None:
            return read
        return Reading(read.group, (*read.problems, *describe(read.group).problems))

    def _drop(self, one: Scalable) -> None:
        name = group_id(one)
        self._unfit.pop(name, None)
        self._scalables.pop(name, None)
        self._readings.pop(name, None)
        self._sets[_deployment(one)].pop(name, None)
        for listed in one.spec.provider_id_list:
            if self._pools.get(normalized(listed)) == name:
                del self._pools[normalized(listed)]


def _owner(machine: Machine) -> str:
    """The id of the set or pool that made a machine."""
    for one in machine.metadata.owner_references:
        if one.kind in {_SETS, _POOLS}:
            return f"{one.kind}/{machine.namespace}/{one.name}"
    return ""


def _deployment(one: Scalable) -> str:
    """The id of the MachineDeployment that made a set."""
    owners = one.metadata.owner_references
    above = next((o.name for o in owners if o.kind == MachineDeployment.__name__), "")
    return f"{MachineDeployment.__name__}/{one.namespace}/{above}" if above else ""


class Finder:
    """Looks up what nodes and names stand for."""

    def __init__(self, index: Index, words: ApiNames, workload: Client) -> None:
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
