"""How the autoscaler is told to behave: Cluster Autoscaler's flags, by its names and defaults.

Every field is a flag with dashes for underscores. Times are in seconds. Where a group has a wish of
its own (`nodegroups.GroupOptions`), that counts for its nodes; `group_defaults` is what it is asked
to change.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.base.durations import Seconds
from bayplan.nodegroups import GroupOptions


@dataclass(frozen=True)
class LoopOptions:
    """When the loop runs, and when it rather does nothing."""

    scan_interval: Seconds = Seconds("10s")
    """How often the cluster is looked at."""
    ok_total_unready_count: int = 3
    """So many nodes may be unready, whatever part of the cluster that is."""
    max_total_unready_percentage: float = 45.0
    """Above this, and above --ok-total-unready-count, nothing is bought or given back."""
    write_status_configmap: bool = True
    """Write the status ConfigMap."""
    status_config_map_name: str = "cluster-autoscaler-status"
    """The status ConfigMap's name."""
    namespace: str = "kube-system"
    """The namespace of the status ConfigMap and of what configures expanders."""
    plans_kept: int = 20
    """How many of the last loops' plans are served at /plan."""


@dataclass(frozen=True)
class ScaleUpOptions:
    """Which pods count, what may be bought, and how it is chosen."""

    expander: str = "least-waste"
    """How the best group is chosen; several with commas, each where those before it are tied."""
    max_nodes_total: int = 0
    """No more nodes than this in the whole cluster; 0 is no limit."""
    cores_total: str = "0:320000"
    """Least and most cores in the cluster, as MIN:MAX."""
    memory_total: str = "0:6400000"
    """Least and most GiB of memory in the cluster, as MIN:MAX."""
    gpu_total: tuple[str, ...] = ()
    """Least and most GPUs of a type, as TYPE:MIN:MAX; may be repeated."""
    max_nodes_per_scaleup: int = 1000
    """No more new nodes than this of one group at once."""
    max_nodegroup_binpacking_duration: Seconds = Seconds("10s")
    """Taken, and changes nothing: estimates are never cut off."""
    enforce_node_group_min_size: bool = False
    """Buy what a group lacks of its minimum, whether or not pods wait."""
    scale_up_from_zero: bool = True
    """Buy where the cluster has no ready node at all."""
    expendable_pods_priority_cutoff: int = -10
    """Pods of a lower priority are never bought for, and do not keep a node."""
    new_pod_scale_up_delay: Seconds = Seconds("0s")
    """Pods younger than this do not count yet."""
    bypassed_scheduler_names: tuple[str, ...] = ()
    """Pods of these schedulers count before the scheduler has said anything of them."""
    allowed_scheduler_names: tuple[str, ...] = ()
    """If any, only pods of these schedulers count."""
    balance_similar_node_groups: bool = False
    """Spread new nodes over groups that are alike."""
    balancing_ignore_label: tuple[str, ...] = ()
    """A label in which groups that are alike may differ; may be repeated."""
    balancing_label: tuple[str, ...] = ()
    """Groups are alike that agree in these labels, whatever else they are; may be repeated."""
    memory_difference_ratio: float = 0.015
    """By how much the memory of groups that are alike may differ."""
    max_free_difference_ratio: float = 0.05
    """By how much what is free on new nodes of groups that are alike may differ."""
    max_allocatable_difference_ratio: float = 0.05
    """By how much the allocatable resources of groups that are alike may differ."""
    startup_taint: tuple[str, ...] = ()
    """A taint that new nodes have until they are ready; may be repeated."""
    startup_taint_prefix: tuple[str, ...] = ()
    """What the keys of such taints begin with; may be repeated."""
    status_taint: tuple[str, ...] = ()
    """A taint that new nodes will not have, and that makes no node unready; may be repeated."""


@dataclass(frozen=True)
class ReadinessOptions:
    """How long a node may take to come, and what happens to a group whose nodes do not."""

    max_node_provision_time: Seconds = Seconds("15m")
    """How long an instance may take to register as a node."""
    max_node_startup_time: Seconds = Seconds("15m")
    """How long a node may take to become ready."""
    csi_driver_startup_time: Seconds = Seconds("10m")
    """How long a ready node may take to report every CSI driver that it was bought for."""
    initial_node_group_backoff_duration: Seconds = Seconds("5m")
    """How long a group rests after its first failure."""
    max_node_group_backoff_duration: Seconds = Seconds("30m")
    """How long it rests at most; each failure doubles it."""
    node_group_backoff_reset_timeout: Seconds = Seconds("3h")
    """How long after its last failure a group counts as sound again."""
    force_delete_unregistered_nodes: bool = False
    """Give instances that never register back, even below a group's minimum."""
    force_delete_failed_nodes: bool = False
    """Taken, and changes nothing: instances that failed are always given back, and whether that may
    take a group below its minimum is its cloud's word.
    """


