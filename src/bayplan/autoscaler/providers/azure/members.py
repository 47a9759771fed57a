"""Instances of a Uniform scale set: their provider IDs, states and errors.

A node's provider ID is `azure://` and the resource ID of its instance, with the resource group in
lower case, as Azure's cloud controller manager writes it. Azure compares resource IDs without case.

An instance whose provisioning failed is a failed instance only if its VM does not run: provisioning
can also fail later, as by an extension, and then there is a node. Its error is in the code of a
status, such as `ProvisioningState/failed/AllocationFailed`.

A placeholder stands for an instance that the scale set lacks to its capacity.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.providers.azure.api_types import ScaleSetVm, ViewStatus
from bayplan.nodegroups import ErrorClass, Instance, InstanceError, InstanceState

SCHEME = "azure://"
PLACEHOLDER = "placeholder-"
_RESOURCE_ID = re.compile(
    r"^/subscriptions/(?P<subscription>[^/]+)/resourcegroups/(?P<resource_group>[^/]+)"
    r"/providers/microsoft\.compute/virtualmachinescalesets/(?P<scale_set>[^/]+)"
    r"/virtualmachines/(?P<instance>[^/]+)$",
    re.IGNORECASE,
)
_CREATING, _DELETING, _FAILED = "creating", "deleting", "failed"
_RUNNING_POWER = frozenset({"running", "starting"})
_NO_STOCK = frozenset(
    {
        "allocationfailed",
        "zonalallocationfailed",
        "overconstrainedallocationrequest",
        "overconstrainedzonalallocationrequest",
        "skunotavailable",
        "allocationtimedout",
    }
)
_QUOTA = frozenset({"quotaexceeded", "resourcequotaexceeded", "spotquotaexceeded"})
_MAYBE_QUOTA = "operationnotallowed"
_ABOUT_QUOTA = ("quota", "exceed", "cores limit")
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class VmRef:
    """An instance, as provider IDs name it; all but its ID in lower case."""

    subscription: str
    resource_group: str
    scale_set: str
    instance: str

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for an instance that does not exist yet."""
        return self.instance.startswith(PLACEHOLDER)


def vm_ref(provider_id: str) -> VmRef | None:
    """Return the instance that a provider ID names; None if it is not of a scale set."""
    found = _RESOURCE_ID.match(provider_id.removeprefix(SCHEME))
    if found is None or not provider_id.startswith(f"{SCHEME}/"):
        return None
    subscription, group, scale_set, instance = found.groups()
    return VmRef(subscription.lower(), group.lower(), scale_set.lower(), instance.lower())


def provider_id(vm: ScaleSetVm) -> str:
    """Return the provider ID of an instance's node."""
    found = _RESOURCE_ID.match(vm.id)
    if found is None:
        return SCHEME + vm.id
    start, end = found.span("resource_group")
    return f"{SCHEME}{vm.id[:start]}{vm.id[start:end].lower()}{vm.id[end:]}"


def is_deleting(vm: ScaleSetVm) -> bool:
    """Whether Azure is deleting the instance."""
    return vm.properties.provisioning_state.lower() == _DELETING


def is_failed(vm: ScaleSetVm) -> bool:
    """Whether the instance could not be created, and will not be a node."""
    if vm.properties.provisioning_state.lower() != _FAILED:
        return False
    # Without an instance view it is unknown whether the VM runs: then it may be a node.
    view = vm.properties.instance_view
    return view is not None and _power(view.statuses) not in _RUNNING_POWER


def is_settled(vm: ScaleSetVm) -> bool:
    """Whether the state of the instance is not expected to change by itself."""
    return vm.properties.provisioning_state.lower() == "succeeded"


def instances_of(vms: Iterable[ScaleSetVm], deleting: Container[str]) -> list[Instance]:
    """Return the instances; `deleting` has the IDs of those that we have deleted."""
    return [_instance(one, deleted=one.instance_id in deleting) for one in vms]


def _instance(vm: ScaleSetVm, *, deleted: bool) -> Instance:
    name = provider_id(vm)
    if deleted or is_deleting(vm):
        return Instance(name, InstanceState.DELETING)
    if is_failed(vm):
        view = vm.properties.instance_view
        error = error_in(view.statuses if view is not None else ())
        return Instance(name, InstanceState.CREATING, error)
    creating = vm.properties.provisioning_state.lower() == _CREATING
    return Instance(name, InstanceState.CREATING if creating else InstanceState.RUNNING)


def error_in(statuses: Sequence[ViewStatus]) -> InstanceError:
    """Return the error in the statuses of something that failed."""
    for one in statuses:
        kind, _, rest = one.code.partition("/")
        state, _, code = rest.partition("/")
        if (kind.lower(), state.lower()) == ("provisioningstate", _FAILED):
            return instance_error(code or "ProvisioningFailed", one.message)
    return instance_error("ProvisioningFailed", "Azure failed to provision the instance")


def instance_error(code: str, message: str) -> InstanceError:
    """Return the error of an instance by Azure's code."""
    kind = ErrorClass.OTHER
    if is_quota(code, message):
        kind = ErrorClass.QUOTA
    elif code.lower() in _NO_STOCK:
        kind = ErrorClass.OUT_OF_RESOURCES
    return InstanceError(kind, code[:_LONGEST], message[:_LONGEST])


def is_quota(code: str, message: str) -> bool:
    """Whether an error is about a quota: Azure uses OperationNotAllowed for other things too."""
    if code.lower() in _QUOTA:
        return True
    about = not message or any(one in message.lower() for one in _ABOUT_QUOTA)
    return code.lower() == _MAYBE_QUOTA and about


def _power(statuses: Iterable[ViewStatus]) -> str:
    """Return the power state in lower case; empty if there is none."""
    found = (one.code.lower().partition("/") for one in statuses)
    return next((state for kind, _, state in found if kind == "powerstate"), "")
