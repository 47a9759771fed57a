"""Garbage through the command line: never a traceback, a clear error, never a wrong "fits"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.cli.main import run
from tests.cli.clusters import Wire, dump, node, pod

pytestmark = pytest.mark.whole


Captured = pytest.CaptureFixture[str]
HUGE = "9" * 300
LONG = "x" * (10 << 20)


def explain_bytes(folder: Path, data: bytes, name: str = "cluster.json") -> int:
    path = folder / name
    path.write_bytes(data)
    return run(["explain", "-f", str(path), "default/p"])


def claims_to_fit(out: str) -> bool:
    return "fits node" in out


def in_pod(path: str, value: object) -> Wire:
    """The pod with something else at a place."""
    changed = pod()
    at: Any = changed
    *parents, last = path.split(".")
    for key in parents:
        at = at[int(key)] if key.isdecimal() else at.setdefault(key, {})
    at[last] = value
    return changed


BAD_PODS = [
    in_pod("spec.containers", "none"),
    in_pod("spec.containers", [7]),
    in_pod("spec.containers.0.resources", ["cpu"]),
    in_pod("spec.containers.0.resources.requests", {"cpu": "-1"}),
    in_pod("spec.containers.0.resources.requests", {"cpu": HUGE}),
    in_pod("spec.containers.0.resources.requests", {"cpu": "1e99999"}),
    in_pod("spec.containers.0.resources.requests", {"cpu": {}}),
    in_pod("spec.containers.0.resources.requests", {"memory": "-5Gi"}),
    in_pod("spec.containers.0.resources.requests", {"cpu": True}),
    in_pod("spec.tolerations", [{"operator": "Maybe"}]),
    in_pod("spec.tolerations", {"key": "a"}),
    in_pod("spec.nodeSelector", ["a"]),
    in_pod("spec.nodeSelector", {"a": 1}),
    in_pod("spec.affinity", "near"),
    in_pod("spec.priority", 1 << 80),
    in_pod("spec.priority", "high"),
    in_pod("spec.topologySpreadConstraints", [{"maxSkew": 0}]),
    in_pod("spec.topologySpreadConstraints", [{"maxSkew": -1, "topologyKey": "z",
                                               "whenUnsatisfiable": "DoNotSchedule"}]),
    in_pod("spec.volumes", [{"name": "v", "persistentVolumeClaim": "c"}]),
    in_pod("spec.schedulingGates", ["closed"]),
    in_pod("spec", []),
    in_pod("metadata.labels", {"a": {"b": "c"}}),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_PODS, ids=lambda bad: json.dumps(bad["spec"])[:60])
def test_a_pod_that_cannot_be_read_is_bad_input(
    bad: Wire, tmp_path: Path, capsys: Captured
) -> None:
    assert run(["explain", "-f", dump(tmp_path, node(), bad), "default/p"]) == 2
    captured = capsys.readouterr()
    assert not claims_to_fit(captured.out)
    assert "Pod default/p" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "amount", ["0", "-4", HUGE, "1e-9", "4Ki4", "", " ", [], {}, None, True, -1, 1e400]
)
def test_a_node_with_absurd_amounts_takes_no_pod(
    amount: object, tmp_path: Path, capsys: Captured
) -> None:
    where = dump(tmp_path, node(cpu=amount), pod())
    assert run(["explain", "-f", where, "default/p"]) == 1
    assert not claims_to_fit(capsys.readouterr().out)


@pytest.mark.parametrize("cpu", ["9223372036854775807", "1e18", "8E"])
def test_a_huge_request_fits_nowhere_and_wraps_nothing(
    cpu: str, tmp_path: Path, capsys: Captured
) -> None:
    where = dump(tmp_path, node(cpu="9223372036854775807"), pod(cpu=cpu))
    assert run(["explain", "-f", where, "default/p"]) in {1, 2}
    assert not claims_to_fit(capsys.readouterr().out)


def test_many_huge_requests_do_not_add_up_to_nothing(tmp_path: Path, capsys: Captured) -> None:
    running = [pod(f"r{i}", cpu="9e15", nodeName="n1") for i in range(300)]
    assert run(["explain", "-f", dump(tmp_path, node(), *running, pod()), "default/p"]) == 1
    assert not claims_to_fit(capsys.readouterr().out)


def test_references_to_nothing_do_not_fit(tmp_path: Path, capsys: Captured) -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}
    where = dump(tmp_path, node(), pod(volumes=[claim]))
    assert run(["explain", "-f", where, "default/p"]) == 1
    assert 'persistentvolumeclaim "gone" not found' in capsys.readouterr().out


def test_a_claim_and_a_volume_that_only_know_each_other_do_not_fit(
    tmp_path: Path, capsys: Captured
) -> None:
    claim: Wire = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"volumeName": "v"},
        "status": {"phase": "Lost"},
    }
    volume: Wire = {
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {"claimRef": {"namespace": "default", "name": "other"}},
    }
    wants = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    where = dump(tmp_path, node(), claim, volume, wants)
    assert run(["explain", "-f", where, "default/p"]) == 1
    assert not claims_to_fit(capsys.readouterr().out)


def test_owners_that_own_each_other_are_harmless(tmp_path: Path) -> None:
    one, other = pod("p"), pod("q")
    for mine, theirs in ((one, "q"), (other, "p")):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": theirs, "controller": True}
        mine["metadata"]["ownerReferences"] = [owner]
    assert run(["explain", "-f", dump(tmp_path, node(), one, other), "default/p"]) == 0


def test_yaml_that_refers_to_itself_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    text = b"kind: Pod\nmetadata: &m\n  name: p\n  labels: *m\n"
    assert explain_bytes(tmp_path, text, "cluster.yaml") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_yaml_that_grows_when_read_is_bad_input(tmp_path: Path, capsys: Captured) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]" for i in range(12)
    ]
    assert explain_bytes(tmp_path, "\n".join(lines).encode(), "cluster.yaml") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    odd = in_pod("spec.flavour", {"deep": [1, {"x": None}]})
    odd["comment"] = ["?"]
    assert run(["explain", "-f", dump(tmp_path, node(), odd), "default/p"]) == 0


def test_unknown_kinds_are_skipped(tmp_path: Path) -> None:
    other = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert run(["explain", "-f", dump(tmp_path, other, node(), pod()), "default/p"]) == 0


@pytest.mark.parametrize(
    "bad",
    [
        in_pod("metadata.labels", {"app": LONG}),
        in_pod("spec.nodeSelector", {LONG: "a"}),
        in_pod("spec.containers.0.resources.requests", {"cpu": LONG}),
    ],
    ids=["label", "selector", "quantity"],
)
def test_strings_of_ten_megabytes_give_short_errors(
    bad: Wire, tmp_path: Path, capsys: Captured
) -> None:
    assert run(["explain", "-f", dump(tmp_path, node(), bad), "default/p"]) == 2
    assert len(capsys.readouterr().err) < 2000


def test_a_name_of_ten_megabytes_is_asked_for_in_vain(tmp_path: Path, capsys: Captured) -> None:
    where = dump(tmp_path, node(), pod())
    assert run(["explain", "-f", where, f"default/{LONG}"]) == 2
    assert len(capsys.readouterr().err) < 2000


@pytest.mark.parametrize("depth", [1_000, 200_000])
def test_deep_nesting_is_bad_input(depth: int, tmp_path: Path, capsys: Captured) -> None:
    nested = b'{"kind":"Pod","metadata":{"name":"p"},"spec":' + b"[" * depth + b"]" * depth + b"}"
    assert explain_bytes(tmp_path, nested) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe\x00garbage",
        b'{"kind": "Pod", "metadata": {"name": "p\xff"}}',
        b"{",
        b"[]",
        b"null",
        b"7",
        b'"text"',
        b"\x00" * 4096,
        b"\x1f\x8b broken gzip",
        b'{"kind":"List","items":7}',
        b'{"kind":"List","items":[null,1,"a",[]]}',
        b"kind: [unclosed",
        b"- - - -",
        b"%YAML 9.9\n---\n",
        b"!!python/object/apply:os.system ['true']",
    ],
    ids=repr,
)
def test_what_is_no_dump_is_bad_input(
    data: bytes, name: str, tmp_path: Path, capsys: Captured
) -> None:
    assert explain_bytes(tmp_path, data, name) == 2
    captured = capsys.readouterr()
    assert captured.err.strip()
    assert "Traceback" not in captured.err


wires = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
PLACES = [
    "metadata.labels", "metadata.annotations", "metadata.ownerReferences", "spec.containers",
    "spec.initContainers", "spec.volumes", "spec.nodeName", "spec.nodeSelector", "spec.affinity",
    "spec.tolerations", "spec.topologySpreadConstraints", "spec.overhead", "spec.resources",
    "spec.priority", "spec.preemptionPolicy", "spec.schedulingGates", "status", "status.phase",
    "status.conditions", "spec.containers.0.resources", "spec.containers.0.ports",
]  # fmt: skip


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.sampled_from(PLACES), value=wires)
def test_no_value_at_any_place_of_a_pod_is_a_traceback(
    place: str, value: object, tmp_path: Path, capsys: Captured
) -> None:
    where = dump(tmp_path, node(), in_pod(place, value))
    assert run(["explain", "-f", where, "default/p"]) in {0, 1, 2}
    assert "Traceback" not in capsys.readouterr().err


OTHERS: list[Wire] = [
    {"kind": "Node", "metadata": {"name": "n2"}, "spec": {}, "status": {"allocatable": {}}},
    {"kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": []}},
    {"kind": "CSIDriver", "metadata": {"name": "d"}, "spec": {}},
    {"kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "d", "spec": {}},
    {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"capacity": {}}},
    {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"resources": {}}},
    {"kind": "VolumeAttachment", "metadata": {"name": "a"}, "spec": {"source": {}}},
    {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {}, "status": {}},
    {"kind": "PriorityClass", "metadata": {"name": "k"}, "value": 1, "spec": {}},
    {"kind": "Service", "metadata": {"name": "w"}, "spec": {"selector": {}}},
    {"kind": "StatefulSet", "metadata": {"name": "t"}, "spec": {"selector": {}}},
]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(other=st.sampled_from(OTHERS), data=st.data())
def test_no_value_at_any_place_of_any_object_is_a_traceback(
    other: Wire, data: st.DataObject, tmp_path: Path, capsys: Captured
) -> None:
    changed = json.loads(json.dumps(other))
    parent = data.draw(st.sampled_from(["metadata", "spec", "status"]))
    changed.setdefault(parent, {})
    key = data.draw(st.sampled_from([*changed[parent], "labels", "drivers", "nodeName", "taints"]))
    changed[parent][key] = data.draw(wires)
    where = dump(tmp_path, node(), changed, pod())
    assert run(["explain", "-f", where, "default/p"]) in {0, 1, 2}
    assert run(["volumes", "-f", where]) in {0, 2}
    assert "Traceback" not in capsys.readouterr().err
