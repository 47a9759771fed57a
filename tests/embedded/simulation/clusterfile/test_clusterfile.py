"""Cluster files: what they may say, and that errors name the line and the field."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.configfiles import ConfigFileError
from bayplan.base.durations import DurationError, format_duration, parse_duration
from bayplan.embedded.control.faults import FAULT_KINDS
from bayplan.embedded.simulation.clusterfile import parse_cluster, read_cluster
from tests.embedded.simulation.virtual_clusters import CLUSTER, virtual_cluster

pytestmark = pytest.mark.whole


EXAMPLES = Path(__file__).parents[4] / "examples"

_GROUP = "instanceTypes: [{name: a}]\nnodeGroups:\n  - name: g\n    instanceType: a\n"
_MANIFEST = (
    "workloads:\n  - manifest:\n      apiVersion: apps/v1\n      kind: Deployment\n"
    "      metadata: {name: web}\n      spec:\n"
)
BAD = {
    "an unknown field": (
        "instanceTypes:\n  - name: a\n    cpus: 4\n",
        3,
        "instanceTypes[0].cpus",
        "unknown field",
    ),
    "an unknown section": ("seed: 1\nnodes: []\n", 2, "nodes", "unknown field"),
    "a missing name": ("instanceTypes:\n  - cpu: 4\n", 2, "instanceTypes[0]", "name"),
    "a wrong type": ("seed: many\n", 1, "seed", "expected int"),
    "a bad quantity": (
        "instanceTypes:\n  - name: a\n    memory: 16Gigs\n",
        3,
        "instanceTypes[0].memory",
        "16Gigs",
    ),
    "an unknown instance type": (
        "nodeGroups:\n  - name: g\n    instanceType: b\n",
        3,
        "nodeGroups[0].instanceType",
        "there are: none",
    ),
    "a count beyond the maximum": (
        _GROUP + "    max: 2\n    count: 3\n",
        6,
        "nodeGroups[0].count",
        "not between",
    ),
    "a bad duration": (
        "csiDrivers:\n  - name: d\n    attach: soon\n",
        3,
        "csiDrivers[0].attach",
        "is not a duration",
    ),
    "an unknown fault": ("faults:\n  - kind: rain\n", 2, "faults[0].kind", "rain"),
    "a fault for an unknown group": (
        "faults:\n  - kind: stock-out\n    group: g\n",
        3,
        "faults[0].group",
        "node group 'g'",
    ),
    "a fault that cannot be aimed so": (
        "faults:\n  - kind: quota\n    zone: zone-a\n",
        3,
        "faults[0].zone",
        "only the target fields: group",
    ),
    "the same name twice": (
        "csiDrivers:\n  - name: d\n  - name: d\n",
        3,
        "csiDrivers[1].name",
        "duplicate",
    ),
    "the same key twice": ("seed: 1\nseed: 2\n", 2, "", "duplicate"),
    "no YAML": ("a: [\n", 2, "", "not YAML"),
    "a workload of nothing": ("workloads:\n  - at: 5m\n", 2, "workloads[0]", "either"),
    "a missing file": (
        "workloads:\n  - file: absent.yaml\n",
        2,
        "workloads[0].file",
        "No such file",
    ),
    "a manifest without a kind": (
        "workloads:\n  - manifest:\n      apiVersion: v1\n      metadata: {name: a}\n",
        2,
        "workloads[0].manifest",
        "kind",
    ),
    "a misspelt fault": (
        "faults:\n  - kind: node-die\n",
        2,
        "faults[0].kind",
        "did you mean 'node-dies'? there are: attach-fails, detach-sticks",
    ),
    "a misspelt node": (
        _GROUP + "    count: 2\nfaults:\n  - kind: node-dies\n    node: h-1\n",
        8,
        "faults[0].node",
        "there is no node 'h-1'; did you mean 'g-1'? there are: g-1, g-2",
    ),
    "a node that no group can have": (
        _GROUP + "    max: 2\nfaults:\n  - kind: node-dies\n    node: g-3\n",
        8,
        "faults[0].node",
        "there are: g-1",
    ),
    "a misspelt zone": (
        _GROUP + "faults:\n  - kind: stock-out\n    zone: zone-b\n",
        7,
        "faults[0].zone",
        "there is no zone 'zone-b'; did you mean 'zone-a'? there are: zone-a",
    ),
    "a misspelt driver": (
        "csiDrivers: [{name: disk}]\nfaults:\n  - kind: attach-fails\n    driver: disc\n",
        4,
        "faults[0].driver",
        "did you mean 'disk'?",
    ),
    "a misspelt field": (
        "csiDrivers:\n  - name: d\n    atach: 3s\n",
        3,
        "csiDrivers[0].atach",
        "did you mean 'attach'? there are: attach, attachRequired, detach",
    ),
    "a misspelt word": (
        (
            "csiDrivers: [{name: d}]\nstorageClasses:\n  - name: s\n    driver: d\n"
            "    binding: immediate\n"
        ),
        5,
        "storageClasses[0].binding",
        "did you mean 'Immediate'?",
    ),
    "a misspelt field of a manifest": (
        _MANIFEST + "        replicaz: 3\n",
        7,
        "workloads[0].manifest.spec.replicaz",
        "unknown field; did you mean 'replicas'?",
    ),
    "a misspelt field deep in a manifest": (
        _MANIFEST + "        template:\n          spec:\n            containers:\n"
        "              - name: c\n                resources:\n                  request: {}\n",
        12,
        "workloads[0].manifest.spec.template.spec.containers[0].resources.request",
        "did you mean 'requests'?",
    ),
    "a wrong type in a manifest": (
        _MANIFEST + "        replicas: three\n",
        7,
        "workloads[0].manifest.spec.replicas",
        'cannot read "three" as int32',
    ),
    "a misspelt field of the second manifest": (
        (
            "workloads:\n  - manifest:\n"
            "      - {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n"
            "      - {apiVersion: v1, kind: Pod, metadata: {name: a, label: {}}}\n"
        ),
        4,
        "workloads[0].manifest[1].metadata.label",
        "did you mean 'labels'?",
    ),
    "a bad label": (
        _GROUP + "    labels:\n      team: a b\n",
        6,
        "nodeGroups[0].labels.team",
        "is not a valid label",
    ),
    "a group whose nodes' labels are too long": (
        f"instanceTypes: [{{name: a}}]\nnodeGroups: [{{name: {'g' * 60}, instanceType: a}}]\n",
        2,
        "nodeGroups[0]",
        "its nodes would be refused: metadata.labels",
    ),
    "an instance type that is no label": (
        "instanceTypes: [{name: a b}]\nnodeGroups: [{name: g, instanceType: a b}]\n",
        2,
        "nodeGroups[0]",
        '"a b"',
    ),
    "a taint that is none": (
        _GROUP + "    taints:\n      - {key: a b, effect: NoSchedule}\n",
        6,
        "nodeGroups[0].taints[0].a b",
        "is not a valid label",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_an_error_names_the_line_and_the_field(what: str) -> None:
    text, line, field, said = BAD[what]
    with pytest.raises(ConfigFileError) as caught:
        parse_cluster(text.encode(), "c.yaml", Path("/nonexistent"))
    assert (caught.value.line, caught.value.field) == (line, field)
    assert str(caught.value).startswith(f"c.yaml:{line}: ")
    assert said in str(caught.value)


async def test_a_manifest_that_the_server_refuses_is_named_with_its_line() -> None:
    text = (
        CLUSTER
        + """
