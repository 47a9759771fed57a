"""Which of Cluster API's objects are groups, and what they say of themselves."""

from __future__ import annotations

import pytest

from bayplan.autoscaler.providers.clusterapi import open_provider
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    NodeGroupNotFoundError,
    Provider,
    UnimplementedError,
)
from tests.autoscaler.providers.clusterapi.capi import (
    CAPACITY,
    GROUP,
    INFRASTRUCTURE,
    MAX,
    MIN,
    SIZED,
    Capi,
)
from tests.autoscaler.providers.clusterapi.providers import names, opened
from tests.autoscaler.providers.conditions import until
from tests.autoscaler.providers.declared.test_overlay import limits

WORKERS = "MachineDeployment/default/workers"


async def listed(provider: Provider, *wanted: str) -> None:
    async def holds() -> bool:
        return await names(provider) == sorted(wanted)

    await until(holds)


async def test_deployments_sets_and_pools_with_a_maximum_are_groups(
    capi: Capi, provider: Provider
) -> None:
    await capi.make("MachineDeployment", "workers", 1, {MIN: "1", MAX: "7"})
    await capi.make("MachineSet", "alone")
    await capi.make("MachinePool", "pool")
    await capi.make("MachineSet", "not", 3, {MAX: "0"})
    await capi.settle(boot=False)
    await listed(provider, WORKERS, "MachineSet/default/alone", "MachinePool/default/pool")
    (first, *_) = await provider.groups()
    assert first == CloudNodeGroup(WORKERS, 1, 7, "MachineDeployment workers (min: 1, max: 7)")
    assert await provider.target_size(WORKERS) == 1
    assert await provider.problems() == []


async def test_what_is_paused_is_no_group_while_it_is(capi: Capi, provider: Provider) -> None:
    await capi.make("MachineDeployment", "workers")
    await listed(provider, WORKERS)
    await capi.annotate("MachineDeployment", "workers", **{f"{GROUP}__paused": ""})
    await listed(provider)
    await capi.annotate("MachineDeployment", "workers", **{f"{GROUP}__paused": None})
    await listed(provider, WORKERS)
    with pytest.raises(
        NodeGroupNotFoundError, match="no node group 'other'; there are: MachineDepl"
    ):
        await provider.target_size("other")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({MAX: "many"}, f"{MAX}: 'many': this is not a size"),
        ({MIN: "-1"}, f"{MIN}: '-1': this is not a size"),
        ({MIN: "9"}, f"{MAX}: the minimum 9 is more than the maximum 5"),
        ({MAX: "99999999999"}, "this is not a size"),
    ],
)
async def test_bounds_that_cannot_be_read_are_told_and_nothing_is_bought(
    client: Client, said: dict[str, str], problem: str
) -> None:
    capi = Capi(client)
    await capi.install()
    await capi.make("MachineDeployment", "workers", 0, said)
    async with opened(capi) as provider:
        assert await names(provider) == []
        (found,) = await provider.problems()
        assert (found.group, problem in found.text) == (WORKERS, True)
        assert found.about is not None
        assert (found.about.kind, found.about.name) == ("MachineDeployment", "workers")


async def test_an_object_that_is_not_as_it_is_defined_spoils_no_other(client: Client) -> None:
    capi = Capi(client)
    await capi.install()
    await capi.make("MachineDeployment", "workers")
    await capi.make("MachineDeployment", "odd", replicas=None, template="none")
    await capi.make("MachineSet", "unsized", replicas=None)
    async with opened(capi) as provider:
        assert await names(provider) == [WORKERS]
        said = {one.group: one.text for one in await provider.problems()}
        assert "spec.template" in said["MachineDeployment/default/odd"]
        assert "spec.replicas" in said["MachineSet/default/unsized"]


