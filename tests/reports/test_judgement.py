"""Whose answer it is: each pod is judged as its own scheduler would, and a difference is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run
from tests.cli.clusters import EXAMPLE, Wire, dump, node, pod

Captured = pytest.CaptureFixture[str]
THEIRS = "kube-scheduler 1.36.4"


def with_volume(name: str, scheduler: str) -> Wire:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    return pod(name, volumes=volumes, schedulerName=scheduler)


@pytest.fixture
def driverless(tmp_path: Path) -> str:
    """One node, on which the driver of the pods' class has not registered."""
    storage: list[Wire] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "fast"},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
        },
    ]
    pods = [with_volume(name, name) for name in ("default-scheduler", "bayplan", "fancy")]
    return dump(tmp_path, node(), *storage, *pods, pod("plain"))


def explain(capsys: Captured, *arguments: str) -> tuple[int, str]:
    return run(["explain", *arguments, "--no-fixes"]), capsys.readouterr().out


def judged(capsys: Captured, *arguments: str) -> list[dict[str, Any]]:
    run(["explain", *arguments, "--no-fixes", "-o", "json"])
    return [one["judged"] for one in json.loads(capsys.readouterr().out)["explanations"]]


def test_a_pod_of_kube_scheduler_gets_its_answer(driverless: str, capsys: Captured) -> None:
    code, out = explain(capsys, "-f", driverless, "default-scheduler")
    assert code == 0
    assert f"Evaluated by the rules of {THEIRS}." in out
    assert (
        "bayplan would leave it pending: 0/1 nodes are available: 1 ebs.csi.aws.com CSI driver"
        in out
    )


def test_a_pod_of_ours_gets_ours(driverless: str, capsys: Captured) -> None:
    code, out = explain(capsys, "-f", driverless, "bayplan")
    assert code == 1
    assert "Evaluated by the rules of bayplan." in out
    assert f"{THEIRS} would schedule it to node n1." in out


def test_a_scheduler_that_is_neither_is_said(driverless: str, capsys: Captured) -> None:
    code, out = explain(capsys, "-f", driverless, "fancy")
    assert code == 0
    assert f"The rules of scheduler fancy are unknown: used those of {THEIRS}." in out
    code, out = explain(capsys, "-f", driverless, "fancy", "--as", "bayplan")
    assert code == 1
    assert "Nothing is known" not in out


@pytest.mark.parametrize("name", ["default-scheduler", "bayplan", "fancy"])
def test_either_can_be_asked(name: str, driverless: str, capsys: Captured) -> None:
    assert explain(capsys, "-f", driverless, name, "--as", "kube-scheduler")[0] == 0
    assert explain(capsys, "-f", driverless, name, "--as", "bayplan")[0] == 1


def test_nothing_is_said_where_both_agree(driverless: str, capsys: Captured) -> None:
    (one,) = judged(capsys, "-f", driverless, "plain")
    assert one == {"scheduler": "default-scheduler", "as": THEIRS, "notes": [], "other": None}


def test_all_that_wait_are_judged_each_by_its_own(driverless: str, capsys: Captured) -> None:
    code, out = explain(capsys, "-f", driverless, "--all-pending")
    assert code == 1
    said = (
        "Evaluated by the rules of each pod's scheduler: 3 by kube-scheduler 1.36.4, 1 by bayplan."
    )
    assert said in out


def test_our_settings_do_not_change_their_answer(driverless: str, capsys: Captured) -> None:
    for gate in ("true", "false"):
        gates = f"--feature-gates=VolumeLimitScaling={gate}"
        assert explain(capsys, "-f", driverless, "default-scheduler", gates)[0] == 0
    assert explain(capsys, "-f", driverless, "bayplan", "--missing-driver=opt-in")[0] == 0


def test_a_judge_that_does_not_exist_is_bad_input(driverless: str, capsys: Captured) -> None:
    assert run(["explain", "-f", driverless, "plain", "--as", "volcano"]) == 2
    assert "--as" in capsys.readouterr().err


def test_the_same_is_asked_of_a_plan(capsys: Captured) -> None:
    fits = []
    for judge in ("kube-scheduler", "bayplan"):
        run(["plan", "-f", str(EXAMPLE), "--as", judge, "-o", "json"])
        fits.append(json.loads(capsys.readouterr().out)["fits"])
    assert "shop/ledger-15" in fits[0]
    assert "shop/ledger-15" not in fits[1]
