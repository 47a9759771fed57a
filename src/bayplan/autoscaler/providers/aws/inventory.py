"""Auto Scaling groups and their instances, read once a minute and after every change.

`--nodes=MIN:MAX:NAME` names a group with its sizes; others are discovered by all tags of one
`--node-group-auto-discovery=asg:tag=a,b=c`, with their values where given.

A group that AWS no longer lists is removed. A group whose response cannot be read is left out, and
reported; if AWS does not answer at all, the last state is kept.

A placeholder stands for an instance that the group lacks to its desired capacity. If the group's
latest launches failed, it has their error: out of capacity, over a quota, or another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from bayplan.autoscaler.providers.aws.api_types import (
    AsgInstance,
    AutoScalingGroup,
    ScalingActivity,
    checked,
)
from bayplan.autoscaler.providers.aws.launch import InstanceSize, InstanceSizes, find_all
from bayplan.autoscaler.providers.aws.sdk import Sdk
from bayplan.autoscaler.providers.aws.templates import TagValues, read_tags
from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    CloudNodeGroup,
    ErrorClass,
    GroupProblem,
    Instance,
    InstanceError,
    InstanceState,
    NodeGroupError,
    NodeGroupNotFoundError,
)

_NODES, _DISCOVERY = "--nodes", "--node-group-auto-discovery"


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """A group of --nodes, with its sizes."""

    name: str
    min_size: int
    max_size: int


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """The groups that the flags select."""

    named: Mapping[str, NamedGroup]
    tagged: tuple[Mapping[str, str], ...]
    """By flag, tags and their values; an empty value matches any."""


def read_specs(nodes: Sequence[str], discovery: Sequence[str]) -> GroupSelection:
    """Parse the flags; ProviderOptionError if they are invalid."""
    named = {one.name: one for one in map(_named, nodes)}
    if len(named) < len(nodes):
        raise ProviderOptionError(f"{_NODES}: a group is listed twice")
    if not named and not discovery:
        raise ProviderOptionError(f"--cloud-provider aws: set {_NODES} or {_DISCOVERY}")
    return GroupSelection(named, tuple(map(_tags, discovery)))


def _named(text: str) -> NamedGroup:
    least, _, rest = text.partition(":")
    most, _, name = rest.partition(":")
    if not (_is_size(least) and _is_size(most) and name):
        raise ProviderOptionError(f"{_NODES} {text[:80]!r}: must be MIN:MAX:NAME")
    if int(least) > int(most):
        raise ProviderOptionError(f"{_NODES} {text[:80]!r}: {least} is more than {most}")
    return NamedGroup(name, int(least), int(most))


def _tags(text: str) -> Mapping[str, str]:
    kind, _, rest = text.partition(":")
    word, _, tags = rest.partition("=")
    if kind != "asg" or word != "tag" or not tags:
        raise ProviderOptionError(f"{_DISCOVERY} {text[:80]!r}: must be asg:tag=KEY,KEY=VALUE")
    pairs = (one.partition("=") for one in tags.split(","))
    found = {key.strip(): value.strip() for key, _, value in pairs}
    if "" in found:
        raise ProviderOptionError(f"{_DISCOVERY} {text[:80]!r}: a tag has no key")
    return found


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 6


PLACEHOLDER = "i-placeholder"
_NO_STOCK = ("InsufficientInstanceCapacity", "InsufficientCapacity", "InsufficientHostCapacity",
             "InsufficientReservedInstanceCapacity", "UnfulfillableCapacity",
             "do not have sufficient", "no Spot capacity")  # fmt: skip
_QUOTA = ("VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded",
          "vCPU limit", "instance limit", "spot instance count exceeded")  # fmt: skip
_FAILED, _DONE = "Failed", "Successful"
_LONGEST = 500


def is_terminating(member: AsgInstance) -> bool:
    """Whether an instance is being terminated."""
    return member.lifecycle_state.startswith("Terminat")


def active_instances(group: AutoScalingGroup) -> list[AsgInstance]:
    """Return the instances that count in the group's size."""
    return [one for one in group.instances if not is_terminating(one)]


