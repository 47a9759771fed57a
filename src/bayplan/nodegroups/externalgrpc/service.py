"""The server side of the protocol: one coroutine for each RPC, answered by a provider."""

from __future__ import annotations

from bayplan.nodegroups.externalgrpc import convert
from bayplan.nodegroups.externalgrpc import externalgrpc_pb2 as pb
from bayplan.nodegroups.externalgrpc.convert import node_bytes, read_pod
from bayplan.nodegroups.provider import Provider
from bayplan.nodegroups.values import GroupOptions


class CloudProviderServicer:
    """Answers the RPCs of the CloudProvider service from one provider."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def node_groups(self, _: pb.NodeGroupsRequest) -> pb.NodeGroupsResponse:
        """All groups."""
        found = await self._provider.groups()
        return pb.NodeGroupsResponse(nodeGroups=[convert.group_message(one) for one in found])

    async def group_for_node(
        self, request: pb.NodeGroupForNodeRequest
    ) -> pb.NodeGroupForNodeResponse:
        """The group of a node, or a group without an id."""
        found = await self._provider.group_for_node(convert.read_node_ref(request.node))
        group = pb.NodeGroup() if found is None else convert.group_message(found)
        return pb.NodeGroupForNodeResponse(nodeGroup=group)

    async def node_price(self, request: pb.PricingNodePriceRequest) -> pb.PricingNodePriceResponse:
        """The price of a node."""
        start, end = convert.read_interval(request)
        price = await self._provider.node_price(convert.read_node_ref(request.node), start, end)
        return pb.PricingNodePriceResponse(price=price)

    async def pod_price(self, request: pb.PricingPodPriceRequest) -> pb.PricingPodPriceResponse:
        """The price of a pod."""
        start, end = convert.read_interval(request)
        price = await self._provider.pod_price(
            read_pod(request.pod_bytes or request.pod), start, end
        )
        return pb.PricingPodPriceResponse(price=price)

    async def gpu_label(self, _: pb.GPULabelRequest) -> pb.GPULabelResponse:
        """The label with a node's GPU type."""
        return pb.GPULabelResponse(label=await self._provider.gpu_label())

    async def gpu_types(self, _: pb.GetAvailableGPUTypesRequest) -> pb.GetAvailableGPUTypesResponse:
        """The GPU types; only the keys of the answer have a meaning."""
        answer = pb.GetAvailableGPUTypesResponse()
        for name in sorted(await self._provider.gpu_types()):
            answer.gpuTypes[name].SetInParent()
        return answer

    async def cleanup(self, _: pb.CleanupRequest) -> pb.CleanupResponse:
        """The last call of a client."""
        await self._provider.cleanup()
        return pb.CleanupResponse()

    async def refresh(self, _: pb.RefreshRequest) -> pb.RefreshResponse:
        """Called before every loop of the client."""
        await self._provider.refresh()
        return pb.RefreshResponse()

    async def target_size(
        self, request: pb.NodeGroupTargetSizeRequest
    ) -> pb.NodeGroupTargetSizeResponse:
        """The target size of a group."""
        size = await self._provider.target_size(request.id)
        return pb.NodeGroupTargetSizeResponse(targetSize=size)

    async def increase(
        self, request: pb.NodeGroupIncreaseSizeRequest
    ) -> pb.NodeGroupIncreaseSizeResponse:
        """Increase a group's target size."""
        await self._provider.increase(request.id, request.delta)
        return pb.NodeGroupIncreaseSizeResponse()

    async def delete_nodes(
        self, request: pb.NodeGroupDeleteNodesRequest
    ) -> pb.NodeGroupDeleteNodesResponse:
        """Delete instances of a group."""
        nodes = [convert.read_node_ref(one) for one in request.nodes]
        await self._provider.delete_nodes(request.id, nodes)
        return pb.NodeGroupDeleteNodesResponse()

    async def decrease_target(
        self, request: pb.NodeGroupDecreaseTargetSizeRequest
    ) -> pb.NodeGroupDecreaseTargetSizeResponse:
        """Decrease a group's target size; on the wire the delta is negative."""
        await self._provider.decrease_target(request.id, -request.delta)
        return pb.NodeGroupDecreaseTargetSizeResponse()

    async def instances(self, request: pb.NodeGroupNodesRequest) -> pb.NodeGroupNodesResponse:
        """A group's instances."""
        found = await self._provider.instances(request.id)
        return pb.NodeGroupNodesResponse(instances=[convert.instance_message(one) for one in found])

    async def template(
        self, request: pb.NodeGroupTemplateNodeInfoRequest
    ) -> pb.NodeGroupTemplateNodeInfoResponse:
        """The template of a group's next node; CSI limits are carried by the Node itself."""
        found = await self._provider.template(request.id)
        data = node_bytes(found.node)
        return pb.NodeGroupTemplateNodeInfoResponse(nodeBytes=data, nodeInfo=data)

    async def options(
        self, request: pb.NodeGroupAutoscalingOptionsRequest
    ) -> pb.NodeGroupAutoscalingOptionsResponse:
        """The autoscaling options of a group."""
        defaults = convert.read_options(request.defaults, GroupOptions())
        found = await self._provider.options(request.id, defaults)
        return pb.NodeGroupAutoscalingOptionsResponse(
            nodeGroupAutoscalingOptions=convert.options_message(found)
        )
