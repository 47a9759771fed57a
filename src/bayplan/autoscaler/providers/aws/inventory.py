"""What AWS has of the groups that are ours, asked once a minute and after every change.

A group that AWS does not tell of any more is gone. An answer about a group that cannot be read
leaves that group out, and is told; whoever cannot be asked at all leaves everything as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from bayplan.autoscaler.providers.aws.instances import error_in, instances_of, missing
from bayplan.autoscaler.providers.aws.kinds import Activity, AutoScalingGroup, checked
from bayplan.autoscaler.providers.aws.machines import Machine, Machines, find_all
from bayplan.autoscaler.providers.aws.sdk import Sdk
from bayplan.autoscaler.providers.aws.specs import Wanted
from bayplan.autoscaler.providers.aws.tags import Said, read_tags
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    GroupProblem,
    Instance,
    InstanceError,
    NodeGroup,
    NodeGroupError,
    NotFoundError,
)

FRESH = 60.0
"""Seconds that an answer is good for."""
CHUNK = 100
"""What AWS takes and gives at once."""
LOOK_BACK = timedelta(minutes=15)
"""How old a failure may be that counts for a group whose size we have not changed ourselves."""


@dataclass(frozen=True, slots=True)
class Asg:
    """A group, at one moment."""

    group: NodeGroup
    answer: AutoScalingGroup
    said: Said
    machine: Machine | NodeGroupError
    instances: tuple[Instance, ...]


class Inventory:
    """The groups, by name, and the group of each instance."""

    def __init__(self, sdk: Sdk, wanted: Wanted, clock: Clock) -> None:
        self._sdk = sdk
        self._wanted = wanted
        self._clock = clock
        self._machines = Machines(sdk, clock)
        self._asked = float("-inf")
        self._resized: dict[str, datetime] = {}
        self.groups: dict[str, Asg] = {}
        self.group_of: dict[str, str] = {}
        self.problems: list[GroupProblem] = []

    async def refresh(self) -> None:
        """Ask again, if that is called for."""
        now = self._clock.monotonic()
        if now - self._asked < FRESH:
            return
        problems: list[GroupProblem] = []
        answers = await self._answers(problems)
        found = await asyncio.gather(
            *map(self._asg, answers, await find_all(self._machines, answers))
        )
        self._take(found, problems)
        self._asked = now

    async def read(self, name: str) -> AutoScalingGroup:
        """A group as it is now; NotFoundError if it is gone."""
        found = checked(await self._named([name]), AutoScalingGroup)
        if not found:
            raise NotFoundError(f"there is no Auto Scaling group {name!r}")
        return found[0]

    def resized(self, name: str, size: int) -> None:
        """Remember a size that we have set, and ask again in the next round."""
        self._resized[name] = self._clock.now()
        self.doubt()
        known = self.groups.get(name)
        if known is not None:
            answer = msgspec.structs.replace(known.answer, desired_capacity=size)
            instances = tuple(instances_of(answer, None))
            self.groups[name] = replace(known, answer=answer, instances=instances)

    def doubt(self) -> None:
        """Ask again in the next round."""
        self._asked = float("-inf")

    def _take(self, found: Sequence[Asg], problems: list[GroupProblem]) -> None:
        self.groups = {one.group.id: one for one in found}
        self.group_of = {
            member.instance_id: one.group.id for one in found for member in one.answer.instances
        }
        for one in found:
            problems += [GroupProblem(one.group.id, text) for text in one.said.problems]
        self.problems = problems
        self._resized = {name: at for name, at in self._resized.items() if name in self.groups}

    async def _answers(self, problems: list[GroupProblem]) -> list[AutoScalingGroup]:
        """Every group once, in the order of their names; those being deleted are gone already."""
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
        told = {one.group for one in problems}
        problems += [
            GroupProblem(name, "there is no Auto Scaling group of that name")
            for name in self._wanted.named
            if name not in found and name not in told
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
        return await self._sdk.ask_all(
            "autoscaling",
            "describe_auto_scaling_groups",
            "AutoScalingGroups",
            MaxRecords=CHUNK,
            **which,
        )

    async def _asg(self, answer: AutoScalingGroup, machine: Machine | NodeGroupError) -> Asg:
        name = answer.auto_scaling_group_name
        named = self._wanted.named.get(name)
        least = answer.min_size if named is None else named.min_size
        most = answer.max_size if named is None else named.max_size
        error = await self._error(answer) if missing(answer) else None
        group = NodeGroup(name, least, most, f"Auto Scaling group in {_zones(answer)}")
        instances = tuple(instances_of(answer, error))
        return Asg(group, answer, read_tags(answer.tags), machine, instances)

    async def _error(self, answer: AutoScalingGroup) -> InstanceError | None:
        """If even that cannot be asked, the group may still get what it wants."""
        name = answer.auto_scaling_group_name
        since = self._resized.get(name, self._clock.now() - LOOK_BACK)
        try:
            found = await self._sdk.ask(
                "autoscaling",
                "describe_scaling_activities",
                AutoScalingGroupName=name,
                MaxRecords=CHUNK,
            )
            return error_in(checked(found.get("Activities"), Activity), since)
        except NodeGroupError:
            return None


def _zones(answer: AutoScalingGroup) -> str:
    return ", ".join(answer.availability_zones) or "no zone"