def missing(group: AutoScalingGroup) -> int:
    """Return how many instances the group lacks to its desired capacity."""
    return max(0, group.desired_capacity - len(active_instances(group)))


def instances_of(group: AutoScalingGroup, error: InstanceError | None) -> list[Instance]:
    """Return the group's instances, then placeholders for the missing ones."""
    current = [Instance(provider_id(one), _state(one)) for one in group.instances]
    wanted = range(len(current), len(current) + missing(group))
    zone = group.availability_zones[0] if group.availability_zones else ""
    name = group.auto_scaling_group_name
    placeholders = (f"aws:///{zone}/{PLACEHOLDER}-{name}-{number}" for number in wanted)
    return current + [Instance(one, InstanceState.CREATING, error) for one in placeholders]


def provider_id(member: AsgInstance) -> str:
    """Return the provider ID of an instance's node."""
    return f"aws:///{member.availability_zone}/{member.instance_id}"


def instance_id(provider_id: str) -> str:
    """Return the instance ID in a provider ID, `aws:///zone/i-…`; empty if it is not AWS's."""
    scheme, _, rest = provider_id.partition(":///")
    parts = rest.split("/")
    return parts[1] if scheme == "aws" and len(parts) > 1 else ""


def error_in(activities: Sequence[ScalingActivity], since: datetime) -> InstanceError | None:
    """Return the error of the latest launch, newest activity first; None if none failed."""
    for one in activities:
        if one.start_time is None or one.start_time < since or one.status_code == _DONE:
            return None
        if one.status_code == _FAILED:
            return _error(one)
    return None


def _error(one: ScalingActivity) -> InstanceError:
    message = one.status_message or one.description
    kind, code = ErrorClass.OTHER, "LaunchFailed"
    if _mentions(message, _QUOTA):
        kind, code = ErrorClass.QUOTA, "QuotaExceeded"
    elif _mentions(message, _NO_STOCK):
        kind, code = ErrorClass.OUT_OF_RESOURCES, "InsufficientInstanceCapacity"
    return InstanceError(kind, code, message[:_LONGEST])


def _mentions(text: str, words: Iterable[str]) -> bool:
    return any(one.lower() in text.lower() for one in words)


def _state(member: AsgInstance) -> InstanceState:
    if is_terminating(member):
        return InstanceState.DELETING
    pending = member.lifecycle_state.startswith("Pending")
    return InstanceState.CREATING if pending else InstanceState.RUNNING


FRESH = 60.0
"""Seconds for which the inventory is cached."""
CHUNK = 100
"""The maximum number of items in a request or response."""
LOOK_BACK = timedelta(minutes=15)
"""The maximum age of a failure in a group that we have not resized."""


@dataclass(frozen=True, slots=True)
class Asg:
    """An Auto Scaling group at one moment."""

    group: CloudNodeGroup
    answer: AutoScalingGroup
    tags: TagValues
    machine: InstanceSize | NodeGroupError
    instances: tuple[Instance, ...]


