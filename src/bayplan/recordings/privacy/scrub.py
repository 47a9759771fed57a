"""Removes what no decision reads: annotations, names of secrets, paths, messages."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.kube.attachlimits import PUBLISHED_LIMITS
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.pods import Pod, PodSpec
from bayplan.kube.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeSpec,
    StorageClass,
    VolumeAttachment,
)
from bayplan.kube.volcano import (
    GATE_ANNOTATIONS,
    GROUP_MIN_MEMBER,
    GROUP_NAME_ANNOTATIONS,
    PREEMPTABLE,
    QUEUE_NAME_ANNOTATIONS,
    TASK_PRIORITY,
    TASK_SPEC,
)
from bayplan.kube.volumes import InTreeSources
from bayplan.kube.workloads import DaemonSet

_AUTOSCALER = "cluster-autoscaler.kubernetes.io/"
KEPT_ANNOTATIONS = frozenset(
    {
        *(SELECTED_NODE, BIND_COMPLETED, BOUND_BY_CONTROLLER, PUBLISHED_LIMITS),
        "volume.beta.kubernetes.io/storage-class",
        "storageclass.kubernetes.io/is-default-class",
        "storage.alpha.kubernetes.io/migrated-plugins",
        "kubernetes.io/config.mirror",
        *GATE_ANNOTATIONS,
        *GROUP_NAME_ANNOTATIONS,
        *QUEUE_NAME_ANNOTATIONS,
        *(GROUP_MIN_MEMBER, TASK_SPEC, TASK_PRIORITY, PREEMPTABLE),
        f"{_AUTOSCALER}daemonset-pod",
        f"{_AUTOSCALER}pod-scale-up-delay",
        f"{_AUTOSCALER}scale-down-disabled",
        f"{_AUTOSCALER}safe-to-evict",
        f"{_AUTOSCALER}safe-to-evict-local-volumes",
        f"{_AUTOSCALER}enable-ds-eviction",
        "capacity.cluster-autoscaler.kubernetes.io/csi-driver",
        "bayplan.io/node-group",
        "bayplan.io/csi-drivers-registered",
    }
)
"""Every annotation that some decision reads; tests compare it with the code that does."""


def scrub(obj: KubeObject) -> None:
    """Remove from an object what no decision reads."""
    _meta(obj.metadata)
    if isinstance(obj, Pod):
        _pod(obj.spec)
        obj.status.message = ""
    elif isinstance(obj, DaemonSet):
        _meta(obj.spec.template.metadata)
        _pod(obj.spec.template.spec)
    elif isinstance(obj, PersistentVolume):
        _volume(obj.spec)
    elif isinstance(obj, VolumeAttachment) and obj.spec.source.inline_volume_spec is not None:
        _volume(obj.spec.source.inline_volume_spec)
    elif isinstance(obj, StorageClass):
        obj.parameters = {}


def _meta(meta: ObjectMeta) -> None:
    meta.annotations = {k: v for k, v in meta.annotations.items() if k in KEPT_ANNOTATIONS}
    meta.finalizers = []
    meta.generate_name = ""


def _pod(spec: PodSpec) -> None:
    spec.service_account_name = ""
    spec.image_pull_secrets = []
    _sources(spec.volumes)
    for volume in spec.volumes:
        if volume.host_path is not None:
            volume.host_path.path = ""
        if volume.ephemeral is not None:
            _meta(volume.ephemeral.volume_claim_template.metadata)


def _volume(spec: PersistentVolumeSpec) -> None:
    _sources([spec])
    spec.local = spec.local and {"path": ""}


def _sources(sources: Iterable[InTreeSources]) -> None:
    for one in sources:
        if one.azure_file is not None:
            one.azure_file.secret_name = ""
            one.azure_file.secret_namespace = None
