"""Metrics have Cluster Autoscaler's names, and say nothing of groups that are gone."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.autoscaler.cloudstate.reader import CloudState, NodeGroupInfo
from bayplan.autoscaler.clusterstate.nodes import NodeStates
from bayplan.autoscaler.clusterstate.registry import GroupState
from bayplan.autoscaler.metrics import AutoscalerMetrics, ScaleDownMetrics
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.status.configmap import ClusterStatus, NodeGroupStatus
from bayplan.autoscaler.status.gauges import Gauges
from bayplan.fit import Snapshot
from bayplan.nodegroups import CloudNodeGroup, GroupOptions

NAMES = """
cluster_safe_to_autoscale nodes_count node_groups_count unschedulable_pods_count
node_group_min_count node_group_max_count node_group_target_count node_group_healthiness
node_group_backoff_status last_activity function_duration_seconds errors_total
scaled_up_nodes_total failed_scale_ups_total scaled_down_nodes_total evicted_pods_total
unneeded_nodes_count unremovable_nodes_count scale_down_in_cooldown skipped_scale_events_count
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_metrics_have_cluster_autoscalers_names(name: str) -> None:
    registry = CollectorRegistry()
    AutoscalerMetrics(registry)
    ScaleDownMetrics(registry)
    assert f"# TYPE cluster_autoscaler_{name} " in generate_latest(registry).decode()


def test_nothing_is_said_of_groups_that_are_gone() -> None:
    registry, snapshot, options = CollectorRegistry(), Snapshot(()), AutoscalerOptions()
    node_states = NodeStates(options, snapshot.cluster.csinodes.get)
    gauges = Gauges(AutoscalerMetrics(registry), node_states, snapshot)
    group = CloudNodeGroup("workers", 0, 3)
    cloud = CloudState({"workers": NodeGroupInfo(group, 0, (), GroupOptions())})
    gauges.show(cloud, ClusterStatus(groups=(NodeGroupStatus(group, GroupState()),)))
    assert 'node_group="workers"' in generate_latest(registry).decode()
    gauges.show(CloudState(), ClusterStatus())
    assert 'node_group="workers"' not in generate_latest(registry).decode()
