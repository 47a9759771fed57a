"""What is set over a cluster file, and what cannot be."""

from __future__ import annotations

import pytest

from bayplan.base.configfiles import ConfigFileError
from bayplan.lab.simulation.pool import spec_of
from bayplan.lab.simulation.runspec import OverrideError, apply_overrides
from tests.lab.simulation.runs import variant

pytestmark = pytest.mark.whole


def test_lists_are_gone_through_by_name_and_by_number() -> None:
    cluster = variant().cluster
    settings = ("nodeGroups[workers].max=9", "nodeGroups[0].zones=[a, b]", "seed=7")
    made = apply_overrides(cluster, (*settings, "instanceTypes[small].price=0.25"))
    group = made["nodeGroups"][0]  # type: ignore[index]
    assert (group["max"], group["zones"], made["seed"]) == (9, ["a", "b"], 7)
    assert made["instanceTypes"][0]["price"] == 0.25  # type: ignore[index]
    assert cluster == variant().cluster


def test_sections_that_are_not_there_are_made() -> None:
    made = apply_overrides(
        variant().cluster, ("nodeGroups[workers].options.scaleDownUnneededTime=2m",)
    )
    assert made["nodeGroups"][0]["options"] == {"scaleDownUnneededTime": "2m"}  # type: ignore[index]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("nodeGroups", "write it as path=value"),
        ("nodeGroups[worker].max=3", "nodeGroups[worker]: there is no entry 'worker'"),
        ("nodeGroups[7].max=3", "nodeGroups[7]: there is no entry '7'"),
        ("seed.of=3", "seed.of: not a section with fields"),
        ("seed[0]=3", "seed[0]: not a list"),
        ("..=3", "is not a path such as"),
        ("seed=[", "seed: not YAML"),
    ],
)
def test_what_leads_nowhere_is_named(setting: str, said: str) -> None:
    with pytest.raises(OverrideError) as caught:
        apply_overrides(variant().cluster, (setting,))
    assert said in str(caught.value)


def test_what_makes_no_sense_is_found_when_it_is_read() -> None:
    one = variant()
    made = type(one)(
        name="x", cluster=apply_overrides(one.cluster, ("nodeGroups[0].mx=1",)), source="f"
    )
    with pytest.raises(ConfigFileError, match=r"f: nodeGroups\[0\].mx: unknown field"):
        spec_of(made)
