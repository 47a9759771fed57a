"""Managed instance groups: which are selected, and what their next node looks like."""

from __future__ import annotations

import pytest

from bayplan.autoscaler.providers.gce import open_provider
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client
from bayplan.kube.pdlimits import OVERRIDE
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    NodeGroupNotFoundError,
    UnimplementedError,
)
from tests.autoscaler.providers.aws.test_groups import with_driver
from tests.autoscaler.providers.declared.test_overlay import limits
from tests.autoscaler.providers.gce.conftest import OpenedGce, session_of
from tests.autoscaler.providers.gce.fake_gce import FakeGce
from tests.autoscaler.providers.gce.project import API, PROJECT, REGION, ZONE, ZONES, FakeProject

pytestmark = pytest.mark.whole


PD = "pd.csi.storage.gke.io"
PATH = f"projects/{PROJECT}/zones/{ZONE}"


@pytest.mark.parametrize(
    "name",
    [
        "workers",
        f"https://www.googleapis.com/compute/v1/{PATH}/instanceGroups/workers",
        f"https://compute.googleapis.com/compute/v1/{PATH}/instanceGroupManagers/workers",
        f"{PATH}/instanceGroups/workers",
    ],
)
async def test_groups_that_are_named_have_the_sizes_of_the_flag(
    project: FakeProject, opened: OpenedGce, name: str
) -> None:
    group = project.group(size=2)
    project.group("other")
    async with opened(f"0:4:{name}") as provider:
        text = f"managed instance group in {ZONE}"
        assert await provider.groups() == [CloudNodeGroup(group.id, 0, 4, text, (ZONE,))]
        assert group.id == f"{API}/{PATH}/instanceGroups/workers"
        assert await provider.target_size(group.id) == 2
        with pytest.raises(NodeGroupNotFoundError, match="no node group 'other'"):
            await provider.target_size("other")


async def test_a_regional_group_has_all_its_zones(project: FakeProject, opened: OpenedGce) -> None:
    group = project.group(location=REGION)
    async with opened("0:4:workers") as provider:
        (found,) = await provider.groups()
        assert (found.id, found.zones) == (group.id, ZONES)
        assert "/regions/europe-west1/" in found.id
        labels = (await provider.template(group.id)).node.metadata.labels
        assert labels["topology.kubernetes.io/region"] == REGION
        assert labels["topology.gke.io/zone"] == ZONES[0]


async def test_a_name_in_several_zones_is_not_guessed_at(
    project: FakeProject, opened: OpenedGce
) -> None:
    project.group()
    project.group(location=ZONES[1])
    async with opened("0:4:workers", "0:4:absent") as provider:
        assert await provider.groups() == []
        problems = {one.group: one.text for one in await provider.problems()}
        assert f"there are several, in {ZONES[0]}, {ZONES[1]}" in problems["workers"]
        assert "there is no managed instance group" in problems["absent"]


async def test_groups_are_discovered_by_prefix_label_and_location(
    project: FakeProject, opened: OpenedGce
) -> None:
    shop = project.template("shop", labels={"team": "shop", "tier": "web"})
    ops = project.template("ops", labels={"team": "ops"})
    project.group("prod-a", template=shop)
    project.group("prod-b", template=ops, location=ZONES[1])
    project.group("prod-c", template=ops, location=REGION)
    project.group("prod-")
    project.group("test-a", template=shop)
    moved = {"properties": {"labels": {"team": "shop"}}}
    project.group("test-b", template=ops, allInstancesConfig=moved)
    expected = {
        "namePrefix=prod-": ["prod-a", "prod-b", "prod-c"],
        "namePrefix=prod-,label=team=ops": ["prod-b", "prod-c"],
        f"namePrefix=prod-,location={ZONES[1]}": ["prod-b"],
        f"namePrefix=prod-,location={REGION}": ["prod-a", "prod-b", "prod-c"],
        "label=team=shop": ["prod-a", "test-a", "test-b"],
        "label=team=shop,label=tier=web": ["prod-a", "test-a"],
        "namePrefix=none": [],
    }
    for rule, names in expected.items():
        async with opened(discovery=(f"mig:{rule},min=1,max=7",)) as provider:
            found = sorted(one.id.rpartition("/")[2] for one in await provider.groups())
            assert found == names, rule
    rules = ("mig:namePrefix=prod-,min=1,max=7", "mig:namePrefix=test-,max=3")
    async with opened("2:5:prod-a", discovery=rules) as provider:
        sizes = {one.id.rpartition("/")[2]: (one.min_size, one.max_size)
                 for one in await provider.groups()}  # fmt: skip
        assert sizes == {"prod-a": (2, 5), "prod-b": (1, 7), "prod-c": (1, 7), "test-a": (0, 3),
                         "test-b": (0, 3)}  # fmt: skip


