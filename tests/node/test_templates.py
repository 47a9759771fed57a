"""New nodes of a group are planned with the limits that they will have: gate and environment count.

The nodes are as they were before CSI: they have no CSINode, and in-tree volumes are attached.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bayplan.cli.main import run
from tests.cli.clusters import dump

Captured = pytest.CaptureFixture[str]
KEY = "attachable-volumes-aws-ebs"
PODS = 60


def cluster(folder: Path, **limits: str) -> str:
    """A node of a type that falls back to 25, and pods with an EBS volume each."""
    size = {"cpu": "64", "memory": "256Gi", "pods": "200", **limits}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"node.kubernetes.io/instance-type": "m5.large"}},
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return dump(folder, node, *(_pod(number) for number in range(PODS)))


def _pod(number: int) -> dict[str, object]:
    disk = {"name": "v", "awsElasticBlockStore": {"volumeID": f"vol-{number}"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "c"}], "volumes": [disk]},
        "status": {"phase": "Pending"},
    }


@contextmanager
def most(count: str) -> Iterator[None]:
    os.environ["KUBE_MAX_PD_VOLS"] = count
    try:
        yield
    finally:
        del os.environ["KUBE_MAX_PD_VOLS"]


def bought(file: str, capsys: Captured, *arguments: str) -> int:
    """How many nodes are planned."""
    run(["plan", "-f", file, "-o", "json", *arguments])
    said = json.loads(capsys.readouterr().out)
    return sum(len(one["nodes"]) for one in said["scaleUps"])


def test_without_a_published_limit_new_nodes_take_what_their_type_falls_back_to(
    tmp_path: Path, capsys: Captured
) -> None:
    # One has room for 25; 35 more need two.
    assert bought(cluster(tmp_path), capsys) == 2


def test_the_environment_replaces_the_fallback_of_new_nodes(
    tmp_path: Path, capsys: Captured
) -> None:
    with most("10"):
        assert bought(cluster(tmp_path), capsys) == 5


def test_new_nodes_take_what_those_that_are_there_publish_unless_the_gate_is_off(
    tmp_path: Path, capsys: Captured
) -> None:
    file = cluster(tmp_path, **{KEY: "5"})
    seen = [
        bought(file, capsys, f"--feature-gates=AttachVolumeLimit={on}")
        for on in ("true", "false", "true")
    ]
    assert seen == [11, 2, 11]
    with most("10"):
        assert bought(file, capsys) == 11
        assert bought(file, capsys, "--feature-gates=AttachVolumeLimit=false") == 5


def test_a_wrong_value_of_those_that_are_there_is_no_promise_of_any_number(
    tmp_path: Path, capsys: Captured
) -> None:
    assert bought(cluster(tmp_path, **{KEY: "-5"}), capsys) == 2
