"""What a group launches: instance types by launch configuration, launch template or mixed policy.

Each is asked about again every 20 minutes: `$Latest` may be another one by then.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bayplan.autoscaler.providers.aws.kinds import (
    AutoScalingGroup,
    LaunchConfiguration,
    LaunchTemplateData,
    LaunchTemplateVersion,
    MixedPolicy,
    TemplateRef,
    checked,
)
from bayplan.autoscaler.providers.aws.requirements import at_least, types_for
from bayplan.autoscaler.providers.aws.sdk import Sdk
from bayplan.base.clock import Clock

FRESH = 1200.0
MOST_TYPES = 100
"""Types of one group that are looked at, which is what EC2 tells at once."""


@dataclass(frozen=True, slots=True)
class Launched:
    """Types, and what a group asks of them at least."""

    types: tuple[str, ...] = ()
    cpus: int | None = None
    memory: int | None = None
    """MiB."""


class Launches:
    """Finds out what groups launch."""

    def __init__(self, sdk: Sdk, clock: Clock) -> None:
        self._sdk = sdk
        self._clock = clock
        self._known: dict[bytes, tuple[float, Launched]] = {}

    async def find(self, group: AutoScalingGroup) -> Launched:
        """What a group launches."""
        key = msgspec.json.encode(
            (group.launch_configuration_name, group.launch_template, group.mixed_instances_policy)
        )
        now = self._clock.monotonic()
        since, known = self._known.get(key, (float("-inf"), Launched()))
        if now - since < FRESH:
            return known
        found = await self._ask(group)
        self._known = {k: v for k, v in self._known.items() if now - v[0] < FRESH}
        self._known[key] = (now, found)
        return found

    async def _ask(self, group: AutoScalingGroup) -> Launched:
        if group.mixed_instances_policy is not None:
            return await self._mixed(group.mixed_instances_policy)
        if group.launch_template is not None:
            return await self._of_template(await self._template(group.launch_template), None)
        return await self._configured(group.launch_configuration_name)

    async def _mixed(self, policy: MixedPolicy) -> Launched:
        overrides = policy.launch_template.overrides
        types = tuple(one.instance_type for one in overrides if one.instance_type)
        if types:
            return Launched(types[:MOST_TYPES])
        data = await self._template(policy.launch_template.launch_template_specification)
        wanted = next((one.instance_requirements for one in overrides), None)
        return await self._of_template(data, wanted)

    async def _of_template(
        self, data: LaunchTemplateData, wanted: dict[str, object] | None
    ) -> Launched:
        requirements = wanted or data.instance_requirements
        if requirements is None:
            return Launched((data.instance_type,) if data.instance_type else ())
        types = await types_for(self._sdk, requirements, data.image_id)
        cpus, memory = at_least(requirements)
        return Launched(tuple(types[:MOST_TYPES]), cpus, memory)

    async def _configured(self, name: str) -> Launched:
        found = await self._sdk.ask(
            "autoscaling", "describe_launch_configurations", LaunchConfigurationNames=[name]
        )
        read = checked(found.get("LaunchConfigurations"), LaunchConfiguration)
        return Launched(tuple(one.instance_type for one in read if one.instance_type))

    async def _template(self, ref: TemplateRef | None) -> LaunchTemplateData:
        if ref is None:
            return LaunchTemplateData()
        named = {"LaunchTemplateName": ref.launch_template_name}
        if ref.launch_template_id:
            named = {"LaunchTemplateId": ref.launch_template_id}
        found = await self._sdk.ask(
            "ec2", "describe_launch_template_versions", Versions=[ref.version], **named
        )
        read = checked(found.get("LaunchTemplateVersions"), LaunchTemplateVersion)
        return read[0].launch_template_data if read else LaunchTemplateData()
