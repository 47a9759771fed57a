"""Conversion between the protocol's messages and our values: objects, node groups, errors.

Nodes and pods are sent as Kubernetes' protobuf. Both directions go through the JSON form of the
messages, so that foreign objects are validated like any other. Only quantities differ: on the wire
each is a message of its own.

Cluster Autoscaler has two classes of instance errors: 1 for out of resources and 99 for all others;
a quota is distinguished from a stock-out by its code.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

import grpc
import msgspec
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError, Message

from bayplan.base.values import JsonValue
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.nodegroups.errors import (
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RefusedError,
    UnimplementedError,
)
from bayplan.nodegroups.externalgrpc import externalgrpc_pb2 as pb
from bayplan.nodegroups.externalgrpc import kube_pb2 as kube
from bayplan.nodegroups.values import (
    CloudNodeGroup,
    ErrorClass,
    GroupOptions,
    Instance,
    InstanceError,
    InstanceState,
    NodeRef,
)

_Object = TypeVar("_Object", bound=KubeObject)
_QUANTITIES = frozenset({"capacity", "allocatable", "requests", "limits", "overhead"})


def node_bytes(node: Node) -> bytes:
    """Encode a node as protobuf."""
    return _encode(node, kube.Node())


def pod_bytes(pod: Pod) -> bytes:
    """Encode a pod as protobuf."""
    return _encode(pod, kube.Pod())


def read_node(data: bytes) -> Node:
    """Decode a node from protobuf; InvalidRequestError if that fails."""
    return _decode(data, kube.Node(), Node)


def read_pod(data: bytes) -> Pod:
    """Decode a pod from protobuf; InvalidRequestError if that fails."""
    return _decode(data, kube.Pod(), Pod)


def _encode(obj: KubeObject, message: Message) -> bytes:
    ParseDict(_wrap_quantities(msgspec.to_builtins(obj)), message, ignore_unknown_fields=True)
    return message.SerializeToString(deterministic=True)


def _decode(data: bytes, message: Message, kind: type[_Object]) -> _Object:
    name = kind.__name__
    try:
        message.ParseFromString(data)
        plain = _unwrap_quantities(MessageToDict(message, preserving_proto_field_name=True))
        return msgspec.convert({"apiVersion": "v1", "kind": name, **plain}, kind)
    except (DecodeError, msgspec.ValidationError) as problem:
        raise InvalidRequestError(f"cannot decode a {name}: {problem}") from problem


def _wrap_quantities(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: _wrap_field(name, item) for name, item in value.items()}


def _wrap_field(name: str, item: JsonValue) -> JsonValue:
    if isinstance(item, list):
        return [_wrap_quantities(one) if isinstance(one, dict) else one for one in item]
    if not isinstance(item, dict):
        return item
    if name in _QUANTITIES:
        return {key: {"string": str(amount)} for key, amount in item.items()}
    return _wrap_quantities(item)


def _unwrap_quantities(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: _unwrap_field(name, item) for name, item in value.items()}


def _unwrap_field(name: str, item: JsonValue) -> JsonValue:
    if isinstance(item, list):
        return [_unwrap_quantities(one) if isinstance(one, dict) else one for one in item]
    if not isinstance(item, dict):
        return item
    if name in _QUANTITIES:
        return {k: v.get("string", "0") for k, v in item.items() if isinstance(v, dict)}
    return _unwrap_quantities(item)


_Code = grpc.StatusCode
_CODES: dict[type[NodeGroupError], grpc.StatusCode] = {
    NodeGroupNotFoundError: _Code.NOT_FOUND,
    InvalidRequestError: _Code.INVALID_ARGUMENT,
    RefusedError: _Code.FAILED_PRECONDITION,
    QuotaExceededError: _Code.RESOURCE_EXHAUSTED,
    UnimplementedError: _Code.UNIMPLEMENTED,
    ProviderUnavailableError: _Code.UNAVAILABLE,
}
_ERRORS = {code: kind for kind, code in _CODES.items()}
_ERRORS[_Code.DEADLINE_EXCEEDED] = ProviderUnavailableError
_ERRORS[_Code.OUT_OF_RANGE] = RefusedError


def code_of(error: Exception) -> grpc.StatusCode:
    """Return the status code for an error; INTERNAL for any that is not a NodeGroupError."""
    codes = (code for kind, code in _CODES.items() if isinstance(error, kind))
    return next(codes, _Code.INTERNAL)


def error_of(code: grpc.StatusCode, message: str) -> NodeGroupError:
    """Return the error for a status code."""
    return _ERRORS.get(code, NodeGroupError)(message or code.name.lower().replace("_", " "))


QUOTA_CODE = "QUOTA_EXCEEDED"
_NO_RESOURCES, _OTHER = 1, 99
_PriceRequest = pb.PricingNodePriceRequest | pb.PricingPodPriceRequest
_Duration = Literal[
    "scaleDownUnneededDuration", "scaleDownUnreadyDuration", "MaxNodeProvisionDuration"
]
_STATES = {
    InstanceState.RUNNING: pb.InstanceStatus.instanceRunning,
    InstanceState.CREATING: pb.InstanceStatus.instanceCreating,
    InstanceState.DELETING: pb.InstanceStatus.instanceDeleting,
}
_READ_STATES = {number: state for state, number in _STATES.items()}


def group_message(group: CloudNodeGroup) -> pb.NodeGroup:
    """Convert a group to its message."""
    return pb.NodeGroup(
        id=group.id, minSize=group.min_size, maxSize=group.max_size, debug=group.debug
    )


def read_group(message: pb.NodeGroup) -> CloudNodeGroup:
    """Convert a message to a group."""
    return CloudNodeGroup(message.id, message.minSize, message.maxSize, message.debug)


def node_message(node: NodeRef) -> pb.ExternalGrpcNode:
    """Convert a node reference to its message."""
    return pb.ExternalGrpcNode(
        providerID=node.provider_id,
        name=node.name,
        labels=node.labels,
        annotations=node.annotations,
    )


def read_node_ref(message: pb.ExternalGrpcNode) -> NodeRef:
    """Convert a message to a node reference."""
    return NodeRef(
        message.providerID, message.name, dict(message.labels), dict(message.annotations)
    )


def instance_message(instance: Instance) -> pb.Instance:
    """Convert an instance to its message."""
    status = pb.InstanceStatus(instanceState=_STATES[instance.state])
    if instance.error is not None:
        status.errorInfo.CopyFrom(_error_message(instance.error))
    return pb.Instance(id=instance.provider_id, status=status)


def read_instance(message: pb.Instance) -> Instance:
    """Convert a message to an instance; one without a state counts as running."""
    status = message.status
    state = _READ_STATES.get(status.instanceState, InstanceState.RUNNING)
    error = _read_error(status.errorInfo) if status.HasField("errorInfo") else None
    return Instance(message.id, state, error)


def options_message(options: GroupOptions) -> pb.NodeGroupAutoscalingOptions:
    """Convert options to their message."""
    return pb.NodeGroupAutoscalingOptions(
        scaleDownUtilizationThreshold=options.scale_down_utilization_threshold,
        scaleDownGpuUtilizationThreshold=options.scale_down_gpu_utilization_threshold,
        zeroOrMaxNodeScaling=options.zero_or_max_node_scaling,
        ignoreDaemonSetsUtilization=options.ignore_daemon_sets_utilization,
        scaleDownUnneededDuration=_duration(options.scale_down_unneeded_time),
        scaleDownUnreadyDuration=_duration(options.scale_down_unready_time),
        MaxNodeProvisionDuration=_duration(options.max_node_provision_time),
    )


def read_options(message: pb.NodeGroupAutoscalingOptions, defaults: GroupOptions) -> GroupOptions:
    """Convert a message to options; times left out, as by programs before 1.34, are the defaults.

    So is the startup time, which the protocol does not have.
    """
    return GroupOptions(
        scale_down_utilization_threshold=message.scaleDownUtilizationThreshold,
        scale_down_gpu_utilization_threshold=message.scaleDownGpuUtilizationThreshold,
        scale_down_unneeded_time=_seconds(
            message, "scaleDownUnneededDuration", defaults.scale_down_unneeded_time
        ),
        scale_down_unready_time=_seconds(
            message, "scaleDownUnreadyDuration", defaults.scale_down_unready_time
        ),
        max_node_provision_time=_seconds(
            message, "MaxNodeProvisionDuration", defaults.max_node_provision_time
        ),
        max_node_startup_time=defaults.max_node_startup_time,
        zero_or_max_node_scaling=message.zeroOrMaxNodeScaling,
        ignore_daemon_sets_utilization=message.ignoreDaemonSetsUtilization,
    )


def set_interval(request: _PriceRequest, start: datetime, end: datetime) -> None:
    """Set the start and end time of a price request."""
    for field in (request.startTimestamp, request.startTime):
        field.FromDatetime(start.astimezone(UTC))
    for field in (request.endTimestamp, request.endTime):
        field.FromDatetime(end.astimezone(UTC))


def read_interval(request: _PriceRequest) -> tuple[datetime, datetime]:
    """Return the start and end time of a price request; InvalidRequestError if one is invalid."""
    new = request.HasField("startTimestamp") or request.HasField("endTimestamp")
    start, end = request.startTime, request.endTime
    if new:
        start, end = request.startTimestamp, request.endTimestamp
    try:
        return start.ToDatetime(UTC), end.ToDatetime(UTC)
    except (ValueError, OverflowError) as problem:
        raise InvalidRequestError(f"a time is out of range: {problem}") from problem


def _error_message(error: InstanceError) -> pb.InstanceErrorInfo:
    class_ = _OTHER if error.kind is ErrorClass.OTHER else _NO_RESOURCES
    code = QUOTA_CODE if error.kind is ErrorClass.QUOTA else error.code
    return pb.InstanceErrorInfo(
        errorCode=code, errorMessage=error.message, instanceErrorClass=class_
    )


def _read_error(message: pb.InstanceErrorInfo) -> InstanceError:
    kind = ErrorClass.OTHER
    if message.instanceErrorClass == _NO_RESOURCES:
        is_quota = message.errorCode == QUOTA_CODE
        kind = ErrorClass.QUOTA if is_quota else ErrorClass.OUT_OF_RESOURCES
    return InstanceError(kind, message.errorCode, message.errorMessage)


def _duration(seconds: float) -> Duration:
    message = Duration()
    message.FromTimedelta(timedelta(seconds=seconds))
    return message


def _seconds(message: pb.NodeGroupAutoscalingOptions, field: _Duration, default: float) -> float:
    if not message.HasField(field):
        return default
    found: Duration = getattr(message, field)
    return found.seconds + found.nanos / 1e9