async def test_a_template_is_made_of_annotations(capi: Capi, provider: Provider) -> None:
    own = {"node.cluster.x-k8s.io/pool": "a", "other": "not handed on"}
    taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule", "propagation": "Always"}]
    await capi.make(
        "MachineDeployment",
        "workers",
        0,
        {
            **SIZED,
            f"{CAPACITY}ephemeral-disk": "100Gi",
            f"{CAPACITY}maxPods": "50",
            f"{CAPACITY}gpu-type": "nvidia.com/gpu",
            f"{CAPACITY}gpu-count": "2",
            f"{CAPACITY}labels": "zone=a, cluster-api/accelerator=t4",
            f"{CAPACITY}taints": "dedicated=shop:NoSchedule,spot:NoExecute",
            f"{CAPACITY}csi-driver": "ebs.csi.aws.com=25,efs.csi.aws.com=none,x.example=0",
        },
        template={"metadata": {"labels": own}, "spec": {"taints": taints}},
    )
    await listed(provider, WORKERS)
    found = await provider.template(WORKERS)
    assert found.node.status.allocatable == {
        "cpu": "4",
        "memory": "16Gi",
        "ephemeral-storage": "100Gi",
        "pods": "50",
        "nvidia.com/gpu": "2",
    }
    labels = found.node.metadata.labels
    assert labels["kubernetes.io/hostname"] == found.node.name
    assert {key: labels.get(key) for key in ("zone", "node.cluster.x-k8s.io/pool", "other")} == {
        "zone": "a",
        "node.cluster.x-k8s.io/pool": "a",
        "other": None,
    }
    assert (labels["kubernetes.io/arch"], labels["kubernetes.io/os"]) == ("amd64", "linux")
    assert [(one.key, one.value, one.effect) for one in found.node.spec.taints] == [
        ("dedicated", "shop", "NoSchedule"),
        ("spot", "", "NoExecute"),
    ]
    assert limits(found) == {"ebs.csi.aws.com": 25, "efs.csi.aws.com": None, "x.example": 0}
    assert found.node.status.conditions[0].type == "Ready"
    assert await provider.gpu_types() == {"t4"}
    assert await provider.gpu_label() == "cluster-api/accelerator"
    assert await provider.problems() == []


async def test_a_limit_that_cannot_be_read_is_told_and_left_out(client: Client) -> None:
    capi = Capi(client)
    await capi.install()
    said = {**SIZED, f"{CAPACITY}csi-driver": "a.example=many,b.example=3"}
    await capi.make("MachineDeployment", "workers", 0, said)
    async with opened(capi) as provider:
        assert limits(await provider.template(WORKERS)) == {"b.example": 3}
        (problem,) = await provider.problems()
        assert "'a.example=many'" in problem.text
        await capi.annotate(
            "MachineDeployment", "workers", **{f"{CAPACITY[:-1]}__csi-driver": None}
        )

        async def unknown() -> bool:
            return (await provider.template(WORKERS)).csi_node is None

        await until(unknown)
        assert await provider.problems() == []


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({f"{CAPACITY}cpu": "lots", f"{CAPACITY}memory": "1Gi"}, f"{CAPACITY}cpu: 'lots'"),
        ({**SIZED, f"{CAPACITY}taints": "a=b:Never"}, "the effect must be one of"),
        ({**SIZED, f"{CAPACITY}taints": "a b:NoSchedule"}, "this is not a taint"),
        ({f"{CAPACITY}cpu": "0", f"{CAPACITY}memory": "1Gi"}, ""),
        ({}, ""),
    ],
)
async def test_a_template_that_would_promise_too_much_is_not_offered(
    client: Client, said: dict[str, str], problem: str
) -> None:
    capi = Capi(client)
    await capi.install()
    await capi.make("MachineDeployment", "workers", 0, said)
    async with opened(capi) as provider:
        with pytest.raises(UnimplementedError):
            await provider.template(WORKERS)
        found = [one.text for one in await provider.problems()]
        assert (found == []) == (not problem)
        assert problem in "".join(found)


@pytest.mark.parametrize("named", ["apiVersion", "apiGroup"])
async def test_infrastructure_says_what_annotations_do_not(capi: Capi, named: str) -> None:
    ref = {"kind": "Template", "name": "t"}
    ref |= {named: f"{INFRASTRUCTURE}/v1alpha9" if named == "apiVersion" else INFRASTRUCTURE}
    template = await capi.client.discover(f"{INFRASTRUCTURE}/v1", "Template")
    meta = {"namespace": "default", "name": "t"}
    await capi.client.create({"metadata": meta}, template)
    status = {
        "capacity": {"cpu": "8", "memory": "32Gi", "odd": "lots"},
        "nodeInfo": {"architecture": "arm64"},
    }
    await capi.client.update(
        {**await capi.client.get(template, "default", "t"), "status": status},
        template,
        subresource="status",
    )
    infra = {"spec": {"infrastructureRef": ref}}
    await capi.make("MachineDeployment", "workers", 0, {f"{CAPACITY}cpu": "4"}, template=infra)
    async with opened(capi) as provider:
        node = (await provider.template(WORKERS)).node
        assert node.status.allocatable == {"cpu": "4", "memory": "32Gi", "pods": 110}
        assert node.metadata.labels["kubernetes.io/arch"] == "arm64"
        await capi.client.delete(template, "default", "t")
        assert (await provider.template(WORKERS)).node == node  # remembered for a minute


