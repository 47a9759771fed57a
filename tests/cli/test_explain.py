"""`bayplan explain`: exit codes, formats, gates, and what it says of bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.cli.main import run
from bayplan.cli.text.explain import RISKS
from bayplan.fit.fixes import Risk
from tests.cli.clusters import EXAMPLE, dump, node, pod
from tests.patience import PATIENCE

Captured = pytest.CaptureFixture[str]


def explain(*arguments: str) -> int:
    return run(["explain", *arguments])


def example(*arguments: str) -> int:
    return explain("-f", str(EXAMPLE), *arguments)


def test_a_pod_that_fits_ends_with_zero(tmp_path: Path, capsys: Captured) -> None:
    assert explain("-f", dump(tmp_path, node(), pod()), "default/p") == 0
    assert "default/p fits node n1" in capsys.readouterr().out


def test_a_pod_that_does_not_fit_ends_with_one(tmp_path: Path, capsys: Captured) -> None:
    assert explain("-f", dump(tmp_path, node(), pod(cpu="5")), "default/p") == 1
    out = capsys.readouterr().out
    assert "0/1 nodes are available: 1 Insufficient cpu." in out
    assert "Request 1 CPU less: 4 instead of 5" in out


def test_a_command_that_does_not_last_is_told_as_such(tmp_path: Path, capsys: Captured) -> None:
    sick = node()
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    sick["spec"] = {"taints": [taint]}
    assert explain("-f", dump(tmp_path, sick, pod()), "default/p") == 1
    fix = capsys.readouterr().out.partition("1. Repair node n1")[2].partition("2. ")[0]
    assert "kubectl taint node n1 node.kubernetes.io/not-ready:NoSchedule-" in fix
    assert "the command alone is not enough" in fix
    assert "no command alone" not in fix


def test_a_bare_name_means_the_default_namespace(tmp_path: Path) -> None:
    assert explain("-f", dump(tmp_path, node(), pod()), "p") == 0


def test_a_pod_that_is_not_there_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    assert explain("-f", dump(tmp_path, node()), "default/nobody") == 2
    assert "pod default/nobody not found" in capsys.readouterr().err


def test_a_dump_without_a_name_is_bad_input(capsys: Captured) -> None:
    assert explain("default/p", "-f", "") == 2
    assert "bayplan dump | bayplan explain default/p -f -" in capsys.readouterr().err


def test_a_pod_or_all_pending_but_not_both(tmp_path: Path) -> None:
    where = dump(tmp_path, node(), pod())
    assert explain("-f", where) == 2
    assert explain("-f", where, "default/p", "--all-pending") == 2


def test_an_unknown_gate_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    assert explain("-f", dump(tmp_path, node()), "--feature-gates=Nope=true", "default/p") == 2
    assert "unknown feature gate 'Nope'" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output=xml", "--missing-driver=never", "--bogus"])
def test_an_option_that_is_not_there_is_bad_input(option: str, tmp_path: Path) -> None:
    assert explain("-f", dump(tmp_path, node(), pod()), "default/p", option) == 2


def test_a_file_that_is_not_there_is_bad_input(capsys: Captured) -> None:
    assert explain("-f", "/no/such/file", "default/p") == 2
    assert "/no/such/file" in capsys.readouterr().err


def test_all_pending_places_each_before_the_next(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node(cpu="3"), pod("a", cpu="2"), pod("b", cpu="2"))
    assert explain("-f", where, "--all-pending") == 1
    out = capsys.readouterr().out
    assert "default/a fits node n1" in out
    assert "default/b fits nowhere" in out
    assert "2 pods: 1 fits, 1 fits nowhere" in out


def test_all_pending_takes_the_most_important_first(tmp_path: Path, capsys: Captured) -> None:
    low, high = pod("a", cpu="2", priority=1), pod("b", cpu="2", priority=9)
    assert explain("-f", dump(tmp_path, node(cpu="3"), low, high), "--all-pending") == 1
    assert "default/b fits node n1" in capsys.readouterr().out


def test_replicas_are_explained_alike_and_by_their_own_names(
    tmp_path: Path, capsys: Captured
) -> None:
    where = dump(tmp_path, node(cpu="1"), *(pod(f"r{i}", cpu="2") for i in range(3)))
    assert explain("-f", where, "--all-pending", "-o", "json") == 1
    found = json.loads(capsys.readouterr().out)["explanations"]
    (together,) = found
    assert together.pop("pod") == "default/r0"
    assert together.pop("pods") == ["default/r0", "default/r1", "default/r2"]
    explain("-f", where, "default/r2", "-o", "json")
    (alone,) = json.loads(capsys.readouterr().out)["explanations"]
    assert (alone.pop("pod"), alone.pop("pods")) == ("default/r2", ["default/r2"])
    assert (alone["message"], alone["nodes"]) == (together["message"], together["nodes"])


def test_all_pending_of_nobody_is_fine(tmp_path: Path, capsys: Captured) -> None:
    assert explain("-f", dump(tmp_path, node()), "--all-pending") == 0
    assert "no pending pods" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "kind: Pood\napiVersion: v1\n"])
def test_all_pending_of_a_dump_without_pods_and_nodes_is_bad_input(
    text: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "cluster.yaml").write_text(text)
    assert explain("-f", str(tmp_path), "--all-pending") == 2
    assert "neither pods nor nodes" in capsys.readouterr().err


def test_all_pending_with_a_document_that_cannot_be_read_is_bad_input(
    tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "cluster.yaml").write_text(f"{json.dumps(node())}\n---\nkind: [Pod\n")
    assert explain("-f", str(tmp_path), "--all-pending") == 2
    said = capsys.readouterr()
    assert "the dump is truncated or malformed" in said.err
    assert "cluster.yaml: document 2: not JSON at byte" in said.err
    assert not said.out
    assert explain("-f", str(tmp_path), "--all-pending", "--partial") == 2
    said = capsys.readouterr()
    assert "1 invalid object of the dump was ignored" in said.out


def test_a_pod_in_another_namespace_is_suggested(capsys: Captured) -> None:
    assert example("ledger-15") == 2
    said = capsys.readouterr().err
    assert "pod default/ledger-15 not found in the dump; did you mean shop/ledger-15?" in said


def test_json_has_the_documented_shape(capsys: Captured) -> None:
    assert example("shop/ledger-15", "-o", "json") == 1
    data = json.loads(capsys.readouterr().out)
    (found,) = data["explanations"]
    assert data["leftOut"] == 0
    assert set(found) == {
        "pod", "standing", "fits", "node", "message", "why", "refusedBefore", "nodes",
        "preemption", "fixes", "sought", "pods", "unjudged", "judged", "placed",
    }  # fmt: skip
    assert found["judged"] == {
        "scheduler": "bayplan",
        "as": "bayplan",
        "notes": ["kube-scheduler 1.36.4 would schedule it to node worker-c2."],
        "other": {"as": "kube-scheduler 1.36.4", "node": "worker-c2"},
    }
    refused = next(one for one in found["nodes"] if one["name"] == "worker-a1")
    assert refused == {
        "name": "worker-a1",
        "fits": False,
        "code": "Unschedulable",
        "plugin": "NodeVolumeLimits",
        "reasons": ["node(s) exceed max volume count"],
        "details": ["ebs.csi.aws.com: 4 of 4 in use (limit from CSINode)"],
    }
    assert set(found["fixes"][0]) == {"summary", "node", "cost", "steps"}
    assert found["fixes"][0]["steps"] == [
        {
            "kind": "uncordon",
            "text": "uncordon node worker-b2",
            "target": {"kind": "Node", "namespace": "", "name": "worker-b2"},
            "patch": {"spec": {"unschedulable": None, "taints": None}},
            "command": "kubectl uncordon worker-b2",
            "risks": ["opens-a-node"],
        }
    ]


def test_a_risk_that_was_renamed_has_both_names(capsys: Captured) -> None:
    example("shop/ledger-15", "-o", "json")
    found = json.loads(capsys.readouterr().out)["explanations"]
    risks = [step["risks"] for one in found for fix in one["fixes"] for step in fix["steps"]]
    assert any("needs-manual-steps" in one for one in risks)
    assert all(("needs-manual-steps" in one) == ("needs-hands" in one) for one in risks)


def test_yaml_says_the_same_as_json(capsys: Captured) -> None:
    example("shop/web-5d8f7c-f", "-o", "json")
    as_json = json.loads(capsys.readouterr().out)
    example("shop/web-5d8f7c-f", "-o", "yaml")
    assert yaml.safe_load(capsys.readouterr().out) == as_json


def test_wide_shows_each_score(capsys: Captured) -> None:
    assert example("shop/web-5d8f7c-f", "-o", "wide") == 0
    assert "NodeResourcesBalancedAllocation" in capsys.readouterr().out


def test_many_nodes_are_grouped_unless_wide(tmp_path: Path, capsys: Captured) -> None:
    nodes = [node(f"n{i:02d}", cpu="1") for i in range(30)]
    where = dump(tmp_path, *nodes, pod(cpu="2"))
    assert explain("-f", where, "default/p") == 1
    assert "30 nodes, such as n00" in capsys.readouterr().out
    assert explain("-f", where, "default/p", "-o", "wide") == 1
    assert "n29" in capsys.readouterr().out


def test_fixes_can_be_left_out(capsys: Captured) -> None:
    assert example("shop/ledger-15", "--no-fixes", "-o", "json") == 1
    assert json.loads(capsys.readouterr().out)["explanations"][0]["fixes"] == []


def test_the_gate_decides_whether_a_node_without_driver_is_used() -> None:
    seen = [
        example("shop/ledger-15", f"--feature-gates=VolumeLimitScaling={on}", "--no-fixes")
        for on in ("true", "false", "true")
    ]
    assert seen == [1, 0, 1]


def test_opt_in_is_kubernetes_own_rule_about_missing_drivers() -> None:
    assert example("shop/ledger-15", "--missing-driver=hold-back", "--no-fixes") == 1
    assert example("shop/ledger-15", "--missing-driver=opt-in", "--no-fixes") == 0


def test_a_gated_pod_does_not_run(capsys: Captured) -> None:
    assert example("shop/batch-0") == 1
    assert "waiting for scheduling gates: [queues.example/admission]" in capsys.readouterr().out


def test_a_placed_pod_is_fine(capsys: Captured) -> None:
    assert example("shop/ledger-0") == 0
    assert "is on node worker-a1" in capsys.readouterr().out


def test_bad_objects_are_named_and_the_rest_is_used(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node(), node("bad", cpu="lots"), pod())
    assert explain("-f", where, "default/p") == 0
    captured = capsys.readouterr()
    assert "Node bad" in captured.err
    assert "status.allocatable" in captured.err
    assert "'lots'" in captured.err
    assert "1 invalid object of the dump was ignored" in captured.out


def test_a_pod_that_is_itself_bad_never_fits(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node(), pod(cpu="-1"))
    assert explain("-f", where, "default/p") == 2
    captured = capsys.readouterr()
    assert "fits" not in captured.out
    assert "the pod is invalid" in captured.err


def test_all_pending_with_a_bad_pod_is_bad_input(tmp_path: Path) -> None:
    where = dump(tmp_path, node(), pod("good"), pod("bad", cpu="-1"))
    assert explain("-f", where, "--all-pending") == 2


def test_what_comes_from_a_cluster_cannot_steer_the_terminal(
    tmp_path: Path, capsys: Captured
) -> None:
    nasty: dict[str, Any] = node()
    nasty["spec"] = {"taints": [{"key": "a", "value": "\x1b[2J", "effect": "NoSchedule"}]}
    explain("-f", dump(tmp_path, nasty, pod()), "default/p")
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err


def test_a_pipe_gets_whole_lines_and_no_colours(tmp_path: Path) -> None:
    long_name = "-".join(["a-very-long-node-name"] * 9)
    where = dump(tmp_path, node(long_name, cpu="1"), pod(cpu="2"))
    ended = bayplan("explain", "-f", where, "default/p")
    assert ended.returncode == 1
    assert long_name in ended.stdout
    assert "\x1b" not in ended.stdout + ended.stderr
    assert not any(line.endswith(" ") for line in ended.stdout.splitlines())


def test_standard_input_is_read(tmp_path: Path) -> None:
    text = Path(dump(tmp_path, node(), pod())).read_text()
    assert bayplan("explain", "-f", "-", "default/p", stdin=text).returncode == 0


def test_a_reader_that_stops_reading_is_no_error() -> None:
    command = f"{sys.executable} -m bayplan volumes -o wide -f {EXAMPLE} | true"
    ended = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.stderr == ""


def bayplan(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The real command."""
    return subprocess.run(
        [sys.executable, "-m", "bayplan", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "COLUMNS": "80"},
    )


