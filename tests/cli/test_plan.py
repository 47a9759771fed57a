"""`bayplan plan`: what would be bought and given back, for whom, and at what cost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.cli.main import run
from bayplan.client.client import connect
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.cli.clusters import EXAMPLE, Wire, dump, node, pod

Captured = pytest.CaptureFixture[str]
GROUPS = EXAMPLE.parent / "groups.yaml"
DISK = "disk.csi.example.com"


def groups_file(folder: Path, *entries: Wire) -> str:
    path = folder / "groups.yaml"
    path.write_text(yaml.safe_dump({"nodeGroups": list(entries)}))
    return str(path)


def machines(name: str = "workers", limit: object = 8, **more: object) -> Wire:
    """A group of nodes with 16 CPUs."""
    capacity = {"cpu": 16, "memory": "64Gi", "pods": 110}
    entry: Wire = {"name": name, "max": 10, "template": {"capacity": capacity}, **more}
    return entry if limit is None else {**entry, "csiDrivers": {DISK: limit}}


def with_volumes(count: int) -> list[Wire]:
    """Pods with a claim each, which waits for them."""
    made: list[Wire] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "disk"},
            "provisioner": DISK,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    ]
    for at in range(count):
        source = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{at}"}}
        made.append(pod(f"p-{at}", "100m", volumes=[source]))
        spec = {"storageClassName": "disk", "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"name": f"data-{at}", "namespace": "default"}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": claim,
                "spec": {**spec, "accessModes": ["ReadWriteOnce"]},
            }
        )
    return made


def planned(capsys: Captured, *arguments: str) -> tuple[int, Any]:
    code = run(["plan", *arguments, "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_twenty_volumes_from_zero_take_three_nodes_of_eight_and_blind_planners_take_one(
    tmp_path: Path, capsys: Captured
) -> None:
    groups = groups_file(tmp_path, machines(price=0.5))
    file = dump(tmp_path, *with_volumes(20))
    code, found = planned(capsys, "-f", file, "--groups", groups)
    assert code == 3
    assert (found["nodesToAdd"], found["nodesToAddBlindToVolumes"], found["cost"]) == (3, 1, 1.5)
    (bought,) = found["scaleUps"]
    assert (bought["group"], bought["from"], bought["to"], bought["max"]) == ("workers", 0, 3, 10)
    assert sorted(len(one["pods"]) for one in bought["nodes"]) == [4, 8, 8]
    assert run(["plan", "-f", file, "--groups", groups]) == 3
    text = capsys.readouterr().out
    assert "3 nodes to add at 1.50 an hour for 20 pods." in text
    assert "A planner that ignores attach limits would add 1." in text


def test_where_nothing_waits_there_is_nothing_to_add(tmp_path: Path, capsys: Captured) -> None:
    file = dump(tmp_path, node(), pod(nodeName="n1"))
    assert run(["plan", "-f", file]) == 0
    assert "Nothing to add: no unschedulable pods." in capsys.readouterr().out


def test_pods_that_fit_nodes_that_are_there_cost_nothing(tmp_path: Path, capsys: Captured) -> None:
    code, found = planned(capsys, "-f", dump(tmp_path, node(), pod()))
    assert (code, found["fits"]) == (0, {"default/p": "n1"})


def test_pods_that_are_not_counted_are_told_in_words(tmp_path: Path, capsys: Captured) -> None:
    gated = pod(schedulingGates=[{"name": "example.com/later"}])
    assert run(["plan", "-f", dump(tmp_path, node(), gated)]) == 0
    assert "1 pending pod not counted: scheduling gated." in capsys.readouterr().out


def test_without_groups_the_kinds_of_nodes_that_are_there_may_grow(
    tmp_path: Path, capsys: Captured
) -> None:
    pods = [pod(f"p-{at}", "3") for at in range(3)]
    code, found = planned(capsys, "-f", dump(tmp_path, node("n1"), node("n2"), *pods))
    assert code == 3
    (bought,) = found["scaleUps"]
    assert (bought["group"], bought["from"], bought["to"]) == ("like n1", 2, 3)


def test_a_pod_that_no_group_can_take_says_why_of_each(tmp_path: Path, capsys: Captured) -> None:
    tainted = {"capacity": {"cpu": 99, "memory": "1Ti", "pods": 9}}
    tainted["taints"] = [{"key": "own", "effect": "NoSchedule"}]  # type: ignore[assignment]
    groups = groups_file(
        tmp_path, machines(limit=None), {"name": "others", "max": 3, "template": tainted}
    )
    file = dump(tmp_path, pod("big", "64"), pod("small"))
    code, found = planned(capsys, "-f", file, "--groups", groups)
    assert (code, found["nodesToAdd"]) == (4, 1)
    (left,) = found["pending"]
    assert (left["pod"], left["never"]) == ("default/big", True)
    assert left["byGroup"]["workers"]["reasons"] == ["Insufficient cpu"]
    assert "untolerated taint" in left["byGroup"]["others"]["reasons"][0]
    run(["plan", "-f", file, "--groups", groups])
    assert "default/big" in capsys.readouterr().out


def test_a_group_at_its_maximum_leaves_pods_pending(tmp_path: Path, capsys: Captured) -> None:
    groups = groups_file(tmp_path, machines(max=1))
    file = dump(tmp_path, *with_volumes(9))
    code, found = planned(capsys, "-f", file, "--groups", groups)
    assert (code, found["nodesToAdd"], len(found["pending"])) == (4, 1, 1)
    assert found["pending"][0]["byGroup"]["workers"]["reasons"] == ["max node group size reached"]
    assert not found["pending"][0]["never"]


def test_nodes_that_are_not_needed_are_told_with_where_their_pods_go(
    tmp_path: Path, capsys: Captured
) -> None:
    labelled = [node(f"n{at}") for at in range(3)]
    for one in labelled:
        one["metadata"]["labels"] = {"pool": "workers"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
    owner["controller"] = True  # type: ignore[assignment]
    running = pod("web-1", nodeName="n0")
    running["metadata"]["ownerReferences"] = [owner]
    sets = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"replicas": 1},
    }
    groups = groups_file(
        tmp_path, machines(limit=None, min=1, price=2.0, nodeSelector={"pool": "workers"})
    )
    file = dump(tmp_path, *labelled, running, sets)
    code, found = planned(capsys, "-f", file, "--groups", groups)
    assert code == 0
    assert len(found["removals"]) == 2
    assert {one["saves"] for one in found["removals"]} == {2.0}
    assert [one["node"] for one in found["stays"]] == ["n0"]


def test_the_cheapest_mix_has_its_bound_beside_it(tmp_path: Path, capsys: Captured) -> None:
    arguments = ["-f", str(EXAMPLE), "--groups", str(GROUPS), "--expander", "cheapest-mix"]
    code, found = planned(capsys, *arguments)
    assert code == 4
    mixed = found["mixed"]
    assert mixed["unit"] == "price"
    assert mixed["lowerBound"] <= mixed["cost"] == pytest.approx(found["cost"])
    run(["plan", *arguments])
    assert "Lower bound for these pods: " in capsys.readouterr().out


@pytest.mark.parametrize("style", ["table", "wide", "yaml"])
def test_the_example_is_shown_in_every_way(style: str, capsys: Captured) -> None:
    assert run(["plan", "-f", str(EXAMPLE), "--groups", str(GROUPS), "-o", style]) == 4
    assert "shop/import-0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--expander", "cheapest"], "unknown expander 'cheapest'"),
        (["--groups", "/nowhere.yaml"], "/nowhere.yaml"),
        (["--expander", "priority"], "--priorities"),
        (["--context", "staging"], "not both"),
        (["--feature-gates", "Gone=true"], "Gone"),
    ],
)
def test_what_makes_no_sense_is_bad_input(
    arguments: list[str], said: str, capsys: Captured
) -> None:
    assert run(["plan", "-f", str(EXAMPLE), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_dump_without_nodes_needs_groups(tmp_path: Path, capsys: Captured) -> None:
    assert run(["plan", "-f", dump(tmp_path, pod())]) == 2
    assert "--groups" in capsys.readouterr().err


def test_pods_that_cannot_be_used_are_told_and_end_as_bad_input(
    tmp_path: Path, capsys: Captured
) -> None:
    code, found = planned(capsys, "-f", dump(tmp_path, node(), pod("p", "1e30"), pod("q")))
    assert (code, found["leftOut"], found["fits"]) == (2, 1, {"default/q": "n1"})


def test_priorities_decide_which_group_is_bought(tmp_path: Path, capsys: Captured) -> None:
    groups = groups_file(tmp_path, machines("a", None), machines("b", None))
    said = tmp_path / "priorities"
    said.write_text("10: [a]\n20: [b]\n")
    arguments = ["--expander", "priority", "--priorities", str(said)]
    _, found = planned(capsys, "-f", dump(tmp_path, pod()), "--groups", groups, *arguments)
    assert [one["group"] for one in found["scaleUps"]] == ["b"]


async def test_a_live_cluster_is_planned_for_too(tmp_path: Path, capsys: Captured) -> None:
    path, groups = tmp_path / "kubeconfig", groups_file(tmp_path, machines())
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as client:
        waits = pod("p", "2")
        waits["spec"]["containers"][0]["image"] = "i"
        await client.create(waits)
        arguments = ["plan", "--kubeconfig", str(path), "--groups", groups, "-o", "json"]
        assert await asyncio.to_thread(run, arguments) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["scaleUps"][0]["nodes"] == [{"pods": ["default/p"]}]


def test_a_limit_that_cannot_be_read_is_an_error_with_its_line(
    tmp_path: Path, capsys: Captured
) -> None:
    groups = groups_file(tmp_path, machines(limit="many"))
    assert run(["plan", "-f", dump(tmp_path, pod()), "--groups", groups]) == 2
    assert f"csiDrivers.{DISK}" in capsys.readouterr().err


def test_the_plan_of_a_dump_is_of_the_time_it_was_taken_at(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("bayplan.cli.plan.WallClock", None)
    assert run(["plan", "-f", str(EXAMPLE), "--groups", str(GROUPS), "-o", "json"]) == 4
    assert json.loads(capsys.readouterr().out)["scaleUps"]