async def test_options_are_annotations_too(client: Client) -> None:
    capi = Capi(client)
    await capi.install()
    prefix = f"{GROUP}/autoscaling-options-"
    said = {
        f"{prefix}scaledownutilizationthreshold": "0.7",
        f"{prefix}scaledownunneededtime": "1m30s",
        f"{prefix}maxnodestartuptime": "20m0s",
        f"{prefix}scaledownunreadytime": "soon",
        f"{prefix}scaledowngpuutilizationthreshold": "7",
        f"{prefix}unheardof": "x",
    }
    await capi.make("MachineDeployment", "workers", 0, said)
    async with opened(capi) as provider:
        found = await provider.options(WORKERS, GroupOptions(scale_down_unready_time=5.0))
        assert found == GroupOptions(
            scale_down_utilization_threshold=0.7,
            scale_down_unneeded_time=90.0,
            max_node_startup_time=1200.0,
            scale_down_unready_time=5.0,
        )
        assert len(await provider.problems()) == 2


async def test_groups_are_chosen_by_namespace_cluster_and_labels(client: Client) -> None:
    capi = Capi(client)
    await capi.install()
    await capi.make("MachineDeployment", "workers")
    await capi.make("MachineDeployment", "other", clusterName="d")
    asked = {
        "clusterapi:clusterName=c": [WORKERS],
        "clusterapi:namespace=elsewhere": [],
        "clusterapi:namespace=default,clusterName=d": ["MachineDeployment/default/other"],
        "clusterapi:team=shop": [],
        "clusterapi:": ["MachineDeployment/default/other", WORKERS],
    }
    for spec, wanted in asked.items():
        async with opened(capi, spec) as provider:
            assert await names(provider) == wanted
    async with opened(capi, "clusterapi:clusterName=c", "clusterapi:clusterName=d") as provider:
        assert len(await names(provider)) == 2


@pytest.mark.parametrize("spec", ["asg:tag=x", "clusterapi:x", "clusterapi:a b=c", ""])
async def test_a_choice_that_cannot_be_read_is_refused(client: Client, spec: str) -> None:
    with pytest.raises(ProviderOptionError, match="--node-group-auto-discovery"):
        async with opened(Capi(client), spec):
            pass


async def test_another_group_of_the_api_has_other_words(client: Client) -> None:
    with pytest.raises(ProviderOptionError, match=r"test.k8s.io is not served"):
        async with opened(Capi(client), CAPI_GROUP="test.k8s.io"):
            pass
    with pytest.raises(ProviderOptionError, match="--nodes"):
        async with open_provider(ProviderOptions("clusterapi", nodes=("1:2:a",)), client, {}):
            pass


async def test_the_version_can_be_chosen_and_pools_may_be_missing(client: Client) -> None:
    capi = Capi(client, version="v1beta1")
    kinds = ("Machine", "MachineSet", "MachineDeployment")
    await capi.install(*kinds, served=("v1beta1", "v1beta2"))
    await capi.make("MachineDeployment", "workers")
    async with opened(capi, CAPI_VERSION="v1beta1") as provider:
        assert await names(provider) == [WORKERS]
    async with opened(capi, CAPI_SCALE_ZERO_DEFAULT_ARCH="arm64") as provider:
        assert await names(provider) == [WORKERS]


async def test_failure_domains_are_the_zones_of_the_next_node(
    capi: Capi, provider: Provider
) -> None:
    one = {"spec": {"failureDomain": "a"}}
    await capi.make("MachineDeployment", "fixed", 0, SIZED, template=one)
    await capi.make("MachinePool", "spread", 0, SIZED, failureDomains=["a", "b", "a"])
    await capi.make("MachineDeployment", "free", 0, SIZED)

    async def zones() -> dict[str, tuple[str, ...]]:
        return {group.id.rpartition("/")[2]: group.zones for group in await provider.groups()}

    async def known() -> bool:
        return len(await zones()) == 3

    await until(known)
    assert await zones() == {"fixed": ("a",), "spread": ("a", "b"), "free": ()}
