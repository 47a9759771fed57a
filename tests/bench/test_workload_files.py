"""Workload files in the form of Kubernetes' benchmark are read, step by step."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.scheduler_perf import objects
from bench.scheduler_perf.command import main
from bench.scheduler_perf.workloads import WorkloadError, read_workloads, select

pytestmark = pytest.mark.whole


CONFIG = """
- name: Plain
  defaultPodTemplatePath: ../templates/pod.yaml
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
  - opcode: createPods
    countParam: $pods
    templateParams: {size: "$size|100m"}
    collectMetrics: true
  workloads:
  - name: small
    params: {nodes: 2, pods: 3}
  - name: large
    labels: [performance]
    threshold: 270
    params: {nodes: 20, pods: 30, size: 200m}
  - name: broken
    params: {nodes: 20}
- name: Volumes
  workloadTemplate:
  - opcode: createNodes
    count: 1
    nodeAllocatableStrategy:
      nodeAllocatable: {attachable-volumes-csi-d: "3"}
      csiNodeAllocatable: {d: {count: 3}}
      migratedPlugins: [kubernetes.io/aws-ebs]
  - opcode: createPods
    count: 2
    persistentVolumeTemplatePath: ../templates/pv.yaml
    persistentVolumeClaimTemplatePath: ../templates/pvc.yaml
  workloads: [{name: one}]
- name: Groups
  workloadTemplate: [{opcode: createPodGroups}]
  workloads: [{name: one, labels: [performance]}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec: {containers: [{name: "c-{{.Index}}", image: i, resources: {requests: {cpu: "{{.size}}"}}}]}
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: d}}
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {annotations: {pv.kubernetes.io/bind-completed: "true"}}
spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "test/integration/scheduler_perf"
    (root / "misc").mkdir(parents=True)
    (root / "templates").mkdir()
    (root / "misc/performance-config.yaml").write_text(CONFIG)
    (root / "templates/pod.yaml").write_text(POD)
    (root / "templates/pv.yaml").write_text(VOLUME)
    (root / "templates/pvc.yaml").write_text(CLAIM)
    return tmp_path


def test_workloads_are_named_by_folder_case_and_workload(checkout: Path) -> None:
    names = [one.name for one in read_workloads(checkout)]
    assert names == [
        "misc/Plain/small",
        "misc/Plain/large",
        "misc/Plain/broken",
        "misc/Volumes/one",
        "misc/Groups/one",
    ]


def test_upstreams_own_choice_or_what_is_named(checkout: Path) -> None:
    found = read_workloads(checkout)
    assert [one.name for one in select(found, [])] == ["misc/Plain/large", "misc/Groups/one"]
    assert [one.name for one in select(found, ["Plain/small"])] == ["misc/Plain/small"]
    assert len(select(found, ["Plain", "Volumes"])) == 4
    with pytest.raises(WorkloadError, match="Nothing"):
        select(found, ["Nothing"])


def test_what_cannot_be_run_says_why(checkout: Path) -> None:
    reasons = {one.name: one.left_out for one in read_workloads(checkout) if one.left_out}
    assert reasons == {
        "misc/Groups/one": "pod groups",
        "misc/Plain/broken": "the missing parameter $pods",
    }


def test_parameters_are_filled_in(checkout: Path) -> None:
    large = read_workloads(checkout)[1]
    nodes, pods = large.operations
    assert (large.threshold, nodes.count(), pods.count()) == (270.0, 20, 30)
    assert pods.flag("collectMetrics")
    made = objects.pod(pods, large.default_pod, "ns", 7)
    assert made["metadata"] == {"generateName": "pod-", "namespace": "ns"}
    (container,) = made["spec"]["containers"]
    assert (container["name"], container["resources"]["requests"]["cpu"]) == ("c-7", "200m")
    zones = [
        objects.node(nodes, 0, index, index)["metadata"]["labels"]["zone"] for index in range(3)
    ]
    assert zones == ["a", "b", "a"]


def test_volumes_are_bound_to_their_claims(checkout: Path) -> None:
    nodes, pods = read_workloads(checkout)[3].operations
    node = objects.node(nodes, 0, 0, 0)
    assert node["status"]["allocatable"]["attachable-volumes-csi-d"] == "3"
    csi = objects.csi_node(nodes, node["metadata"]["name"])
    assert csi is not None
    assert csi["spec"]["drivers"][0]["allocatable"] == {"count": 3}
    volume, claim = objects.volume_and_claim(pods, "ns", 1)
    assert volume["spec"]["csi"] == {"driver": "d", "volumeHandle": "ns-vol-1"}
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"] == "pvc-1"
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    pod = objects.pod(pods, None, "ns", 1)
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "pvc-1"}


def test_a_folder_without_workloads_is_said(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"there is no performance-config\.yaml"):
        read_workloads(tmp_path)


def test_what_is_not_honoured_is_named(tmp_path: Path) -> None:
    (tmp_path / "misc").mkdir()
    (tmp_path / "misc/performance-config.yaml").write_text("""
- name: Steady
  workloadTemplate:
  - {opcode: createPods, count: 1, steadyState: true, duration: 10s}
  workloads: [{name: one}]
""")
    (workload,) = read_workloads(tmp_path)
    assert workload.left_out == "createPods's steadyState, which is not honoured here"


def test_a_workload_runs_with_our_scheduler(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["Plain/small", "Volumes", "Groups"]
    assert main(["--from", str(checkout), *names]) == 0
    lines = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["workload"] for line in lines] == [
        "misc/Plain/small",
        "misc/Volumes/one",
        "misc/Groups/one",
    ]
    assert lines[0]["pods"] == 3
    assert lines[2]["left out"] == "pod groups"


def test_pods_are_the_same_unless_their_template_or_claims_tell_them_apart(checkout: Path) -> None:
    plain, *_, volumes, _ = read_workloads(checkout)
    assert not objects.pods_differ(plain.operations[1], None)
    assert objects.pods_differ(plain.operations[1], plain.default_pod)
    assert objects.pods_differ(volumes.operations[1], None)


def test_an_update_leaves_a_pod_what_the_server_gave_it_and_takes_its_gates_away() -> None:
    container = {"name": "c", "image": "i", "imagePullPolicy": "Always"}
    live = {
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "u"},
        "spec": {
            "nodeName": "n",
            "containers": [container],
            "schedulingGates": [{"name": "g"}],
            "tolerations": [{"key": "a"}],
        },
    }
    wanted = {
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"x": "y"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "b"}]},
    }
    made = objects.updated(live, wanted)
    assert made["metadata"] == {"name": "p", "uid": "u", "labels": {"x": "y"}}
    assert made["spec"] == {
        "nodeName": "n",
        "containers": [container],
        "tolerations": [{"key": "a"}, {"key": "b"}],
    }


def test_a_node_gives_its_capacity_unless_it_says_otherwise() -> None:
    node = {"kind": "Node", "status": {"capacity": {"cpu": "4"}}}
    assert objects.whole_status(node)["allocatable"] == {"cpu": "4"}
