"""URLs, provider IDs, custom machine types and metadata, as they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.autoscaler.providers.gce.api_types import MetadataItem
from bayplan.autoscaler.providers.gce.kube_env import KUBE_ENV, OWN_ITEM, read_metadata
from bayplan.autoscaler.providers.gce.launch import custom_type
from bayplan.autoscaler.providers.gce.refs import (
    InstanceRef,
    InstanceTemplateRef,
    MigRef,
    instance_ref,
    mig_ref,
    node_instance,
    template_ref,
)
from bayplan.autoscaler.providers.gce.templates import kernel_memory

GIB, MIB = 2**30, 2**20


def test_a_group_has_the_url_that_cluster_autoscaler_has() -> None:
    url = "https://www.googleapis.com/compute/v1/projects/p1/zones/us-east1-b/instanceGroups/n"
    assert mig_ref(url) == MigRef("p1", "zones", "us-east1-b", "n")
    assert MigRef("p1", "zones", "us-east1-b", "n").id == url
    assert MigRef("p1", "zones", "us-east1-b", "n").region == "us-east1"
    assert MigRef("p1", "regions", "us-east1", "n").region == "us-east1"


@pytest.mark.parametrize(
    "text",
    [
        "projects/p1/regions/us-east1/instanceGroupManagers/n",
        "https://compute.googleapis.com/compute/beta/projects/p1/regions/us-east1/instanceGroups/n",
        "https://compute-psc.p.googleapis.com/projects/p1/regions/us-east1/instanceGroups/n",
    ],
)
def test_a_group_can_be_written_in_several_ways(text: str) -> None:
    assert mig_ref(text) == MigRef("p1", "regions", "us-east1", "n")


def test_projects_of_a_domain_have_a_colon() -> None:
    found = mig_ref("projects/example.com:p1/zones/z/instanceGroups/n")
    assert found == MigRef("example.com:p1", "zones", "z", "n")
    assert node_instance("gce://example.com:p1/z/i") == InstanceRef("example.com:p1", "z", "i")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n",
        "projects/p1/zones/z/instanceGroups/",
        "projects/p1/zones/z/instances/n",
        "projects/p1/zones/z/instanceGroups/n/x",
        "projects/p1/zones/../instanceGroups/n",
        "http://www.googleapis.com/compute/v1/projects/p1/zones/z/instanceGroups/n",
        "projects/p1/zones/z/instanceGroups/n?x=1",
        "projects/p1/zones/z/instanceGroups/N",
    ],
)
def test_other_texts_are_not_groups(text: str) -> None:
    assert mig_ref(text) is None


def test_instances_have_urls_and_provider_ids() -> None:
    one = InstanceRef("p1", "us-east1-b", "n-x1")
    assert one.provider_id == "gce://p1/us-east1-b/n-x1"
    assert node_instance(one.provider_id) == instance_ref(one.url) == one
    for text in ("gce://p1/n", "gce:///p1/z/n", "gce://p1/z/n/", "aws:///z/i-1", "gce://p/z/../x"):
        assert node_instance(text) is None
    assert instance_ref("projects/p1/zones/z/disks/d") is None


def test_templates_are_global_or_regional() -> None:
    root = "https://www.googleapis.com/compute/v1/projects/p1"
    assert template_ref(f"{root}/global/instanceTemplates/t") == InstanceTemplateRef("p1", "", "t")
    regional = template_ref(f"{root}/regions/us-east1/instanceTemplates/t")
    assert regional == InstanceTemplateRef("p1", "us-east1", "t")
    assert template_ref(f"{root}/zones/z/instanceTemplates/t") is None


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("n2-custom-8-16384", (8, 16384)),
        ("custom-4-5120", (4, 5120)),
        ("n2d-custom-8-65536-ext", (8, 65536)),
        ("e2-custom-medium-4096", (2, 4096)),
        ("n2-custom-medium-4096", None),
        ("n2-standard-8", None),
        ("custom", None),
    ],
)
def test_a_custom_type_has_its_size_in_its_name(name: str, size: tuple[int, int] | None) -> None:
    found = custom_type(name)
    assert (None if found is None else (found.guest_cpus, found.memory_mb)) == size


def test_the_kernel_keeps_what_cluster_autoscaler_expects() -> None:
    small, large = 2 * GIB, 64 * GIB
    assert kernel_memory(small, "", is_arm=False) == small // 64 + 24 * MIB
    assert kernel_memory(large, "", is_arm=False) == large // 64 + 80 * MIB
    cos = kernel_memory(large, "cos", is_arm=False)
    assert cos == large // 64 + 80 * MIB + int(0.00175 * large)
    assert kernel_memory(large, "ubuntu", is_arm=False) == cos + 4 * MIB
    assert kernel_memory(large, "cos", is_arm=True) == round(cos * 0.9971)
    huge = 1024 * GIB
    assert kernel_memory(huge, "cos", is_arm=False) == huge // 64 + (80 + 248) * MIB


@given(st.text(), st.text())
def test_whatever_metadata_has_it_is_read_or_reported(kube_env: str, own: str) -> None:
    items = [MetadataItem(key=KUBE_ENV, value=kube_env), MetadataItem(key=OWN_ITEM, value=own)]
    found = read_metadata(items)
    assert set(found.blockers) <= set(found.problems)


ENTRIES = st.text("ab=:.-/", min_size=1) | st.sampled_from(["a=b:NoSchedule", "a=:NoExecute"])


@given(st.lists(ENTRIES))
def test_every_taint_is_read_or_blocks_the_template(entries: list[str]) -> None:
    text = f"os=linux;node_taints={','.join(entries)}"
    found = read_metadata([MetadataItem(key=OWN_ITEM, value=text)])
    assert len(found.taints) + len(found.blockers) == len(entries)
