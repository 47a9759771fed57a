"""The cloud: buys and gives back instances, as an autoscaler's provider would ask it to.

Asking for more than a group's maximum, or over a quota, is refused at once. A stock-out shows only
later, as it does in real clouds: the instance is there, has an error and never runs, until somebody
gives it back. Names count up and are never used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.stage import Stage
from bayplan.embedded.control.storages import NODES
from bayplan.embedded.nodes.machines import PROVIDER, ZONE_LABEL, Instance, NodeGroup


class CloudError(Exception):
    """The cloud does not do what it was asked for."""


class QuotaExceeded(CloudError):  # noqa: N818 - named as clouds name it
    """The account may not have that many."""


class Cloud:
    """Node groups and their instances."""

    def __init__(self, stage: Stage, groups: Iterable[NodeGroup]) -> None:
        self._stage = stage
        self._groups = {group.name: group for group in groups}
        self._targets = dict.fromkeys(self._groups, 0)
        self._counters = dict.fromkeys(self._groups, 0)
        self._spent = 0.0
        self.instances: dict[str, Instance] = {}
        self.listeners: list[Callable[[str], None]] = []
        """Told the name of every instance that comes, changes or goes."""
        self._adopt_nodes()

    def groups(self) -> list[NodeGroup]:
        """All node groups, in order."""
        return [self._groups[name] for name in sorted(self._groups)]

    def group(self, name: str) -> NodeGroup:
        """A node group; CloudError if there is none of that name."""
        if name not in self._groups:
            raise CloudError(f"there is no node group {name!r}")
        return self._groups[name]

    def target(self, group: str) -> int:
        """How many instances a group is meant to have."""
        return self._targets[self.group(group).name]

    def instances_of(self, group: str) -> list[Instance]:
        """A group's instances, oldest first, those that failed too."""
        return [one for one in self.instances.values() if one.group.name == group]

    def increase(self, group: str, count: int) -> list[Instance]:
        """Buy instances; CloudError if the group or the quota does not allow them."""
        wanted = self.group(group)
        target = self._targets[group] + count
        if count <= 0:
            raise CloudError(f"node group {group}: cannot be increased by {count}")
        if target > wanted.maximum:
            raise CloudError(f"node group {group}: {target} is above its maximum {wanted.maximum}")
        if self._stage.faults.find("quota", group=group):
            raise QuotaExceeded(f"node group {group}: quota exceeded")
        self._targets[group] = target
        return [self._launch(wanted) for _ in range(count)]

    def delete(self, names: Iterable[str]) -> None:
        """Give instances back; CloudError if one is unknown or the minimum would be passed."""
        going = [self._instance(name) for name in dict.fromkeys(names)]
        for group in sorted({one.group.name for one in going}):
            left = self._targets[group] - sum(one.group.name == group for one in going)
            if left < self._groups[group].minimum:
                raise CloudError(f"node group {group}: {left} would be below its minimum")
        for one in going:
            self._targets[one.group.name] -= 1
            self._spent += self._cost(one)
            del self.instances[one.name]
            self._tell(one.name)

    def decrease_target(self, group: str, count: int) -> None:
        """Want fewer without giving back any that runs: only what is still being made goes."""
        making = [one for one in self.instances_of(group) if one.state != "running"]
        if not 0 < count <= len(making):
            raise CloudError(f"node group {group}: only {len(making)} are still being created")
        self.delete(one.name for one in making[-count:])

    def start(self, name: str) -> None:
        """An instance that was being made runs."""
        self._instance(name).state = "running"
        self._tell(name)

    def fail(self, name: str, said: str) -> None:
        """An instance cannot be had."""
        one = self._instance(name)
        one.state, one.error_code, one.error = "failed", "OUT_OF_STOCK", said
        self._tell(name)

    def spent(self) -> float:
        """What all instances have cost so far."""
        return self._spent + sum(self._cost(one) for one in self.instances.values())

    def _instance(self, name: str) -> Instance:
        if name not in self.instances:
            raise CloudError(f"there is no instance {name!r}")
        return self.instances[name]

    def _launch(self, group: NodeGroup) -> Instance:
        number = self._counters[group.name] = self._counters[group.name] + 1
        zone = group.zones[(number - 1) % len(group.zones)]
        now = self._stage.seconds()
        made = Instance(f"{group.name}-{number}", group, zone, now, self._start(group, zone))
        self.instances[made.name] = made
        self._tell(made.name)
        return made

    def _start(self, group: NodeGroup, zone: str) -> float | None:
        faults = self._stage.faults
        if faults.find("never-registers", group=group.name, zone=zone):
            return None
        slow = faults.find("slow-start", group=group.name, zone=zone)
        wait = self._stage.about(group.start_seconds) + (slow.delay if slow else 0.0)
        return self._stage.seconds() + wait

    def _cost(self, one: Instance) -> float:
        if one.state == "failed":
            return 0.0
        return (self._stage.seconds() - one.launched) / 3600 * one.group.instance_type.price

    def _tell(self, name: str) -> None:
        for listener in self.listeners:
            listener(name)

    def _adopt_nodes(self) -> None:
        """Nodes from an earlier run, kept in a data file, have their instances still."""
        for node in self._stage.view.all(NODES):
            provider = (node.get("spec") or {}).get("providerID") or ""
            group, _, name = provider.removeprefix(PROVIDER).partition("/")
            if provider.startswith(PROVIDER) and group in self._groups:
                self._adopt(self._groups[group], name, node["metadata"])

    def _adopt(self, group: NodeGroup, name: str, meta: JsonObject) -> None:
        launched = moment(meta["creationTimestamp"])
        zone = (meta.get("labels") or {}).get(ZONE_LABEL, group.zones[0])
        made = Instance(name, group, zone, launched, launched, "running")
        self.instances[name] = made
        self._targets[group.name] += 1
        number = name.rpartition("-")[2]
        if number.isdigit():
            self._counters[group.name] = max(self._counters[group.name], int(number))
