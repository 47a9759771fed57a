"""The commands that fixes come with, run by the real kubectl: the pod then fits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.fit import Snapshot
from bayplan.fit.explanation import Fix, FixKind, explain
from bayplan.kube.codec import encode
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from tests.builders import (
    NodeBuilder,
    PodBuilder,
    make_attachment,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    selector,
)
from tests.kubectl import KUBECTL, Kubectl, needs_kubectl, runner

pytestmark = [pytest.mark.whole, needs_kubectl]
EBS = "ebs.csi.aws.com"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KINDS = "pods,nodes,persistentvolumes,persistentvolumeclaims,storageclasses,csinodes"


def node(name: str, cpu: str = "4") -> NodeBuilder:
    return make_node(name).label(HOSTNAME, name).capacity(cpu=cpu, memory="8Gi", pods=10)


def pod(name: str = "p") -> PodBuilder:
    return make_pod(name).image("example/app:1")


def apart(name: str) -> PodBuilder:
    return pod(name).labels(app="x").anti_affinity(ZONE, selector(app="x"))


SPREAD = pod().labels(app="w").spread(ZONE)
CLASS = make_storage_class("fast", EBS).waits().obj()
CLUSTERS: dict[FixKind, tuple[Sequence[KubeObject], PodBuilder]] = {
    FixKind.UNCORDON: ([node("n").unschedulable().obj()], pod()),
    FixKind.TOLERATION: ([node("n").taint("team", "x").obj()], pod()),
    FixKind.CLEAR_TAINT: ([node("n").taint("node.kubernetes.io/disk-pressure").obj()], pod()),
    FixKind.LABEL_NODE: ([node("n").obj()], pod().node_selector(disk="ssd")),
    FixKind.CHANGE_SELECTOR: (
        [node("n").label("disk", "hdd").obj()],
        pod().node_selector(disk="ssd"),
    ),
    FixKind.SMALLER_REQUEST: ([node("n", cpu="2").obj()], pod().cpu("3").memory("1Gi")),
    FixKind.DROP_HOST_PORT: (
        [node("n").obj(), pod("x").host_port(80).node("n").obj()],
        pod().host_port(80),
    ),
    FixKind.MOVE_POD: (
        [node("n").obj(), node("m", cpu="2").obj(), pod("x").cpu("1").node("n").obj()],
        pod().cpu("4"),
    ),
    FixKind.STOP_POD: ([node("n").zone("a").obj(), apart("x").node("n").obj()], apart("p")),
    FixKind.DROP_AFFINITY: ([node("n").obj()], pod().affinity(HOSTNAME, selector(app="db"))),
    FixKind.RELAX_SPREAD: (
        [
            node("a").zone("a").obj(),
            node("b").zone("b").taint("t").obj(),
            pod("x").labels(app="w").node("a").obj(),
        ],
        SPREAD,
    ),
    FixKind.HONOR_TAINTS: (
        [
            node("a").zone("a").obj(),
            node("b").zone("b").taint("t").obj(),
            pod("x").labels(app="w").node("a").obj(),
        ],
        SPREAD,
    ),
    FixKind.CREATE_CLAIM: (
        [node("n").obj(), make_csinode("n").driver(EBS, 4).obj(), CLASS],
        pod().claim("c"),
    ),
    FixKind.CREATE_CLASS: (
        [
            *(node("n").obj(), make_csinode("n").driver(EBS, 4).obj(), CLASS),
            make_pvc("c").storage_class("gone").size("1Gi").obj(),
        ],
        pod().claim("c"),
    ),
    FixKind.DETACH_VOLUME: (
        [
            *(node("n").obj(), make_csinode("n").driver(EBS, 1).obj(), CLASS),
            make_pv("pv").csi(EBS, "v").size("1Gi").access("ReadWriteOnce").obj(),
            make_attachment("att", EBS, "n", "pv").obj(),
            make_pvc("c").storage_class("fast").size("1Gi").obj(),
        ],
        pod().claim("c"),
    ),
}


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    """Runs kubectl against a server of the test's own."""
    config = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(data=tmp_path / "data.db")) as server:
        config.write_text(server.kubeconfig)
        yield runner(config, tmp_path)


@pytest.mark.parametrize("kind", CLUSTERS, ids=lambda kind: str(kind.value))
async def test_the_command_of_a_fix_makes_the_pod_fit(
    kind: FixKind, kubectl: Kubectl, tmp_path: Path
) -> None:
    objects, waiting = CLUSTERS[kind]
    await create(kubectl, [*objects, waiting.obj()])
    snapshot = await observe(kubectl)
    fix = fix_of(snapshot, kind)
    await run(fix.steps[0].command, tmp_path)
    after = await observe(kubectl)
    (changed,) = (one for one in after.objects() if isinstance(one, Pod) and one.name == "p")
    assert after.decide(changed).node == fix.node
    (container,) = changed.spec.containers
    assert container.image == "example/app:1"


@pytest.mark.parametrize("owner", ["Deployment", "StatefulSet", "DaemonSet", "Job"])
async def test_a_pod_is_changed_where_it_was_made(
    owner: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    await create(kubectl, [node("n").taint("team", "x").obj()])
    await kubectl("create", "-f", "-", stdin=json.dumps(_workload(owner)))
    made = pod().labels({"pod-template-hash": "5d8"})
    await create(kubectl, [made.obj()])
    snapshot = await observe(kubectl)
    name = "w-5d8" if owner == "Deployment" else "w"
    snapshot.put(made.owner("ReplicaSet" if owner == "Deployment" else owner, name).obj())
    fix = fix_of(snapshot, FixKind.TOLERATION)
    assert fix.steps[0].target == (owner, "default", "w")
    await run(fix.steps[0].command, tmp_path)
    found = json.loads((await kubectl("get", owner.lower(), "w", "-o", "json")).out)
    spec = found["spec"]["template"]["spec"]
    assert [one["key"] for one in spec["tolerations"]].count("team") == 1
    assert spec["containers"][0]["command"] == ["sleep", "1d"]


def _workload(kind: str) -> dict[str, object]:
    labels = {"app": "w"}
    container = {"name": "c0", "image": "example/app:1", "command": ["sleep", "1d"]}
    restart = {"restartPolicy": "Never"} if kind == "Job" else {}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **restart}}
    selecting = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    named = {"serviceName": "w"} if kind == "StatefulSet" else {}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "w"},
        "spec": {"template": template, **selecting, **named},
    }


async def create(kubectl: Kubectl, objects: Sequence[KubeObject]) -> None:
    items = [json.loads(encode(obj)) for obj in objects]
    for item in items:
        item["metadata"].pop("uid", None)
        if item["kind"] == "Pod":  # there is no kubelet that would end it
            item["spec"]["terminationGracePeriodSeconds"] = 0
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    await kubectl("create", "-f", "-", stdin=json.dumps(listed))


async def observe(kubectl: Kubectl) -> Snapshot:
    found = await kubectl("get", f"{KINDS},volumeattachments", "-A", "-o", "json")
    return Snapshot.load(found.out.encode())


def fix_of(snapshot: Snapshot, kind: FixKind) -> Fix:
    """The fix of one step of a kind, for the pod that waits."""
    (waiting,) = (one for one in snapshot.objects() if isinstance(one, Pod) and one.name == "p")
    found = explain(snapshot, waiting).fixes
    return next(fix for fix in found if fix.kinds == (kind,))


async def run(command: str, folder: Path) -> None:
    """Run a command in a shell, as a user would."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-e", "-c", command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={
            "PATH": f"{Path(KUBECTL).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "KUBECONFIG": str(folder / "kubeconfig"),
        },
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
