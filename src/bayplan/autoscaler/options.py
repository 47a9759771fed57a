"""Options of the autoscaler: Cluster Autoscaler's flags, with its names and defaults.

Every field is a flag with dashes for underscores. Times are in seconds. A group may override some
of them for its nodes (`nodegroups.GroupOptions`); `group_defaults` are the values it overrides.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.base.durations import Seconds
from bayplan.nodegroups import GroupOptions


@dataclass(frozen=True)
class LoopOptions:
    """When the loop runs, and what it writes."""

    scan_interval: Seconds = Seconds("10s")
    """How often the cluster is evaluated for scale-up and scale-down."""
    ok_total_unready_count: int = 3
    """Number of unready nodes that is allowed irrespective of --max-total-unready-percentage."""
    max_total_unready_percentage: float = 45.0
    """Above this, and above --ok-total-unready-count, there is no scale-up or scale-down."""
    write_status_configmap: bool = True
    """Write the status ConfigMap."""
    status_config_map_name: str = "cluster-autoscaler-status"
    """The status ConfigMap's name."""
    namespace: str = "kube-system"
    """The namespace of the status ConfigMap and of the expanders' ConfigMaps."""
    plans_kept: int = 20
    """How many plans of the last loops are served at /plan."""


@dataclass(frozen=True)
class ScaleUpOptions:
    """Which pods trigger a scale-up, its limits, and how node groups are chosen."""

    expander: str = "least-waste"
    """How the node group is chosen; several with commas, each for ties of those before it."""
    max_nodes_total: int = 0
    """Maximum number of nodes in the cluster; 0 is no limit."""
    cores_total: str = "0:320000"
    """Minimum and maximum number of cores in the cluster, as MIN:MAX."""
    memory_total: str = "0:6400000"
    """Minimum and maximum GiB of memory in the cluster, as MIN:MAX."""
    gpu_total: tuple[str, ...] = ()
    """Minimum and maximum number of GPUs of a type, as TYPE:MIN:MAX; may be repeated."""
    max_nodes_per_scaleup: int = 1000
    """Maximum number of new nodes of one group in one scale-up."""
    max_nodegroup_binpacking_duration: Seconds = Seconds("10s")
    """Accepted, without effect: binpacking is never cut off."""
    enforce_node_group_min_size: bool = False
    """Scale groups up to their minimum size, also without unschedulable pods."""
    scale_up_from_zero: bool = True
    """Scale up also if the cluster has no ready node."""
    expendable_pods_priority_cutoff: int = -10
    """Pods of a lower priority trigger no scale-up, and do not prevent scale-down."""
    new_pod_scale_up_delay: Seconds = Seconds("0s")
    """Pods younger than this are not considered for scale-up."""
    bypassed_scheduler_names: tuple[str, ...] = ()
    """Pods of these schedulers are considered before the scheduler has tried them."""
    allowed_scheduler_names: tuple[str, ...] = ()
    """If set, only pods of these schedulers are considered."""
    balance_similar_node_groups: bool = False
    """Balance new nodes between similar node groups."""
    balancing_ignore_label: tuple[str, ...] = ()
    """A label to ignore when comparing node groups for similarity; may be repeated."""
    balancing_label: tuple[str, ...] = ()
    """Node groups are similar if they agree in these labels alone; may be repeated."""
    memory_difference_ratio: float = 0.015
    """Maximum difference in memory capacity between similar node groups."""
    max_free_difference_ratio: float = 0.05
    """Maximum difference in free resources between similar node groups."""
    max_allocatable_difference_ratio: float = 0.05
    """Maximum difference in allocatable resources between similar node groups."""
    startup_taint: tuple[str, ...] = ()
    """A taint that new nodes have until they are ready (startup taint); may be repeated."""
    startup_taint_prefix: tuple[str, ...] = ()
    """A prefix of startup taints' keys; may be repeated."""
    status_taint: tuple[str, ...] = ()
    """A taint that templates leave out and that makes no node unready; may be repeated."""


@dataclass(frozen=True)
class ReadinessOptions:
    """How long a node may take to become ready, and backoff of groups whose nodes do not."""

    max_node_provision_time: Seconds = Seconds("15m")
    """How long an instance may take to register as a node."""
    max_node_startup_time: Seconds = Seconds("15m")
    """How long a node may take to become ready."""
    csi_driver_startup_time: Seconds = Seconds("10m")
    """How long a ready node may take until every required CSI driver has registered."""
    csi_driver_max_removals: int = 1
    """How many nodes of a group may be removed for missing CSI drivers in
    --csi-driver-removal-interval.
    """
    csi_driver_removal_interval: Seconds = Seconds("10m")
    """The time in which a group may lose --csi-driver-max-removals nodes."""
    initial_node_group_backoff_duration: Seconds = Seconds("5m")
    """Backoff of a node group after its first failed scale-up."""
    max_node_group_backoff_duration: Seconds = Seconds("30m")
    """Maximum backoff of a node group; each failure doubles it."""
    node_group_backoff_reset_timeout: Seconds = Seconds("3h")
    """How long after its last failure a node group's backoff is reset."""
    force_delete_unregistered_nodes: bool = False
    """Remove unregistered nodes even below a group's minimum size."""
    force_delete_failed_nodes: bool = False
    """Accepted, without effect: failed instances are always removed; the cloud decides whether
    below a group's minimum size.
    """


