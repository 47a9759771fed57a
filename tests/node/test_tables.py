"""Every instance type of the tables, with the number that its node publishes and the rule for it.

EC2's own answers, as moto has collected them, are the judge of the EBS table.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.kube.attachtables import CustomLimits, data_disks
from bayplan.kube.names import is_qualified_name
from bayplan.kube.pdlimits import OVERRIDE, pd_table
from bayplan.kube.volumes import InTreeSources
from bayplan.node.instance import NodeInstance
from bayplan.node.plugins import (
    PLUGINS,
    ComputedLimit,
    LimitPlugin,
    OtherCloudError,
    aws_ebs,
)
from bayplan.node.plugins.base import LimitPluginOptions, ReservedSlots, key_of
from bayplan.node.plugins.cinder import MAX_VOLUMES

EBS, PD, AZURE, CINDER, CSI = PLUGINS
CLOUDS = {EBS: "aws", PD: "gce", AZURE: "azure", CINDER: "openstack"}
MISTOLD = 48
"""Bare metal types of which EC2 says that they share their places, though they do not."""


def found(
    plugin: LimitPlugin, instance_type: str, options: LimitPluginOptions | None = None, **more: Any
) -> ComputedLimit:
    instance = NodeInstance(CLOUDS[plugin], instance_type, **more)
    (one,) = plugin.limits(instance, options or LimitPluginOptions()).values()
    return one


def ec2_types() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what moto knows of each type; read as a file, since importing moto takes a second."""
    file = Path(str(distribution("moto").locate_file("moto/ec2/resources/instance_types.json.gz")))
    yield from json.loads(gzip.decompress(file.read_bytes())).items()


def test_the_tables_know_thousands_of_types() -> None:
    assert len(aws_ebs.table()) > 1400
    assert len(data_disks().rows) > 3900


def test_every_ec2_type_publishes_what_its_row_says_by_the_rule_of_its_kind() -> None:
    for name, row in aws_ebs.table().items():
        one = found(EBS, name)
        assert one.count == max(1, row.slots - 1), name
        assert not one.is_guess
        assert one.rule.startswith(f"aws-ebs {name}: "), name
        assert one.rule.endswith(" - 1 root"), name
        if row.kind == "xen":
            assert one.count == 39, name
        if row.stores:
            assert one.count == 28 - 1 - row.stores - 1, name
            assert f"28 shared - 1 interface - {row.stores} instance store" in one.rule


def test_the_ebs_table_says_of_every_type_what_ec2_says() -> None:
    table, differ = aws_ebs.table(), []
    for name, said in ec2_types():
        row, info = table[name], said["EbsInfo"]
        if said.get("Hypervisor") == "xen":
            assert row.kind == "xen", name
            continue
        assert row.slots == info["MaximumEbsAttachments"], name
        if row.kind != info["AttachmentLimitType"]:
            differ.append(name)
    assert len(differ) == MISTOLD
    assert all(".metal-" in name and table[name].kind == "dedicated" for name in differ)


def test_interfaces_take_places_only_where_they_are_shared() -> None:
    for name, row in aws_ebs.table().items():
        four = found(EBS, name, LimitPluginOptions(ReservedSlots(interfaces=4)))
        alone = found(EBS, name)
        expected = alone.count - 3 if row.kind == "shared" else alone.count
        assert four.count == max(1, expected), name


@pytest.mark.parametrize(
    ("name", "reserve", "count"),
    [
        ("m5.large", ReservedSlots(), 26),
        ("m5.large", ReservedSlots(root=False), 27),
        ("m5.large", ReservedSlots(volumes=2), 24),
        ("m5.large", ReservedSlots(interfaces=3, volumes=2), 22),
        ("m5d.large", ReservedSlots(), 25),
        ("c5d.24xlarge", ReservedSlots(), 22),
        ("m4.large", ReservedSlots(), 39),
        ("c7a.48xlarge", ReservedSlots(), 127),
        ("c7a.48xlarge", ReservedSlots(interfaces=15), 127),
        ("m5.large", ReservedSlots(interfaces=15, volumes=20), 1),
    ],
)
def test_places_are_kept_for_what_the_machine_needs_itself(
    name: str, reserve: ReservedSlots, count: int
) -> None:
    assert found(EBS, name, LimitPluginOptions(reserve)).count == count


def test_every_azure_size_publishes_its_data_disks_in_any_case() -> None:
    for name, disks in data_disks().rows.items():
        for written in (name, name.upper()):
            one = found(AZURE, written)
            assert (one.count, one.is_guess) == (disks, False), name
            assert one.rule == f"azure-disk {written}: {disks} data disks"
    assert found(AZURE, "Standard_D2_v2").count == 8
    assert found(AZURE, "Standard_DS14_v2").count == 64


GCE = {
    **dict.fromkeys(["f1-micro", "g1-small", "e2-micro", "e2-small", "e2-medium"], 15),
    **dict.fromkeys(["n1-standard-1", "custom-2-4096", "e2-standard-2", "n2d-highmem-96"], 127),
    "c4-standard-2": 7,
    "c4-highcpu-4": 15,
    "c4-standard-8": 31,
    "c4-standard-24": 31,
    "c4-standard-48": 63,
    "c4-standard-96": 127,
    "c4-standard-192": 127,
    "c4d-standard-2": 3,
    "c4d-standard-4": 7,
    "c4d-highmem-8": 15,
    "c4d-standard-96": 31,
    "c4d-standard-192": 63,
    "c4d-standard-384": 127,
    "c4d-standard-384-metal": 127,
    "n4-standard-8": 15,
    "n4-standard-16": 31,
    "n4-custom-8-12345-ext": 15,
    "n4-highcpu-80": 31,
    "n4d-standard-8": 15,
    "n4d-standard-96": 31,
    "n4a-standard-8": 15,
    "n4a-standard-64": 31,
    "c4a-standard-1": 7,
    "c4a-standard-8": 15,
    "c4a-standard-32-lssd": 31,
    "c4a-highmem-72": 63,
    "a4x-highgpu-1g": 63,
    "a4x-highgpu-2g-nolssd": 127,
    "a4x-highgpu-4g": 127,
    "a4x-max-metal": 31,
    "x4-megamem-960-metal": 39,
    "a4-highgpu-8g": 127,
    "c3-standard-4": 127,
    "c3-standard-192-metal": 15,
    "c3d-highmem-8-lssd": 127,
}


