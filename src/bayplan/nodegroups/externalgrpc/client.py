"""A provider in another process, called over gRPC, and its answers validated.

    async with ExternalGrpc(read_config(Path("cloud-config.yaml"))) as provider:
        for group in await provider.groups():
            ...

Every call has a timeout; errors are the package's types. Answers that make no sense are refused or
left out, and reported as problems: third parties write such programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Protocol, Self, TypeVar, cast

import grpc.aio
import msgspec

from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.validation import validate
from bayplan.nodegroups.errors import InvalidRequestError, NodeGroupError
from bayplan.nodegroups.externalgrpc import convert
from bayplan.nodegroups.externalgrpc import externalgrpc_pb2 as pb
from bayplan.nodegroups.externalgrpc.config import CloudConfig
from bayplan.nodegroups.externalgrpc.convert import error_of, pod_bytes, read_node
from bayplan.nodegroups.externalgrpc.server import SERVICE
from bayplan.nodegroups.templates import TemplateNodeInfo, template_of
from bayplan.nodegroups.values import CloudNodeGroup, GroupOptions, GroupProblem, Instance, NodeRef


def valid_groups(
    groups: Iterable[CloudNodeGroup],
) -> tuple[list[CloudNodeGroup], list[GroupProblem]]:
    """Return the groups that can be scaled, each once, and the problems of the others."""
    found: dict[str, CloudNodeGroup] = {}
    problems: list[GroupProblem] = []
    for one in groups:
        if not one.id:
            continue
        if one.id in found:
            problems.append(GroupProblem(one.id, "the provider returned two groups with this id"))
        elif not 0 <= one.min_size <= one.max_size:
            problem = f"min size {one.min_size} and max size {one.max_size} are invalid"
            problems.append(GroupProblem(one.id, problem))
        else:
            found[one.id] = one
    return list(found.values()), problems


def valid_size(group: str, size: int) -> int:
    """Return the target size; NodeGroupError if it is negative."""
    if size < 0:
        raise NodeGroupError(f"node group {group}: target size {size} is negative")
    return size


def valid_price(price: float) -> float:
    """Return the price; NodeGroupError if it is negative or not finite."""
    if not math.isfinite(price) or price < 0:
        raise NodeGroupError(f"the provider returned {price}, which is not a price")
    return price


def valid_node(group: str, node: Node) -> Node:
    """Return the template node, with a name; InvalidRequestError if it is invalid."""
    if not node.name:
        named = msgspec.structs.replace(node.metadata, name=f"template-node-for-{group}"[:250])
        node = msgspec.structs.replace(node, metadata=named)
    problem = validate(node)
    if problem is not None:
        raise InvalidRequestError(f"node group {group}: its template is invalid: {problem}")
    return node


def valid_options(options: GroupOptions, defaults: GroupOptions) -> GroupOptions:
    """Return the options, with the default in place of each that is invalid."""
    values, fallback = asdict(options), asdict(defaults)
    invalid = {name: fallback[name] for name in values if not _is_valid(name, values[name])}
    return replace(options, **invalid)


def _is_valid(name: str, value: float | bool) -> bool:
    if name.endswith("_threshold"):
        return 0 <= value <= 1
    return math.isfinite(value) and value >= 0


_OPTIONS = [
    ("grpc.max_receive_message_length", 16 << 20),
    # A provider that restarts is back in seconds; gRPC would wait for minutes.
    ("grpc.max_reconnect_backoff_ms", 2000),
]


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name

    @classmethod
    def FromString(cls, data: bytes) -> Self: ...  # noqa: N802 - protobuf's name


_Reply = TypeVar("_Reply", bound=_Message)


class ExternalGrpc:
    """A provider behind Cluster Autoscaler's protocol; an asynchronous context manager."""

    def __init__(self, config: CloudConfig) -> None:
        self._timeout = config.timeout
        self._problems: Sequence[GroupProblem] = ()
        if config.credentials is None:
            # The socket's path means nothing as an authority, and some servers refuse it.
            local = [*_OPTIONS, ("grpc.default_authority", "localhost")]
            self._channel = grpc.aio.insecure_channel(config.address, options=local)
        else:
            self._channel = grpc.aio.secure_channel(
                config.address, config.credentials, options=_OPTIONS
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close(None)

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """All node groups."""
        answer = await self._call("NodeGroups", pb.NodeGroupsRequest(), pb.NodeGroupsResponse)
        found, self._problems = valid_groups(map(convert.read_group, answer.nodeGroups))
        return found

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """The group that a node belongs to; None if it is in none."""
        request = pb.NodeGroupForNodeRequest(node=convert.node_message(node))
        answer = await self._call("NodeGroupForNode", request, pb.NodeGroupForNodeResponse)
        found, _ = valid_groups([convert.read_group(answer.nodeGroup)])
        return found[0] if found else None

    async def target_size(self, group: str) -> int:
        """The target size of a group."""
        request = pb.NodeGroupTargetSizeRequest(id=group)
        answer = await self._call("NodeGroupTargetSize", request, pb.NodeGroupTargetSizeResponse)
        return valid_size(group, answer.targetSize)

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group, also those being created and those that failed."""
        request = pb.NodeGroupNodesRequest(id=group)
        answer = await self._call("NodeGroupNodes", request, pb.NodeGroupNodesResponse)
        return [convert.read_instance(one) for one in answer.instances if one.id]

    async def template(self, group: str) -> TemplateNodeInfo:
        """The template of a group's next node, with the CSI limits that its Node carries."""
        request = pb.NodeGroupTemplateNodeInfoRequest(id=group)
        kind = pb.NodeGroupTemplateNodeInfoResponse
        answer = await self._call("NodeGroupTemplateNodeInfo", request, kind)
        return template_of(valid_node(group, read_node(answer.nodeBytes or answer.nodeInfo)))

    async def problems(self) -> Sequence[GroupProblem]:
        """The invalid groups of the last answer; templates carry the problems of limits."""
        return self._problems

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The autoscaling options of a group."""
        request = pb.NodeGroupAutoscalingOptionsRequest(
            id=group, defaults=convert.options_message(defaults)
        )
        kind = pb.NodeGroupAutoscalingOptionsResponse
        answer = await self._call("NodeGroupGetOptions", request, kind)
        if not answer.HasField("nodeGroupAutoscalingOptions"):
            return defaults
        return valid_options(
            convert.read_options(answer.nodeGroupAutoscalingOptions, defaults), defaults
        )

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """The price of a node from start to end."""
        request = pb.PricingNodePriceRequest(node=convert.node_message(node))
        convert.set_interval(request, start, end)
        answer = await self._call("PricingNodePrice", request, pb.PricingNodePriceResponse)
        return valid_price(answer.price)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """The theoretical minimum price of a pod from start to end."""
        data = pod_bytes(pod)
        request = pb.PricingPodPriceRequest(pod_bytes=data, pod=data)
        convert.set_interval(request, start, end)
        answer = await self._call("PricingPodPrice", request, pb.PricingPodPriceResponse)
        return valid_price(answer.price)

    async def gpu_label(self) -> str:
        """The label with a node's GPU type."""
        answer = await self._call("GPULabel", pb.GPULabelRequest(), pb.GPULabelResponse)
        return answer.label

    async def gpu_types(self) -> frozenset[str]:
        """The GPU types that the cloud offers."""
        request, kind = pb.GetAvailableGPUTypesRequest(), pb.GetAvailableGPUTypesResponse
        answer = await self._call("GetAvailableGPUTypes", request, kind)
        return frozenset(answer.gpuTypes)

    async def increase(self, group: str, count: int) -> None:
        """Increase the group's target size."""
        request = pb.NodeGroupIncreaseSizeRequest(id=group, delta=count)
        await self._call("NodeGroupIncreaseSize", request, pb.NodeGroupIncreaseSizeResponse)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Delete instances of the group."""
        request = pb.NodeGroupDeleteNodesRequest(
            id=group, nodes=[convert.node_message(one) for one in nodes]
        )
        await self._call("NodeGroupDeleteNodes", request, pb.NodeGroupDeleteNodesResponse)

    async def decrease_target(self, group: str, count: int) -> None:
        """Decrease the target size without deleting existing instances."""
        request = pb.NodeGroupDecreaseTargetSizeRequest(id=group, delta=-count)
        kind = pb.NodeGroupDecreaseTargetSizeResponse
        await self._call("NodeGroupDecreaseTargetSize", request, kind)

    async def refresh(self) -> None:
        """Have the provider refresh its cache."""
        await self._call("Refresh", pb.RefreshRequest(), pb.RefreshResponse)

    async def cleanup(self) -> None:
        """Have the provider release what it holds; the last call."""
        await self._call("Cleanup", pb.CleanupRequest(), pb.CleanupResponse)

    async def _call(self, method: str, request: _Message, answer: type[_Reply]) -> _Reply:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}", type(request).SerializeToString, answer.FromString
        )
        try:
            return cast("_Reply", await call(request, timeout=self._timeout))
        except grpc.aio.AioRpcError as error:
            raise error_of(error.code(), error.details() or "") from error
