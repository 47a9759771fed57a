"""What could mislead a decision is refused, by name, field and value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import (
    ContainerPort,
    ContainerStatus,
    Pod,
    PodAffinityTerm,
    ResourceRequirements,
)
from bayplan.kube.quantity import MAX_INT64, milli_value, value
from bayplan.kube.validation import validate
from bayplan.kube.volumes import ClaimVolumeSource, CsiVolumeSource, Volume
from tests.builders import (
    Builder,
    PodBuilder,
    expression,
    make_attachment,
    make_capacity,
    make_csidriver,
    make_csinode,
    make_daemon_set,
    make_namespace,
    make_node,
    make_pdb,
    make_pod,
    make_priority_class,
    make_pv,
    make_pvc,
    make_replica_set,
    make_replication_controller,
    make_runtime_class,
    make_service,
    make_stateful_set,
    make_storage_class,
    node_term,
    selector,
)

BAD = selector(app="not ok")
LONG = "x" * 10_000_000


def changed(builder: PodBuilder, change: Callable[[Pod], object]) -> PodBuilder:
    change(builder.obj())
    return builder


SOUND: list[Callable[[], KubeObject]] = [
    make_pod().cpu("1").memory("1Gi").request("nvidia.com/gpu", "2").obj,
    make_pod().toleration().toleration("a", "b").toleration("a", "5", operator="Lt").obj,
    make_pod().spread("zone").affinity("zone").anti_affinity("host").gate("example.com/wait").obj,
    make_pod()
    .node_affinity(node_term("gen", "Gt", "5"))
    .prefers_node(1, node_term("a", "Exists"))
    .obj,
    make_pod().claim("c").ephemeral("v", "fast").csi_inline("d").ebs("vol-1").obj,
    make_pod().host_port(80, host_ip="::1").sidecar(cpu="1").init(cpu="1").overhead(cpu="1").obj,
    make_node().taint("k", "v").zone("z").image("a", size=1).obj,
    make_pv("pv").csi("d").zone("z").obj,
    make_pvc("c").storage_class("").volume("pv").obj,
    make_storage_class("s", "kubernetes.io/aws-ebs").topology("zone", "a").obj,
    make_csinode("n").driver("d", 0, "zone").obj,
    make_csidriver("d").obj,
    make_attachment("a", "d", "n", "pv").obj,
    make_capacity("c", "s").capacity("1Gi", "1Gi").topology(selector(zone="a")).obj,
    make_pdb("b", expression("app", "Exists")).obj,
    make_replica_set("r", app="web").obj,
    make_stateful_set("s", app="web").obj,
    make_daemon_set("d", make_pod().labels(app="agent").toleration().cpu("1").obj()).obj,
    make_service("s", app="web").obj,
    make_replication_controller("r", app="web").obj,
    make_runtime_class("r").overhead(cpu="1").node_selector(a="b").obj,
    make_namespace("n").obj,
    make_priority_class("p", 5).obj,
]


@pytest.mark.parametrize("build", SOUND)
def test_a_sound_object_passes(build: Callable[[], KubeObject]) -> None:
    assert validate(build()) is None


@pytest.mark.parametrize(
    ("builder", "path"),
    [
        (make_pod().cpu("-1"), "spec.containers[0].resources.requests.cpu"),
        (make_pod().cpu("many"), "spec.containers[0].resources.requests.cpu"),
        (make_pod().cpu("1e30"), "spec.containers[0].resources.requests.cpu"),
        (make_pod().cpu(str(2**63)), "spec.containers[0].resources.requests.cpu"),
        (make_pod().cpu("9223372036854775807"), "spec.containers[0].resources.requests.cpu"),
        (make_pod().memory("10E"), "spec.containers[0].resources.requests.memory"),
        (make_pod().memory(LONG), "spec.containers[0].resources.requests.memory"),
        (make_pod().limit("cpu", "-1"), "spec.containers[0].resources.limits.cpu"),
        (make_pod().request("nvidia.com/gpu", "0.5"),
         "spec.containers[0].resources.requests.nvidia.com/gpu"),
        (make_pod().request(LONG, "1"), f"spec.containers[0].resources.requests.{LONG[:80]}"),
        (make_pod().container(cpu="-1"), "spec.containers[1].resources.requests.cpu"),
        (make_pod().init(cpu="-1"), "spec.initContainers[0].resources.requests.cpu"),
        (make_pod().overhead(cpu="-1"), "spec.overhead.cpu"),
        (make_pod().pod_level(cpu="-1"), "spec.resources.requests.cpu"),
        (make_pod().memory("8Ei").container(memory="8Ei"), "spec (total memory)"),
        (make_pod().node_selector(a="b c"), "spec.nodeSelector.a"),
        (make_pod().toleration("a b"), "spec.tolerations[0].key"),
        (make_pod().toleration("", "v"), "spec.tolerations[0].operator"),
        (make_pod().toleration("a", "v", operator="Exists"), "spec.tolerations[0].value"),
        (make_pod().toleration("a", "five", operator="Gt"), "spec.tolerations[0].value"),
        (make_pod().toleration("a", LONG), "spec.tolerations[0].value"),
        (make_pod().spread(""), "spec.topologySpreadConstraints[0].topologyKey"),
        (make_pod().spread("zone", label_selector=BAD),
         "spec.topologySpreadConstraints[0].labelSelector"),
        (make_pod().spread("zone", match_label_keys=["a b"]),
         "spec.topologySpreadConstraints[0].matchLabelKeys[0]"),
        (make_pod().spread("zone", when="ScheduleAnyway", min_domains=2),
         "spec.topologySpreadConstraints[0].minDomains"),
        (make_pod().affinity(""),
         "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"),
        (make_pod().prefers_anti_affinity(1, "zone", BAD),
         ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
         ".podAffinityTerm.labelSelector")),
        (make_pod().affinity_term(PodAffinityTerm(topology_key="a", namespace_selector=BAD)),
         ("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
         ".namespaceSelector")),
        (make_pod().affinity_term(PodAffinityTerm(topology_key="a", mismatch_label_keys=[""])),
         ("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
         ".mismatchLabelKeys[0]")),
        (make_pod().node_affinity(node_term("gen", "Gt", "x")),
         ("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
         ".nodeSelectorTerms[0]")),
        (make_pod().prefers_node(1, node_term("gen", "In")),
         ("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
         ".preference")),
        (make_pod().gate(""), "spec.schedulingGates[0].name"),
        (make_pod().node(LONG), "spec.nodeName"),
        (make_pod().nominated("a/b"), "status.nominatedNodeName"),
        (make_pod().started("yesterday"), "status.startTime"),
        (make_pod().started("2026-01-01T00:00:00"), "status.startTime"),
        (make_pod().host_port(80, host_ip="nowhere"), "spec.containers[0].ports[0].hostIP"),
        (make_pod().claim(""), "spec.volumes[0].persistentVolumeClaim.claimName"),
        (make_pod().claim("c").ephemeral("", "fast"), "spec.volumes[1].name"),
        (make_pod().ephemeral("v", "fast", "-1Gi"),
         "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage"),
        (make_pod().csi_inline(""), "spec.volumes[0].csi.driver"),
        (make_node().capacity(cpu="-4"), "status.capacity.cpu"),
        (make_node().taint(""), "spec.taints[0].key"),
        (make_node().taint("a", "b c"), "spec.taints[0].value"),
        (make_pv("pv").size("-1Gi"), "spec.capacity.storage"),
        (make_pv("pv").csi(""), "spec.csi.driver"),
        (make_pv("pv").node_affinity(node_term("a", "In")),
         "spec.nodeAffinity.required.nodeSelectorTerms[0]"),
        (make_pvc("c").size("huge"), "spec.resources.requests.storage"),
        (make_pvc("c").storage_class("a/b"), "spec.storageClassName"),
        (make_storage_class("s", ""), "provisioner"),
        (make_storage_class("s", "p").topology(""),
         "allowedTopologies[0].matchLabelExpressions[0].key"),
        (make_csinode("n").driver(""), "spec.drivers[0].name"),
        (make_csinode("n").driver("d").driver("d"), "spec.drivers[1].name"),
        (make_csinode("n").driver("d", 1, ""), "spec.drivers[0].topologyKeys[0]"),
        (make_capacity("c", "s").capacity("-1"), "capacity"),
        (make_capacity("c", "s").capacity("1", "x"), "maximumVolumeSize"),
        (make_capacity("c", ""), "storageClassName"),
        (make_capacity("c", "s").topology(BAD), "nodeTopology"),
        (make_attachment("a", "d", "", "pv"), "spec.nodeName"),
        (make_attachment("a", "", "n", "pv"), "spec.attacher"),
        (make_pdb("b", BAD), "spec.selector"),
        (make_replica_set("r", app="b c"), "spec.selector"),
        (make_daemon_set("d", make_pod().cpu("-1").obj()),
         "spec.template.spec.containers[0].resources.requests.cpu"),
        (make_daemon_set("d", make_pod().memory("8Ei").container(memory="8Ei").obj()),
         "spec.template.spec (total memory)"),
        (make_daemon_set("d", make_pod().labels(app="b c").obj()), "spec.selector"),
        (make_service("s", app="b c"), "spec.selector.app"),
        (make_runtime_class("r").overhead(cpu="-1"), "overhead.podFixed.cpu"),
        (make_runtime_class("r").node_selector(a="b c"), "scheduling.nodeSelector.a"),
        (make_pod(""), "metadata.name"),
        (make_pod(LONG), "metadata.name"),
        (make_pod("a\nb"), "metadata.name"),
        (make_pod("..").namespace("a"), "metadata.name"),
        (make_pod("p").namespace("a b"), "metadata.namespace"),
        (make_pod().labels(a=LONG), "metadata.labels.a"),
        (make_pod().labels({LONG: "a"}), f"metadata.labels.{LONG[:80]}"),
    ],
    ids=lambda value: value[-60:] if isinstance(value, str) else "",
)  # fmt: skip
def test_an_unsound_object_is_refused_at_its_place(builder: Builder[Pod], path: str) -> None:
    error = validate(builder.obj())
    assert error is not None
    assert error.path == path
    assert error.identity.startswith(type(builder.obj()).__name__)
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda pod: pod.spec.containers.clear(), "spec.containers"),
        (lambda pod: pod.status.container_statuses.append(
            ContainerStatus(allocated_resources={"cpu": "-1"})),
         "status.containerStatuses[0].allocatedResources.cpu"),
        (lambda pod: pod.status.init_container_statuses.append(
            ContainerStatus(resources=ResourceRequirements(requests={"cpu": "x"}))),
         "status.initContainerStatuses[0].resources.requests.cpu"),
        (lambda pod: setattr(pod.status, "allocated_resources", {"cpu": ""}),
         "status.allocatedResources.cpu"),
        (lambda pod: setattr(pod.status, "resources", ResourceRequirements(limits={"cpu": ""})),
         "status.resources.limits.cpu"),
    ],
)  # fmt: skip
def test_a_pods_status_is_checked_too(change: Callable[[Pod], object], path: str) -> None:
    error = validate(changed(make_pod(), change).obj())
    assert error is not None
    assert error.path == path


def test_a_volume_without_a_handle_cannot_be_told_apart() -> None:
    volume = make_pv("pv").obj()
    volume.spec.csi = CsiVolumeSource(driver="d")
    error = validate(volume)
    assert error is not None
    assert error.path == "spec.csi.volumeHandle"


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=10)))
def test_any_labels_are_taken_or_refused(labels: dict[str, str]) -> None:
    error = validate(make_namespace("n").labels(labels).obj())
    assert error is None or error.path.startswith("metadata.labels.")


numbers = st.from_regex(r"[0-9]{1,20}(m|E|Ki|Ei|e[0-9]{1,3})?", fullmatch=True)
names = st.sampled_from(["cpu", "memory", "a/b", "?"])


@given(st.dictionaries(names, st.one_of(numbers, st.floats())))
def test_what_passes_is_not_negative_and_fits_64_bits(
    written: dict[str, str | int | float],
) -> None:
    node = make_node().obj()
    node.status.allocatable = written
    if validate(node) is None:
        for name, amount in written.items():
            counted = milli_value(amount) if name == "cpu" else value(amount)
            assert 0 <= counted <= MAX_INT64


def test_checks_do_not_change_what_they_check() -> None:
    pod = make_pod().cpu("1").volume(
        Volume(name="v", persistent_volume_claim=ClaimVolumeSource(claim_name="c"))
    ).obj()  # fmt: skip
    pod.spec.containers[0].ports = [ContainerPort(container_port=80)]
    before = repr(pod)
    assert validate(pod) is None
    assert repr(pod) == before


@pytest.mark.parametrize(
    "name",
    ["attachable-volumes-aws-ebs", "storage-attach-limits-gce-pd", "attachable-volumes-csi-x"],
)
def test_a_pod_cannot_ask_for_a_nodes_attach_limit(name: str) -> None:
    error = validate(make_pod("p").request(name, "1").obj())
    assert error is not None
    assert error.path == f"spec.containers[0].resources.requests.{name}"
