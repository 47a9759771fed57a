"""Declarations over a cloud's groups: what they add, what they draw closer, what they cannot do."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.overlay import OverlayProvider
from bayplan.autoscaler.providers.declared.provider import DeclaredProvider
from bayplan.autoscaler.providers.declared.sources import FileDeclarations, parse_groups
from bayplan.autoscaler.providers.declared.templates import overlay_template
from bayplan.base.clock import START
from bayplan.nodegroups import (
    CSI_DRIVERS,
    CloudNodeGroup,
    GroupOptions,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    RefusedError,
    TemplateNodeInfo,
    UnimplementedError,
    template_of,
)
from tests.builders import make_node, make_pod
from tests.embedded.cloud.clouds import DISK, FILES, SimulatedCloud

HOUR = timedelta(hours=1)


def declared(text: str) -> tuple[Declaration, ...]:
    return parse_groups(f"nodeGroups: {text}".encode(), "groups.yaml")


def laid(inner: Provider, text: str) -> OverlayProvider:
    return OverlayProvider(inner, FileDeclarations(declared(text)))


def limits(template: TemplateNodeInfo) -> dict[str, int | None] | None:
    if template.csi_node is None:
        return None
    drivers = template.csi_node.spec.drivers
    return {one.name: one.allocatable.count if one.allocatable else None for one in drivers}


@pytest.fixture
def simulated() -> SimulatedCloud:
    made = SimulatedCloud()
    made.forward()
    return made


async def test_limits_that_are_declared_count_over_those_of_the_cloud(
    simulated: SimulatedCloud,
) -> None:
    said = f"[{{name: workers, csiDrivers: {{{DISK}: 0, new.example: 3}}}}]"
    found = await laid(simulated.provider, said).template("workers")
    assert limits(found) == {DISK: 0, FILES: None, "new.example": 3}
    assert limits(template_of(found.node)) == limits(found)


def test_a_limit_that_is_declared_is_no_estimate() -> None:
    theirs = TemplateNodeInfo(make_node("n").obj(), estimated=frozenset({DISK, FILES}))
    (said,) = declared(f"[{{name: workers, csiDrivers: {{{DISK}: 4}}}}]")
    assert overlay_template(theirs, said).estimated == {FILES}


async def test_what_is_not_declared_stays_as_the_cloud_has_it(simulated: SimulatedCloud) -> None:
    found = await laid(simulated.provider, "[{name: workers, price: 1}]").template("workers")
    theirs = await simulated.provider.template("workers")
    assert found.csi_node == theirs.csi_node
    assert found.node.status == theirs.node.status
    assert found.node.spec == theirs.node.spec
    other = await laid(simulated.provider, "[{name: workers, price: 1}]").template("gpus")
    assert other == await simulated.provider.template("gpus")


async def test_labels_taints_and_amounts_are_laid_over_one_by_one(
    simulated: SimulatedCloud,
) -> None:
    said = """[{name: workers, template: {
        labels: {team: ops, disk: fast},
        taints: [{key: dedicated, value: ops, effect: NoSchedule}, {key: new, effect: NoExecute}],
        capacity: {cpu: 9, example.com/x: 2}, allocatable: {cpu: 7}}}]"""
    node = (await laid(simulated.provider, said).template("workers")).node
    labels = node.metadata.labels
    assert (labels["team"], labels["disk"]) == ("ops", "fast")
    assert labels["topology.disk.example.com/zone"] == "zone-a"
    assert [(one.key, one.value, one.effect) for one in node.spec.taints] == [
        ("dedicated", "ops", "NoSchedule"),
        ("new", "", "NoExecute"),
    ]
    assert (node.status.capacity["cpu"], node.status.allocatable["cpu"]) == (9, 7)
    assert node.status.allocatable["example.com/x"] == 2
    assert node.status.allocatable["memory"] == "32Gi"


class MinimalProvider:
    """A cloud that offers no templates, prices or options, as an old program over gRPC may."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        if name in {"template", "options", "node_price", "pod_price"}:
            return self._refuse
        return getattr(self._inner, name)

    async def _refuse(self, *_: object) -> None:
        raise UnimplementedError("not here")


async def test_a_template_can_be_made_of_what_is_declared_alone(simulated: SimulatedCloud) -> None:
    said = f"""[{{name: workers, price: 2, csiDrivers: {{{DISK}: 8}},
        template: {{capacity: {{cpu: 4, memory: 8Gi}}}}}}, {{name: gpus, csiDrivers: {{}}}}]"""
    provider = laid(MinimalProvider(simulated.provider), said)  # type: ignore[arg-type]
    found = await provider.template("workers")
    assert limits(found) == {DISK: 8}
    assert found.node.status.allocatable == {"cpu": 4, "memory": "8Gi", "pods": 110}
    assert found.node.metadata.annotations[CSI_DRIVERS] == f"{DISK}=8"
    assert await provider.node_price(NodeRef.of(found.node), START, START + HOUR) == 2.0
    pod = make_pod("p").cpu("1").memory("1Gi").obj()
    assert await provider.pod_price(pod, START, START + HOUR) == 0.5
    with pytest.raises(UnimplementedError, match="gpus: its declaration has no cpu"):
        await provider.template("gpus")
    with pytest.raises(UnimplementedError):
        await provider.options("workers", GroupOptions())