async def test_many_groups_come_in_pages(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    gce.page = 10
    for number in range(25):
        project.group(f"pool-{number}")
    async with opened(discovery=("mig:namePrefix=pool-,max=2",)) as provider:
        assert len(await provider.groups()) == 25
        assert gce.asked.count("aggregatedList") == 3
        assert gce.asked.count("getTemplate") == gce.asked.count("getMachineType") == 1
        gce.asked.clear()
        await opened.later(provider)
        assert "getTemplate" not in gce.asked
        assert "getMachineType" not in gce.asked


@pytest.mark.parametrize(
    ("nodes", "discovery", "said"),
    [
        ((), (), "set --nodes or --node-group-auto-discovery"),
        (("workers",), (), "must be MIN:MAX:URL"),
        (("1:x:workers",), (), "must be whole numbers"),
        (("1:2:Workers",), (), "must be MIN:MAX:URL"),
        (("1:2:https://x/projects/p/zones/z/instances/i",), (), "must be MIN:MAX:URL"),
        (("3:2:workers",), (), "3 is more than 2"),
        (("1:2:a", "1:3:a"), (), "a group is listed twice"),
        ((), ("asg:tag=x",), "must be mig:namePrefix="),
        ((), ("mig:namePrefix=a",), "must be whole numbers"),
        ((), ("mig:namePrefix=a,max=0",), "max must be at least 1"),
        ((), ("mig:namePrefix=a,min=3,max=2",), "3 is more than 2"),
        ((), ("mig:max=2",), "needs a namePrefix or a label"),
        ((), ("mig:namePrefix=,max=2",), "namePrefix has no value"),
        ((), ("mig:namePrefix=a.*,max=2",), "must be lower-case letters"),
        ((), ("mig:nameprefix=a,max=2",), "must be one of namePrefix, label"),
        ((), ("mig:label=a,max=2",), "is not a label KEY=VALUE"),
        ((), ("mig:namePrefix=a,namePrefix=b,max=2",), "namePrefix is set twice"),
    ],
)
async def test_flags_that_make_no_sense_are_refused(
    client: Client, nodes: tuple[str, ...], discovery: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ProviderOptionError, match=said):
        async with open_provider(ProviderOptions("gce", None, nodes, discovery), client):
            pass


async def test_without_a_project_only_urls_can_be_read(
    client: Client, gce: FakeGce, project: FakeProject
) -> None:
    group = project.group()
    session = session_of(gce, "")
    with pytest.raises(ProviderOptionError, match="set GOOGLE_CLOUD_PROJECT"):
        async with open_provider(ProviderOptions("gce", None, ("0:1:a",)), client, session):
            pass
    options = ProviderOptions("gce", None, (f"0:1:{group.id}",))
    async with open_provider(options, client, session) as provider:
        await provider.refresh()
        assert len(await provider.groups()) == 1


ENV = (
    "node_labels=pool=a,cloud.google.com/gke-max-pods-per-node=32,"
    "clusterautoscaler-nodetemplate-resources.example.com.chip=1;"
    "node_taints=dedicated=shop:NoSchedule,spot=:NoExecute;"
    "kube_reserved=cpu=60m,memory=1Gi,ephemeral-storage=10Gi;"
    "evictionHard=memory.available=200Mi,nodefs.available=20%;"
    "extended_resources=example.com/fpga=2;"
    "autoscaling_options=scaledownunneededtime=2m,ignoredaemonsetsutilization=true;"
    f"os=linux;os_distribution=ubuntu;csi_drivers={PD}=20,x.example=0,y.example=none"
)


@pytest.mark.parametrize("carrier", ["autoscaler-env-vars", "kube-env"])
async def test_a_template_is_the_machine_type_and_the_metadata(
    project: FakeProject, opened: OpenedGce, client: Client, carrier: str
) -> None:
    await with_driver(client, PD)
    value = ENV if carrier == "autoscaler-env-vars" else f'AUTOSCALER_ENV_VARS: "{ENV}"\nA: 1\n'
    group = project.group(template=project.template(metadata={carrier: value}))
    async with opened("0:4:workers") as provider:
        assert await provider.problems() == []
        found = await provider.template(group.id)
        node = found.node
        memory = 16 * 2**30
        kept = memory // 64 + (16 + 64 + 4) * 2**20 + int(0.00175 * memory)
        capacity, left = node.status.capacity, node.status.allocatable
        assert (capacity["cpu"], left["cpu"]) == (4, "3940m")
        assert capacity["memory"] == memory - kept
        assert left["memory"] == memory - kept - (1024 + 200) * 2**20
        disk = 100 * 2**30
        storage = disk - int(0.03083 * disk + 0.171 * 2**30) - 100 * 2**20
        assert capacity["ephemeral-storage"] == storage
        assert left["ephemeral-storage"] == storage - int(0.2 * storage) - 10 * 2**30
        assert (left["pods"], left["example.com/fpga"], left["example.com.chip"]) == (32, "2", "1")
        labels = node.metadata.labels
        assert labels["pool"] == "a"
        assert labels["node.kubernetes.io/instance-type"] == "e2-standard-4"
        assert labels["kubernetes.io/arch"] == "amd64"
        assert labels["topology.kubernetes.io/zone"] == ZONE
        assert labels["topology.gke.io/zone"] == ZONE
        assert labels["topology.kubernetes.io/region"] == REGION
        assert labels["kubernetes.io/hostname"] == "template-node-for-workers"
        assert [(one.key, one.value, one.effect) for one in node.spec.taints] == [
            ("dedicated", "shop", "NoSchedule"),
            ("spot", "", "NoExecute"),
        ]
        assert limits(found) == {PD: 20, "x.example": 0, "y.example": None}
        assert found.estimated == frozenset()
        options = await provider.options(group.id, GroupOptions())
        assert options.scale_down_unneeded_time == 120.0
        assert options.ignore_daemon_sets_utilization


async def test_the_item_overrides_the_kube_env_by_variable(
    project: FakeProject, opened: OpenedGce
) -> None:
    kube_env = (
        "NODE_LABELS: pool=old,zone=here\nNODE_TAINTS: a=b:NoSchedule\n"
        'KUBELET_TEST_ARGS: "--v=2 --kube-reserved=cpu=1,memory=1Gi --max-pods=20"\n'
    )
    metadata = {"kube-env": kube_env, "autoscaler-env-vars": "node_labels=pool=new"}
    group = project.group(template=project.template(metadata=metadata))
    async with opened("0:4:workers") as provider:
        node = (await provider.template(group.id)).node
        assert node.metadata.labels["pool"] == "new"
        assert "zone" not in node.metadata.labels
        assert [one.key for one in node.spec.taints] == ["a"]
        assert node.status.allocatable["cpu"] == "3000m"


@pytest.mark.parametrize(
    ("machine_type", "limit"),
    [("e2-standard-4", 127), ("e2-medium", 15), ("n4-standard-8", 15), ("c4-standard-2", 7),
     ("n2-custom-8-16384", 127), ("e2-custom-micro-2048", 127)],
)  # fmt: skip
async def test_a_machine_type_has_the_limit_of_the_table_where_none_is_declared(
    project: FakeProject, opened: OpenedGce, client: Client, machine_type: str, limit: int
) -> None:
    group = project.group(template=project.template(machine_type=machine_type))
    async with opened("0:1:workers") as provider:
        assert limits(await provider.template(group.id)) is None
    await with_driver(client, PD)
    async with opened("0:1:workers") as provider:
        found = await provider.template(group.id)
        assert limits(found) == {PD: limit}
        assert found.estimated == {PD}


async def test_a_label_of_the_nodes_overrides_the_table(
    project: FakeProject, opened: OpenedGce, client: Client
) -> None:
    await with_driver(client, PD)
    url = project.template(env=f"node_labels={OVERRIDE}=40")
    group = project.group(template=url)
    async with opened("0:1:workers") as provider:
        assert limits(await provider.template(group.id)) == {PD: 40}


async def test_a_limit_that_cannot_be_read_is_reported_and_the_driver_left_out(
    project: FakeProject, opened: OpenedGce, client: Client
) -> None:
    await with_driver(client, PD)
    url = project.template(env=f"csi_drivers={PD}=many,x.example=3")
    group = project.group(template=url)
    async with opened("0:4:workers") as provider:
        assert limits(await provider.template(group.id)) == {"x.example": 3}
        (problem,) = await provider.problems()
        assert problem.group == group.id
        assert f"csi_drivers {PD}: 'many': the limit must be" in problem.text
        project.groups[f"{ZONE}/workers"].template = project.template("new", env="csi_drivers=")
        await opened.later(provider)
        assert limits(await provider.template(group.id)) == {PD: 127}
        assert await provider.problems() == []


@pytest.mark.parametrize(
    ("metadata", "said", "blocks"),
    [
        ({"autoscaler-env-vars": "node_taints=a=x:Never"}, "the effect must be one of", True),
        ({"autoscaler-env-vars": "node_taints"}, "this is not NAME=VALUE", True),
        ({"autoscaler-env-vars": "os=plan9"}, "must be one of linux, windows", True),
        ({"kube-env": "a: [b"}, "this is not a map in YAML", True),
        ({"kube-env": "- a"}, "this is not a map in YAML", True),
        ({"kube-env": "x" * 600_000}, "longer than", True),
        ({"autoscaler-env-vars": "arch=sparc"}, "must be one of amd64, arm64", False),
        ({"autoscaler-env-vars": "node_labels=a=b c"}, "this is not a label", False),
        ({"autoscaler-env-vars": "extended_resources=x.io/a=lots"}, "x.io/a: 'lots'", False),
        ({"autoscaler-env-vars": "kube_reserved=cpu=lots"}, "kube_reserved cpu: 'lots'", False),
        (
            {"autoscaler-env-vars": "autoscaling_options=scaledownunneededtime=5"},
            "needs a unit",
            False,
        ),
        ({"autoscaler-env-vars": "; ;"}, "", False),
        ({"startup-script": "a: [b"}, "", False),
    ],
)
async def test_metadata_that_cannot_be_read_is_reported(
    project: FakeProject, opened: OpenedGce, metadata: dict[str, str], said: str, blocks: bool
) -> None:
    group = project.group(template=project.template(metadata=metadata))
    async with opened("0:4:workers") as provider:
        found = [one.text for one in await provider.problems()]
        assert bool(found) == bool(said)
        assert said in "".join(found)
        if blocks:
            with pytest.raises(UnimplementedError, match=said):
                await provider.template(group.id)
        else:
            await provider.template(group.id)


async def test_a_group_of_several_types_has_the_least_of_each(
    project: FakeProject, opened: OpenedGce, client: Client
) -> None:
    await with_driver(client, PD)
    types = ["n4-standard-8", "e2-standard-4"]
    policy = {"instanceSelections": {"best": {"machineTypes": types}}}
    group = project.group(location=REGION, instanceFlexibilityPolicy=policy)
    old, new = project.template("old"), project.template("new", "c4-standard-2")
    versions = [{"instanceTemplate": old}, {"instanceTemplate": new}]
    canary = project.group("canary", versions=versions, template=old)
    async with opened("0:4:workers", "0:4:canary") as provider:
        found = await provider.template(group.id)
        assert found.node.status.allocatable["cpu"] == 4
        assert limits(found) == {PD: 15}
        assert found.node.metadata.labels["node.kubernetes.io/instance-type"] == "n4-standard-8"
        found = await provider.template(canary.id)
        assert found.node.status.allocatable["cpu"] == 2
        assert limits(found) == {PD: 7}


async def test_gpus_architectures_and_local_disks(project: FakeProject, opened: OpenedGce) -> None:
    label = "cloud.google.com/gke-accelerator"
    bundled = project.template("bundled", "a2-highgpu-1g", f"node_labels={label}=nvidia-tesla-a100")
    chips = [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}]
    ssds = [
        {"type": "SCRATCH", "initializeParams": {"diskType": "local-ssd"}},
        {"type": "SCRATCH", "initializeParams": {"diskType": "zones/z/diskTypes/local-ssd"}},
    ]
    fast = "ephemeral_storage_local_ssd_count=2;BLOCK_EPH_STORAGE_BOOT_DISK=true"
    added = project.template("added", env=fast, guestAccelerators=chips, disks=ssds)
    arm = project.template("arm", "t2a-standard-4", region=REGION)
    templates = {"bundled": bundled, "added": added, "arm": arm}
    groups = {name: project.group(name, template=url) for name, url in templates.items()}
    async with opened(*(f"0:1:{name}" for name in groups)) as provider:
        nodes = {name: (await provider.template(one.id)).node for name, one in groups.items()}
        assert nodes["bundled"].status.allocatable["nvidia.com/gpu"] == 1
        assert nodes["added"].status.allocatable["nvidia.com/gpu"] == 2
        storage = nodes["added"].status.allocatable["ephemeral-storage"]
        assert storage == 2 * 375 * 2**30 * 98 // 100
        assert nodes["arm"].metadata.labels["kubernetes.io/arch"] == "arm64"
        assert await provider.gpu_types() == {"nvidia-tesla-a100"}
        assert await provider.gpu_label() == label


