"""The instances of a managed instance group: their states, and the errors of failed ones.

An instance that Compute Engine cannot create stays in its group, with the action CREATING and the
errors of its last attempt, until it is created or deleted. Instances that are being deleted or
abandoned no longer count in the group's size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.autoscaler.providers.gce.api_types import GceError, ManagedInstance
from bayplan.autoscaler.providers.gce.refs import InstanceRef, instance_ref
from bayplan.nodegroups import ErrorClass, Instance, InstanceError, InstanceState

_LEAVING = frozenset({"DELETING", "ABANDONING"})
_COMING = frozenset({"CREATING", "CREATING_WITHOUT_RETRIES", "RECREATING"})
_NO_STOCK = frozenset(
    {
        "RESOURCE_POOL_EXHAUSTED",
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "INSUFFICIENT_CAPACITY",
    }
)
_NOT_STARTED = frozenset({"", "PROVISIONING", "STAGING"})
_LONGEST = 500


def is_leaving(member: ManagedInstance) -> bool:
    """Whether an instance is being deleted, or abandoned by its group."""
    return member.current_action in _LEAVING


def count_active(members: Iterable[ManagedInstance]) -> int:
    """Return how many instances count in the group's size."""
    return sum(1 for one in members if not is_leaving(one))


def refs_of(members: Iterable[ManagedInstance]) -> dict[InstanceRef, ManagedInstance]:
    """Return the instances by their names; those whose URL is invalid are left out."""
    pairs = ((instance_ref(one.instance), one) for one in members)
    return {ref: one for ref, one in pairs if ref is not None}


def instances_of(members: Sequence[ManagedInstance]) -> tuple[Instance, ...]:
    """Return a group's instances with their states and errors."""
    found = refs_of(members).items()
    return tuple(Instance(ref.provider_id, _state(one), error_of(one)) for ref, one in found)


def error_of(member: ManagedInstance) -> InstanceError | None:
    """Return why an instance cannot be created; None if it can, or no longer is being created."""
    errors = member.last_attempt.errors.errors
    if member.current_action not in _COMING or not errors:
        return None
    kinds = {one.code: _kind(one.code) for one in errors}
    first = next((one for one in errors if kinds[one.code] is not ErrorClass.OTHER), errors[-1])
    if kinds[first.code] is ErrorClass.OTHER and member.instance_status not in _NOT_STARTED:
        # It runs already: the error is of what its group does with it after that.
        return None
    return InstanceError(kinds[first.code], first.code or "OTHER", _message(errors))


def _kind(code: str) -> ErrorClass:
    if code in _NO_STOCK:
        return ErrorClass.OUT_OF_RESOURCES
    return ErrorClass.QUOTA if "QUOTA" in code else ErrorClass.OTHER


def _message(errors: Iterable[GceError]) -> str:
    return "; ".join(filter(None, (one.message for one in errors)))[:_LONGEST]


def _state(member: ManagedInstance) -> InstanceState:
    if is_leaving(member):
        return InstanceState.DELETING
    if member.current_action in _COMING:
        return InstanceState.CREATING
    return InstanceState.RUNNING
