"""Groups in a file: what they say is read, and what makes no sense is an error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.autoscaler.providers.declared.declaration import declare
from bayplan.autoscaler.providers.declared.sources import parse_groups, read_groups
from bayplan.base.configfiles import ConfigFileError
from bayplan.kube.nodes import Taint

WHOLE = """
nodeGroups:
  - name: workers
    id: MachineDeployment/default/workers
    min: 0
    max: 10
    price: 0.8
    nodeSelector: {pool: workers}
    template:
      labels: {pool: workers}
      taints: [{key: dedicated, value: shop, effect: NoSchedule}]
      capacity: {cpu: 16, memory: 64Gi}
      allocatable: {cpu: 15800m}
    csiDrivers: {ebs.csi.aws.com: 25, efs.csi.aws.com: none, other.example: 0}
    options: {scaleDownUnneededTime: 5m, zeroOrMaxNodeScaling: true}
  - name: spot
"""


def test_a_group_is_declared_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "groups.yaml"
    path.write_text(WHOLE)
    workers, spot = read_groups(path)
    assert workers.group == "MachineDeployment/default/workers"
    assert (workers.min_size, workers.max_size, workers.price) == (0, 10, 0.8)
    assert workers.node_selector == {"pool": "workers"}
    assert workers.description.taints == (
        Taint(key="dedicated", value="shop", effect="NoSchedule"),
    )
    assert workers.description.allocatable == {"cpu": "15800m"}
    assert workers.limits == {"ebs.csi.aws.com": 25, "efs.csi.aws.com": None, "other.example": 0}
    assert workers.options == {"scale_down_unneeded_time": 300.0, "zero_or_max_node_scaling": True}
    assert workers.problems == ()
    assert (spot.group, spot.limits, spot.max_size) == ("spot", None, None)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("csiDrivers: {a.example: many}", r":4: .*csiDrivers.a.example: 'many': the limit"),
        ("csiDrivers: {a.example: -1}", r"csiDrivers.a.example: '-1': the limit must be a whole"),
        ("csiDrivers: {a.example: 2.5}", "the limit must be a whole number"),
        ("csiDrivers: {a.example: true}", "the limit must be a whole number"),
        ("csiDrivers: {a b: 1}", "this is not a driver name"),
        ("csiDrivers: [a]", r"nodeGroups\[0\].csiDrivers: .*object"),
        ("csiDriver: {}", "unknown field; did you mean 'csiDrivers'"),
        ("max: lots", r"nodeGroups\[0\].max"),
        ("{min: 3, max: 2}", "3 is more than max 2"),
        ("price: -1", r"nodeGroups\[0\].price"),
        ("template: {capacity: {cpu: lots}}", r"template.capacity.cpu"),
        ("template: {labels: {a b: c}}", "template.labels.a b"),
        ("template: {taints: [{key: a}]}", "effect"),
        ("options: {scaleDownUnneededTime: soon}", "options.scaleDownUnneededTime"),
        ("nodeSelector: {a: '?'}", "nodeSelector.a"),
    ],
)
def test_what_makes_no_sense_is_an_error_with_its_place(entry: str, said: str) -> None:
    inner = entry.strip("{}") if entry.startswith("{") else entry
    lines = [f"    {one}" for one in (inner.split(", ") if entry.startswith("{") else [inner])]
    text = "\n".join(["nodeGroups:", "  - name: workers", "    id: x", *lines])
    with pytest.raises(ConfigFileError, match=said):
        parse_groups(text.encode(), "groups.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodeGroups: [{}]", "a group needs a name"),
        ("nodeGroups: [{name: ''}]", "a group needs a name"),
        ("nodeGroups: [{name: a}, {name: b, id: a}]", r"nodeGroups\[1\].id: duplicate 'a'"),
        ("nodeGroups: [{name: a}, {name: a}]", r"nodeGroups\[1\].name: duplicate 'a'"),
        ("groups: []", "nodeGroups"),
        ("", "nodeGroups"),
        ("nodeGroups: 3", "nodeGroups"),
    ],
)
def test_a_file_that_declares_nothing_sensible_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigFileError, match=said):
        parse_groups(text.encode(), "groups.yaml")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)
fields = st.sampled_from(
    ["id", "min", "max", "price", "nodeSelector", "template", "csiDrivers", "options", "odd"]
)
drivers = st.dictionaries(st.sampled_from(["a.example", "b.example", "a b", ""]), plain)


@given(st.dictionaries(fields, plain), drivers)
def test_nothing_that_is_said_of_a_limit_makes_it_endless_by_mistake(
    said: dict[str, object], limits: dict[str, object]
) -> None:
    made = declare("g", {**said, "csiDrivers": limits})
    for driver, limit in limits.items():
        known = (made.limits or {}).get(driver, "nothing")
        if limit == "none" and driver.endswith("example"):
            assert known is None
        elif known != "nothing":
            assert known == int(str(limit)) >= 0
        else:
            assert driver in made.unread
            assert any(driver[:100] in one.field for one in made.problems)
