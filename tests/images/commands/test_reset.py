"""`bayplan images reset` with a cluster: pods are restarted, images go, the warning ends."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from bayplan.cli.main import run
from bayplan.client.client import Client, connect
from bayplan.client.objects import uid_of
from bayplan.client.resources import Untyped, untyped
from bayplan.images.agent.image_gc_loop import GateStateFile
from bayplan.images.runtime.objects import Image
from bayplan.kube.meta import ObjectMeta, OwnerReference
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import RuntimeClass
from tests.builders import make_node, make_pod
from tests.images.parts.registry import Registry
from tests.images.peers.fixtures import Push
from tests.images.peers.process import running

pytestmark = pytest.mark.whole


T = TypeVar("T")
APP = Image("sha256:app", size=1)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """An API server, in a process of its own."""
    path = tmp_path / "kubeconfig"
    command = [sys.executable, "-c", "from bayplan.cli.main import main; main()", "apiserver"]
    with running([*command, "--kubeconfig", str(path)], "serving "):
        yield path


async def _fill(client: Client) -> None:
    await client.create(make_node("n1").obj())
    await client.create(RuntimeClass(metadata=ObjectMeta(name="isolated"), handler="kata"))
    owner = await client.create(
        untyped_replica_set("rs"), untyped("apps", "v1", "replicasets", "ReplicaSet")
    )
    for name in ("owned", "bare"):
        pod = make_pod(name).image("app:1").node("n1").runtime_class("isolated").obj()
        pod.metadata.uid = ""
        if name == "owned":
            uid = uid_of(owner)
            pod.metadata.owner_references = [
                OwnerReference(
                    api_version="apps/v1", kind="ReplicaSet", name="rs", uid=uid, controller=True
                )
            ]
        await client.create(pod)


def untyped_replica_set(name: str) -> Untyped:
    labels: dict[str, object] = {"app": name}
    template: dict[str, object] = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "app:1"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}


async def _pods(client: Client) -> dict[str, bool]:
    return {pod.name: pod.is_terminating for pod in (await client.list(Pod)).items}


def with_client(kubeconfig: Path, work: Callable[[Client], Awaitable[T]]) -> T:
    async def do() -> T:
        async with connect(kubeconfig) as client:
            return await work(client)

    return asyncio.run(do())


def owe(state_dir: Path) -> GateStateFile:
    gate_file = GateStateFile.in_state_dir(state_dir)
    gate_file.record_start([APP], enabled=True)
    gate_file.record_start([APP], enabled=False)
    return gate_file


def test_pods_are_restarted_images_removed_and_the_debt_settled(
    kubeconfig: Path,
    bayplan_socket: str,
    registry: Registry,
    push: Push,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_client(kubeconfig, _fill)
    common = ["--socket", bayplan_socket, "--timeout", "30", "--state-dir", str(tmp_path / "s")]
    image = push(registry, "cli-reset:1")
    assert run(["images", "pull", image.name, "--runtime", "kata", *common]) == 0
    gate_file = owe(tmp_path / "s")
    capsys.readouterr()

    assert run(["images", "list", *common]) == 0
    assert "bayplan images reset" in " ".join(capsys.readouterr().err.split())

    cluster = ["--node", "n1", "--kubeconfig", str(kubeconfig)]
    assert run(["images", "reset", "-o", "json", *cluster, *common]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["restarted"] == ["default/owned"]
    assert report["leftAlone"] == ["default/bare"]
    assert {"id": image.id, "runtimeHandler": "kata"} in report["removed"]
    pods = with_client(kubeconfig, _pods)
    assert pods.get("owned", True), "it is being deleted, or gone"
    assert pods["bare"] is False
    assert gate_file.needs_clean_up, "the pod that was left alone may have the wrong image"

    assert run(["images", "reset", "--bare-pods", *cluster, *common]) == 0
    assert "pod default/bare: restarted" in capsys.readouterr().out
    assert not gate_file.needs_clean_up

    assert run(["images", "list", *common]) == 0
    assert "warning" not in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_is_a_no(
    bayplan_socket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
"""
    )
    words = ["images", "reset", "--node", "n1", "--kubeconfig", str(kubeconfig)]
    words += ["--socket", bayplan_socket, "--timeout", "30", "--state-dir", str(tmp_path / "s")]
    assert run(words) == 1
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "--images"),
        (("--images", "--registry-qps", "-1"), "must not be negative"),
        (("--images", "--max-parallel-image-pulls", "3"), "serialized"),
        (("--images", "--image-gc-low-threshold", "90"), "above the high one"),
        (("--images", "--docker-config", "/no/such"), "No such file"),
        (("--images", "--kubeconfig", "/no/such"), "/no/such"),
        (
            ("--images", "--preloaded-images-verification-allowlist", "a:1"),
            "neither tag nor digest",
        ),
    ],
)
def test_an_agent_that_is_told_nonsense_does_not_start(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["node-agent", *words]) == 2
    assert why in " ".join(capsys.readouterr().err.split())
