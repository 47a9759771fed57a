"""A provider in another process, asked over gRPC, and its answers checked.

    async with ExternalGrpc(read_config(Path("cloud-config.yaml"))) as provider:
        for group in await provider.groups():
            ...

Every question is bounded by a timeout; refusals are the package's errors. What a program answers
that makes no sense is refused or left out, and told: strangers write such programs.
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
from bayplan.nodegroups.values import GroupOptions, GroupProblem, Instance, NodeGroup, NodeRef


def sound_groups(groups: Iterable[NodeGroup]) -> tuple[list[NodeGroup], list[GroupProblem]]:
    """Groups that can be scaled, each once, and what is wrong with the others."""
    found: dict[str, NodeGroup] = {}
    problems: list[GroupProblem] = []
    for one in groups:
        if not one.id:
            continue
        if one.id in found:
            problems.append(GroupProblem(one.id, "the cloud has two groups of that id"))
        elif not 0 <= one.min_size <= one.max_size:
            said = f"its size cannot be between {one.min_size} and {one.max_size}"
            problems.append(GroupProblem(one.id, said))
        else:
            found[one.id] = one
    return list(found.values()), problems


def sound_size(group: str, size: int) -> int:
    """A size that a group can have."""
    if size < 0:
        raise NodeGroupError(f"node group {group}: it cannot be meant to have {size} instances")
    return size


def sound_price(price: float) -> float:
    """A price that something can have."""
    if not math.isfinite(price) or price < 0:
        raise NodeGroupError(f"{price} is no price")
    return price


def sound_node(group: str, node: Node) -> Node:
    """A node that can be planned with; InvalidRequestError if it cannot."""
    if not node.name:
        named = msgspec.structs.replace(node.metadata, name=f"template-node-for-{group}"[:250])
        node = msgspec.structs.replace(node, metadata=named)
    problem = validate(node)
    if problem is not None:
        raise InvalidRequestError(f"node group {group}: its template cannot be used: {problem}")
    return node


def sound_options(options: GroupOptions, defaults: GroupOptions) -> GroupOptions:
    """Options, of which each that makes no sense is the default."""
    usual = asdict(defaults)
    odd = {name: usual[name] for name, said in asdict(options).items() if not _is_sound(name, said)}
    return replace(options, **odd)


def _is_sound(name: str, said: float | bool) -> bool:
    if name.endswith("_threshold"):
        return 0 <= said <= 1
    return math.isfinite(said) and said >= 0


_OPTIONS = [
    ("grpc.max_receive_message_length", 16 << 20),
    # A provider that restarts is back in seconds; gRPC would wait for minutes.
    ("grpc.max_reconnect_backoff_ms", 2000),
]


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name

    @classmethod
    def FromString(cls, data: bytes) -> Self: ...  # noqa: N802 - protobuf's name


_Answer = TypeVar("_Answer", bound=_Message)


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

    async def groups(self) -> Sequence[NodeGroup]:
        """All node groups."""
        answer = await self._ask("NodeGroups", pb.NodeGroupsRequest(), pb.NodeGroupsResponse)
        found, self._problems = sound_groups(map(convert.read_group, answer.nodeGroups))
        return found

    async def group_for_node(self, node: NodeRef) -> NodeGroup | None:
        """The group that a node belongs to; None if it is in none."""
        request = pb.NodeGroupForNodeRequest(node=convert.node_message(node))
        answer = await self._ask("NodeGroupForNode", request, pb.NodeGroupForNodeResponse)
        found, _ = sound_groups([convert.read_group(answer.nodeGroup)])
        return found[0] if found else None

    async def target_size(self, group: str) -> int:
        """How many instances a group is meant to have."""
        request = pb.NodeGroupTargetSizeRequest(id=group)
        answer = await self._ask("NodeGroupTargetSize", request, pb.NodeGroupTargetSizeResponse)
        return sound_size(group, answer.targetSize)

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group: those on their way and those that failed too."""
        request = pb.NodeGroupNodesRequest(id=group)
        answer = await self._ask("NodeGroupNodes", request, pb.NodeGroupNodesResponse)
        return [convert.read_instance(one) for one in answer.instances if one.id]

    async def template(self, group: str) -> TemplateNodeInfo:
        """What the next node of a group will look like, with the limits that its Node carries."""
        request = pb.NodeGroupTemplateNodeInfoRequest(id=group)
        kind = pb.NodeGroupTemplateNodeInfoResponse
        answer = await self._ask("NodeGroupTemplateNodeInfo", request, kind)
        return template_of(sound_node(group, read_node(answer.nodeBytes or answer.nodeInfo)))

    async def problems(self) -> Sequence[GroupProblem]:
        """Groups of the last answer that make no sense; limits are the templates' to tell."""
        return self._problems

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """How a group wants to be scaled."""
        request = pb.NodeGroupAutoscalingOptionsRequest(
            id=group, defaults=convert.options_message(defaults)
        )
        kind = pb.NodeGroupAutoscalingOptionsResponse
        answer = await self._ask("NodeGroupGetOptions", request, kind)
        if not answer.HasField("nodeGroupAutoscalingOptions"):
            return defaults
        return sound_options(
            convert.read_options(answer.nodeGroupAutoscalingOptions, defaults), defaults
        )

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """What a node costs from start to end."""
        request = pb.PricingNodePriceRequest(node=convert.node_message(node))
        convert.put_span(request, start, end)
        answer = await self._ask("PricingNodePrice", request, pb.PricingNodePriceResponse)
        return sound_price(answer.price)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """What a pod would cost at least from start to end."""
        data = pod_bytes(pod)
        request = pb.PricingPodPriceRequest(pod_bytes=data, pod=data)
        convert.put_span(request, start, end)
        answer = await self._ask("PricingPodPrice", request, pb.PricingPodPriceResponse)
        return sound_price(answer.price)

    async def gpu_label(self) -> str:
        """The label that says which GPU a node has."""
        answer = await self._ask("GPULabel", pb.GPULabelRequest(), pb.GPULabelResponse)
        return answer.label

    async def gpu_types(self) -> frozenset[str]:
        """The GPUs that can be had."""
        request, kind = pb.GetAvailableGPUTypesRequest(), pb.GetAvailableGPUTypesResponse
        answer = await self._ask("GetAvailableGPUTypes", request, kind)
        return frozenset(answer.gpuTypes)

    async def increase(self, group: str, count: int) -> None:
        """Buy more."""
        request = pb.NodeGroupIncreaseSizeRequest(id=group, delta=count)
        await self._ask("NodeGroupIncreaseSize", request, pb.NodeGroupIncreaseSizeResponse)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Give instances back."""
        request = pb.NodeGroupDeleteNodesRequest(
            id=group, nodes=[convert.node_message(one) for one in nodes]
        )
        await self._ask("NodeGroupDeleteNodes", request, pb.NodeGroupDeleteNodesResponse)

    async def decrease_target(self, group: str, count: int) -> None:
        """Want fewer, without giving back any that is there already."""
        request = pb.NodeGroupDecreaseTargetSizeRequest(id=group, delta=-count)
        kind = pb.NodeGroupDecreaseTargetSizeResponse
        await self._ask("NodeGroupDecreaseTargetSize", request, kind)

    async def refresh(self) -> None:
        """Let the provider renew what it remembers."""
        await self._ask("Refresh", pb.RefreshRequest(), pb.RefreshResponse)

    async def cleanup(self) -> None:
        """Say that this was the last question."""
        await self._ask("Cleanup", pb.CleanupRequest(), pb.CleanupResponse)

    async def _ask(self, method: str, request: _Message, answer: type[_Answer]) -> _Answer:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}", type(request).SerializeToString, answer.FromString
        )
        try:
            return cast("_Answer", await call(request, timeout=self._timeout))
        except grpc.aio.AioRpcError as error:
            raise error_of(error.code(), error.details() or "") from error
