"""The simulated cloud: creates and deletes instances, each of which boots into a machine.

A request above a group's maximum, or above a quota, is refused at once. A stock-out shows only
later, as in real clouds: the instance exists with an error and never runs until it is deleted,
which is allowed even where the group is at its minimum. A group's target is the number of its
instances. Names are numbered and never reused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from bayplan.embedded.cloud.inventory import InstanceInventory, RecordStore
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    LocalAction,
    Plan,
    RequeueAfter,
)
from bayplan.embedded.nodes.fleet import Fleet
from bayplan.embedded.nodes.machines import SimulatedInstance, SimulatedNodeGroup
from bayplan.nodegroups import (
    InvalidRequestError,
    NodeGroupNotFoundError,
    QuotaExceededError,
    RefusedError,
)


class Cloud:
    """Node groups and their instances; they are kept in the data file."""

    def __init__(
        self, context: ControllerContext, groups: Iterable[SimulatedNodeGroup], store: RecordStore
    ) -> None:
        self._context = context
        self._groups = {group.name: group for group in groups}
        self._inventory = InstanceInventory(context, self._groups, store)
        self.listeners: list[Callable[[str], None]] = []
        """Called with the name of every instance that is added, changed or removed."""

    def open(self) -> None:
        """Create the initial instances of groups, except of those that an earlier run opened."""
        for name, group in self._groups.items():
            missing = group.count - self.target(name)
            if self._inventory.open(name) and missing > 0:
                self.increase(name, missing)
        self._inventory.save([])

    @property
    def instances(self) -> dict[str, SimulatedInstance]:
        """Return all instances by name, oldest first, including failed ones."""
        return self._inventory.instances

    def groups(self) -> list[SimulatedNodeGroup]:
        """Return all node groups, in order."""
        return [self._groups[name] for name in sorted(self._groups)]

    def group(self, name: str) -> SimulatedNodeGroup:
        """Return a node group; NodeGroupNotFoundError if there is none of that name."""
        if name not in self._groups:
            known = ", ".join(sorted(self._groups)) or "none"
            raise NodeGroupNotFoundError(f"there is no node group {name!r}; there are: {known}")
        return self._groups[name]

    def instance(self, name: str) -> SimulatedInstance:
        """Return an instance; NodeGroupNotFoundError if there is none of that name."""
        if name not in self.instances:
            raise NodeGroupNotFoundError(f"there is no instance {name!r}")
        return self.instances[name]

    def target(self, group: str) -> int:
        """Return the target size of a group."""
        return self._inventory.count(self.group(group).name)

    def instances_of(self, group: str) -> list[SimulatedInstance]:
        """Return a group's instances, oldest first, including failed ones."""
        return self._inventory.of(self.group(group).name)

    def increase(self, group: str, count: int) -> list[SimulatedInstance]:
        """Create instances; RefusedError or QuotaExceededError if they are too many."""
        wanted = self.group(group)
        target = self.target(group) + count
        if count <= 0:
            raise InvalidRequestError(f"node group {group}: cannot be increased by {count}")
        if target > wanted.maximum:
            raise RefusedError(
                f"node group {group}: {target} is above its maximum {wanted.maximum}"
            )
        if self._context.faults.find("quota", group=group):
            raise QuotaExceededError(f"node group {group}: quota exceeded")
        created = [self._launch(wanted) for _ in range(count)]
        self._changed([one.name for one in created])
        return created

    def delete(self, names: Iterable[str]) -> None:
        """Delete instances, all or none: RefusedError below the group's minimum."""
        going = [self.instance(name) for name in dict.fromkeys(names)]
        for group, count in sorted(Counter(one.group.name for one in going).items()):
            left, minimum = self.target(group) - count, self._groups[group].minimum
            sound = any(one.state != "failed" for one in going if one.group.name == group)
            if left < minimum and sound:
                raise RefusedError(
                    f"node group {group}: {left} would be below its minimum {minimum}"
                )
        for one in going:
            self._inventory.remove(one)
        self._changed([one.name for one in going])

    def decrease_target(self, group: str, count: int) -> None:
        """Reduce the target by instances that do not run: failed ones first, then the newest."""
        if count <= 0:
            raise InvalidRequestError(f"node group {group}: cannot be decreased by {count}")
        made = reversed(self.instances_of(group))
        making = sorted((one for one in made if one.state != "running"), key=_failed_first)
        if count > len(making):
            raise RefusedError(f"node group {group}: only {len(making)} are still being created")
        self.delete(one.name for one in making[:count])

    def start(self, name: str) -> None:
        """Mark an instance as running."""
        self.instance(name).state = "running"
        self._changed([name])

    def fail(self, name: str, message: str) -> None:
        """Mark an instance as failed."""
        one = self.instance(name)
        one.state, one.error_code, one.error = "failed", "OUT_OF_STOCK", message
        self._changed([name])

    def spent(self) -> float:
        """Return the cost of all instances so far."""
        return self._inventory.spent()

    def _launch(self, group: SimulatedNodeGroup) -> SimulatedInstance:
        number = self._inventory.next_number(group.name)
        zone = group.zones[(number - 1) % len(group.zones)]
        now = self._context.seconds()
        made = SimulatedInstance(
            f"{group.name}-{number}", group, zone, now, self._start(group, zone)
        )
        self._inventory.add(made)
        return made

    def _start(self, group: SimulatedNodeGroup, zone: str) -> float | None:
        faults = self._context.faults
        if faults.find("never-registers", group=group.name, zone=zone):
            return None
        slow = faults.find("slow-start", group=group.name, zone=zone)
        wait = self._context.about(group.start_seconds) + (slow.delay if slow else 0.0)
        return self._context.seconds() + wait

    def _changed(self, names: list[str]) -> None:
        self._inventory.save(names)
        for name in names:
            for listener in self.listeners:
                listener(name)


def _failed_first(one: SimulatedInstance) -> bool:
    return one.state != "failed"


STOCK_SECONDS = 5.0
"""Seconds until a stock-out shows."""


class InstanceBoot(Controller[str]):
    """Boots instances into machines; keyed by instance name."""

    name = "cloud"

    def __init__(self, context: ControllerContext, cloud: Cloud, fleet: Fleet) -> None:
        self._context = context
        self._cloud = cloud
        self._fleet = fleet

    def first(self) -> Iterable[str]:
        """Return the names of all instances."""
        return list(self._cloud.instances)

    def decide(self, key: str) -> Plan:
        """Decide whether an instance fails, boots, or is gone."""
        one = self._cloud.instances.get(key)
        if one is None:
            return [LocalAction(f"switch {key} off", partial(self._fleet.remove, key))]
        if one.state == "creating":
            return self._boot(one)
        if one.state == "running" and key not in self._fleet.machines:
            return [LocalAction(f"switch {key} on", partial(self._fleet.add, one))]
        return []

    def _boot(self, one: SimulatedInstance) -> Plan:
        now = self._context.seconds()
        tried = min(one.launched + STOCK_SECONDS, one.starts or float("inf"))
        if now < tried:
            return [RequeueAfter(tried - now)]
        if self._context.faults.find("stock-out", group=one.group.name, zone=one.zone):
            message = f"no {one.group.instance_type.name} left in {one.zone}"
            return [LocalAction(f"fail {one.name}", partial(self._cloud.fail, one.name, message))]
        if one.starts is None:
            return []
        if now < one.starts:
            return [RequeueAfter(one.starts - now)]
        return [LocalAction(f"start {one.name}", partial(self._cloud.start, one.name))]
