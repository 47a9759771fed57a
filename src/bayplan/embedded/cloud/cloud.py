"""The cloud: buys and gives back instances, each of which boots into a machine.

Asking for more than a group's maximum, or over a quota, is refused at once. A stock-out shows only
later, as it does in real clouds: the instance is there, has an error and never runs, until somebody
gives it back, which is allowed even where the group is at its minimum. A group's target is the
number of its instances. Names count up and are never used twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from bayplan.embedded.cloud.inventory import Inventory, Notes
from bayplan.embedded.control.controller import Controller, Do, Plan, RequeueAfter, Stage
from bayplan.embedded.nodes.fleet import Fleet
from bayplan.embedded.nodes.machines import Instance, NodeGroup
from bayplan.nodegroups import InvalidRequestError, NotFoundError, QuotaExceededError, RefusedError


class Cloud:
    """Node groups and their instances; what it sold outlives it in the notes."""

    def __init__(self, stage: Stage, groups: Iterable[NodeGroup], notes: Notes) -> None:
        self._stage = stage
        self._groups = {group.name: group for group in groups}
        self._sold = Inventory(stage, self._groups, notes)
        self.listeners: list[Callable[[str], None]] = []
        """Told the name of every instance that comes, changes or goes."""

    def open(self) -> None:
        """Buy what groups have at the start, except those that an earlier run opened already."""
        for name, group in self._groups.items():
            missing = group.count - self.target(name)
            if self._sold.open(name) and missing > 0:
                self.increase(name, missing)
        self._sold.keep([])

    @property
    def instances(self) -> dict[str, Instance]:
        """All instances by name, oldest first, those that failed too."""
        return self._sold.instances

    def groups(self) -> list[NodeGroup]:
        """All node groups, in order."""
        return [self._groups[name] for name in sorted(self._groups)]

    def group(self, name: str) -> NodeGroup:
        """A node group; NotFoundError if there is none of that name."""
        if name not in self._groups:
            known = ", ".join(sorted(self._groups)) or "none"
            raise NotFoundError(f"there is no node group {name!r}; there are: {known}")
        return self._groups[name]

    def instance(self, name: str) -> Instance:
        """An instance; NotFoundError if there is none of that name."""
        if name not in self.instances:
            raise NotFoundError(f"there is no instance {name!r}")
        return self.instances[name]

    def target(self, group: str) -> int:
        """How many instances a group is meant to have."""
        return self._sold.count(self.group(group).name)

    def instances_of(self, group: str) -> list[Instance]:
        """A group's instances, oldest first, those that failed too."""
        return self._sold.of(self.group(group).name)

    def increase(self, group: str, count: int) -> list[Instance]:
        """Buy instances; RefusedError or QuotaExceededError if they are too many."""
        wanted = self.group(group)
        target = self.target(group) + count
        if count <= 0:
            raise InvalidRequestError(f"node group {group}: cannot be increased by {count}")
        if target > wanted.maximum:
            raise RefusedError(
                f"node group {group}: {target} is above its maximum {wanted.maximum}"
            )
        if self._stage.faults.find("quota", group=group):
            raise QuotaExceededError(f"node group {group}: quota exceeded")
        bought = [self._launch(wanted) for _ in range(count)]
        self._changed([one.name for one in bought])
        return bought

    def delete(self, names: Iterable[str]) -> None:
        """Give instances back, all or none: RefusedError if the minimum would be passed."""
        going = [self.instance(name) for name in dict.fromkeys(names)]
        for group, count in sorted(Counter(one.group.name for one in going).items()):
            left, minimum = self.target(group) - count, self._groups[group].minimum
            sound = any(one.state != "failed" for one in going if one.group.name == group)
            if left < minimum and sound:
                raise RefusedError(
                    f"node group {group}: {left} would be below its minimum {minimum}"
                )
        for one in going:
            self._sold.remove(one)
        self._changed([one.name for one in going])

    def decrease_target(self, group: str, count: int) -> None:
        """Want fewer without giving back any that runs: what failed goes, then the newest."""
        if count <= 0:
            raise InvalidRequestError(f"node group {group}: cannot be decreased by {count}")
        made = reversed(self.instances_of(group))
        making = sorted((one for one in made if one.state != "running"), key=_failed_first)
        if count > len(making):
            raise RefusedError(f"node group {group}: only {len(making)} are still being created")
        self.delete(one.name for one in making[:count])

    def start(self, name: str) -> None:
        """An instance that was being made runs."""
        self.instance(name).state = "running"
        self._changed([name])

    def fail(self, name: str, said: str) -> None:
        """An instance cannot be had."""
        one = self.instance(name)
        one.state, one.error_code, one.error = "failed", "OUT_OF_STOCK", said
        self._changed([name])

    def spent(self) -> float:
        """What all instances have cost so far."""
        return self._sold.spent()

    def _launch(self, group: NodeGroup) -> Instance:
        number = self._sold.next_number(group.name)
        zone = group.zones[(number - 1) % len(group.zones)]
        now = self._stage.seconds()
        made = Instance(f"{group.name}-{number}", group, zone, now, self._start(group, zone))
        self._sold.add(made)
        return made

    def _start(self, group: NodeGroup, zone: str) -> float | None:
        faults = self._stage.faults
        if faults.find("never-registers", group=group.name, zone=zone):
            return None
        slow = faults.find("slow-start", group=group.name, zone=zone)
        wait = self._stage.about(group.start_seconds) + (slow.delay if slow else 0.0)
        return self._stage.seconds() + wait

    def _changed(self, names: list[str]) -> None:
        self._sold.keep(names)
        for name in names:
            for listener in self.listeners:
                listener(name)


def _failed_first(one: Instance) -> bool:
    return one.state != "failed"


STOCK_SECONDS = 5.0
"""How long a cloud takes to find out that it has none left."""


class Boot(Controller[str]):
    """Turns instances into machines; keyed by instance name."""

    name = "cloud"

    def __init__(self, stage: Stage, cloud: Cloud, fleet: Fleet) -> None:
        self._stage = stage
        self._cloud = cloud
        self._fleet = fleet

    def first(self) -> Iterable[str]:
        """All instances there are."""
        return list(self._cloud.instances)

    def decide(self, key: str) -> Plan:
        """See whether an instance fails, boots, or is gone."""
        one = self._cloud.instances.get(key)
        if one is None:
            return [Do(f"switch {key} off", partial(self._fleet.remove, key))]
        if one.state == "creating":
            return self._boot(one)
        if one.state == "running" and key not in self._fleet.machines:
            return [Do(f"switch {key} on", partial(self._fleet.add, one))]
        return []

    def _boot(self, one: Instance) -> Plan:
        now = self._stage.seconds()
        tried = min(one.launched + STOCK_SECONDS, one.starts or float("inf"))
        if now < tried:
            return [RequeueAfter(tried - now)]
        if self._stage.faults.find("stock-out", group=one.group.name, zone=one.zone):
            said = f"no {one.group.instance_type.name} left in {one.zone}"
            return [Do(f"fail {one.name}", partial(self._cloud.fail, one.name, said))]
        if one.starts is None:
            return []
        if now < one.starts:
            return [RequeueAfter(one.starts - now)]
        return [Do(f"start {one.name}", partial(self._cloud.start, one.name))]
