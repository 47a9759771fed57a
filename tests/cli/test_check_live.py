"""`bayplan check` of a live cluster: only lists, and what may not be listed is not judged."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run
from bayplan.client import Client, merge
from bayplan.client.resources import untyped
from bayplan.kube.storage import VolumeAttachment
from bayplan.observe.permissions import ALL_KINDS, rules_for
from tests.cli.clusters import dump, node, pod
from tests.cli.test_live import asked, cluster, grant, sent

__all__ = ["cluster"]
Captured = pytest.CaptureFixture[str]
GRACE = ("--grace", "0s")


async def found(folder: Path, capsys: Captured, *words: str, who: str = "restricted") -> Any:
    await asked(folder, "check", *words, "-o", "json", who=who)
    return json.loads(capsys.readouterr().out)


def codes(report: Any) -> list[str]:
    return [one["code"] for one in report["findings"]]


async def test_a_live_cluster_is_looked_at_by_whoever_may_list(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    await grant(cluster, rules_for())
    report = await found(tmp_path, capsys, *GRACE)
    assert codes(report) == ["PodsWaitForResources", "PodsWaitForScheduler"]
    assert (report["notChecked"], report["incomplete"]) == ([], [])
    assert await asked(tmp_path, "check", *GRACE) == 1
    assert await asked(tmp_path, "check", *GRACE, "--fail-on", "error") == 0


async def test_pods_of_one_namespace_are_told_of_alone(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    report = await found(tmp_path, capsys, *GRACE, "-n", "shop", who="kubeconfig")
    assert codes(report) == ["PodsWaitForResources"]


async def test_pods_that_have_just_come_are_no_trouble(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    assert codes(await found(tmp_path, capsys, who="kubeconfig")) == ["PodsWaitBriefly"]


async def test_the_version_of_the_server_is_what_kubelets_are_held_up_to(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    new, old = node("new"), node("old")
    new["status"]["nodeInfo"] = {"kubeletVersion": "v1.99.0"}
    old["status"]["nodeInfo"] = {"kubeletVersion": "v1.20.0"}
    await cluster.create(new)
    await cluster.create(old)
    report = await found(tmp_path, capsys, who="kubeconfig")
    assert codes(report)[:2] == ["KubeletNewer", "KubeletTooOld"]


async def test_what_may_not_be_listed_is_not_judged_and_that_is_said(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    kinds = [kind for kind in ALL_KINDS.kinds if kind.__name__ != "VolumeAttachment"]
    await grant(cluster, rules_for(kinds))
    report = await found(tmp_path, capsys, *GRACE)
    unasked = {one["code"] for one in report["notChecked"]}
    assert unasked == {"AttachedToGoneNode", "AttachFails", "DetachFails"}
    assert [one["kind"] for one in report["incomplete"]] == ["VolumeAttachment"]
    await asked(tmp_path, "check", *GRACE)
    said = capsys.readouterr().out
    assert "3 checks skipped, because these kinds were not read: VolumeAttachment" in said
    assert "note: volumeattachments.storage.k8s.io could not be read" in said


async def test_a_cluster_that_cannot_be_reached_is_code_2(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "nowhere").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "x", "user": {}}],
            }
        )
    )
    assert await asked(tmp_path, "check", who="nowhere") == 2
    assert "Traceback" not in capsys.readouterr().err


async def test_a_dump_of_ours_says_what_was_not_there_as_well(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    """Kinds without objects, the server's version, and what might not be listed."""
    old = node("old")
    old["status"]["nodeInfo"] = {"kubeletVersion": "v1.20.0"}
    await cluster.create(old)
    kinds = [kind for kind in ALL_KINDS.kinds if kind.__name__ != "VolumeAttachment"]
    await grant(cluster, rules_for(kinds))
    live = await found(tmp_path, capsys, *GRACE)
    file = str(tmp_path / "cluster.json")
    assert await asked(tmp_path, "dump", "--to", file) == 0
    assert await asyncio.to_thread(run, ["check", "-f", file, *GRACE, "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == live
    assert codes(live)[0] == "KubeletTooOld"


DISK = "disk.csi.example.com"
AILING: list[Any] = [
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": DISK, "nodeID": "n1", "topologyKeys": []}]},
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disks"},
        "provisioner": DISK,
    },
    *(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": f"at-{place}"},
            "spec": {
                "attacher": DISK,
                "nodeName": place,
                "source": {"persistentVolumeName": "pv"},
            },
        }
        for place in ("n1", "gone")
    ),
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [
            {
                "name": "hook.example.com",
                "clientConfig": {"service": {"namespace": "shop", "name": "nobody"}},
                "rules": [],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    },
    *(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "cluster-autoscaler", "namespace": namespace},
            "spec": {
                "holderIdentity": namespace,
                "renewTime": "2999-01-01T00:00:00.000000Z",
                "leaseDurationSeconds": 15,
            },
        }
        for namespace in ("default", "shop")
    ),
]


async def test_whatever_ails_a_cluster_is_in_its_dump(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    for one in AILING:
        group, _, version = one["apiVersion"].rpartition("/")
        kind, namespaced = one["kind"], "namespace" in one["metadata"]
        plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
        await cluster.create(one, untyped(group, version, plural, kind, namespaced=namespaced))
    failed = merge({"status": {"attached": False, "attachError": {"message": "no more places"}}})
    await cluster.patch(VolumeAttachment, "at-n1", change=failed, subresource="status")
    live = await found(tmp_path, capsys, *GRACE, who="kubeconfig")
    assert set(codes(live)) == {
        *("AttachFails", "AttachedToGoneNode", "TwoAutoscalers", "WebhookUntrusted"),
        *("WebhookWithoutService", "PodsWaitForResources", "PodsWaitForScheduler"),
        *("CSIDriverMissing", "DriverWithoutLimit"),
    }
    file = str(tmp_path / "cluster.json")
    assert await asked(tmp_path, "dump", "--to", file, who="kubeconfig") == 0
    assert await asyncio.to_thread(run, ["check", "-f", file, *GRACE, "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == live


async def test_a_dump_and_the_cluster_that_it_is_of_give_the_same_findings(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    live = await found(tmp_path, capsys, *GRACE, who="kubeconfig")
    objects = [node(), sent(pod("small")), sent(pod("large", cpu="5"), "shop")]
    run(["check", "-f", dump(tmp_path, *objects), *GRACE, "-o", "json"])
    assert json.loads(capsys.readouterr().out)["findings"] == live["findings"]
