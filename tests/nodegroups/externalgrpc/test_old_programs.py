"""Programs written for Cluster Autoscaler before 1.34: the same things in other fields."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bayplan.nodegroups import GroupOptions
from bayplan.nodegroups.externalgrpc import convert
from bayplan.nodegroups.externalgrpc import externalgrpc_pb2 as pb
from bayplan.nodegroups.externalgrpc.convert import pod_bytes
from bayplan.nodegroups.externalgrpc.service import CloudProviderServicer
from tests.builders import make_pod
from tests.embedded.cloud.clouds import SimulatedCloud

pytestmark = pytest.mark.whole


HOUR = {"seconds": 3600}


@pytest.fixture
def service() -> CloudProviderServicer:
    return CloudProviderServicer(SimulatedCloud().provider)


async def test_a_template_is_in_the_old_field_too(service: CloudProviderServicer) -> None:
    found = await service.template(pb.NodeGroupTemplateNodeInfoRequest(id="workers"))
    assert found.nodeInfo == found.nodeBytes != b""


async def test_prices_are_told_to_those_who_ask_in_the_old_fields(
    service: CloudProviderServicer,
) -> None:
    node = pb.ExternalGrpcNode(providerID="sim://workers/workers-1")
    asked = pb.PricingNodePriceRequest(node=node, startTime={}, endTime=HOUR)
    assert (await service.node_price(asked)).price == pytest.approx(0.5)
    pod = pod_bytes(make_pod("p").cpu("4").obj())
    asked_pod = pb.PricingPodPriceRequest(pod=pod, startTime={}, endTime=HOUR)
    assert (await service.pod_price(asked_pod)).price == pytest.approx(0.25)


def test_options_without_times_keep_the_defaults() -> None:
    defaults = GroupOptions(scale_down_unneeded_time=61.0, max_node_provision_time=62.0)
    told = pb.NodeGroupAutoscalingOptions(scaleDownUtilizationThreshold=0.3)
    assert convert.read_options(told, defaults) == replace(
        defaults, scale_down_utilization_threshold=0.3, scale_down_gpu_utilization_threshold=0.0
    )
