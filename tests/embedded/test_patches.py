"""Patches: the four types, by their rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.errors import ApiError
from bayplan.embedded.apiserver.jsontypes import clone
from bayplan.embedded.apiserver.patch.apply import Intent, apply, first_apply
from bayplan.embedded.apiserver.patch.managedfields import Manager, Ownership, Typed, track
from bayplan.embedded.apiserver.patch.patches import apply_json_patch, apply_merge_patch
from bayplan.embedded.apiserver.patch.strategic import apply_strategic_patch
from bayplan.embedded.apiserver.schema.types import require_type

POD = require_type("core.Pod")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
PLAIN_JSON = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


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


@given(JSON)
def test_an_empty_patch_changes_nothing(document: Any) -> None:
    assert apply_json_patch(clone(document), []) == document
    if isinstance(document, dict):
        assert apply_merge_patch(clone(document), {}) == document


@given(PLAIN_JSON, PLAIN_JSON)
def test_a_merge_patch_made_of_the_difference_leads_there(before: Any, after: Any) -> None:
    assert apply_merge_patch(clone(before), _difference(before, after)) == after


def _difference(before: Any, after: Any) -> Any:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    patch = {key: None for key in before if key not in after}
    return {**patch, **{key: _difference(before.get(key), value) for key, value in after.items()}}


@given(st.dictionaries(st.sampled_from("abc"), PLAIN_JSON, min_size=1), st.data())
def test_adding_and_removing_a_key_leads_back(
    document: dict[str, Any], data: st.DataObject
) -> None:
    add = {"op": "add", "path": "/new", "value": data.draw(PLAIN_JSON)}
    remove = {"op": "remove", "path": "/new"}
    assert apply_json_patch(clone(document), [add, remove]) == document


def manager(name: str) -> Manager:
    return Manager(name, "Apply", "v1")


def intent(name: str, force: bool = False, **fields: Any) -> Intent:
    wanted = {"apiVersion": "v1", "kind": "Pod", **spec(**fields)}
    return Intent(wanted, Typed(POD), manager(name), "2026-01-01T00:00:00Z", force)


def test_apply_removes_what_its_manager_no_longer_wants() -> None:
    live = first_apply(intent("m", hostname="h", nodeSelector={"a": "1", "b": "2"}))
    after = apply(clone(live), intent("m", nodeSelector={"b": "2"}))
    assert after["spec"] == {"nodeSelector": {"b": "2"}} or "hostname" not in after["spec"]


def test_apply_keeps_what_others_own_too() -> None:
    live = first_apply(intent("m", hostname="h"))
    shared = apply(clone(live), intent("n", hostname="h"))
    after = apply(clone(shared), intent("m"))
    assert after["spec"]["hostname"] == "h"


def test_apply_conflicts_with_other_owners_unless_forced() -> None:
    live = first_apply(intent("m", hostname="h"))
    with pytest.raises(ApiError) as refused:
        apply(clone(live), intent("n", hostname="other"))
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    after = apply(clone(live), intent("n", force=True, hostname="other"))
    assert after["spec"]["hostname"] == "other"
    owners = {owner.name for owner, paths in Ownership.read(after).owned.items() if paths}
    assert "n" in owners


def test_an_ordinary_write_takes_over_what_it_changes() -> None:
    live = first_apply(intent("m", hostname="h", subdomain="s"))
    changed = clone(live)
    changed["spec"]["hostname"] = "new"
    track(changed, live, Typed(POD), Manager("kubectl", "Update", "v1"), "2026-01-02T00:00:00Z")
    owned = {owner.name: paths for owner, paths in Ownership.read(changed).owned.items()}
    assert owned["kubectl"] == {("f:spec", "f:hostname")}
    assert ("f:spec", "f:subdomain") in owned["m"]
    with pytest.raises(ApiError):
        apply(clone(changed), intent("m", hostname="h", subdomain="s"))


CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")}, optional={"image": st.sampled_from(["1", "2"])}
    ),
    unique_by=lambda one: one["name"],
)


@given(CONTAINERS, CONTAINERS)
def test_a_sole_manager_gets_exactly_what_it_wants(first: list[Any], second: list[Any]) -> None:
    live = first_apply(intent("m", containers=first))
    after = apply(clone(live), intent("m", containers=second))
    found = {one["name"]: one for one in after["spec"].get("containers") or ()}
    assert found == {one["name"]: one for one in second}


@given(CONTAINERS)
def test_applying_the_same_twice_changes_nothing(containers: list[Any]) -> None:
    live = first_apply(intent("m", containers=containers))
    assert apply(clone(live), intent("m", containers=containers)) == live


def test_what_a_patch_adds_to_a_list_comes_before_what_it_does_not_name() -> None:
    before = spec(containers=[{"name": "a"}, {"name": "b"}])
    after = strategic(before, spec(containers=[{"name": "new"}, {"name": "b", "image": "x"}]))
    assert [one["name"] for one in after["spec"]["containers"]] == ["new", "a", "b"]


def test_a_list_that_is_not_there_is_taken_as_it_is_without_nulls() -> None:
    claims = [{"name": "a"}, {"name": "a", "request": None}]
    after = strategic(spec(), spec(resourceClaims=claims, nodeSelector={"x": None}))
    assert after["spec"] == {"resourceClaims": [{"name": "a"}, {"name": "a"}], "nodeSelector": {}}
