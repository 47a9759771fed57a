"""How groups say in the cluster file that they want to be scaled."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

from bayplan.base.configfiles import ConfigFileError
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.nodegroups import GroupOptions
from bayplan.nodegroups.config_sections import OptionsSection

GROUP = """
instanceTypes: [{name: large}]
nodeGroups:
  - name: workers
    instanceType: large
    options: OPTIONS
"""


def options(text: str) -> dict[str, float | bool]:
    spec = parse_cluster(GROUP.replace("OPTIONS", text).encode(), "cluster.yaml", Path())
    return spec.groups[0].options


def test_every_option_of_the_protocol_can_be_said() -> None:
    known = {field.name for field in msgspec.structs.fields(OptionsSection)}
    assert known == {field.name for field in fields(GroupOptions)}


def test_times_are_durations_and_what_is_not_said_is_not_there() -> None:
    said = "{maxNodeProvisionTime: 20m, zeroOrMaxNodeScaling: true}"
    assert options(said) == {"max_node_provision_time": 1200.0, "zero_or_max_node_scaling": True}
    assert options("{}") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{scaleDownUnneededTime: soon}", "nodeGroups.0..options.scaleDownUnneededTime"),
        ("{scaleDownUtilizationThreshold: 2}", "options.scaleDownUtilizationThreshold"),
        ("{scaleDownUnneeded: 2}", "unknown field"),
    ],
)
def test_an_option_that_makes_no_sense_is_an_error_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigFileError, match=said):
        options(text)
