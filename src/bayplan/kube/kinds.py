"""The API names of each kind: its group, version, plural and scope.

This is the only table of names: the codec decodes some of these kinds into types, the client makes
requests for them, the embedded API server serves them. Kinds of other CRDs are discovered from the
API server (`Client.discover`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bayplan.kube.devices import GROUP as DEVICES
from bayplan.kube.volcano import GROUP as QUEUEING


class KindNames(NamedTuple):
    """The API names of a kind."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`: `group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The plural with its group, as in `kubectl` and messages of the API server."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _namespaced(group: str, version: str, **plurals: str) -> Iterator[KindNames]:
    return (KindNames(group, version, kind, plural) for kind, plural in plurals.items())


def _cluster_wide(group: str, version: str, **plurals: str) -> Iterator[KindNames]:
    return (KindNames(group, version, kind, plural, False) for kind, plural in plurals.items())


NAMES = (
    *_namespaced(
        "",
        "v1",
        Binding="bindings",
        ConfigMap="configmaps",
        Endpoints="endpoints",
        Event="events",
        LimitRange="limitranges",
        PersistentVolumeClaim="persistentvolumeclaims",
        Pod="pods",
        PodTemplate="podtemplates",
        ReplicationController="replicationcontrollers",
        ResourceQuota="resourcequotas",
        Secret="secrets",  # noqa: S106 - a kind, not a secret
        Service="services",
        ServiceAccount="serviceaccounts",
    ),
    *_cluster_wide(
        "",
        "v1",
        Namespace="namespaces",
        Node="nodes",
        PersistentVolume="persistentvolumes",
    ),
    *_namespaced(
        "apps",
        "v1",
        ControllerRevision="controllerrevisions",
        DaemonSet="daemonsets",
        Deployment="deployments",
        ReplicaSet="replicasets",
        StatefulSet="statefulsets",
    ),
    *_namespaced("batch", "v1", CronJob="cronjobs", Job="jobs"),
    *_namespaced("policy", "v1", PodDisruptionBudget="poddisruptionbudgets"),
    *_namespaced("autoscaling", "v2", HorizontalPodAutoscaler="horizontalpodautoscalers"),
    *_namespaced("coordination.k8s.io", "v1", Lease="leases"),
    *_namespaced("discovery.k8s.io", "v1", EndpointSlice="endpointslices"),
    *_namespaced("events.k8s.io", "v1", Event="events"),
    *_cluster_wide("node.k8s.io", "v1", RuntimeClass="runtimeclasses"),
    *_cluster_wide("scheduling.k8s.io", "v1", PriorityClass="priorityclasses"),
    *_cluster_wide(
        "storage.k8s.io",
        "v1",
        CSIDriver="csidrivers",
        CSINode="csinodes",
        StorageClass="storageclasses",
        VolumeAttachment="volumeattachments",
    ),
    *_namespaced("storage.k8s.io", "v1", CSIStorageCapacity="csistoragecapacities"),
    *_namespaced(
        DEVICES,
        "v1",
        ResourceClaim="resourceclaims",
        ResourceClaimTemplate="resourceclaimtemplates",
    ),
    *_cluster_wide(DEVICES, "v1", DeviceClass="deviceclasses", ResourceSlice="resourceslices"),
    *_namespaced("networking.k8s.io", "v1", Ingress="ingresses", NetworkPolicy="networkpolicies"),
    *_cluster_wide("networking.k8s.io", "v1", IngressClass="ingressclasses"),
    *_namespaced("rbac.authorization.k8s.io", "v1", Role="roles", RoleBinding="rolebindings"),
    *_cluster_wide(
        "rbac.authorization.k8s.io",
        "v1",
        ClusterRole="clusterroles",
        ClusterRoleBinding="clusterrolebindings",
    ),
    *_cluster_wide(
        "authorization.k8s.io",
        "v1",
        SelfSubjectAccessReview="selfsubjectaccessreviews",
        SelfSubjectRulesReview="selfsubjectrulesreviews",
        SubjectAccessReview="subjectaccessreviews",
    ),
    *_namespaced(
        "authorization.k8s.io", "v1", LocalSubjectAccessReview="localsubjectaccessreviews"
    ),
    *_cluster_wide(
        "authentication.k8s.io",
        "v1",
        SelfSubjectReview="selfsubjectreviews",
        TokenReview="tokenreviews",
    ),
    *_cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        MutatingWebhookConfiguration="mutatingwebhookconfigurations",
        ValidatingWebhookConfiguration="validatingwebhookconfigurations",
    ),
    *_cluster_wide(
        "apiextensions.k8s.io", "v1", CustomResourceDefinition="customresourcedefinitions"
    ),
    *_namespaced(QUEUEING, "v1beta1", PodGroup="podgroups"),
    *_cluster_wide(QUEUEING, "v1beta1", Queue="queues"),
    *_cluster_wide("bayplan.io", "v1alpha1", NodeGroup="nodegroups"),
)
_BY_GROUP_AND_KIND = {(names.group, names.kind): names for names in NAMES}
_BY_KIND = {names.kind: names for names in reversed(NAMES)}


def names_of(kind: str, group: str | None = None) -> KindNames:
    """Return the names of a kind; the group is needed only for a kind of several groups.

    >>> names_of("CSINode").resource
    'csinodes.storage.k8s.io'
    >>> names_of("Event").api_version, names_of("Event", "events.k8s.io").api_version
    ('v1', 'events.k8s.io/v1')
    """
    return _BY_KIND[kind] if group is None else _BY_GROUP_AND_KIND[group, kind]
