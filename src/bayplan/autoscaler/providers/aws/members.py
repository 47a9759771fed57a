"""The instances of an Auto Scaling group: which count, which go, and which are missing.

Instances of a warm pool (`Warmed:…`) are not instances of the group. One on standby or being
detached is, but the desired capacity does not count it. An instance is being terminated by its
lifecycle state, or by a scaling activity that has not failed: AWS lists the activity at once, and
changes the state later.

A placeholder stands for an instance that the group lacks to its desired capacity. If the group's
latest launches failed, it has their error: out of capacity, over a quota, or another one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import msgspec

from bayplan.autoscaler.providers.aws.api_types import (
    AsgInstance,
    AutoScalingGroup,
    ScalingActivity,
)
from bayplan.nodegroups import ErrorClass, Instance, InstanceError, InstanceState

PLACEHOLDER = "i-placeholder"
_NO_STOCK = ("InsufficientInstanceCapacity", "InsufficientCapacity", "InsufficientHostCapacity",
             "InsufficientReservedInstanceCapacity", "UnfulfillableCapacity",
             "do not have sufficient", "no Spot capacity")  # fmt: skip
_QUOTA = ("VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded",
          "vCPU limit", "instance limit", "spot instance count exceeded")  # fmt: skip
_FAILED, _DONE = "Failed", "Successful"
_VOID = frozenset({_FAILED, "Cancelled"})
_ENDING = re.compile(r"Terminating EC2 instance: (i-[0-9a-z]{1,32})")
_WARM = "Warmed:"
_STANDBY = ("Standby", "EnteringStandby")
_LEAVING = ("Terminat", "Detach")
_LONGEST = 500
_NO_NODES = (
    "its desired capacity is not a number of nodes, so it is not scaled; use a group without"
    " weights for each size of instances"
)


def read_group(item: object) -> AutoScalingGroup:
    """Return the group of a response, without its warm pool; msgspec.ValidationError if invalid."""
    group = msgspec.convert(item, AutoScalingGroup)
    own = [one for one in group.instances if not one.lifecycle_state.startswith(_WARM)]
    return msgspec.structs.replace(group, instances=own)


def unit_problem(group: AutoScalingGroup) -> str:
    """Return why the desired capacity is not a number of nodes; empty if it is."""
    if group.desired_capacity_type not in {"", "units"}:
        return f"it counts {group.desired_capacity_type} (DesiredCapacityType): {_NO_NODES}"
    policy = group.mixed_instances_policy
    overrides = policy.launch_template.overrides if policy is not None else ()
    if any(one.weighted_capacity not in {"", "1"} for one in overrides):
        return f"its instance types have weights (WeightedCapacity): {_NO_NODES}"
    return ""


def is_terminating(member: AsgInstance, ending: Collection[str] = ()) -> bool:
    """Whether an instance is leaving the group, by its state or among those that end."""
    return member.lifecycle_state.startswith(_LEAVING) or member.instance_id in ending


def is_standby(member: AsgInstance) -> bool:
    """Whether an instance is on standby."""
    return member.lifecycle_state.startswith(_STANDBY)


def active_instances(group: AutoScalingGroup, ending: Collection[str] = ()) -> list[AsgInstance]:
    """Return the instances that the desired capacity counts."""
    staying = (one for one in group.instances if not is_terminating(one, ending))
    return [one for one in staying if not is_standby(one)]


def missing(group: AutoScalingGroup, ending: Collection[str] = ()) -> int:
    """Return how many instances the group lacks to its desired capacity."""
    return max(0, group.desired_capacity - len(active_instances(group, ending)))


def instances_of(
    group: AutoScalingGroup, error: InstanceError | None, ending: Collection[str] = ()
) -> list[Instance]:
    """Return the group's instances, then placeholders for the missing ones."""
    current = [Instance(provider_id(one), _state(one, ending)) for one in group.instances]
    waiting = placeholders(group, ending)
    return current + [Instance(one, InstanceState.CREATING, error) for one in waiting]


def placeholders(group: AutoScalingGroup, ending: Collection[str] = ()) -> list[str]:
    """Return the provider IDs of the missing instances."""
    count = len(group.instances)
    zone = group.availability_zones[0] if group.availability_zones else ""
    prefix = f"aws:///{zone}/{PLACEHOLDER}-{group.auto_scaling_group_name}"
    return [f"{prefix}-{one}" for one in range(count, count + missing(group, ending))]


def provider_id(member: AsgInstance) -> str:
    """Return the provider ID of an instance's node."""
    return f"aws:///{member.availability_zone}/{member.instance_id}"


def instance_id(provider_id: str) -> str:
    """Return the instance ID in a provider ID, `aws:///zone/i-…`; empty if it is not AWS's."""
    scheme, _, rest = provider_id.partition(":///")
    parts = rest.split("/")
    return parts[1] if scheme == "aws" and len(parts) > 1 else ""


def ending_in(activities: Sequence[ScalingActivity]) -> frozenset[str]:
    """Return the instances that activities terminate or have terminated; ids are never reused."""
    found = (_ENDING.match(one.description) for one in activities if one.status_code not in _VOID)
    return frozenset(one[1] for one in found if one)


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


def _state(member: AsgInstance, ending: Collection[str]) -> InstanceState:
    if is_terminating(member, ending):
        return InstanceState.DELETING
    pending = member.lifecycle_state.startswith("Pending")
    return InstanceState.CREATING if pending else InstanceState.RUNNING
