"""Strategic merge patches."""

from __future__ import annotations

from typing import Any

from bayplan.embedded.apiserver.jsontypes import clone
from bayplan.embedded.apiserver.patch.strategic import apply_strategic_patch
from bayplan.embedded.apiserver.schema.types import require_type

POD = require_type("core.Pod")


def spec(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": fields}


def strategic(document: dict[str, Any], patch: dict[str, Any]) -> Any:
    return apply_strategic_patch(clone(document), patch, POD)


def test_containers_merge_by_name() -> None:
    before = spec(containers=[{"name": "a", "image": "1"}, {"name": "b", "image": "1"}])
    after = strategic(before, spec(containers=[{"name": "b", "image": "2"}, {"name": "c"}]))
    assert after["spec"]["containers"] == [
        {"name": "a", "image": "1"},
        {"name": "b", "image": "2"},
        {"name": "c"},
    ]


def test_elements_and_lists_are_deleted_and_replaced_by_directive() -> None:
    before = spec(containers=[{"name": "a"}, {"name": "b"}], nodeSelector={"x": "1", "y": "2"})
    gone = strategic(before, spec(containers=[{"name": "a", "$patch": "delete"}]))
    assert gone["spec"]["containers"] == [{"name": "b"}]
    replaced = strategic(before, spec(containers=[{"$patch": "replace"}, {"name": "z"}]))
    assert replaced["spec"]["containers"] == [{"name": "z"}]
    selector = strategic(before, spec(nodeSelector={"$patch": "replace", "z": "3"}))
    assert selector["spec"]["nodeSelector"] == {"z": "3"}


def test_lists_without_a_merge_key_are_replaced() -> None:
    before = spec(tolerations=[{"key": "a"}])
    after = strategic(before, spec(tolerations=[{"key": "b"}]))
    assert after["spec"]["tolerations"] == [{"key": "b"}]


def test_primitive_lists_merge_and_lose_single_values() -> None:
    before: dict[str, Any] = {"metadata": {"finalizers": ["a/1", "b/2"]}}
    added = strategic(before, {"metadata": {"finalizers": ["c/3"]}})
    assert added["metadata"]["finalizers"] == ["c/3", "a/1", "b/2"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}}
    assert strategic(before, patch)["metadata"]["finalizers"] == ["b/2"]


def test_the_order_of_elements_can_be_set() -> None:
    before = spec(containers=[{"name": "a"}, {"name": "b"}, {"name": "c"}])
    order = [{"name": "c"}, {"name": "a"}, {"name": "b"}]
    after = strategic(before, {"spec": {"$setElementOrder/containers": order}})
    assert [one["name"] for one in after["spec"]["containers"]] == ["c", "a", "b"]


def test_retain_keys_drops_the_other_members_of_a_union() -> None:
    before = spec(volumes=[{"name": "v", "emptyDir": {}}])
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    after = strategic(before, spec(volumes=[volume]))
    assert after["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_a_budgets_selector_is_taken_whole() -> None:
    budget = spec(selector={"matchLabels": {"app": "a"}}, minAvailable=1)
    patch = {"spec": {"selector": {"matchLabels": {"tier": "b"}}}}
    merged = apply_strategic_patch(budget, patch, require_type("policy.PodDisruptionBudget"))
    assert merged == spec(selector={"matchLabels": {"tier": "b"}}, minAvailable=1)


def test_null_removes_a_field() -> None:
    assert strategic(spec(nodeName="n", hostNetwork=True), spec(nodeName=None)) == spec(
        hostNetwork=True
    )


def test_what_a_patch_adds_to_a_list_comes_before_what_it_does_not_name() -> None:
    before = spec(containers=[{"name": "a"}, {"name": "b"}])
    after = strategic(before, spec(containers=[{"name": "new"}, {"name": "b", "image": "x"}]))
    assert [one["name"] for one in after["spec"]["containers"]] == ["new", "a", "b"]


def test_a_list_that_is_not_there_is_taken_as_it_is_without_nulls() -> None:
    claims = [{"name": "a"}, {"name": "a", "request": None}]
    after = strategic(spec(), spec(resourceClaims=claims, nodeSelector={"x": None}))
    assert after["spec"] == {"resourceClaims": [{"name": "a"}, {"name": "a"}], "nodeSelector": {}}