class AsgInventory:
    """The Auto Scaling groups by name, and the group of each instance."""

    def __init__(self, sdk: Sdk, wanted: GroupSelection, clock: Clock) -> None:
        self._sdk = sdk
        self._wanted = wanted
        self._clock = clock
        self._machines = InstanceSizes(sdk, clock)
        self._read_at = float("-inf")
        self._resized: dict[str, datetime] = {}
        self.groups: dict[str, Asg] = {}
        self.group_of: dict[str, str] = {}
        self.problems: list[GroupProblem] = []

    async def refresh(self) -> None:
        """Read again, if the cache has expired."""
        now = self._clock.monotonic()
        if now - self._read_at < FRESH:
            return
        problems: list[GroupProblem] = []
        answers = await self._answers(problems)
        found = await asyncio.gather(
            *map(self._asg, answers, await find_all(self._machines, answers))
        )
        self._store(found, problems)
        self._read_at = now

    async def read(self, name: str) -> AutoScalingGroup:
        """Read a group's current state; NodeGroupNotFoundError if it does not exist."""
        found = checked(await self._named([name]), AutoScalingGroup)
        if not found:
            raise NodeGroupNotFoundError(f"there is no Auto Scaling group {name!r}")
        return found[0]

    def resized(self, name: str, size: int) -> None:
        """Note a size that we have set, and read again in the next loop."""
        self._resized[name] = self._clock.now()
        self.invalidate()
        known = self.groups.get(name)
        if known is not None:
            answer = msgspec.structs.replace(known.answer, desired_capacity=size)
            instances = tuple(instances_of(answer, None))
            self.groups[name] = replace(known, answer=answer, instances=instances)

    def invalidate(self) -> None:
        """Read again in the next loop."""
        self._read_at = float("-inf")

    def _store(self, found: Sequence[Asg], problems: list[GroupProblem]) -> None:
        self.groups = {one.group.id: one for one in found}
        self.group_of = {
            member.instance_id: one.group.id for one in found for member in one.answer.instances
        }
        for one in found:
            problems += [GroupProblem(one.group.id, text) for text in one.tags.problems]
        self.problems = problems
        self._resized = {name: at for name, at in self._resized.items() if name in self.groups}

    async def _answers(self, problems: list[GroupProblem]) -> list[AutoScalingGroup]:
        """Return every group once, by name; those being deleted are left out."""
        plain = await self._named(list(self._wanted.named))
        for tags in self._wanted.tagged:
            plain += await self._tagged(tags)
        found: dict[str, AutoScalingGroup] = {}
        for item in plain:
            name = str(item.get("AutoScalingGroupName", "")) if isinstance(item, dict) else ""
            try:
                one = msgspec.convert(item, AutoScalingGroup)
                found |= {} if one.status else {name: one}
            except msgspec.ValidationError as problem:
                problems.append(GroupProblem(name, f"AWS's answer cannot be read: {problem}"))
        reported = {one.group for one in problems}
        problems += [
            GroupProblem(name, "there is no Auto Scaling group with this name")
            for name in self._wanted.named
            if name not in found and name not in reported
        ]
        return [found[name] for name in sorted(found)]

    async def _named(self, names: Sequence[str]) -> list[object]:
        found: list[object] = []
        for start in range(0, len(names), CHUNK):
            some = names[start : start + CHUNK]
            found += await self._describe(AutoScalingGroupNames=some)
        return found

    async def _tagged(self, tags: Mapping[str, str]) -> list[object]:
        filters = [
            {"Name": f"tag:{key}", "Values": [value]}
            if value
            else {"Name": "tag-key", "Values": [key]}
            for key, value in tags.items()
        ]
        return await self._describe(Filters=filters)

    async def _describe(self, **which: object) -> list[object]:
        return await self._sdk.read_all(
            "autoscaling",
            "describe_auto_scaling_groups",
            "AutoScalingGroups",
            MaxRecords=CHUNK,
            **which,
        )

    async def _asg(self, answer: AutoScalingGroup, machine: InstanceSize | NodeGroupError) -> Asg:
        name = answer.auto_scaling_group_name
        named = self._wanted.named.get(name)
        least = answer.min_size if named is None else named.min_size
        most = answer.max_size if named is None else named.max_size
        error = await self._error(answer) if missing(answer) else None
        group = CloudNodeGroup(name, least, most, f"Auto Scaling group in {_zones(answer)}")
        instances = tuple(instances_of(answer, error))
        return Asg(group, answer, read_tags(answer.tags), machine, instances)

    async def _error(self, answer: AutoScalingGroup) -> InstanceError | None:
        """Return the error of the group's latest launch; None if it cannot be read."""
        name = answer.auto_scaling_group_name
        since = self._resized.get(name, self._clock.now() - LOOK_BACK)
        try:
            found = await self._sdk.read(
                "autoscaling",
                "describe_scaling_activities",
                AutoScalingGroupName=name,
                MaxRecords=CHUNK,
            )
            return error_in(checked(found.get("Activities"), ScalingActivity), since)
        except NodeGroupError:
            return None


def _zones(answer: AutoScalingGroup) -> str:
    return ", ".join(answer.availability_zones) or "no zone"
