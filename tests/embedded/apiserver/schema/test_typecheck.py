"""Objects are checked against their types."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.typecheck import TypeCheck, TypeMismatch, check_object
from bayplan.embedded.apiserver.schema.types import require_type

POD = require_type("core.Pod")


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        ({"spec": []}, "spec"),
        ({"spec": {"containers": [{"name": 5}]}}, "spec.containers[0].name"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a"),
        ({"spec": {"hostNetwork": "yes"}}, "spec.hostNetwork"),
        ({"spec": {"priority": 2**31}}, "spec.priority"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, "metadata.creationTimestamp"),
        ({"spec": {"overhead": {"cpu": "fast"}}}, "spec.overhead.cpu"),
    ],
)
def test_a_value_of_a_wrong_type_is_named(obj: dict[str, Any], field: str) -> None:
    with pytest.raises(TypeMismatch) as found:
        check_object(obj, POD, TypeCheck([]))
    assert found.value.field == field


def test_unknown_fields_and_nulls_are_taken_out() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "a", "nope": 1},
        "spec": {"nodeName": None, "containers": [{"name": "c", "imagee": "x"}]},
    }
    report = TypeCheck([], whole=False)
    check_object(pod, POD, report)
    assert report.unknown == ["metadata.nope", "spec.containers[0].imagee"]
    assert pod == {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}


@pytest.mark.parametrize(
    ("type_", "said", "kept"),
    [
        ("core.ConfigMap", {"data": {}}, {"metadata": {}}),
        ("core.Container", {"name": "c", "image": ""}, {"name": "c", "resources": {}}),
        ("core.PodSpec", {"containers": [], "hostNetwork": False}, {"containers": None}),
        ("core.PodSpec", {"containers": [], "priority": 0}, {"containers": None, "priority": 0}),
        ("rbac.Role", {"rules": []}, {"metadata": {}, "rules": None}),
        (
            "policy.PodDisruptionBudget",
            {"spec": {"minAvailable": 0}},
            {
                "metadata": {},
                "spec": {"minAvailable": 0},
                "status": {
                    "disruptionsAllowed": 0,
                    "currentHealthy": 0,
                    "desiredHealthy": 0,
                    "expectedPods": 0,
                },
            },
        ),
        (
            "core.NodeCondition",
            {"type": "Ready", "status": "True"},
            {
                "type": "Ready",
                "status": "True",
                "lastHeartbeatTime": None,
                "lastTransitionTime": None,
            },
        ),
    ],
)
def test_an_object_says_what_is_always_said_and_nothing_empty(
    type_: str, said: dict[str, Any], kept: dict[str, Any]
) -> None:
    check_object(said, require_type(type_), TypeCheck([]))
    assert said == kept


def test_what_is_always_said_is_not_shared_between_objects() -> None:
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for obj in (one, other):
        check_object(obj, require_type("core.Node"), TypeCheck([]))
    one["status"]["nodeInfo"]["machineID"] = "m"
    assert other["status"]["nodeInfo"]["machineID"] == ""


def test_what_is_known_to_be_in_order_is_not_looked_at_unless_it_differs_to_the_letter() -> None:
    known: dict[str, Any] = {"spec": {"containers": [{"name": "c", "stdin": True}]}}
    check_object(known, POD, TypeCheck([]))
    same = {**known, "spec": {"containers": [{"name": "c", "stdin": True, "resources": {}}]}}
    check_object(same, POD, TypeCheck([], known=known), known=known)
    assert same == known
    for other in (1, 1.0, "true"):
        sly: JsonObject = {"spec": {"containers": [{"name": "c", "stdin": other, "resources": {}}]}}
        with pytest.raises(TypeMismatch):
            check_object(sly, POD, TypeCheck([], known=known), known=known)
