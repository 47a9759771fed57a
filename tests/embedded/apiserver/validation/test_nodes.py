"""Nodes: what is refused, kept and filled in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.apiserver.backends import new_backend
from tests.embedded.apiserver.http_client import Http
from tests.embedded.apiserver.refusals import (
    changed,
    made,
    refusal_of_change,
    refusal_of_new,
    short_causes,
    with_changes,
)

NODE: dict[str, Any] = {
    "metadata": {"name": "n"},
    "spec": {"providerID": "cloud://n", "podCIDR": "10.0.0.0/24"},
    "status": {"capacity": {"cpu": "4", "pods": "110"}},
}


@pytest.mark.parametrize(
    ("changes", "causes"),
    [
        ({"metadata.name": "No"}, ["metadata.name: invalid"]),
        (
            {"spec.taints": [{"key": "k", "effect": "Never"}]},
            ["metadata.taints[0].effect: unsupported"],
        ),
        ({"spec.taints": [{"key": "k"}]}, ["metadata.taints[0].effect: required"]),
        (
            {"spec.taints": [{"key": "", "value": "a b", "effect": "NoSchedule"}]},
            ["metadata.taints[0].key: invalid", "metadata.taints[0].value: invalid"],
        ),
        (
            {
                "spec.taints": [
                    {"key": "k", "effect": "NoExecute"},
                    {"key": "k", "effect": "NoExecute"},
                ]
            },
            ["metadata.taints[1]: duplicate"],
        ),
        ({"spec.podCIDR": "x"}, ["spec.podCIDRs[0]: invalid"]),
        ({"spec.podCIDR": "10.0.0.1/24"}, ["spec.podCIDRs[0]: invalid"]),
        ({"spec.podCIDR": "10.0.0.00/24"}, ["spec.podCIDRs[0]: invalid"]),
        (
            {"spec.podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"]},
            ["spec.podCIDRs: invalid"],
        ),
        (
            {"spec.podCIDRs": ["10.0.0.0/24", "x"]},
            ["spec.podCIDRs: internal", "spec.podCIDRs: invalid", "spec.podCIDRs[1]: invalid"],
        ),
        ({"spec.podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, []),
        (
            {"status.capacity.cpu": "-1"},
            ["status.capacity.cpu: invalid", "status.allocatable.cpu: invalid"],
        ),
        ({"status.allocatable": {"pods": "1500m"}}, ["status.allocatable.pods: invalid"]),
        ({"status.allocatable": {"e.com/gpu": "1500m"}}, ["status.allocatable.e.com/gpu: invalid"]),
        (
            {"status.nodeInfo": {"swap": {"capacity": 0}}},
            ["metadata.nodeSwapStatus.capacity: invalid"],
        ),
        (
            {"status.declaredFeatures": ["b", "A", "A"]},
            [
                "status.declaredFeatures[0]: invalid",
                "status.declaredFeatures[1]: invalid",
                "status.declaredFeatures[2]: duplicate",
            ],
        ),
    ],
)
async def test_what_a_node_cannot_be_is_refused_at_its_field(
    changes: dict[str, Any], causes: list[str]
) -> None:
    assert short_causes(await refusal_of_new("nodes", with_changes(NODE, changes))) == sorted(
        causes
    )


@pytest.mark.parametrize(
    ("changes", "causes"),
    [
        ({"spec.providerID": "other"}, ["spec.providerID: forbidden"]),
        ({"spec.podCIDR": "10.1.0.0/24"}, ["spec.podCIDRs: forbidden"]),
        ({"spec.externalID": "x"}, ["spec.externalID: forbidden"]),
        ({"spec.unschedulable": True}, []),
        ({"spec.taints": [{"key": "k", "effect": "NoExecute"}]}, []),
        ({"metadata.labels": {"a": "b"}}, []),
    ],
)
async def test_what_a_node_was_said_to_be_stays(changes: dict[str, Any], causes: list[str]) -> None:
    assert short_causes(await refusal_of_change("nodes", NODE, changes)) == causes


@pytest.mark.parametrize(
    ("changes", "causes"),
    [
        ({"status.capacity.cpu": "-1"}, ["status.capacity.cpu: invalid"]),
        (
            {"status.addresses": [{"type": "Hostname", "address": "n"}] * 2},
            ["status.addresses[1]: duplicate"],
        ),
    ],
)
async def test_what_a_kubelet_says_is_checked(changes: dict[str, Any], causes: list[str]) -> None:
    assert short_causes(await refusal_of_change("nodes", NODE, changes, "status")) == causes


async def test_a_node_gives_what_it_has_and_knows_its_range_by_both_names() -> None:
    node = await made(await new_backend(), "nodes", NODE)
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    assert node["spec"]["podCIDRs"] == ["10.0.0.0/24"]


async def test_amounts_finer_than_thousandths_are_rounded_up() -> None:
    fine = with_changes(NODE, {"status.capacity.cpu": "100u"})
    node = await made(await new_backend(), "nodes", fine)
    assert node["status"]["capacity"]["cpu"] == "1m"


async def test_a_node_has_its_whole_shape_from_the_first_day() -> None:
    node = await made(await new_backend(), "nodes", {"metadata": {"name": "n"}})
    assert node["spec"] == {}
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""


async def test_a_status_is_written_alone_and_a_spec_alone() -> None:
    backend = await new_backend()
    await made(backend, "nodes", NODE)
    both = {"spec.unschedulable": True, "status.phase": "Running"}
    assert "unschedulable" not in (await changed(backend, "nodes", "n", both, "status"))["spec"]
    other = {"spec.unschedulable": True, "status.phase": "Pending"}
    found = await changed(backend, "nodes", "n", other)
    assert (found["spec"]["unschedulable"], found["status"]["phase"]) == (True, "Running")


async def test_what_was_taken_away_is_not_kept() -> None:
    gone = {"configMap": {"namespace": "a", "name": "b", "kubeletConfigKey": "c"}}
    new = with_changes(NODE, {"spec.configSource": gone, "status.config": {"assigned": gone}})
    backend = await new_backend()
    node = await made(backend, "nodes", new)
    assert ("configSource" in node["spec"], "config" in node["status"]) == (False, False)


async def test_nodes_that_say_nothing_can_be_found_as_schedulable(http: Http) -> None:
    await http.post("/api/v1/nodes", NODE)
    found = await http.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse")
    assert [node["metadata"]["name"] for node in found.body["items"]] == ["n"]
    none = await http.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue")
    assert none.body["items"] == []