@dataclass(frozen=True)
class ScaleDownOptions:
    """Which nodes are removed, when, and how they are drained."""

    scale_down_enabled: bool = True
    """Scale down the cluster."""
    scale_down_unready_enabled: bool = True
    """Scale down unready nodes, too."""
    scale_down_delay_after_add: Seconds = Seconds("10m")
    """How long after a scale-up scale-down resumes."""
    scale_down_delay_after_delete: Seconds = Seconds("0s")
    """How long after a node deletion scale-down resumes; 0 is --scan-interval."""
    scale_down_delay_after_failure: Seconds = Seconds("3m")
    """How long after a failed scale-down scale-down resumes."""
    scale_down_delay_type_local: bool = False
    """Apply these delays by node group."""
    scale_down_unneeded_time: Seconds = Seconds("10m")
    """How long a node must be unneeded before it is removed."""
    scale_down_unready_time: Seconds = Seconds("20m")
    """How long an unready node must be unneeded before it is removed."""
    scale_down_utilization_threshold: float = 0.5
    """Maximum utilization of cpu and memory at which a node is considered for scale-down."""
    scale_down_gpu_utilization_threshold: float = 0.5
    """Maximum utilization of GPUs at which a node with GPUs is considered for scale-down."""
    scale_down_non_empty_candidates_count: int = 30
    """Maximum number of non-empty nodes considered in one loop; 0 is all."""
    scale_down_candidates_pool_ratio: float = 0.1
    """Ratio of nodes that are additional candidates."""
    scale_down_candidates_pool_min_count: int = 50
    """Minimum number of nodes that are additional candidates."""
    scale_down_simulation_timeout: Seconds = Seconds("30s")
    """Maximum duration of the scale-down simulation."""
    unremovable_node_recheck_timeout: Seconds = Seconds("5m")
    """How long until an unremovable node is considered again."""
    max_scale_down_parallelism: int = 10
    """Maximum number of nodes removed in parallel."""
    max_drain_parallelism: int = 1
    """Maximum number of nodes drained in parallel."""
    max_bulk_soft_taint_count: int = 10
    """Maximum number of DeletionCandidate taints set or removed in one loop; 0 is none."""
    max_bulk_soft_taint_time: Seconds = Seconds("3s")
    """Maximum duration of setting and removing these taints in one loop."""
    max_graceful_termination_sec: int = 600
    """Maximum grace period, in seconds, of pods on a node that is drained."""
    max_pod_eviction_time: Seconds = Seconds("2m")
    """How long a refused eviction is retried."""
    node_delete_delay_after_taint: Seconds = Seconds("5s")
    """Delay between the ToBeDeleted taint and the deletion, so that schedulers see the taint."""
    node_deletion_delay_timeout: Seconds = Seconds("2m")
    """Maximum delay by delay-deletion annotations of a node."""
    node_deletion_batcher_interval: Seconds = Seconds("0s")
    """How long nodes of one group are gathered to be deleted in one call."""
    cordon_node_before_terminating: bool = True
    """Cordon a node before it is deleted."""
    daemonset_eviction_for_empty_nodes: bool = False
    """Evict DaemonSet pods from empty nodes."""
    daemonset_eviction_for_occupied_nodes: bool = True
    """Evict DaemonSet pods from non-empty nodes."""
    ignore_daemonsets_utilization: bool = False
    """Ignore DaemonSet pods in utilization."""
    ignore_mirror_pods_utilization: bool = False
    """Ignore mirror pods in utilization."""
    skip_nodes_with_system_pods: bool = True
    """Never remove nodes with kube-system pods, except DaemonSet and mirror pods."""
    skip_nodes_with_local_storage: bool = True
    """Never remove nodes with pods that have local storage, such as emptyDir or hostPath."""
    skip_nodes_with_custom_controller_pods: bool = True
    """Never remove nodes with pods of custom controllers."""
    min_replica_count: int = 0
    """Minimum replicas of a ReplicaSet or ReplicationController whose pods may be evicted."""
    blocking_system_pod_distruption_timeout: Seconds = Seconds("1h")
    """How long a kube-system pod without a PodDisruptionBudget blocks its node."""


@dataclass(frozen=True)
class AutoscalerOptions(LoopOptions, ScaleUpOptions, ReadinessOptions, ScaleDownOptions):
    """All options of the autoscaler."""

    def group_defaults(self) -> GroupOptions:
        """The options of groups that override none."""
        return GroupOptions(
            scale_down_utilization_threshold=self.scale_down_utilization_threshold,
            scale_down_gpu_utilization_threshold=self.scale_down_gpu_utilization_threshold,
            scale_down_unneeded_time=float(self.scale_down_unneeded_time),
            scale_down_unready_time=float(self.scale_down_unready_time),
            max_node_provision_time=float(self.max_node_provision_time),
            max_node_startup_time=float(self.max_node_startup_time),
            ignore_daemon_sets_utilization=self.ignore_daemonsets_utilization,
        )
