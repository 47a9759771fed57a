"""Names and terms of Kubernetes and of clouds, which are not private: they are not replaced."""

from __future__ import annotations

import re

from bayplan.kube.attachlimits import IN_TREE_NAMES
from bayplan.kube.labels import (
    BETA_INSTANCE_TYPE,
    BETA_REGION,
    BETA_ZONE,
    HOSTNAME,
    INSTANCE_TYPE,
    REGION,
    ZONE,
)
from bayplan.kube.resources import (
    ATTACH_LIMIT_PREFIXES,
    CPU,
    EPHEMERAL_STORAGE,
    GPU_RESOURCES,
    MEMORY,
    PODS,
)
from bayplan.kube.volcano import DEFAULT_QUEUE, QUEUE_SCHEDULING_GATE, ROOT_QUEUE

PARTS = frozenset(
    {
        *("kubernetes", "io", "podgroup", "latest", "cluster", "autoscaler"),
        *("aws", "projects", "zones", "regions", "disks", "UNSPECIFIED"),
    }
)
"""Words of composed names."""
NAMES = frozenset(
    {
        *("default", "kube-system", "kube-public", "kube-node-lease"),
        *("default-scheduler", "bayplan", "volcano"),
        *("system-cluster-critical", "system-node-critical"),
        *(ROOT_QUEUE, DEFAULT_QUEUE),
    }
)
"""Names of namespaces, schedulers, priority classes and queues that every cluster may have."""
DRIVERS = frozenset(
    {
        *IN_TREE_NAMES,
        *("efs.csi.aws.com", "fsx.csi.aws.com", "s3.csi.aws.com", "filestore.csi.storage.gke.io"),
        *("file.csi.azure.com", "blob.csi.azure.com", "csi.vsphere.vmware.com", "pxd.portworx.com"),
        *("rook-ceph.rbd.csi.ceph.com", "rbd.csi.ceph.com", "cephfs.csi.ceph.com"),
        *("driver.longhorn.io", "secrets-store.csi.k8s.io", "hostpath.csi.k8s.io"),
        *("dobs.csi.digitalocean.com", "linodebs.csi.linode.com", "csi.hetzner.cloud"),
        *("ebs.csi.eks.amazonaws.com", "nfs.csi.k8s.io", "smb.csi.k8s.io", "local.csi.openebs.io"),
        *("kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk"),
        *("kubernetes.io/azure-file", "kubernetes.io/cinder", "kubernetes.io/portworx-volume"),
        *("kubernetes.io/vsphere-volume", "kubernetes.io/rbd", "kubernetes.io/no-provisioner"),
    }
)
RESOURCES = frozenset(
    {
        *(CPU, MEMORY, EPHEMERAL_STORAGE, PODS, "storage", *GPU_RESOURCES),
        *(f"{prefix}{name}" for prefix in ATTACH_LIMIT_PREFIXES for name in IN_TREE_NAMES.values()),
    }
)
KEYS = frozenset(
    {
        *(HOSTNAME, ZONE, REGION, BETA_ZONE, BETA_REGION, INSTANCE_TYPE, BETA_INSTANCE_TYPE),
        *("kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os"),
        *("beta.kubernetes.io/arch", "kubernetes.io/metadata.name"),
        *("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"),
        *(f"node.kubernetes.io/{one}" for one in ("not-ready", "unreachable", "unschedulable")),
        *(f"node.kubernetes.io/{one}-pressure" for one in ("memory", "disk", "pid")),
        *("node.kubernetes.io/network-unavailable", "node.kubernetes.io/out-of-service"),
        "node.cloudprovider.kubernetes.io/uninitialized",
        *("topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"),
        *("topology.disk.csi.azure.com/zone", "topology.cinder.csi.openstack.org/zone"),
        *("pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name"),
        *("apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-name", "job-name"),
        *("controller-uid", "batch.kubernetes.io/controller-uid", "pod-template-generation"),
        *("app", "k8s-app", "component", "tier", "role", "name"),
        *(f"app.kubernetes.io/{one}" for one in ("name", "instance", "component", "part-of")),
        *("app.kubernetes.io/managed-by", "app.kubernetes.io/version"),
        *("eks.amazonaws.com/nodegroup", "eks.amazonaws.com/capacityType"),
        *("cloud.google.com/gke-nodepool", "cloud.google.com/gke-spot"),
        *("kubernetes.azure.com/agentpool", "kubernetes.azure.com/scalesetpriority"),
        *("karpenter.sh/nodepool", "karpenter.sh/capacity-type", "karpenter.sh/disrupted"),
        *("nvidia.com/gpu", "nvidia.com/gpu.product", "amd.com/gpu"),
        *("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"),
        *("volcano.sh/task-spec", "volcano.sh/preemptable", QUEUE_SCHEDULING_GATE),
        "metadata.name",
    }
)
"""Keys of labels, taints, gates and fields."""
VALUES: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(
        ("kubernetes.io/os", "beta.kubernetes.io/os"), re.compile("linux|windows|darwin")
    ),
    **dict.fromkeys(
        ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
        re.compile("amd64|arm64|arm|386|ppc64le|s390x|riscv64"),
    ),
    **dict.fromkeys(
        (INSTANCE_TYPE, BETA_INSTANCE_TYPE),
        re.compile(
            r"[a-z]{1,4}[0-9]{1,2}[a-z0-9-]{0,8}\.(nano|micro|small|medium|[0-9]{0,3}x?large"
            r"|metal(-[0-9]{1,3}xl)?)"
            r"|Standard_[A-Z]{1,3}[0-9]{1,3}[A-Za-z0-9_-]{0,20}"
            r"|[a-z][0-9][a-z]?-(standard|highmem|highcpu|megamem|ultramem|micro|small|medium)"
            r"(-[0-9]{1,3})?"
        ),
    ),
}
"""By label, the values that clouds or Kubernetes set."""
KINDS = frozenset(
    {
        *("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Deployment", "Job"),
        *("CronJob", "Node", "Pod", "PodGroup", "Queue", "PersistentVolumeClaim", "Namespace"),
        *("PersistentVolume", "StorageClass", "ResourceClaim", "Service"),
    }
)
"""Kinds of owners."""
GROUPS = frozenset(
    {
        *("", "apps", "batch", "scheduling.volcano.sh", "batch.volcano.sh", "bayplan.io"),
        *("resource.k8s.io", "storage.k8s.io"),
    }
)
"""Groups of owners."""
TERMS = frozenset(
    {
        *("", "True", "False", "Unknown"),
        # phases and states
        *("Pending", "Running", "Succeeded", "Failed", "Bound", "Available", "Released", "Lost"),
        *("Inqueue", "Completed", "Open", "Closed", "Closing"),
        # policies and modes
        *("Always", "OnFailure", "Never", "IfNotPresent", "Retain", "Delete", "Recycle"),
        *("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"),
        *("Filesystem", "Block", "Memory", "HugePages", "HugePages-2Mi", "HugePages-1Gi"),
        *("fifo", "traverse", "OldestEmulationVersion"),
        *("Proposed", "InProgress", "Deferred", "Infeasible"),
        # conditions
        *("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"),
        *("OutOfDisk", "PodScheduled", "Initialized", "ContainersReady", "DisruptionTarget"),
        *("PodReadyToStartContainers", "PodResizePending", "PodResizeInProgress"),
        *("Unschedulable", "Scheduled"),
        # their reasons
        *("KubeletReady", "KubeletNotReady", "NodeStatusUnknown", "NodeStatusNeverUpdated"),
        *("KubeletHasSufficientMemory", "KubeletHasInsufficientMemory", "KubeletHasSufficientPID"),
        *("KubeletHasInsufficientPID", "KubeletHasNoDiskPressure", "KubeletHasDiskPressure"),
        *("RouteCreated", "NoRouteCreated", "CiliumIsUp", "CalicoIsUp", "FlannelIsUp"),
        *("SchedulerError", "SchedulingGated", "Schedulable", "NotAdmitted"),
        *("ReservationTimedOut", "PreemptionByScheduler", "DeletionByTaintManager"),
        *("EvictionByEvictionAPI", "DeletionByPodGC", "TerminationByKubelet", "Evicted"),
        *("ContainersNotReady", "ContainersNotInitialized", "PodCompleted", "PodFailed"),
        *("NodeLost", "NodeShutdown", "NodeAffinity", "UnexpectedAdmissionError", "OutOfcpu"),
        *("OutOfmemory", "OutOfpods", "DeadlineExceeded", "Terminated", "UnknownContainerStatuses"),
        *("NotEnoughTasks", "NotEnoughResources", "tasks in gang are ready to be scheduled"),
        *("QuotaExceeded", "OverShare", "WaitsForEarlierGroup", "NotEnoughPodsOfTask"),
        *("ForeignGate", "UnknownQueue", "BrokenQueue", "NotALeaf", "QueueClosed", "BadPodGroup"),
    }
)
"""Phases, policies, conditions and reasons."""
