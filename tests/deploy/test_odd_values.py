"""Odd values: the chart and the command agree on them, and API servers take what comes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.charts import rendered
from tests.deploy.manifests import printed_objects
from tests.deploy.odd_values import EACH, ODD
from tests.deploy.test_files import keyed
from tests.deploy.test_values import helm_takes

pytestmark = pytest.mark.whole


ODDLY = pytest.mark.parametrize("name", ODD)
ELSEWHERE = "a-namespace-of-its-own"


@pytest.fixture
def file(name: str, tmp_path: Path) -> Path:
    """The values in a file."""
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(ODD[name], allow_unicode=True))
    return path


@ODDLY
def test_chart_and_command_agree(name: str, file: Path) -> None:
    assert helm_takes(ODD[name])
    shown = keyed(printed_objects("-f", str(file), "-n", ELSEWHERE))
    kept = {**ODD[name], "crds": {"keep": False}}
    assert keyed(rendered(ELSEWHERE, **kept)) == shown


def test_no_budget_keeps_a_node_from_being_drained() -> None:
    """Of one replica as of many, one may go."""
    found = printed_objects(
        *(f"--set={one}.replicas=1" for one in EACH), "--set=nodeLimits.enabled=true"
    )
    budgets = [one["spec"] for one in found if one["kind"] == "PodDisruptionBudget"]
    assert len(budgets) == len(EACH)
    for one in budgets:
        assert one["maxUnavailable"] == 1
        assert one["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def namespaces_in(one: object) -> Iterator[str]:
    """All that is said of namespaces anywhere in an object."""
    if isinstance(one, Mapping):
        for key, inner in one.items():
            if key == "namespace" and isinstance(inner, str):
                yield inner
            yield from namespaces_in(inner)
    elif isinstance(one, list):
        for inner in one:
            yield from namespaces_in(inner)


@ODDLY
def test_elsewhere_nothing_is_left_in_kube_system(name: str, file: Path) -> None:
    found = printed_objects("-f", str(file), "-n", ELSEWHERE, "--no-crds")
    assert set(namespaces_in(found)) == {ELSEWHERE}
    assert "kube-system" not in yaml.safe_dump(found)
    roles: list[Any] = [
        one for one in found if one["kind"] in {"RoleBinding", "ClusterRoleBinding"}
    ]
    accounts = {one["metadata"]["name"] for one in found if one["kind"] == "ServiceAccount"}
    assert {one["subjects"][0]["name"] for one in roles} == accounts