workloads:
  - manifest:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec: {}
"""
    )
    with pytest.raises(ConfigFileError, match=r"workloads\[0\].manifest.*spec.selector") as caught:
        async with virtual_cluster(text):
            pass
    assert caught.value.line == text.splitlines().index("  - manifest:") + 1


def test_a_misspelt_field_in_another_file_is_named_with_its_line_there(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n# two\napiVersion: v1\n"
        "kind: Pod\nmetadata: {name: p}\nspec:\n  container: []\n"
    )
    with pytest.raises(ConfigFileError) as caught:
        parse_cluster(b"workloads:\n  - file: web.yaml\n", "c.yaml", tmp_path)
    assert (caught.value.line, caught.value.field) == (2, "workloads[0].file")
    said = "web.yaml:10: spec.container: unknown field; did you mean 'containers'"
    assert said in str(caught.value)


async def test_a_misspelt_kind_is_named_with_what_was_meant() -> None:
    obj = "{apiVersion: apps/v1, kind: Deploymnt, metadata: {name: a}}"
    text = f"workloads:\n  - at: 5m\n    manifest: {obj}\n"
    with pytest.raises(ConfigFileError, match="did you mean 'apps/v1 Deployment'"):
        async with virtual_cluster(text):
            pass


async def test_a_kind_that_nobody_serves_is_named() -> None:
    text = "workloads:\n  - manifest: {apiVersion: x/v1, kind: Y, metadata: {name: a}}\n"
    with pytest.raises(ConfigFileError, match="no such kind is served: 'x/v1 Y'"):
        async with virtual_cluster(text):
            pass


CLUSTER_FILES = [
    path for path in sorted(EXAMPLES.glob("**/[0-9d]*.yaml")) if "clusters" not in path.parts
]


@pytest.mark.parametrize("path", CLUSTER_FILES, ids=lambda p: p.stem)
def test_the_examples_can_be_read(path: Path) -> None:
    assert read_cluster(path).groups


def test_there_is_an_example_for_each_story() -> None:
    numbers = [int(path.name[0]) for path in sorted((EXAMPLES / "stories").glob("*.yaml"))]
    assert numbers == list(range(1, 9))


def test_the_documented_file_can_be_read(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "cluster-file.md").read_text()
    text = page.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "web.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: a}}")
    spec = parse_cluster(text.encode(), "c.yaml", tmp_path)
    assert len(spec.workloads) == 3
    assert all(kind in page for kind in FAULT_KINDS)


def test_an_empty_file_is_an_empty_cluster() -> None:
    assert parse_cluster(b"", "c.yaml", Path()).groups == ()


@given(st.text(max_size=200))
def test_no_text_does_more_than_a_named_error(text: str) -> None:
    with contextlib.suppress(ConfigFileError):
        parse_cluster(text.encode(errors="replace"), "c.yaml", Path("/nonexistent"))


@given(st.integers(0, 10**10))
def test_durations_are_read_back_as_written(millis: int) -> None:
    assert parse_duration(format_duration(millis / 1000)) == pytest.approx(millis / 1000)


@pytest.mark.parametrize("text", ["", "soon", "-5s", "5 s", "1h-1m", "1" * 50, "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)
