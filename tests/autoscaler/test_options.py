"""Flags that users of Cluster Autoscaler know mean the same, by default too."""

from __future__ import annotations

import pytest

from bayplan.autoscaler.options import AutoscalerOptions

KNOWN = {
    "scan_interval": 10,
    "max_nodes_total": 0,
    "expendable_pods_priority_cutoff": -10,
    "balance_similar_node_groups": False,
    "max_node_provision_time": 900,
    "max_node_startup_time": 900,
    "initial_node_group_backoff_duration": 300,
    "max_node_group_backoff_duration": 1800,
    "node_group_backoff_reset_timeout": 10800,
    "scale_down_delay_after_add": 600,
    "scale_down_delay_after_failure": 180,
    "scale_down_unneeded_time": 600,
    "scale_down_unready_time": 1200,
    "scale_down_utilization_threshold": 0.5,
    "max_graceful_termination_sec": 600,
    "max_pod_eviction_time": 120,
    "skip_nodes_with_system_pods": True,
    "skip_nodes_with_local_storage": True,
    "skip_nodes_with_custom_controller_pods": True,
    "max_nodes_per_scaleup": 1000,
    "max_nodegroup_binpacking_duration": 10,
    "expander": "least-waste",
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_default_is_the_known_one(name: str) -> None:
    assert getattr(AutoscalerOptions(), name) == KNOWN[name]


def test_groups_without_wishes_are_scaled_as_the_flags_say() -> None:
    options = AutoscalerOptions(scale_down_unneeded_time=60, max_node_provision_time=30)
    wishes = options.group_defaults()
    assert (wishes.scale_down_unneeded_time, wishes.max_node_provision_time) == (60, 30)
