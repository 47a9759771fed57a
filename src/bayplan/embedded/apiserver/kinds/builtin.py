"""The table of built-in kinds: those that schedulers, autoscalers, queues and node agents need."""

from __future__ import annotations

from functools import partial

from bayplan.embedded.apiserver.kinds.model import Kind

_core = partial(Kind, "", "v1")
_apps = partial(Kind, "apps", "v1", categories=("all",), generations=True)
_storage = partial(Kind, "storage.k8s.io", "v1", namespaced=False)
_device = partial(Kind, "resource.k8s.io", "v1")
_networking = partial(Kind, "networking.k8s.io", "v1", generations=True)
_rbac = partial(Kind, "rbac.authorization.k8s.io", "v1")
_admission = partial(
    Kind,
    "admissionregistration.k8s.io",
    "v1",
    namespaced=False,
    generations=True,
    conditional=True,
)
_review = partial(Kind, verbs=("create",), namespaced=False)

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
    _core(
        "Pod",
        "pods",
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
    _core(
        "Node",
        "nodes",
        short_names=("no",),
        namespaced=False,
        subresources=("status",),
        fields=("spec.unschedulable",),
    ),
    _core(
        "Namespace",
        "namespaces",
        short_names=("ns",),
        namespaced=False,
        subresources=("status", "finalize"),
        fields=("status.phase",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    _core(
        "Service",
        "services",
        short_names=("svc",),
        categories=("all",),
        subresources=("status",),
        fields=("spec.clusterIP", "spec.type"),
    ),
    _core("Endpoints", "endpoints", "endpoints", ("ep",)),
    _core(
        "PersistentVolume",
        "persistentvolumes",
        short_names=("pv",),
        namespaced=False,
        subresources=("status",),
    ),
    _core(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        short_names=("pvc",),
        subresources=("status",),
    ),
    _core("ConfigMap", "configmaps", short_names=("cm",)),
    _core("Secret", "secrets", fields=("type",)),
    _core("Event", "events", short_names=("ev",), fields=_EVENT_FIELDS),
    _core("ServiceAccount", "serviceaccounts", short_names=("sa",)),
    _core(
        "ReplicationController",
        "replicationcontrollers",
        short_names=("rc",),
        categories=("all",),
        subresources=("status", "scale"),
        generations=True,
    ),
    _core("LimitRange", "limitranges", short_names=("limits",)),
    _core("ResourceQuota", "resourcequotas", short_names=("quota",), subresources=("status",)),
    _core("PodTemplate", "podtemplates"),
    _core("Binding", "bindings", verbs=("create",)),
)

WORKLOADS = (
    _apps("Deployment", "deployments", short_names=("deploy",), subresources=("status", "scale")),
    _apps("ReplicaSet", "replicasets", short_names=("rs",), subresources=("status", "scale")),
    _apps("StatefulSet", "statefulsets", short_names=("sts",), subresources=("status", "scale")),
    _apps("DaemonSet", "daemonsets", short_names=("ds",), subresources=("status",)),
    _apps("ControllerRevision", "controllerrevisions", categories=(), generations=False),
    Kind(
        "batch",
        "v1",
        "Job",
        "jobs",
        categories=("all",),
        subresources=("status",),
        fields=("status.successful",),
        generations=True,
    ),
    Kind(
        "batch",
        "v1",
        "CronJob",
        "cronjobs",
        short_names=("cj",),
        categories=("all",),
        subresources=("status",),
        generations=True,
    ),
)

STORAGE = (
    _storage("StorageClass", "storageclasses", short_names=("sc",)),
    _storage("CSINode", "csinodes", conditional=True),
    _storage("CSIDriver", "csidrivers", conditional=True),
    _storage("VolumeAttachment", "volumeattachments", subresources=("status",), conditional=True),
    _storage("CSIStorageCapacity", "csistoragecapacities", namespaced=True, conditional=True),
)

CLUSTER = (
    Kind(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        short_names=("pc",),
        namespaced=False,
    ),
    Kind(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        short_names=("pdb",),
        conditional=True,
        subresources=("status",),
        generations=True,
    ),
    Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False, conditional=True),
    Kind(
        "coordination.k8s.io",
        "v1",
        "Lease",
        "leases",
        conditional=True,
    ),
    Kind(
        "events.k8s.io",
        "v1",
        "Event",
        "events",
        short_names=("ev",),
        storage="events",
        fields=(
            *(name.replace("involvedObject", "regarding") for name in _EVENT_FIELDS[:7]),
            "reason",
            "reportingController",
            "type",
        ),
    ),
    Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
)

ACCESS = (
    _rbac("Role", "roles"),
    _rbac("RoleBinding", "rolebindings"),
    _rbac("ClusterRole", "clusterroles", namespaced=False),
    _rbac("ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _review("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    _review("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
    _review("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews"),
    _review(
        "authorization.k8s.io",
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        namespaced=True,
    ),
    _review("authentication.k8s.io", "v1", "TokenReview", "tokenreviews"),
    _review("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews"),
)

EXTENSION = (
    _admission(
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        categories=("api-extensions",),
    ),
    _admission(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        categories=("api-extensions",),
    ),
    Kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        conditional=True,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        namespaced=False,
        subresources=("status",),
        generations=True,
    ),
)

# Nothing here acts on these either; what is deployed with them can be tried all the same.
NETWORKING = (
    _networking("Ingress", "ingresses", short_names=("ing",), subresources=("status",)),
    _networking("NetworkPolicy", "networkpolicies", short_names=("netpol",)),
    _networking("IngressClass", "ingressclasses", namespaced=False),
    Kind(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        short_names=("hpa",),
        categories=("all",),
        subresources=("status",),
    ),
)

# Nothing here acts on devices; kube-scheduler does not start without their lists.
DEVICES = (
    _device("DeviceClass", "deviceclasses", namespaced=False),
    _device("ResourceClaim", "resourceclaims", subresources=("status",)),
    _device("ResourceClaimTemplate", "resourceclaimtemplates"),
    _device(
        "ResourceSlice",
        "resourceslices",
        namespaced=False,
        fields=("spec.driver", "spec.nodeName"),
    ),
)

BUILTIN = (*CORE, *WORKLOADS, *STORAGE, *CLUSTER, *NETWORKING, *DEVICES, *ACCESS, *EXTENSION)