@pytest.mark.parametrize(("name", "count"), GCE.items())
def test_gce_types_publish_by_core_family_and_vcpus(name: str, count: int) -> None:
    one = found(PD, name)
    assert (one.count, one.is_guess) == (count, False)
    assert one.rule.startswith(f"gce-pd {name}: ")


def test_every_step_of_every_hyperdisk_family_is_published_up_to_its_bound() -> None:
    for family, steps in pd_table().by_size.items():
        before = 0
        for most, count in steps:
            for size in (before + 1, most):
                one = found(PD, f"{family}-standard-{size}")
                assert (one.count, f"up to {most}" in one.rule) == (count, True)
            before = most
        assert found(PD, f"{family}-standard-{before + 1}").count == steps[-1][1]


@pytest.mark.parametrize(
    ("written", "count"),
    [("63", 63), ("127", 127), ("128", 127), ("0", 127), ("-1", 127), ("x", 127)],
)
def test_a_label_says_otherwise_where_it_can_be_one(written: str, count: int) -> None:
    labels = {OVERRIDE: written}
    assert found(PD, "n1-standard-1", labels=labels).count == count
    assert found(PD, "e2-micro", labels=labels).count == 15


@pytest.mark.parametrize(
    ("plugin", "name", "count"),
    [
        (EBS, "zz9.plural", 26),
        (EBS, "", 26),
        (PD, "zz-standard-4", 127),
        (PD, "n4-micro", 127),
        (PD, "n4-highcpu-4xyz", 127),
        (PD, "", 127),
        (AZURE, "Standard_ZZ9", 16),
        (AZURE, "", 16),
    ],
)
def test_a_type_that_nobody_knows_gets_the_documented_number_as_a_guess(
    plugin: LimitPlugin, name: str, count: int
) -> None:
    one = found(plugin, name)
    assert (one.count, one.is_guess) == (count, True)
    assert f"{name or 'no type'}, not in the table" in one.rule


@pytest.mark.parametrize("plugin", list(CLOUDS))
@pytest.mark.parametrize("cloud", ["aws", "gce", "azure", "openstack", "sim", ""])
def test_a_plugin_answers_on_its_own_cloud_alone(plugin: LimitPlugin, cloud: str) -> None:
    instance = NodeInstance(cloud, "m5.large")
    if CLOUDS[plugin] == cloud:
        assert plugin.limits(instance, LimitPluginOptions()).keys() == {plugin.name}
    else:
        with pytest.raises(OtherCloudError, match=plugin.name):
            plugin.limits(instance, LimitPluginOptions())


def test_cinder_has_one_limit_for_all() -> None:
    assert found(CINDER, "m1.small").count == MAX_VOLUMES == 256
    assert found(CINDER, "m1.small", LimitPluginOptions(ReservedSlots(volumes=6))).count == 250


def test_csi_drivers_that_are_there_say_their_limits_themselves() -> None:
    instance = NodeInstance("sim", "small", drivers={"a.example.com": 7, "b.example.com": None})
    (end,) = CSI.limits(instance, LimitPluginOptions())
    assert end == "csi-a.example.com"


def test_what_people_say_counts_first_and_nothing_is_taken_off_it() -> None:
    own = CustomLimits(
        aws_ebs={"m5.large": 11, "m5*": 12, "*": 13}, csi={"a.example.com": {"s*": 4}}
    )
    options = LimitPluginOptions(ReservedSlots(volumes=5), own)
    names = ("m5.large", "M5.LARGE", "m5.xlarge", "c4.large", "zz9.plural")
    assert [found(EBS, name, options).count for name in names] == [11, 11, 12, 13, 13]
    assert not found(EBS, "zz9.plural", options).is_guess
    instance = NodeInstance("", "small", drivers={"a.example.com": 7})
    assert CSI.limits(instance, options)["csi-a.example.com"].count == 4


@pytest.mark.parametrize("prefix", ["attachable-volumes-", "storage-attach-limits-"])
def test_every_key_is_a_resource_name_however_long_a_drivers_name(prefix: str) -> None:
    for end in ("aws-ebs", "gce-pd", "azure-disk", "cinder", f"csi-{'d' * 63}"):
        assert is_qualified_name(key_of(prefix, end))


@pytest.mark.parametrize(
    ("source", "end"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "aws-ebs"),
        ({"gcePersistentDisk": {"pdName": "d"}}, "gce-pd"),
        ({"azureDisk": {"diskName": "d", "diskURI": "/d"}}, "azure-disk"),
        ({"cinder": {"volumeID": "v"}}, "cinder"),
        ({"csi": {"driver": "a.example.com", "volumeHandle": "h"}}, "csi-a.example.com"),
        ({"iscsi": {"iqn": "i"}}, ""),
    ],
)
def test_each_volume_counts_for_the_key_of_one_plugin(source: dict[str, Any], end: str) -> None:
    volume = msgspec.convert(source, InTreeSources)
    ends = [found for plugin in PLUGINS if (found := plugin.limit_key(volume))]
    assert ends == ([end] if end else [])