@dataclass(frozen=True)
class ScaleDownOptions:
    """Which nodes are given back, when, and how carefully."""

    scale_down_enabled: bool = True
    """Give nodes back at all."""
    scale_down_unready_enabled: bool = True
    """Give unready nodes back, too."""
    scale_down_delay_after_add: Seconds = Seconds("10m")
    """How long after a purchase nothing is given back."""
    scale_down_delay_after_delete: Seconds = Seconds("0s")
    """How long after a node was given back no other is; 0 is --scan-interval."""
    scale_down_delay_after_failure: Seconds = Seconds("3m")
    """How long after a failure nothing is given back."""
    scale_down_delay_type_local: bool = False
    """Count these delays group by group."""
    scale_down_unneeded_time: Seconds = Seconds("10m")
    """How long a node must be unneeded."""
    scale_down_unready_time: Seconds = Seconds("20m")
    """How long an unready node must be unneeded."""
    scale_down_utilization_threshold: float = 0.5
    """Nodes used more than this are needed."""
    scale_down_gpu_utilization_threshold: float = 0.5
    """Nodes with GPUs are needed if their GPUs are used more than this."""
    scale_down_non_empty_candidates_count: int = 30
    """How many nodes with pods are looked at in one loop; 0 is all."""
    scale_down_candidates_pool_ratio: float = 0.1
    """What part of all nodes are further candidates."""
    scale_down_candidates_pool_min_count: int = 50
    """How many nodes are further candidates at least."""
    scale_down_simulation_timeout: Seconds = Seconds("30s")
    """How long looking for places for their pods may take."""
    unremovable_node_recheck_timeout: Seconds = Seconds("5m")
    """How long a node that cannot be given back is not asked about again."""
    max_scale_down_parallelism: int = 10
    """How many nodes are given back at the same time."""
    max_drain_parallelism: int = 1
    """How many nodes are drained at the same time."""
    max_bulk_soft_taint_count: int = 10
    """How many nodes are marked as candidates, or unmarked, in one loop; 0 is none."""
    max_bulk_soft_taint_time: Seconds = Seconds("3s")
    """How long that may take."""
    max_graceful_termination_sec: int = 600
    """How many seconds a pod on a node that is drained gets to end."""
    max_pod_eviction_time: Seconds = Seconds("2m")
    """How long an eviction that is refused is tried again."""
    node_delete_delay_after_taint: Seconds = Seconds("5s")
    """How long after its taint a node is deleted, so that schedulers have seen it."""
    node_deletion_delay_timeout: Seconds = Seconds("2m")
    """How long annotations that ask for a delay may hold a deletion up."""
    node_deletion_batcher_interval: Seconds = Seconds("0s")
    """How long nodes of one group are gathered to be deleted together."""
    cordon_node_before_terminating: bool = True
    """Cordon a node before it is deleted."""
    daemonset_eviction_for_empty_nodes: bool = False
    """Evict daemons from nodes that have no other pods."""
    daemonset_eviction_for_occupied_nodes: bool = True
    """Evict daemons from nodes that have other pods."""
    ignore_daemonsets_utilization: bool = False
    """Leave daemons out of utilization."""
    ignore_mirror_pods_utilization: bool = False
    """Leave static pods out of utilization."""
    skip_nodes_with_system_pods: bool = True
    """Keep nodes with pods of kube-system that are no daemons."""
    skip_nodes_with_local_storage: bool = True
    """Keep nodes with pods that have data on the node."""
    skip_nodes_with_custom_controller_pods: bool = True
    """Keep nodes with pods of controllers that Kubernetes does not know."""
    min_replica_count: int = 0
    """Keep nodes with pods of sets that have fewer replicas than this."""
    blocking_system_pod_distruption_timeout: Seconds = Seconds("1h")
    """How long a pod of kube-system without a budget keeps its node."""


@dataclass(frozen=True)
class AutoscalerOptions(LoopOptions, ScaleUpOptions, ReadinessOptions, ScaleDownOptions):
    """Everything the autoscaler is told."""

    def group_defaults(self) -> GroupOptions:
        """How groups are scaled that have no wishes of their own."""
        return GroupOptions(
            scale_down_utilization_threshold=self.scale_down_utilization_threshold,
            scale_down_gpu_utilization_threshold=self.scale_down_gpu_utilization_threshold,
            scale_down_unneeded_time=float(self.scale_down_unneeded_time),
            scale_down_unready_time=float(self.scale_down_unready_time),
            max_node_provision_time=float(self.max_node_provision_time),
            max_node_startup_time=float(self.max_node_startup_time),
            ignore_daemon_sets_utilization=self.ignore_daemonsets_utilization,
        )