def test_a_pods_namespace_can_be_said_as_kubectl_has_it(tmp_path: Path) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop},"
        " spec: {containers: [{name: c, image: i}]}}"
    )
    assert run(["explain", "-f", str(dump), "-n", "shop", "p"]) == 1
    assert run(["explain", "-f", str(dump), "p"]) == 2


def test_a_misspelt_kind_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.yaml"
    for kind in ("Pood", "ConfigMap"):
        with dump.open("a") as file:
            file.write(f"---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n")
    run(["volumes", "-f", str(dump)])
    told = capsys.readouterr().err
    assert "unknown kind ignored: Pood (v1); did you mean Pod?" in told
    assert "ConfigMap" not in told


def test_where_no_fix_is_found_it_is_said_how_far_was_looked(
    tmp_path: Path, capsys: Captured
) -> None:
    where = dump(tmp_path, pod("p"))  # without a node there is nothing to repair, or to add to
    assert explain("-f", where, "p") == 1
    assert "No fix of up to" in capsys.readouterr().out
    assert explain("-f", where, "p", "-o", "json") == 1
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["sought"]["mostSteps"] > 0
    assert found["sought"]["nearest"] is None


def test_every_risk_has_its_words() -> None:
    assert set(RISKS) == set(Risk)


@pytest.mark.parametrize("style", ["json", "yaml"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_programs_get_one_document_however_many_are_explained(
    count: int, style: str, tmp_path: Path, capsys: Captured
) -> None:
    where = dump(tmp_path, node(), *(pod(f"p{i}", cpu=str(i + 1)) for i in range(count)))
    explain("-f", where, "--all-pending", "-o", style)
    out = capsys.readouterr().out
    data = json.loads(out) if style == "json" else yaml.safe_load(out)
    assert len(data["explanations"]) == count
    assert out == (
        f"{json.dumps(data, indent=2)}\n"
        if style == "json"
        else yaml.safe_dump(data, sort_keys=False)
    )


def test_that_nobody_waits_in_a_namespace_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    running = pod(nodeName="n1")
    for objects, namespace, said in (
        ((node(), running), "default", ""),
        ((node(), running), "nope", ": it has no pods"),
        ((node(), running, known), "nope", ": the namespace does not exist"),
    ):
        assert explain("-f", dump(tmp_path, *objects), "--all-pending", "-n", namespace) == 0
        wanted = f"no pending pods in namespace {namespace}{said}"
        assert capsys.readouterr().out.splitlines()[0] == wanted
