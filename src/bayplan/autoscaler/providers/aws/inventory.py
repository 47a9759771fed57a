"""Auto Scaling groups and their instances, read once a minute and after every change.

A group that AWS no longer lists is removed. A group whose response cannot be read is left out, and
reported; if AWS does not answer at all, the last state is kept.

A group whose instance types have weights, or whose capacity is in vCPUs or memory, is left out and
reported: its desired capacity is not a number of nodes, and AWS chooses how many it launches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from bayplan.autoscaler.providers.aws.api_types import (
    AutoScalingGroup,
    ScalingActivity,
    checked,
)
from bayplan.autoscaler.providers.aws.launch import InstanceSize, InstanceSizes, find_all
from bayplan.autoscaler.providers.aws.members import (
    active_instances,
    ending_in,
    error_in,
    instances_of,
    missing,
    read_group,
    unit_problem,
)
from bayplan.autoscaler.providers.aws.sdk import Sdk
from bayplan.autoscaler.providers.aws.selection import GroupSelection
from bayplan.autoscaler.providers.aws.templates import TagValues, read_tags
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupProblem,
    Instance,
    InstanceError,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
)

FRESH = 60.0
"""Seconds for which the inventory is cached."""
CHUNK = 100
"""The maximum number of items in a request or response."""
LOOK_BACK = timedelta(minutes=15)
"""The maximum age of a failure in a group that we have not resized, and of a termination that AWS
neither shows nor lists."""


@dataclass(frozen=True, slots=True)
class Asg:
    """An Auto Scaling group at one moment."""

    group: CloudNodeGroup
    answer: AutoScalingGroup
    tags: TagValues
    machine: InstanceSize | NodeGroupError
    instances: tuple[Instance, ...]
    ending: frozenset[str] = frozenset()
    """Instances that are being terminated, also if their state does not show it yet."""


class AsgInventory:
    """The Auto Scaling groups by name, and the group of each instance."""

    def __init__(self, sdk: Sdk, wanted: GroupSelection, clock: Clock) -> None:
        self._sdk = sdk
        self._wanted = wanted
        self._clock = clock
        self._machines = InstanceSizes(sdk, clock)
        self._read_at = float("-inf")
        self._resized: dict[str, datetime] = {}
        self._ended: dict[str, datetime] = {}
        """Instances whose termination AWS has accepted, and when."""
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
        found = list(_valid(await self._named([name]), []))
        if not found:
            raise NodeGroupNotFoundError(f"there is no Auto Scaling group {name!r}")
        return found[0]

    async def ending(self, name: str) -> frozenset[str]:
        """Return the instances whose termination AWS has accepted, from us or others."""
        return self._recent() | ending_in(await self._activities(name))

    def resized(self, name: str, size: int, ended: str = "") -> None:
        """Note a size that we have set, and an instance that ends, and read in the next loop."""
        now = self._clock.now()
        self._resized[name] = now
        self._ended |= {ended: now} if ended else {}
        self.invalidate()
        known = self.groups.get(name)
        if known is not None:
            answer = msgspec.structs.replace(known.answer, desired_capacity=size)
            ending = known.ending | self._recent()
            instances = tuple(instances_of(answer, None, ending))
            self.groups[name] = replace(known, answer=answer, instances=instances, ending=ending)

    def _recent(self) -> frozenset[str]:
        since = self._clock.now() - LOOK_BACK
        return frozenset(one for one, at in self._ended.items() if at >= since)

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
        self._ended = {one: at for one, at in self._ended.items() if one in self.group_of}

    async def _answers(self, problems: list[GroupProblem]) -> list[AutoScalingGroup]:
        """Return every group once, by name; those being deleted are left out."""
        plain = await self._named(list(self._wanted.named))
        for tags in self._wanted.tagged:
            plain += await self._tagged(tags)
        found = {one.auto_scaling_group_name: one for one in _valid(plain, problems)}
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
        error, ending = await self._progress(answer)
        zones = tuple(answer.availability_zones)
        group = CloudNodeGroup(name, least, most, f"Auto Scaling group in {_zones(answer)}", zones)
        instances = tuple(instances_of(answer, error, ending))
        return Asg(group, answer, read_tags(answer.tags), machine, instances, ending)

    async def _progress(
        self, answer: AutoScalingGroup
    ) -> tuple[InstanceError | None, frozenset[str]]:
        """Return the error of the latest launch, and the instances that end.

        Activities are read only if the group has not as many instances as it should have.
        """
        ending = self._recent()
        if len(active_instances(answer, ending)) == answer.desired_capacity:
            return None, ending
        name = answer.auto_scaling_group_name
        try:
            activities = await self._activities(name)
        except NodeGroupError:
            return None, ending
        ending |= ending_in(activities)
        since = self._resized.get(name, self._clock.now() - LOOK_BACK)
        return error_in(activities, since) if missing(answer, ending) else None, ending

    async def _activities(self, name: str) -> list[ScalingActivity]:
        """Return the latest activities of a group; none if they may not be read."""
        try:
            found = await self._sdk.read(
                "autoscaling",
                "describe_scaling_activities",
                AutoScalingGroupName=name,
                MaxRecords=CHUNK,
            )
        except ProviderUnavailableError:
            raise
        except NodeGroupError:
            return []
        return checked(found.get("Activities"), ScalingActivity)


def _valid(items: Sequence[object], problems: list[GroupProblem]) -> Iterator[AutoScalingGroup]:
    """Yield the groups that can be scaled, and add the problems of the others."""
    for item in items:
        name = str(item.get("AutoScalingGroupName", "")) if isinstance(item, dict) else ""
        try:
            one = read_group(item)
        except msgspec.ValidationError as problem:
            problems.append(GroupProblem(name, f"AWS's answer cannot be read: {problem}"))
            continue
        if one.status:
            continue
        problem_text = unit_problem(one)
        if problem_text:
            problems.append(GroupProblem(name, problem_text))
        else:
            yield one


def _zones(answer: AutoScalingGroup) -> str:
    return ", ".join(answer.availability_zones) or "no zone"