async def test_bounds_are_only_drawn_closer(simulated: SimulatedCloud) -> None:
    provider = laid(simulated.provider, "[{name: workers, min: 2, max: 3}, {name: gpus, max: 99}]")
    assert [(one.id, one.min_size, one.max_size) for one in await provider.groups()] == [
        ("gpus", 0, 3),
        ("workers", 2, 3),
    ]
    await provider.increase("workers", 1)
    with pytest.raises(RefusedError, match="4 is above its declared maximum 3"):
        await provider.increase("workers", 1)
    one, two = (NodeRef(f"sim://workers/workers-{number}") for number in (1, 2))
    with pytest.raises(RefusedError, match="1 would be below its declared minimum 2"):
        await provider.delete_nodes("workers", [one, two])
    await provider.delete_nodes("workers", [one])
    assert await simulated.provider.target_size("workers") == 2
    found = await provider.group_for_node(two)
    assert found is not None
    assert found.max_size == 3


async def test_what_failed_can_be_given_back_below_the_declared_minimum(
    simulated: SimulatedCloud,
) -> None:
    provider = laid(simulated.provider, "[{name: workers, min: 4}]")
    simulated.inject(kind="stock-out", group="workers")
    await provider.increase("workers", 1)
    simulated.forward()
    (failed,) = [one for one in await provider.instances("workers") if one.error]
    await provider.delete_nodes("workers", [NodeRef(failed.provider_id)])
    assert await provider.target_size("workers") == 2


async def test_options_are_laid_over_those_of_the_cloud(simulated: SimulatedCloud) -> None:
    said = "[{name: gpus, options: {scaleDownUnneededTime: 1m}}, {name: workers, max: 5}]"
    provider = laid(simulated.provider, said)
    found = await provider.options("gpus", GroupOptions())
    assert (found.scale_down_unneeded_time, found.zero_or_max_node_scaling) == (60.0, True)
    with pytest.raises(UnimplementedError):
        await provider.options("workers", GroupOptions())


async def test_a_declared_price_counts_over_the_clouds(simulated: SimulatedCloud) -> None:
    provider = laid(simulated.provider, "[{name: workers, price: 9}]")
    real = NodeRef("sim://workers/workers-1")
    drawn = NodeRef.of((await provider.template("workers")).node)
    for node in (real, drawn):
        assert await provider.node_price(node, START, START + HOUR) == 9.0
    gpu = NodeRef.of((await provider.template("gpus")).node)
    assert await provider.node_price(gpu, START, START + HOUR) == 3.0


async def test_a_declaration_of_no_group_of_the_cloud_is_told(simulated: SimulatedCloud) -> None:
    (problem,) = await laid(simulated.provider, "[{name: worker}]").problems()
    assert problem.group == "worker"
    assert "there is no node group 'worker'; did you mean 'workers'" in problem.text


async def test_declared_groups_alone_answer_for_planning() -> None:
    nodes = [
        make_node("a-1").label("pool", "a").provider_id("x://a-1").obj(),
        make_node("a-2").label("pool", "a").obj(),
        make_node("other").obj(),
    ]
    said = """[{name: a, max: 3, price: 1, nodeSelector: {pool: a},
        template: {capacity: {cpu: 4, memory: 8Gi}}, options: {maxNodeStartupTime: 1m}},
        {name: b, min: 2000}]"""
    provider = DeclaredProvider(declared(said), nodes)
    assert await provider.groups() == [
        CloudNodeGroup("a", 0, 3, "declared"),
        CloudNodeGroup("b", 2000, 2000, "declared"),
    ]
    assert await provider.target_size("a") == 2
    assert [one.provider_id for one in await provider.instances("a")] == ["x://a-1", "a-2"]
    assert await provider.group_for_node(NodeRef.of(nodes[2])) is None
    found = await provider.group_for_node(NodeRef.of(nodes[1]))
    assert found is not None
    assert found.id == "a"
    template = await provider.template("a")
    for node in (nodes[0], template.node):
        assert await provider.node_price(NodeRef.of(node), START, START + HOUR) == 1.0
    assert (await provider.options("a", GroupOptions())).max_node_startup_time == 60.0
    with pytest.raises(UnimplementedError, match="its price is unknown"):
        await provider.node_price(NodeRef.of(nodes[2]), START, START + HOUR)
    with pytest.raises(UnimplementedError, match="only declared"):
        await provider.increase("a", 1)
    with pytest.raises(NodeGroupNotFoundError, match="there are: a, b"):
        await provider.template("c")
