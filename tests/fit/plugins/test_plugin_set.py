"""Plugin sets: which plugins are asked, and what their scores weigh."""

from __future__ import annotations

import pytest

from bayplan.fit import PluginSet, Profile, Snapshot
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.plugins.node_resources_fit.arguments import (
    AllocationStrategy,
    ResourceFitSettings,
    StrategyType,
)
from bayplan.fit.plugins.registry import FILTERS, SCORES
from bayplan.fit.profile import MOST_WEIGHT
from tests.builders import make_node, make_pod
from tests.fit.plugins.scores import only, scored, two_nodes, wanting


def test_pods_may_name_the_scheduler_whose_profile_they_want() -> None:
    packing = PluginSet(
        args=(ResourceFitSettings(AllocationStrategy(StrategyType.MOST_ALLOCATED)),)
    )
    profile = Profile(schedulers={"packer": packing})
    snapshot = Snapshot(two_nodes().objects(), profile=profile)
    assert snapshot.decide(wanting().obj()).node == "idle"
    assert snapshot.decide(wanting().scheduler("packer").obj()).node == "busy"


def test_filters_that_are_off_refuse_nobody() -> None:
    snapshot = two_nodes()
    snapshot.put(make_node("idle").capacity(cpu="10", memory="10Gi", pods=10).unschedulable().obj())
    plugins = PluginSet(filters=FILTERS - {"NodeUnschedulable"})
    assert snapshot.decide(wanting().obj()).node == "busy"
    assert snapshot.decide(wanting().obj(), plugins=plugins).node == "idle"
    lost = make_pod("lost").claim("nowhere").obj()
    volumes = {"VolumeRestrictions", "VolumeBinding", "VolumeZone"}
    assert snapshot.decide(lost).refused_before is not None
    assert snapshot.decide(lost, plugins=PluginSet(filters=FILTERS - volumes)).node is not None


def test_weights_count_in_ranks_as_in_verdicts() -> None:
    snapshot, pod = two_nodes(), wanting().obj()
    plain = scored(snapshot, pod, only("NodeResourcesFit"))
    heavy = PluginSet(scores=(("NodeResourcesFit", 7),))
    assert scored(snapshot, pod, heavy) == {name: 7 * points for name, points in plain.items()}
    for weight in (7, MOST_WEIGHT, 1 << 40):
        plugins = PluginSet(scores=tuple((name, weight) for name, _ in SCORES))
        totals = scored(snapshot, pod, plugins)
        assert snapshot.decide(pod, plugins=plugins).node == max(totals, key=lambda n: totals[n])


@pytest.mark.parametrize("name", [name for name, _ in SCORES])
def test_a_score_without_weight_does_not_count(name: str) -> None:
    plugins = PluginSet(scores=tuple((one, weight * (one != name)) for one, weight in SCORES))
    said = two_nodes().verdicts(wanting().image("x").obj(), plugins=plugins)
    assert isinstance(said, Verdicts)
    assert all(name not in points for points in said.scores.values())