async def test_a_type_or_template_that_does_not_exist_gives_no_template(
    project: FakeProject, opened: OpenedGce
) -> None:
    odd = project.group("odd", template=project.template("odd", "m99-huge"))
    lost = project.group("lost", template=f"{API}/projects/{PROJECT}/global/instanceTemplates/no")
    wrong = project.group("wrong", template="nonsense")
    async with opened("0:4:odd", "0:4:lost", "0:4:wrong") as provider:
        assert len(await provider.groups()) == 3
        with pytest.raises(UnimplementedError, match="m99-huge"):
            await provider.template(odd.id)
        with pytest.raises(UnimplementedError, match="not found"):
            await provider.template(lost.id)
        with pytest.raises(UnimplementedError, match="no instance template"):
            await provider.template(wrong.id)
        assert await provider.options(lost.id, GroupOptions()) == GroupOptions()
        assert await provider.gpu_types() == frozenset()


async def test_a_group_that_compute_engine_scales_too_is_reported(
    project: FakeProject, opened: OpenedGce
) -> None:
    project.group(status={"autoscaler": f"{API}/{PATH}/autoscalers/a", "isStable": True})
    async with opened("0:4:workers") as provider:
        (problem,) = await provider.problems()
        assert "own autoscaler also scales this group" in problem.text
