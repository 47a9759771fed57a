"""The built-in kinds: those that schedulers, autoscalers and node agents need.

Their names are in `bayplan.kube.kinds`; here is how each is served.
"""

from __future__ import annotations

from functools import partial
from typing import TypedDict, Unpack

from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.kube.kinds import names_of


class _Serving(TypedDict, total=False):
    """How a kind is served, with the fields of `ServedKind`."""

    singular: str
    short_names: tuple[str, ...]
    subresources: tuple[str, ...]
    categories: tuple[str, ...]
    fields: tuple[str, ...]
    verbs: tuple[str, ...]
    storage: str
    generations: bool
    conditional: bool


def _kind(kind: str, group: str | None = None, **serving: Unpack[_Serving]) -> ServedKind:
    """Return a kind and how it is served."""
    group, version, kind, plural, namespaced = names_of(kind, group)
    return ServedKind(group, version, kind, plural, namespaced=namespaced, **serving)


_apps = partial(_kind, categories=("all",), generations=True)
_networking = partial(_kind, generations=True)
_admission = partial(_kind, generations=True, conditional=True, categories=("api-extensions",))
_review = partial(_kind, verbs=("create",))

_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)

CORE = (
    _kind(
        "Pod",
        short_names=("po",),
        categories=("all",),
        subresources=("status", "binding", "eviction", "ephemeralcontainers", "resize"),
        fields=(
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ),
        generations=True,
    ),
    _kind(
        "Node",
        short_names=("no",),
        subresources=("status",),
        fields=("spec.unschedulable",),
    ),
    _kind(
        "Namespace",
        short_names=("ns",),
        subresources=("status", "finalize"),
        fields=("status.phase",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    _kind(
        "Service",
        short_names=("svc",),
        categories=("all",),
        subresources=("status",),
        fields=("spec.clusterIP", "spec.type"),
    ),
    _kind("Endpoints", singular="endpoints", short_names=("ep",)),
    _kind(
        "PersistentVolume",
        short_names=("pv",),
        subresources=("status",),
    ),
    _kind(
        "PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=("status",),
    ),
    _kind("ConfigMap", short_names=("cm",)),
    _kind("Secret", fields=("type",)),
    _kind("Event", short_names=("ev",), fields=_EVENT_FIELDS),
    _kind("ServiceAccount", short_names=("sa",)),
    _kind(
        "ReplicationController",
        short_names=("rc",),
        categories=("all",),
        subresources=("status", "scale"),
        generations=True,
    ),
    _kind("LimitRange", short_names=("limits",)),
    _kind("ResourceQuota", short_names=("quota",), subresources=("status",)),
    _kind("PodTemplate"),
    _kind("Binding", verbs=("create",)),
)

WORKLOADS = (
    _apps("Deployment", short_names=("deploy",), subresources=("status", "scale")),
    _apps("ReplicaSet", short_names=("rs",), subresources=("status", "scale")),
    _apps("StatefulSet", short_names=("sts",), subresources=("status", "scale")),
    _apps("DaemonSet", short_names=("ds",), subresources=("status",)),
    _apps("ControllerRevision", categories=(), generations=False),
    _kind(
        "Job",
        categories=("all",),
        subresources=("status",),
        fields=("status.successful",),
        generations=True,
    ),
    _kind(
        "CronJob",
        short_names=("cj",),
        categories=("all",),
        subresources=("status",),
        generations=True,
    ),
)

STORAGE = (
    _kind("StorageClass", short_names=("sc",)),
    _kind("CSINode", conditional=True),
    _kind("CSIDriver", conditional=True),
    _kind("VolumeAttachment", subresources=("status",), conditional=True),
    _kind("CSIStorageCapacity", conditional=True),
)

CLUSTER = (
    _kind(
        "PriorityClass",
        short_names=("pc",),
    ),
    _kind(
        "PodDisruptionBudget",
        short_names=("pdb",),
        conditional=True,
        subresources=("status",),
        generations=True,
    ),
    _kind("RuntimeClass", conditional=True),
    _kind(
        "Lease",
        conditional=True,
    ),
    _kind(
        "Event",
        "events.k8s.io",
        short_names=("ev",),
        storage="events",
        fields=(
            *(name.replace("involvedObject", "regarding") for name in _EVENT_FIELDS[:7]),
            "reason",
            "reportingController",
            "type",
        ),
    ),
    _kind("EndpointSlice"),
)

ACCESS = (
    _kind("Role"),
    _kind("RoleBinding"),
    _kind("ClusterRole"),
    _kind("ClusterRoleBinding"),
    _review("SelfSubjectAccessReview"),
    _review("SelfSubjectRulesReview"),
    _review("SubjectAccessReview"),
    _review(
        "LocalSubjectAccessReview",
    ),
    _review("TokenReview"),
    _review("SelfSubjectReview"),
)

EXTENSION = (
    _admission(
        "MutatingWebhookConfiguration",
    ),
    _admission(
        "ValidatingWebhookConfiguration",
        categories=("api-extensions",),
    ),
    _kind(
        "CustomResourceDefinition",
        conditional=True,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=("status",),
        generations=True,
    ),
)

# No controller here acts on these; they are stored so that manifests with them can be applied.
NETWORKING = (
    _networking("Ingress", short_names=("ing",), subresources=("status",)),
    _networking("NetworkPolicy", short_names=("netpol",)),
    _networking("IngressClass"),
    _kind(
        "HorizontalPodAutoscaler",
        short_names=("hpa",),
        categories=("all",),
        subresources=("status",),
    ),
)

# No controller here acts on devices; kube-scheduler does not start without these lists.
DEVICES = (
    _kind("DeviceClass"),
    _kind("ResourceClaim", subresources=("status",)),
    _kind("ResourceClaimTemplate"),
    _kind(
        "ResourceSlice",
        fields=("spec.driver", "spec.nodeName"),
    ),
)

BUILTIN = (*CORE, *WORKLOADS, *STORAGE, *CLUSTER, *NETWORKING, *DEVICES, *ACCESS, *EXTENSION)
