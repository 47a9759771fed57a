"""`bayplan queues`: the tree, what each queue has, and what each group waits for; and `bayplan
explain` of pods that wait for their queue."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.cli.main import run
from bayplan.client import connect
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.admission.manifests import install_kinds
from tests.cli.clusters import Wire, dump, node, pod

Captured = pytest.CaptureFixture[str]
GROUP = "scheduling.volcano.sh"
GATE = f"{GROUP}/queue-allocation-gate"
NO_NODE = "0/1 nodes are available: 1 Insufficient cpu."


def queue(name: str, state: str = "", **spec: object) -> Wire:
    head = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    return {**head, "spec": spec, "status": {"state": state} if state else {}}


def group(name: str, second: int = 0, **spec: object) -> Wire:
    created = f"2026-01-01T00:00:0{second}Z"
    meta = {"name": name, "namespace": "default", "creationTimestamp": created}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}


def member(name: str, of: str, cpu: str = "1", **spec: Any) -> Wire:
    made = pod(name, cpu, schedulerName="bayplan", **spec)
    made["metadata"]["annotations"] = {f"{GROUP}/group-name": of}
    return made


def gated(made: Wire) -> Wire:
    made["metadata"].setdefault("annotations", {})[GATE] = "true"
    made["spec"]["schedulingGates"] = [{"name": GATE}]
    return made


def in_queue(name: str, of: str, cpu: str = "1", **spec: Any) -> Wire:
    made = member(name, "", cpu, **spec)
    made["metadata"]["annotations"] = {f"{GROUP}/queue-name": of}
    return made


def let_in(made: Wire) -> Wire:
    """A pod that quota has let through, and that no node takes."""
    made["metadata"]["annotations"][GATE] = "true"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    made["status"] = {"phase": "Pending", "conditions": [{**condition, "message": NO_NODE}]}
    return made


@pytest.fixture
def team(tmp_path: Path) -> str:
    """A team of two queues; in one somebody runs, somebody is let in, and two wait."""
    return dump(
        tmp_path,
        node(cpu="8"),
        queue("team", capability={"cpu": "6"}),
        queue("vision", "Open", parent="team", deserved={"cpu": "4"}),
        queue("speech", parent="team", dequeueStrategy="fifo"),
        in_queue("runs", "vision", "2", nodeName="n1"),
        let_in(in_queue("let-in", "vision", "1")),
        group("large", 1, queue="vision", minMember=2),
        *[gated(member(f"large-{n}", "large", "2")) for n in range(2)],
        group("small", 2, queue="vision", minMember=1),
        gated(member("small-0", "small", "3")),
        group("first", 3, queue="speech", minMember=1),
        gated(member("first-0", "first", "7")),
        group("second", 4, queue="speech", minMember=1),
        gated(member("second-0", "second", "1")),
    )


def queues_json(capsys: Captured, source: str, *arguments: str) -> dict[str, dict[str, Any]]:
    assert run(["queues", "-f", source, "-o", "json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    return {one["name"]: one for one in found["queues"]}


def test_every_queue_says_what_it_has(team: str, capsys: Captured) -> None:
    found = queues_json(capsys, team)
    assert list(found) == ["root", "default", "team", "speech", "vision"]
    vision = found["vision"]
    assert (vision["parent"], vision["state"], vision["quota"]) == ("team", "Open", {"cpu": "6"})
    assert vision["allocated"] == {"cpu": "2", "pods": "1"}
    assert vision["reserved"] == {"cpu": "1", "pods": "1"}
    assert vision["share"] == 0.5
    assert found["team"]["allocated"] == vision["allocated"]
    assert found["root"]["reserved"] == vision["reserved"]


def test_every_group_that_waits_says_where_and_for_what(team: str, capsys: Captured) -> None:
    waiting = {one["group"]: one for one in queues_json(capsys, team)["vision"]["waiting"]}
    first, large, small = waiting.values()
    assert (first["position"], first["reason"], first["waitsFor"]) == (
        1,
        "NotEnoughResources",
        NO_NODE,
    )
    assert (large["group"], large["position"], large["gated"]) == ("default/large", 2, 2)
    assert large["asksFor"] == {"cpu": "4", "pods": "2"}
    assert large["reason"] == "QuotaExceeded"
    assert large["waitsFor"] == "queue vision has 3 cpu left of its quota, and 4 cpu is asked for"
    assert (small["position"], small["reason"]) == (3, None)


def test_who_has_room_takes_it_before_the_next_is_asked(tmp_path: Path, capsys: Captured) -> None:
    names = ("one", "two")
    pods = [gated(member(f"{name}-0", name, "3")) for name in names]
    groups = [group(name, age, queue="q", minMember=1) for age, name in enumerate(names)]
    source = dump(tmp_path, queue("q", capability={"cpu": "4"}), *groups, *pods)
    one, two = queues_json(capsys, source)["q"]["waiting"]
    assert (one["reason"], one["waitsFor"]) == (None, "its queue has quota for it")
    assert two["waitsFor"] == "queue q has 1 cpu left of its quota, and 3 cpu is asked for"


def test_nobody_overtakes_in_a_strict_queue(team: str, capsys: Captured) -> None:
    first, second = queues_json(capsys, team)["speech"]["waiting"]
    assert first["reason"] == "QuotaExceeded"
    assert second["reason"] == "WaitsForEarlierGroup"
    assert second["waitsFor"] == "group default/first comes first in queue speech"


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([group("g", queue="q", minMember=3), member("a", "g")], "NotEnoughTasks"),
        ([group("g", queue="q", minMember=3)], "NotEnoughTasks"),
        ([group("g", queue="closed", minMember=1), member("a", "g")], "QueueClosed"),
        ([group("g", queue="broken", minMember=1), member("a", "g")], "BrokenQueue"),
        ([group("g", queue="nobody", minMember=1), member("a", "g")], "UnknownQueue"),
        ([member("a", "g")], "BadPodGroup"),
        (
            [
                group("g", queue="q", minMember=1),
                member("a", "g", schedulingGates=[{"name": "x.io/y"}]),
            ],
            "ForeignGate",
        ),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, capsys: Captured, objects: list[Wire], reason: str
) -> None:
    queues = [queue("q"), queue("closed", "Closed"), queue("broken", parent="nowhere")]
    assert run(["queues", "-f", dump(tmp_path, *queues, *objects), "-o", "yaml"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    waiting = [one for each in found["queues"] for one in each["waiting"]] + found["astray"]
    assert [one["reason"] for one in waiting] == [reason]


def test_the_table_shows_the_tree_and_who_waits(team: str, capsys: Captured) -> None:
    assert run(["queues", "-f", team]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "QUEUE",
        "STATE",
        "SHARE",
        "ALLOCATED",
        "RESERVED",
        "QUOTA",
        "GROUPS",
        "WAITING",
    ]
    assert any(line.startswith("    vision  Open") for line in lines)
    assert any("large-0 +1, 2 gated" in line for line in lines)
    assert run(["queues", "-f", team, "-o", "wide"]) == 0
    assert "GUARANTEED" in capsys.readouterr().out


def test_a_long_queue_is_shown_in_part(tmp_path: Path, capsys: Captured) -> None:
    source = dump(tmp_path, queue("q"), *[in_queue(f"p{n:02}", "q") for n in range(14)])
    run(["queues", "-f", source])
    assert [line.split() for line in capsys.readouterr().out.splitlines()][-1] == ["q", "4", "more"]
    run(["queues", "-f", source, "-o", "wide"])
    assert "p13" in capsys.readouterr().out


def test_a_limit_of_nothing_is_shown(tmp_path: Path, capsys: Captured) -> None:
    source = dump(tmp_path, queue("q", capability={"nvidia.com/gpu": "0"}))
    assert queues_json(capsys, source)["q"]["quota"] == {"nvidia.com/gpu": "0"}


def test_problems_of_queues_are_told(tmp_path: Path, capsys: Captured) -> None:
    source = dump(tmp_path, queue("a", parent="b"), queue("b", parent="a"))
    assert run(["queues", "-f", source]) == 0
    assert "queue a: the parents of" in capsys.readouterr().out


def test_shares_by_weight_are_of_the_nodes(tmp_path: Path, capsys: Captured) -> None:
    objects = [queue("a", weight=1), queue("b", weight=3)]
    pods = [in_queue(f"{name}-{n}", name, "2") for name in "ab" for n in range(8)]
    source = dump(tmp_path, node(cpu="8"), *objects, *pods)
    found = queues_json(capsys, source, "--queue-policy", "proportion")
    assert (found["a"]["deserved"]["cpu"], found["b"]["deserved"]["cpu"]) == ("2", "6")


def test_only_pods_of_a_scheduler_are_counted_if_it_is_named(team: str, capsys: Captured) -> None:
    assert queues_json(capsys, team, "--scheduler-name", "other")["vision"]["allocated"] == {}
    assert queues_json(capsys, team, "--scheduler-name", "bayplan")["vision"]["allocated"]


def test_a_dump_without_queues_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    assert run(["queues", "-f", dump(tmp_path, node(), pod())]) == 2
    assert "the dump contains neither Queues nor PodGroups" in capsys.readouterr().err


async def test_a_live_cluster_is_shown_too(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as client:
        arguments = ["queues", "--kubeconfig", str(path), "-o", "json"]
        assert await asyncio.to_thread(run, arguments) == 2
        assert "the cluster contains" in capsys.readouterr().err
        await install_kinds(client)
        await client.create(queue("q", capability={"cpu": "1"}))
        waits = in_queue("a", "q", "2")
        waits["spec"]["containers"][0]["image"] = "i"
        await client.create(waits)
        assert await asyncio.to_thread(run, arguments) == 0
    found = json.loads(capsys.readouterr().out)["queues"]
    (waiting,) = next(one for one in found if one["name"] == "q")["waiting"]
    assert waiting["waitsFor"] == "queue q has 1 cpu left of its quota, and 2 cpu is asked for"


def test_a_cluster_that_cannot_be_asked_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    assert run(["queues", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "error:" in capsys.readouterr().err


def test_the_shipped_example_is_shown_as_its_page_has_it(capsys: Captured) -> None:
    root = Path(__file__).parents[2]
    assert run(["queues", "-f", str(root / "examples" / "queues")]) == 0
    assert capsys.readouterr().out in (root / "docs" / "commands" / "queues.md").read_text()


# -- explain --------------------------------------------------------------------------------------


def explained(capsys: Captured, source: str, *arguments: str) -> tuple[int, str]:
    code = run(["explain", "-f", source, *arguments])
    return code, capsys.readouterr().out


def decided(capsys: Captured, source: str, *arguments: str) -> dict[str, Any]:
    assert run(["queues", "-f", source, "-o", "json", "--next", *arguments]) == 0
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    return plan


def test_the_next_cycle_is_shown_and_not_done(team: str, capsys: Captured) -> None:
    plan = decided(capsys, team)
    assert plan["ungated"] == ["default/small-0"]
    assert {"pod": "default/small-0", "node": "n1"} in plan["placed"]
    reasons = {one["group"]: one["reason"] for one in plan["waiting"]}
    assert reasons["default/large"] == "QuotaExceeded"
    assert reasons["default/second"] == "WaitsForEarlierGroup"
    assert run(["queues", "-f", team, "--next"]) == 0
    shown = capsys.readouterr().out
    assert "ungate  default/small-0" in shown
    assert "group default/first comes first in queue speech" in shown


def test_what_volcano_would_decide_can_be_seen_beside_it(team: str, capsys: Captured) -> None:
    plan = decided(capsys, team, "--rules", "volcano")
    reasons = {one["group"]: one["reason"] for one in plan["waiting"]}
    assert "default/second" not in reasons
    assert [one["pod"] for one in plan["placed"]] == ["default/let-in"]


def test_explain_says_first_that_a_pod_waits_for_its_queue(team: str, capsys: Captured) -> None:
    code, out = explained(capsys, team, "default/large-0")
    first, second, *_ = out.splitlines()
    assert code == 1
    assert first == (
        "default/large-0 waits for its queue vision, position 2: queue vision has 3 cpu left of its"
        " quota, and 4 cpu is asked for"
    )
    assert second.startswith("  Regarding nodes, it is waiting for scheduling gates")


def test_a_pod_without_a_gate_that_is_over_quota_does_not_fit(
    tmp_path: Path, capsys: Captured
) -> None:
    source = dump(tmp_path, node(), queue("q", capability={"cpu": "1"}), in_queue("a", "q", "2"))
    code, out = explained(capsys, source, "default/a")
    assert (code, out.splitlines()[1]) == (1, "  Regarding nodes, it fits node n1")
    code, out = explained(capsys, source, "--all-pending", "-o", "json")
    (one,) = json.loads(out)["explanations"]
    assert (code, one["queue"]["reason"], one["node"]) == (1, "QuotaExceeded", "n1")
    assert not one["fits"]


def test_a_pod_that_waits_for_its_queue_takes_no_node_from_others(
    tmp_path: Path, capsys: Captured
) -> None:
    objects = [queue("q", capability={"cpu": "1"}), in_queue("a", "q", "3"), pod("b", "3")]
    source = dump(tmp_path, node(), *objects)
    _, out = explained(capsys, source, "--all-pending")
    assert "default/b fits node n1" in out
    assert "2 pods: 1 fits, 1 waits for its queue" in out


def test_a_pod_that_its_queue_lets_in_is_explained_as_ever(team: str, capsys: Captured) -> None:
    code, out = explained(capsys, team, "default/let-in")
    assert (code, out.splitlines()[0]) == (0, "default/let-in fits node n1")
    code, out = explained(capsys, team, "default/let-in", "-o", "json")
    assert "queue" not in json.loads(out)["explanations"][0]
