"""Server-side apply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.jsontypes import clone
from bayplan.embedded.apiserver.patch.apply import ApplyIntent, apply, first_apply
from bayplan.embedded.apiserver.patch.managedfields import (
    BuiltinType,
    FieldManager,
    FieldOwnership,
    track_update,
)
from bayplan.embedded.apiserver.schema.types import require_type

POD = require_type("core.Pod")


def spec(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": fields}


def manager(name: str) -> FieldManager:
    return FieldManager(name, "Apply", "v1")


def intent(name: str, force: bool = False, **fields: Any) -> ApplyIntent:
    wanted = {"apiVersion": "v1", "kind": "Pod", **spec(**fields)}
    return ApplyIntent(wanted, BuiltinType(POD), manager(name), "2026-01-01T00:00:00Z", force)


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
    with pytest.raises(StatusError) as refused:
        apply(clone(live), intent("n", hostname="other"))
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    after = apply(clone(live), intent("n", force=True, hostname="other"))
    assert after["spec"]["hostname"] == "other"
    owners = {owner.name for owner, paths in FieldOwnership.read(after).owned.items() if paths}
    assert "n" in owners


def test_an_ordinary_write_takes_over_what_it_changes() -> None:
    live = first_apply(intent("m", hostname="h", subdomain="s"))
    changed = clone(live)
    changed["spec"]["hostname"] = "new"
    track_update(
        changed,
        live,
        BuiltinType(POD),
        FieldManager("kubectl", "Update", "v1"),
        "2026-01-02T00:00:00Z",
    )
    owned = {owner.name: paths for owner, paths in FieldOwnership.read(changed).owned.items()}
    assert owned["kubectl"] == {("f:spec", "f:hostname")}
    assert ("f:spec", "f:subdomain") in owned["m"]
    with pytest.raises(StatusError):
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
