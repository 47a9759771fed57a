"""Pods that claim devices, through the command line: never a yes that nobody can vouch for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run
from tests.cli.clusters import Wire, dump, node, pod

Captured = pytest.CaptureFixture[str]
CLASS: Wire = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {},
}


def claim(name: str, on: str = "", version: str = "v1") -> Wire:
    request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
    made: Wire = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    if on:
        match = {"key": "metadata.name", "operator": "In", "values": [on]}
        selector = {"nodeSelectorTerms": [{"matchFields": [match]}]}
        made["status"] = {"allocation": {"nodeSelector": selector}}
    return made


def claiming(name: str, claim_name: str = "c", cpu: str = "1") -> Wire:
    return pod(name, cpu, resourceClaims=[{"name": "gpu", "resourceClaimName": claim_name}])


def explained(capsys: Captured, *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = run(["explain", *arguments, "-o", "json"])
    said = capsys.readouterr()
    return code, json.loads(said.out)["explanations"][0], said.err


def test_a_claim_that_is_missing_is_a_no(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node(), CLASS, claiming("p"))
    code, found, said = explained(capsys, "-f", where, "p")
    assert (code, found["fits"], found["unjudged"]) == (1, False, False)
    assert 'could not find ResourceClaim "default/c"' in found["message"]
    assert "the dump contains no ResourceClaim" in said


def test_a_claim_that_must_be_allocated_cannot_be_judged(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node(), CLASS, claim("c"), claiming("p"))
    code, found, said = explained(capsys, "-f", where, "p")
    assert (code, found["fits"], found["unjudged"]) == (5, False, True)
    assert found["message"].startswith("cannot be judged: dynamic resources")
    assert not said
    assert run(["explain", "-f", where, "p"]) == 5
    assert capsys.readouterr().out.startswith("default/p cannot be judged: dynamic resources")


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_a_claim_that_is_allocated_says_where(
    version: str, tmp_path: Path, capsys: Captured
) -> None:
    objects = [node("a"), node("b"), CLASS, claim("c", "b", version), claiming("p")]
    code, found, _ = explained(capsys, "-f", dump(tmp_path, *objects), "p")
    assert (code, found["node"]) == (0, "b")


@pytest.mark.parametrize(
    ("others", "code"), [((), 5), ((pod("fits"),), 5), ((pod("large", "99"),), 1)]
)
def test_a_no_counts_for_more_than_what_cannot_be_judged(
    others: tuple[Wire, ...], code: int, tmp_path: Path, capsys: Captured
) -> None:
    where = dump(tmp_path, node(), CLASS, claim("c"), claiming("p"), *others)
    assert run(["explain", "-f", where, "--all-pending", "--no-fixes"]) == code
    assert "cannot be judged" in capsys.readouterr().out


def test_nothing_is_bought_for_pods_that_cannot_be_judged(tmp_path: Path, capsys: Captured) -> None:
    pods = (claiming("p"), claiming("missing", "no"), pod("large", "3"))
    where = dump(tmp_path, node(), pod("there", "4", nodeName="n1"), CLASS, claim("c"), *pods)
    assert run(["plan", "-f", where, "-o", "json"]) == 4
    plan = json.loads(capsys.readouterr().out)
    assert [one["nodes"] for one in plan["scaleUps"]] == [[{"pods": ["default/large"]}]]
    reasons = {
        one["pod"]: [reason for group in one["byGroup"].values() for reason in group["reasons"]]
        for one in plan["pending"]
    }
    assert reasons["default/p"] == ["cannot be judged: dynamic resources"]
    assert set(reasons) == {"default/p", "default/missing"}
