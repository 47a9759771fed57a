"""`bayplan explain --all-pending` on a large cluster: seconds of one core and peak MiB, in all; and
`bayplan check` on the same, in seconds.

    python -m bench.explain [--make FILE]

5,000 nodes of several kinds in three zones, 100,000 pods, and 2,000 pods of 40 kinds that wait,
each kind for a reason of its own. The command runs as a process of its own, so that its memory is
its own, on a file that another process made.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bayplan.kube.codec import encode
from bayplan.kube.meta import KubeObject
from bench.load import listed_pod
from bench.measure import Result
from tests.builders import (
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    node_term,
    selector,
)

NODES = 5000
PODS = 100_000
KINDS = 40
EACH = 50
DRIVER = "ebs.csi.aws.com"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
TYPE = "node.kubernetes.io/instance-type"
MODELS = ("h100", "a100", "l4")


def cases() -> Iterator[Result]:
    """Seconds and memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        subprocess.run([sys.executable, "-m", "bench.explain", "--make", str(path)], check=True)  # noqa: S603
        seconds, checked = _explain(path), _check(path)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield Result("explain/all-pending/seconds", seconds, "s")
    yield Result("explain/all-pending/memory", peak, "MiB")
    yield Result("explain/check/seconds", checked, "s")


def _explain(path: Path) -> float:
    command = [sys.executable, "-m", "bayplan", "explain", "--all-pending", "-f", str(path)]
    began = _busy()
    done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603
    if b"2,000 pods: 2,000 fit nowhere" not in done.stdout:
        raise RuntimeError(f"not what was to be explained: {done.stdout[-500:]!r} {done.stderr!r}")
    return _busy() - began


def _check(path: Path) -> float:
    command = [sys.executable, "-m", "bayplan", "check", "-f", str(path)]
    began = _busy()
    done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603
    if done.returncode != 1 or b"PodsWaitForVolumes" not in done.stdout:
        raise RuntimeError(f"not what was to be found: {done.stdout[-500:]!r} {done.stderr!r}")
    return _busy() - began


def _busy() -> float:
    """Seconds of one core that processes of ours have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make(path: Path) -> None:
    """Write the cluster as a list."""
    with path.open("wb") as file:
        file.write(b'{"apiVersion": "v1", "kind": "List", "items": [\n')
        for index in range(PODS):
            pod = listed_pod(index, NODES, cpu="700m", memory="2Gi")
            file.write(json.dumps(pod).encode() + b",\n")
        for obj in _objects():
            file.write(encode(obj) + b",\n")
        file.write(encode(make_storage_class("ebs", DRIVER).waits().obj()) + b"\n]}\n")


def _objects() -> Iterator[KubeObject]:
    for index in range(NODES):
        yield from _node(index)
    for index in range(NODES):
        log = make_pod(f"log-{index}", "system").host_port(9100).priority(0)
        yield log.node(f"node-{index}").obj()
    for kind in range(KINDS):
        for index in range(EACH):
            yield from _waiting(kind, f"waiting-{kind}-{index}")


def _node(index: int) -> Iterator[KubeObject]:
    """One in fifty has GPUs and a taint, one in a hundred is cordoned; one in ten is large."""
    name, large = f"node-{index}", index % 10 == 0
    node = make_node(name).zone(f"zone-{index % 3}").label(HOST, name)
    node.label(TYPE, "large" if large else "small").label("rack", f"r{index // 40}")
    node.capacity(cpu="16", memory="64Gi" if large else "48Gi", pods=110)
    if index % 50 == 7:
        node.taint("nvidia.com/gpu", "present").label("gpu", MODELS[index % 3])
        node.capacity({"nvidia.com/gpu": 8})
    if index % 100 == 3:
        node.unschedulable()
    yield node.obj()
    yield make_csinode(name).driver(DRIVER, 0 if index % 4 else 1).obj()


def _waiting(kind: int, name: str) -> Iterator[KubeObject]:
    """A pod of a kind: ten ways to fit nowhere, in four sizes."""
    size = kind // 10 + 1
    pod = make_pod(name, "waiting").labels(app=f"waiting-{kind}").memory(f"{size}Gi")
    pod.owner("ReplicaSet", f"waiting-{kind}")
    match kind % 10:
        case 0:
            pod.cpu(f"{2 + size}")
        case 1:
            pod.cpu("1").memory(f"{30 + size}Gi").node_selector(rack="r3")
        case 2:
            pod.toleration("nvidia.com/gpu", "present").node_selector(gpu=f"b{size}00")
            pod.request("nvidia.com/gpu", "4")
        case 3:
            pod.request("nvidia.com/gpu", str(size)).node_selector(gpu="h100")
        case 4:
            pod.cpu(f"{size}m").host_port(9100)
        case 5:
            yield from _bound(name, f"zone-{3 + size}")
            pod.claim(name)
        case 6:
            pod.cpu(f"{3 + size}").spread(ZONE, label_selector=selector(app=f"waiting-{kind}"))
        case 7:
            pod.cpu(f"{size}m").affinity(ZONE, selector(app=f"nowhere-{kind}"))
        case 8:
            pod.cpu(f"{size}00").node_affinity(node_term("disk", "In", "nvme"))
        case _:
            yield make_pvc(name, "waiting").storage_class("gone").obj()
            pod.claim(name)
    yield pod.priority(0).obj()


def _bound(name: str, zone: str) -> Iterator[KubeObject]:
    yield make_pvc(name, "waiting").storage_class("ebs").volume(f"pv-{name}").obj()
    volume = make_pv(f"pv-{name}").csi(DRIVER, f"vol-{name}").storage_class("ebs")
    yield volume.bound_to(name, "waiting").node_affinity(node_term(ZONE, "In", zone)).obj()


if __name__ == "__main__":
    make(Path(sys.argv[2]))
