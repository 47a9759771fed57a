"""A group's instances: those that are there, and placeholders for those that are still wanted.

A placeholder stands for an instance that the group is meant to have and has not got. If the group's
newest tries to launch failed, it carries their error: out of stock, over a quota, or whatever else
AWS said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from bayplan.autoscaler.providers.aws.kinds import Activity, AutoScalingGroup, Member
from bayplan.nodegroups import ErrorClass, Instance, InstanceError, InstanceState

PLACEHOLDER = "i-placeholder"
_NO_STOCK = ("InsufficientInstanceCapacity", "InsufficientCapacity", "InsufficientHostCapacity",
             "InsufficientReservedInstanceCapacity", "UnfulfillableCapacity",
             "do not have sufficient", "no Spot capacity")  # fmt: skip
_QUOTA = ("VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded",
          "vCPU limit", "instance limit", "spot instance count exceeded")  # fmt: skip
_FAILED, _DONE = "Failed", "Successful"
_LONGEST = 500


def is_going(member: Member) -> bool:
    """Whether an instance is on its way out."""
    return member.lifecycle_state.startswith("Terminat")


def staying(group: AutoScalingGroup) -> list[Member]:
    """The instances that count for the group's size."""
    return [one for one in group.instances if not is_going(one)]


def missing(group: AutoScalingGroup) -> int:
    """How many are wanted and not there."""
    return max(0, group.desired_capacity - len(staying(group)))


def instances_of(group: AutoScalingGroup, error: InstanceError | None) -> list[Instance]:
    """All of them, those that are only wanted last."""
    there = [Instance(provider_id(one), _state(one)) for one in group.instances]
    wanted = range(len(there), len(there) + missing(group))
    zone = group.availability_zones[0] if group.availability_zones else ""
    name = group.auto_scaling_group_name
    placeholders = (f"aws:///{zone}/{PLACEHOLDER}-{name}-{number}" for number in wanted)
    return there + [Instance(one, InstanceState.CREATING, error) for one in placeholders]


def provider_id(member: Member) -> str:
    """What an instance's node calls it."""
    return f"aws:///{member.availability_zone}/{member.instance_id}"


def instance_id(provider_id: str) -> str:
    """The instance in a provider ID, `aws:///zone/i-…`; empty if it is none of AWS."""
    scheme, _, rest = provider_id.partition(":///")
    parts = rest.split("/")
    return parts[1] if scheme == "aws" and len(parts) > 1 else ""


def error_in(activities: Sequence[Activity], since: datetime) -> InstanceError | None:
    """Why a group does not get what it wants, newest activity first; None if it may still."""
    for one in activities:
        if one.start_time is None or one.start_time < since or one.status_code == _DONE:
            return None
        if one.status_code == _FAILED:
            return _error(one)
    return None


def _error(one: Activity) -> InstanceError:
    said = one.status_message or one.description
    kind, code = ErrorClass.OTHER, "LaunchFailed"
    if _mentions(said, _QUOTA):
        kind, code = ErrorClass.QUOTA, "QuotaExceeded"
    elif _mentions(said, _NO_STOCK):
        kind, code = ErrorClass.OUT_OF_RESOURCES, "InsufficientInstanceCapacity"
    return InstanceError(kind, code, said[:_LONGEST])


def _mentions(text: str, words: Iterable[str]) -> bool:
    return any(one.lower() in text.lower() for one in words)


def _state(member: Member) -> InstanceState:
    if is_going(member):
        return InstanceState.DELETING
    pending = member.lifecycle_state.startswith("Pending")
    return InstanceState.CREATING if pending else InstanceState.RUNNING
