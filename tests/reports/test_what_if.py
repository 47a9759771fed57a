"""Explaining what is not there: more nodes, fewer nodes, more replicas, and new manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run
from tests.cli.clusters import EXAMPLE, Wire, dump, node, pod

Captured = pytest.CaptureFixture[str]
TIMES = "\N{MULTIPLICATION SIGN}"
GROUPS = str(EXAMPLE.parent / "groups.yaml")


def explained(capsys: Captured, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = run(["explain", *arguments, "--no-fixes", "-o", "json"])
    out = capsys.readouterr().out
    return code, json.loads(out)["explanations"] if out else []


def placed(found: list[dict[str, Any]]) -> dict[str, int]:
    return {node: count for one in found for node, count in one["placed"].items()}


def test_replicas_are_placed_one_after_another(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node("a", cpu="3"), node("b", cpu="2"), pod("p", cpu="1"))
    code, found = explained(capsys, "-f", where, "p", "--replicas", "7")
    assert code == 1
    assert placed(found) == {"a": 3, "b": 2}
    assert [len(one["pods"]) for one in found] == [5, 2]
    assert explained(capsys, "-f", where, "p", "--replicas", "5")[0] == 0


def test_replicas_have_claims_of_their_own_where_the_pod_has(capsys: Captured) -> None:
    asked = ("-f", str(EXAMPLE), "shop/ledger-15", "--replicas", "3")
    code, found = explained(capsys, *asked, "--with-nodes", "1xworker-a1")
    assert code == 0
    assert placed(found) == {"worker-a1-new-1": 3}
    code, found = explained(
        capsys,
        "-f",
        str(EXAMPLE),
        "shop/ledger-15",
        "--replicas",
        "5",
        "--with-nodes",
        f"1{TIMES}worker-a1",
    )
    assert code == 1
    assert placed(found) == {"worker-a1-new-1": 4}  # as many as it attaches


def test_replicas_of_a_pod_that_runs_wait(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node("a", cpu="3"), pod("p", cpu="1", nodeName="a"))
    code, found = explained(capsys, "-f", where, "p", "--replicas", "4")
    assert code == 1
    assert [one["standing"] for one in found] == ["placed", "waiting", "waiting"]
    assert placed(found) == {"a": 2}


@pytest.mark.parametrize("number", ["0", "-1", "10001"])
def test_a_number_of_replicas_that_cannot_be(number: str, capsys: Captured) -> None:
    assert run(["explain", "-f", str(EXAMPLE), "shop/ledger-15", "--replicas", number]) == 2
    assert "--replicas" in capsys.readouterr().err


def test_replicas_are_of_one_pod(capsys: Captured) -> None:
    assert run(["explain", "-f", str(EXAMPLE), "--all-pending", "--replicas", "2"]) == 2
    assert "--replicas" in capsys.readouterr().err


@pytest.mark.parametrize(
    "written", ["2xgeneral-b", f"2{TIMES}general-b", "2 X general-b", "2*general-b"]
)
def test_nodes_of_a_group_can_be_added(written: str, capsys: Captured) -> None:
    code, found = explained(
        capsys, "-f", str(EXAMPLE), "shop/payments-0", "--groups", GROUPS, "--with-nodes", written
    )
    assert code == 0
    assert found[0]["node"].startswith("general-b-new-")


@pytest.mark.parametrize(
    "written", ["general", "x", "0xgeneral", "99999xworker-a1", "-1xworker-a1", "2xnothing", "2x"]
)
def test_nodes_that_cannot_be_added_are_bad_input(written: str, capsys: Captured) -> None:
    asked = ["explain", "-f", str(EXAMPLE), "shop/payments-0", f"--with-nodes={written}"]
    assert run(asked) == 2
    said = capsys.readouterr().err
    assert "--with-nodes" in said
    assert "Traceback" not in said


def test_without_a_node_its_pods_wait_too(tmp_path: Path, capsys: Captured) -> None:
    daemon = pod("daemon", nodeName="a")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}
    daemon["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    where = dump(tmp_path, node("a"), node("b"), pod("p", nodeName="a"), daemon)
    code, found = explained(capsys, "-f", where, "--all-pending", "--without-node", "a")
    assert code == 0
    assert [one["pods"] for one in found] == [["default/p"]]
    assert placed(found) == {"b": 1}
    both = ("--without-node", "a", "--without-node", "b")
    assert explained(capsys, "-f", where, "p", *both)[0] == 1


def test_a_node_that_is_not_there_cannot_be_taken_away(capsys: Captured) -> None:
    asked = ["explain", "-f", str(EXAMPLE), "--all-pending", "--without-node", "worker-a9"]
    assert run(asked) == 2
    assert "there is no node 'worker-a9'; did you mean 'worker-a" in capsys.readouterr().err


# -- manifests ---------------------------------------------------------------------------------


def manifest(folder: Path, *documents: Wire | str) -> str:
    path = folder / "new.yaml"
    texts = [one if isinstance(one, str) else json.dumps(one) for one in documents]
    path.write_text("\n---\n".join(texts))
    return str(path)


CLAIM: Wire = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
}
CLASS: Wire = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "disk.example.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def test_a_pod_that_is_not_in_the_cluster(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node(cpu="3"))
    new = manifest(tmp_path, pod("new", cpu="2"))
    code, found = explained(capsys, "-f", where, "--pod", new)
    assert (code, found[0]["node"]) == (0, "n1")
    code, found = explained(capsys, "-f", where, "--pod", new, "--replicas", "2")
    assert (code, placed(found)) == (1, {"n1": 1})


def test_what_a_manifest_has_beside_the_pod_is_there(tmp_path: Path, capsys: Captured) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    where, new = dump(tmp_path, node()), pod("new", volumes=volumes)
    assert explained(capsys, "-f", where, "--pod", manifest(tmp_path, new))[0] == 1
    with_claim = manifest(tmp_path, CLASS, CLAIM, new)
    assert explained(capsys, "-f", where, "--pod", with_claim)[0] == 0


def test_a_workload_is_as_many_pods_as_it_makes(tmp_path: Path, capsys: Captured) -> None:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": pod(cpu="1")["spec"]}
    workload: Wire = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "w", "namespace": "shop"},
        "spec": {
            "replicas": 5,
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM["spec"]}],
        },
    }
    where = dump(tmp_path, node(cpu="3"), CLASS)
    code, found = explained(capsys, "-f", where, "--pod", manifest(tmp_path, workload))
    assert (code, placed(found)) == (1, {"n1": 3})
    assert found[0]["pods"][0] == "shop/w-0"


BAD_MANIFESTS: list[tuple[Wire | str, str]] = [
    ("a: [b", "new.yaml: not YAML"),
    ("7", "document at line 1: not an object"),
    (CLAIM, "contains no pod"),
    (pod(cpu="lots"), "spec.containers[0].resources.requests"),
    ({"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": 7}}, "new.yaml"),
    (
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"replicas": -1, "template": {"spec": {}}},
        },
        "Deployment d: -1 pods, must be from 0 to 10,000",
    ),
    ({"kind": "Pod"}, "new.yaml"),
]


@pytest.mark.parametrize(("text", "said"), BAD_MANIFESTS)
def test_a_manifest_that_cannot_be_used_is_bad_input(
    text: Wire | str, said: str, tmp_path: Path, capsys: Captured
) -> None:
    asked = ["explain", "-f", dump(tmp_path, node()), "--pod", manifest(tmp_path, text)]
    assert run(asked) == 2
    errors = capsys.readouterr().err
    assert "--pod" in errors
    assert said in errors
    assert "Traceback" not in errors


def test_a_manifest_that_is_not_there_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    assert run(["explain", "-f", dump(tmp_path, node()), "--pod", str(tmp_path / "no.yaml")]) == 2
    assert "no.yaml: No such file" in capsys.readouterr().err


def test_a_pod_that_is_there_already_is_not_new(tmp_path: Path, capsys: Captured) -> None:
    where, new = dump(tmp_path, node(), pod("p")), manifest(tmp_path, pod("p"))
    assert run(["explain", "-f", where, "--pod", new]) == 2
    assert "pod default/p exists in the cluster" in capsys.readouterr().err


def test_a_pod_that_is_there_twice_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    new = manifest(tmp_path, pod("p"), pod("p"))
    assert run(["explain", "-f", dump(tmp_path, node()), "--pod", new]) == 2
    assert "default/p" in capsys.readouterr().err


def test_one_question_at_a_time(tmp_path: Path, capsys: Captured) -> None:
    where, new = dump(tmp_path, node(), pod("p")), manifest(tmp_path, pod("q"))
    assert run(["explain", "-f", where, "p", "--pod", new]) == 2
    assert "give exactly one of NAMESPACE/POD" in capsys.readouterr().err


def test_claims_that_controllers_will_make_are_there(tmp_path: Path, capsys: Captured) -> None:
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM["spec"]}}}
    where = dump(tmp_path, node(cpu="3"), CLASS)
    new = manifest(tmp_path, pod("new", volumes=[volume]))
    code, found = explained(capsys, "-f", where, "--pod", new, "--replicas", "3")
    assert (code, placed(found)) == (0, {"n1": 3})
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    new = manifest(tmp_path, pod("new", resourceClaims=claims))
    code, found = explained(capsys, "-f", where, "--pod", new, "--replicas", "2")
    assert (code, [one["unjudged"] for one in found]) == (5, [True])
    assert len(found[0]["pods"]) == 2
