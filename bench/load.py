"""Load nodes and pods from a JSON file; print the seconds, the peak MiB and decisions a second.

    python -m bench.load [NODES PODS]

A process of its own, so that its memory is its own. The file is made by another one: what it takes
to make is not what it takes to load. Pods are as `kubectl get pods -o json` print them, with
status and managed fields.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bayplan.fit import Snapshot
from bench.clusters import plain_pods
from bench.measure import peak_memory, placed_a_second

NODES = 5000
PODS = 150_000
DECISIONS = 5000


def main(arguments: list[str]) -> None:
    """Make the file (`--make FILE NODES PODS`), or have it made and load it."""
    if arguments[:1] == ["--make"]:
        _make(Path(arguments[1]), int(arguments[2]), int(arguments[3]))
        return
    nodes, pods = (int(one) for one in arguments) if arguments else (NODES, PODS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        command = [sys.executable, "-m", "bench.load", "--make", str(path), str(nodes)]
        subprocess.run([*command, str(pods)], check=True)  # noqa: S603
        start = time.perf_counter()
        snapshot = Snapshot.load(path)
        seconds = time.perf_counter() - start
    if len(snapshot.cluster.pods.by_key) != pods:
        raise RuntimeError("not all pods were loaded")
    rate = placed_a_second(snapshot, plain_pods(DECISIONS))
    print(f"{seconds:.2f} {peak_memory():.0f} {rate:.0f}")


def loaded_alone(nodes: int = NODES, pods: int = PODS) -> list[float]:
    """What this module prints, from a process of its own."""
    command = [sys.executable, "-m", "bench.load", str(nodes), str(pods)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    return [float(figure) for figure in printed.split()]


def _make(path: Path, nodes: int, pods: int) -> None:
    with path.open("w") as file:
        file.write('{"apiVersion": "v1", "kind": "List", "items": [\n')
        for index in range(nodes):
            file.write(json.dumps(_node(index)) + ",\n")
        for index in range(pods):
            file.write(json.dumps(listed_pod(index, nodes)) + (",\n" if index < pods - 1 else "\n"))
        file.write("]}\n")


def _node(index: int) -> dict[str, Any]:
    amounts = {"cpu": "32", "memory": "131072Mi", "pods": "110", "ephemeral-storage": "100Gi"}
    name = f"node-{index}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{index % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "uid": f"uid-{name}"},
        "spec": {"providerID": f"cloud:///{name}"},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def listed_pod(index: int, nodes: int, cpu: str = "100m", memory: str = "256Mi") -> dict[str, Any]:
    """A pod as a list of pods has it, with fields that are not read."""
    app = f"app-{index // 50}"
    metadata: dict[str, Any] = {
        "name": f"{app}-{index}",
        "namespace": f"team-{index // 5000}",
        "labels": {"app": app, "pod-template-hash": f"{index // 50:08x}"},
        "uid": f"00000000-0000-0000-0000-{index:012d}",
        "resourceVersion": str(index),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:x": {}}}],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "controller": True}
        ],
    }
    container = {
        "name": "main",
        "image": f"registry.example/{app}:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "env": [{"name": f"VARIABLE_{number}", "value": "x" * 20} for number in range(5)],
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [container],
            "nodeName": f"node-{index % nodes}",
            "priority": 0,
            "serviceAccountName": "default",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
            ],
            "volumes": [{"name": "token", "projected": {"sources": []}}],
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "main", "ready": True, "image": "registry.example/x"}],
        },
    }


if __name__ == "__main__":
    main(sys.argv[1:])
