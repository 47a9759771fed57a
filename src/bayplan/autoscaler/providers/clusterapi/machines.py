"""Machines as instances: where each stands, and what went wrong with it.

A machine that failed before it was a node is an instance that cannot be had. One that failed later
still has its node, and is left to whoever looks after nodes.
"""

from __future__ import annotations

from bayplan.autoscaler.providers.clusterapi.ids import DELETING, FAILED, PENDING, made_up
from bayplan.autoscaler.providers.clusterapi.kinds import Failure, Machine
from bayplan.nodegroups import ErrorClass, Instance, InstanceError, InstanceState

NO_CAPACITY = "InsufficientResources"
"""Cluster API's reason for a cloud that has none left."""


def is_deleting(machine: Machine) -> bool:
    """Whether a machine is on its way out."""
    return machine.metadata.deletion_timestamp is not None


def has_failed(machine: Machine) -> bool:
    """Whether a machine will never be a node."""
    return machine.status.failure is not None and machine.status.node_ref is None


def is_node(machine: Machine) -> bool:
    """Whether a machine has become a node and is to stay one."""
    return machine.status.node_ref is not None and not is_deleting(machine)


def instance_of(machine: Machine, provider_id: str) -> Instance:
    """The instance that a machine is; `provider_id` may be empty."""
    failure = machine.status.failure
    if is_deleting(machine):
        error = _error("DeletingFailed", failure) if failure is not None else None
        return Instance(provider_id or _id(DELETING, machine), InstanceState.DELETING, error)
    if failure is not None and machine.status.node_ref is None:
        error = _error("ProvisioningFailed", failure)
        return Instance(provider_id or _id(FAILED, machine), InstanceState.CREATING, error)
    if machine.status.node_ref is None:
        return Instance(provider_id or _id(PENDING, machine), InstanceState.CREATING)
    return Instance(provider_id or _id(PENDING, machine), InstanceState.RUNNING)


def _error(code: str, failure: Failure) -> InstanceError:
    kind = ErrorClass.OTHER
    if failure.failure_reason == NO_CAPACITY:
        kind = ErrorClass.OUT_OF_RESOURCES
    said = failure.failure_message or failure.failure_reason or "the machine failed"
    return InstanceError(kind, failure.failure_reason or code, said)


def _id(prefix: str, machine: Machine) -> str:
    return made_up(prefix, machine.namespace, machine.name)
