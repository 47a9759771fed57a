"""What a pod says of itself that matters when its node is to go: annotations, owners, times."""

from __future__ import annotations

from datetime import datetime, timedelta

from bayplan.kube.pods import Pod
from bayplan.kube.times import read_time
from bayplan.kube.volumes import Volume

PREFIX = "cluster-autoscaler.kubernetes.io/"
SAFE_TO_EVICT = f"{PREFIX}safe-to-evict"
SAFE_LOCAL_VOLUMES = f"{PREFIX}safe-to-evict-local-volumes"
DAEMONSET_POD = f"{PREFIX}daemonset-pod"
ENABLE_DS_EVICTION = f"{PREFIX}enable-ds-eviction"
ON_COMPLETION = "on-completion"
MIRROR = "kubernetes.io/config.mirror"

DEFAULT_GRACE = 30
"""Seconds that a pod gets to end if it does not say."""
OVERDUE = timedelta(seconds=30)
"""How long after its grace a pod that is still there counts as gone."""


def is_daemon(pod: Pod) -> bool:
    """Whether a pod goes with its node: it is of a DaemonSet, or says that it is to count so."""
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return pod.metadata.annotations.get(DAEMONSET_POD) == "true"


def is_mirror(pod: Pod) -> bool:
    """Whether a pod only shows one that the node runs by itself."""
    return MIRROR in pod.metadata.annotations


def is_long_terminating(pod: Pod, now: datetime) -> bool:
    """Whether a pod should have been gone for a while."""
    deleted = read_time(pod.metadata.deletion_timestamp)
    if deleted is None:
        return False
    return (now - deleted - OVERDUE).total_seconds() > grace_of(pod)


def grace_of(pod: Pod) -> int:
    """How many seconds a pod gets to end."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if grace is None else grace


def is_evicted_daemon(pod: Pod, by_default: bool) -> bool:
    """Whether a daemon is evicted before its node goes; what the pod says comes first."""
    said = pod.metadata.annotations.get(ENABLE_DS_EVICTION)
    return by_default if said is None else said == "true"


def has_local_storage(pod: Pod) -> bool:
    """Whether a pod has data on its node that it does not say it can lose."""
    safe = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
    return any(_is_local(volume) and volume.name not in safe for volume in pod.spec.volumes)


def _is_local(volume: Volume) -> bool:
    if volume.host_path is not None:
        return True
    return volume.empty_dir is not None and volume.empty_dir.medium != "Memory"
